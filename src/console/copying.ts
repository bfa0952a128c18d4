/**
 * Copies of subtrees into the place of this desk, from the same or from another.
 *
 * First a look: what would be created, changed and left, node by node, and nothing is written. Then the
 * copy, which does no more than the look counted, and for which a name is typed when it overwrites
 * something. It stands in the audit of the place that it changed. Undo takes all of it back in one
 * transaction, or none of it: nodes that were made go if nobody has touched them or put anything below
 * them, data that was overwritten comes back; ACLs that were changed make it impossible.
 */

import type { CallOptions, Client, MultiOp } from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { limits } from './api.ts';
import type { AuditLog, Undo } from './audit.ts';
import { type By, wayBack } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import type { ConsoleSources, Written } from './sources.ts';
import type { CopyCounts, CopyStep, CopyView } from './views.ts';

const stepsShown = 100;
/** Nodes that undo takes back: they have to fit into one transaction. */
const undoNodesMax = 1_000;
const undoBytesMax = 512 * 1024;

export interface CopyInput {
  readonly paths: readonly string[];
  readonly to: string;
  readonly onConflict: 'skip' | 'overwrite';
  readonly withAcl: boolean;
}

/** What is copied from: a desk, of which only this matters. */
export interface CopyPlace {
  readonly context: string | null;
  readonly sources: Pick<ConsoleSources, 'client' | 'servers'>;
}

class TooMany extends Error {}

export class Copying {
  readonly #sources: ConsoleSources;
  readonly #audit: AuditLog;

  constructor(sources: ConsoleSources, audit: AuditLog) {
    this.#sources = sources;
    this.#audit = audit;
  }

  async preview(
    input: CopyInput,
    here: CopyPlace,
    from: CopyPlace,
    call: CallOptions & { readonly signal: AbortSignal },
  ): Promise<CopyView> {
    const pairs = pairsOf(input, here, from);
    const counts: Counting = { create: 0, change: 0, acl: 0, skip: 0, ephemeral: 0, same: 0 };
    const steps: { step: CopyStep; path: string }[] = [];
    let seen = 0;
    const onStep = (step: CopyStep, path: string) => {
      seen += 1;
      if (steps.length < stepsShown) steps.push({ step, path });
      if (seen > limits.copyMax) throw new TooMany();
    };
    let isTooMany = false;
    try {
      for (const [fromPath, toPath] of pairs) {
        const line = { fromPath, toPath, onStep, dryRun: true, signal: call.signal };
        const found = await this.#run(input, from, { ...line, onWritten: () => {} });
        for (const [step, many] of Object.entries(found) as [keyof Counting, number][]) {
          counts[step] += many;
        }
      }
    } catch (error) {
      if (!(error instanceof TooMany)) throw error;
      isTooMany = true;
    }
    const overwrites = counts.change + counts.acl > 0;
    return { counts, steps, confirm: overwrites ? confirmOf(input) : null, isTooMany, done: false };
  }

