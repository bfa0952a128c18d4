/**
 * The keys of a configuration: what each has to hold, and what it holds while it has no node.
 *
 * In: JSON of nodes. Out: values that have passed, frozen, or the problems that keep them out.
 */

import { ArgumentError } from '../client/index.ts';
import { checkNodeName } from './cache-arguments.ts';
import type { SavedNode } from './config-file.ts';
import { historyName } from './config-history.ts';
import { copied, frozen, JsonError, parseJson } from './config-json.ts';
import type { Picture } from './config-live.ts';
import { checkOf, type Schema, SchemaError } from './config-schema.ts';
import type { NodeNow } from './config-writer.ts';

/** Why the newest state of the server, or the file, is not in use. */
export interface ConfigProblem {
  /** The node or the file. */
  readonly path: string;
  readonly error: Error;
}

export interface ConfigReading {
  readonly values: object;
  /** With any of these the values are not to be used. */
  readonly problems: readonly ConfigProblem[];
}

export class ConfigKeys {
  readonly #checks = new Map<string, (value: unknown) => unknown>();
  readonly #defaults: Readonly<Record<string, unknown>>;
  readonly #pathOf: (key: string) => string;

  constructor(
    schemas: Readonly<Record<string, Schema<unknown>>>,
    defaults: Readonly<Record<string, unknown>>,
    pathOf: (key: string) => string,
  ) {
    for (const [key, schema] of Object.entries(schemas)) {
      checkNodeName(`schemas.${key}`, key);
      if (key === historyName || key === '__proto__') {
        throw new ArgumentError(`schemas.${key}`, 'this name is taken');
      }
      this.#checks.set(key, checkOf(schema, `schemas.${key}`));
    }
    if (this.#checks.size === 0) throw new ArgumentError('schemas', 'at least one key is wanted');
    this.#defaults = copied(defaults); // the caller may change its own
    this.#pathOf = pathOf;
  }

  get all(): readonly string[] {
    return [...this.#checks.keys()];
  }

  refuseUnknown(key: string): void {
    if (this.#checks.has(key)) return;
    const why = `one of ${this.all.join(', ')} is wanted, not ${JSON.stringify(key)}`;
    throw new ArgumentError('key', why);
  }

  /** Throws a SchemaError that says where. */
  checked(key: string, raw: unknown, where = this.#pathOf(key)): unknown {
    try {
      // A schema may hand out what the caller still holds, or the same object every time.
      return frozen(copied(this.#checks.get(key)!(raw)));
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      throw new SchemaError(`${where}: ${error.message}`, { cause: error.cause });
    }
  }

  parsed(key: string, data: Uint8Array | null): unknown {
    return this.checked(key, parseJson(data, this.#pathOf(key)));
  }

  /** What a key holds now; undefined when it has neither node nor default. */
  valueOf({ key, data, version }: NodeNow): unknown {
    return version === null ? this.#defaultOf(key) : this.parsed(key, data);
  }

  /** As `valuesOf`, of the nodes themselves. */
  read(picture: Picture): ConfigReading & { readonly nodes: ReadonlyMap<string, SavedNode> } {
    const nodes = new Map<string, SavedNode>();
    const problems: ConfigProblem[] = [];
    for (const [key, node] of picture) {
      const path = this.#pathOf(key);
      try {
        const raw = node === undefined ? undefined : parseJson(node.data, path);
        nodes.set(key, { version: node?.stat.mzxid ?? null, raw });
      } catch (error) {
        problems.push({ path, error: error as Error });
      }
    }
    if (problems.length > 0) return { nodes, values: {}, problems };
    return { nodes, ...this.valuesOf(nodes) };
  }

  /** All values, or all that is wrong with them. */
  valuesOf(nodes: ReadonlyMap<string, SavedNode>, pathOf = this.#pathOf): ConfigReading {
    const values: [string, unknown][] = [];
    const problems: ConfigProblem[] = [];
    for (const key of this.all) {
      const path = pathOf(key);
      const { version = null, raw } = nodes.get(key) ?? {};
      try {
        const value = version === null ? this.#defaultOf(key) : this.checked(key, raw, path);
        if (version === null && value === undefined) {
          throw new JsonError(`${path}: there is nothing, and no default`);
        }
        values.push([key, value]);
      } catch (error) {
        problems.push({ path, error: error as Error });
      }
    }
    return { values: Object.freeze(Object.fromEntries(values)), problems };
  }

  #defaultOf(key: string): unknown {
    if (!Object.hasOwn(this.#defaults, key)) return undefined;
    return this.checked(key, copied(this.#defaults[key]), `defaults.${key}`);
  }
}
