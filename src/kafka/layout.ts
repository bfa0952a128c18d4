/**
 * What a layout is: a table of nodes, each with its path, kind, content, writer and watcher.
 *
 * A row is declared once, and gives three things: the path of a node (`at`), the way back from a path
 * to its names (`match`), and the content in both directions (`parse`, `format`). Names in square
 * brackets stand for themselves: `/brokers/ids/[id]`.
 *
 * Parsing is forgiving where other writers were careless, and says so where nothing can be made of a
 * node: a `LayoutError` with the path. `tryParse` hands that to `onProblem` instead, so that garbage
 * in one node never stops who reads a thousand. What a row does not promise: that a node is there.
 */

export type NodeKind = 'persistent' | 'ephemeral' | 'persistentSequential';

/** What stands in a node, and its two directions. */
export interface Content<T> {
  /** For people: what it looks like. */
  readonly schema: string;
  /** Throws an Error that says what is wrong; the row adds the path. */
  parse(text: string | null): T;
  /** `version`: the form to write where there are several. The newest unless said. */
  format(value: T, version?: number): string | null;
}

/** A node whose content means nothing to us, or to nobody. */
export interface LayoutProblem {
  readonly path: string;
  readonly why: string;
  /** The content as found, cut after 200 characters. */
  readonly content: string | null;
}

export type OnProblem = (problem: LayoutProblem) => void;

/** A node does not hold what its layout says. The message names the path and what was found. */
export class LayoutError extends Error {
  override readonly name = 'LayoutError';
  readonly code = 'MALFORMED_NODE';
  readonly problem: LayoutProblem;

  constructor(problem: LayoutProblem, options?: ErrorOptions) {
    const found = problem.content === null ? 'no data' : JSON.stringify(problem.content);
    super(`${problem.path}: ${problem.why}; found ${found}`, options);
    this.problem = problem;
  }
}

type ParamsOf<P extends string> = P extends `${string}[${infer Name}]${infer Rest}`
  ? Name | ParamsOf<Rest>
  : never;
type Names<P extends string> = Readonly<Record<ParamsOf<P>, string | number>>;
type AtArguments<P extends string> = [ParamsOf<P>] extends [never] ? [] : [names: Names<P>];

export interface RowInput<P extends string, T> {
  readonly path: P;
  readonly kind: NodeKind;
  readonly content: Content<T>;
  readonly writer: string;
  /** Who watches it, and how. Empty: nobody. */
  readonly watcher: string;
  /** The first release of Kafka that has it. */
  readonly since?: string;
  /** Names are written URL-encoded, since they may hold what a path may not. */
  readonly encoded?: boolean;
}

export interface Row<P extends string = string, T = unknown> extends RowInput<P, T> {
  at(...names: AtArguments<P>): string;
  /** The names in a path of this row, or null when the path is of another. */
  match(path: string): Readonly<Record<ParamsOf<P>, string>> | null;
  /** Throws a LayoutError. */
  parse(data: Uint8Array | null, path: string): T;
  /** As `parse`; what cannot be read is told, and null comes back. */
  tryParse(data: Uint8Array | null, path: string, onProblem: OnProblem): T | null;
  format(value: T, version?: number): string | null;
}

const contentShownMax = 200;
const bracketed = /\[([^\]]+)\]/g;

export function row<const P extends string, T>(input: RowInput<P, T>): Row<P, T> {
  const names = [...input.path.matchAll(bracketed)].map(([, name]) => name!);
  const pattern = new RegExp(`^${input.path.replace(bracketed, '([^/]+)')}$`);
  const parse = (data: Uint8Array | null, path: string): T => {
    const text = data === null ? null : Buffer.from(data).toString('utf8');
    try {
      return input.content.parse(text);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const content = text === null ? null : text.slice(0, contentShownMax);
      throw new LayoutError({ path, why, content }, { cause });
    }
  };
  return {
    ...input,
    at(...args) {
      const given = (args[0] ?? {}) as Record<string, string | number>;
      return input.path.replace(bracketed, (_, name: string) => {
        const value = String(given[name]);
        return input.encoded ? sanitise(value) : value;
      });
    },
    match(path) {
      const found = pattern.exec(path);
      if (found === null) return null;
      const entries = names.map((name, i) => {
        const raw = found[i + 1]!;
        return [name, input.encoded ? desanitise(raw) : raw];
      });
      return Object.fromEntries(entries) as Record<ParamsOf<P>, string>;
    },
    parse,
    tryParse(data, path, onProblem) {
      try {
        return parse(data, path);
      } catch (error) {
        if (!(error instanceof LayoutError)) throw error;
        onProblem(error.problem);
        return null;
      }
    },
    format: (value, version) => input.content.format(value, version),
  };
}

export type Layout = Readonly<Record<string, Row<string, never>>>;

/** The row that a path belongs to, and the names in it. */
export function rowOf<L extends object>(
  layout: L,
  path: string,
): { readonly name: keyof L & string; readonly names: Readonly<Record<string, string>> } | null {
  for (const [name, one] of Object.entries(layout) as [keyof L & string, Row][]) {
    const names = one.match(path);
    if (names !== null) return { name, names };
  }
  return null;
}

/** As Kafka's Sanitizer: Java's form encoding, without the characters that JMX minds. */
export function sanitise(name: string): string {
  return encodeURIComponent(name)
    .replace(/[!'()~]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/\*/g, '%2A');
}

/** A name that was never encoded is left as it is: `%` alone is legal in a path. */
export function desanitise(name: string): string {
  try {
    return decodeURIComponent(name.replace(/\+/g, '%20'));
  } catch {
    return name;
  }
}