  async copy(
    input: CopyInput & {
      readonly confirm: string | null;
      readonly create: number;
      readonly change: number;
    },
    here: CopyPlace,
    from: CopyPlace,
    { who, call }: By & { readonly call: CallOptions & { readonly signal: AbortSignal } },
  ): Promise<CopyView> {
    const note = `from ${from.context ?? from.sources.servers}, ${input.paths.join(' ')}`;
    const nothing = { before: null, after: null } as const;
    const written: Written[] = [];
    try {
      const view = await this.preview(input, here, from, call);
      checkAsked(input, view);
      for (const [fromPath, toPath] of pairsOf(input, here, from)) {
        written.push(...(await this.#missingAbove(toPath, call)));
        await this.#run(input, from, {
          fromPath,
          toPath,
          dryRun: false,
          signal: call.signal,
          onStep: () => {},
          onWritten: (one) => written.push(one),
        });
      }
      const undo = this.#undoOf(input.to, written);
      const way = undo ? 'possible' : written.length === 0 ? 'no' : 'tooLarge';
      const count = written.length;
      this.#audit.add(
        { action: 'copy', path: input.to, who, ok: true, note, count, ...nothing, undo: way },
        undo,
      );
      return { ...view, done: true };
    } catch (error) {
      // What was written before it failed stays: the next copy finds it equal and goes on.
      const why = error instanceof Error ? error.message : String(error);
      const undo = this.#undoOf(input.to, written);
      const count = written.length;
      const entry = { action: 'copy', path: input.to, who, ok: false, count, ...nothing } as const;
      this.#audit.add({ ...entry, note: `${note}: ${why}`, undo: undo ? 'possible' : 'no' }, undo);
      throw error;
    }
  }

  async #run(
    { onConflict, withAcl }: CopyInput,
    from: CopyPlace,
    line: Omit<
      Parameters<NonNullable<ConsoleSources['copy']>>[0],
      'from' | 'onConflict' | 'withAcl'
    >,
  ): Promise<CopyCounts> {
    const { copy } = this.#sources;
    if (copy === undefined) throw new ConsoleError('UNSUPPORTED', 'nothing can be copied here');
    return copy({ ...line, from: from.sources.client, onConflict, withAcl });
  }

  /** A copy makes what is missing above it, which undo has to know of. */
  async #missingAbove(path: string, call: CallOptions): Promise<Written[]> {
    const missing: Written[] = [];
    const { client } = this.#sources;
    for (let at = above(path); at !== '/'; at = above(at)) {
      if ((await client.exists(at, call)) !== null) break;
      missing.unshift({ kind: 'created', path: at });
    }
    return missing;
  }

  #undoOf(path: string, written: readonly Written[]): Undo | undefined {
    const bytes = written.reduce((sum, one) => sum + one.path.length + bytesOf(one), 0);
    const isAcl = written.some(({ kind }) => kind === 'acl');
    if (written.length === 0 || isAcl) return undefined;
    if (written.length > undoNodesMax || bytes > undoBytesMax) return undefined;
    const { client } = this.#sources;
    const paths = written.map((one) => one.path);
    return wayBack(path, bytes, () => takeBack(client, written), { client, paths });
  }
}

type Counting = { -readonly [S in keyof CopyCounts]: number };

async function takeBack(client: Client, written: readonly Written[]): Promise<void> {
  const ops = [...written].reverse().flatMap((one): MultiOp[] => {
    if (one.kind === 'created') return [{ op: 'delete', path: one.path, version: 0 }];
    if (one.kind === 'acl') return [];
    return [{ op: 'set', path: one.path, data: one.before, version: one.version }];
  });
  await client.multi(ops);
}

function bytesOf(one: Written): number {
  return one.kind === 'changed' ? (one.before?.length ?? 0) : 0;
}

function above(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function confirmOf({ to }: CopyInput): string {
  return to === '/' ? '/' : nameOf(to);
}

/** No more than was shown, and typed where something goes. */
function checkAsked(
  { confirm, create, change }: { confirm: string | null; create: number; change: number },
  view: CopyView,
): void {
  const { counts, isTooMany } = view;
  if (isTooMany) {
    throw new ConsoleError('TOO_LARGE', `more than ${limits.copyMax} nodes; use drover cp`);
  }
  if (counts.create > create || counts.change + counts.acl > change) {
    const why = `by now it is ${counts.create} to create and ${counts.change + counts.acl} to change; look again`;
    throw new ConsoleError('CONFLICT', why);
  }
  if (view.confirm !== null && confirm !== view.confirm) {
    throw new ConsoleError('CONFLICT', `type ${view.confirm} to overwrite`);
  }
}

/** Each path with where it goes. */
function pairsOf(input: CopyInput, here: CopyPlace, from: CopyPlace): [string, string][] {
  const { paths, to } = input;
  const pairs = paths.map((path): [string, string] => {
    if (paths.length === 1) return [path, to];
    if (path === '/') throw new ConsoleError('BAD_INPUT', 'paths: / is copied alone');
    return [path, childOf(to, nameOf(path))];
  });
  if (new Set(pairs.map(([, target]) => target)).size < pairs.length) {
    throw new ConsoleError('BAD_INPUT', 'paths: two of them have the same name');
  }
  if (here.context !== from.context) return pairs;
  for (const [path, target] of pairs) {
    if (path === target || target.startsWith(path === '/' ? '/' : `${path}/`)) {
      throw new ConsoleError('BAD_INPUT', `${path} can't be copied into itself`);
    }
  }
  return pairs;
}
