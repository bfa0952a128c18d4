/**
 * Whole subtrees, listed and deleted with little memory: what is held are the children of the nodes on
 * the way down, and those of a few neighbours that were asked for ahead.
 *
 * Not a picture of one moment. A node that goes meanwhile is left out; the first one missing is NO_NODE.
 */

import { type Client, isZkError, type Listener, type StatView, ZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';

/** Nodes asked for at once: enough to hide the way to the server. */
const aheadMax = 64;
/** A request stays far below what a server takes. */
const batchBytesMax = 256 * 1024;
const roundsMax = 10;

interface ListOptions {
  readonly signal: AbortSignal;
  readonly watch?: Listener;
}

async function childrenOrNone(
  client: Client,
  path: string,
  options: ListOptions,
): Promise<string[]> {
  try {
    return (await client.children(path, options)).sort();
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  }
}

/** In zkCli's order: a node's children together, then what is below each of them. */
export async function* listSubtree(
  client: Client,
  root: string,
  options: ListOptions,
): AsyncGenerator<string, void, undefined> {
  const children = (await client.children(root, options)).sort();
  yield root;
  yield* listBelow(client, root, children, options);
}

async function* listBelow(
  client: Client,
  parent: string,
  names: readonly string[],
  options: ListOptions,
): AsyncGenerator<string, void, undefined> {
  for (const name of names) yield childOf(parent, name);
  for (let at = 0; at < names.length; at += aheadMax) {
    const some = names.slice(at, at + aheadMax).map((name) => childOf(parent, name));
    const below = await Promise.all(some.map((path) => childrenOrNone(client, path, options)));
    for (const [i, path] of some.entries()) {
      if (below[i]!.length > 0) yield* listBelow(client, path, below[i]!, options);
    }
  }
}

export interface DeleteOptions {
  readonly signal: AbortSignal;
  /** Deletes in one request; one by one where it is 0 or less, as in zkCli. */
  readonly batchMax: number;
  readonly onProgress: (deleted: number) => void;
}

/** Deletes a node and all below it, deepest first, and says how many went. */
export async function deleteSubtree(
  client: Client,
  root: string,
  options: DeleteOptions,
): Promise<number> {
  const deletion = new Deletion(client, options);
  for (let round = 0; round < roundsMax; round++) {
    if (await deletion.below(root, round === 0)) {
      await deletion.add(root);
      await deletion.flush();
    }
    if (root === '/' || (await client.exists(root, { signal: options.signal })) === null) {
      return deletion.deleted;
    }
  }
  const detail = `others keep adding to it; ${deletion.deleted} nodes were deleted`;
  throw new ZkError('NOT_EMPTY', { op: 'deleteall', path: root, detail });
}

class Deletion {
  deleted = 0;
  readonly #client: Client;
  readonly #options: DeleteOptions;
  #batch: string[] = [];
  #batchBytes = 0;

  constructor(client: Client, options: DeleteOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** False where the node itself is gone already. */
  async below(path: string, mustBe = false): Promise<boolean> {
    const { signal } = this.#options;
    let names: string[];
    try {
      names = await this.#client.children(path, { signal });
    } catch (error) {
      if (mustBe || !isZkError(error, 'NO_NODE')) throw error;
      return false;
    }
    await this.#children(path, names);
    return true;
  }

  async #children(parent: string, names: readonly string[]): Promise<void> {
    const { signal } = this.#options;
    for (let at = 0; at < names.length; at += aheadMax) {
      const some = names
        .slice(at, at + aheadMax)
        .map((name) => childOf(parent, name))
        .filter((path) => path !== '/zookeeper');
      const below = await Promise.all(
        some.map((path) => childrenOrNone(this.#client, path, { signal })),
      );
      for (const [i, path] of some.entries()) {
        if (below[i]!.length > 0) await this.#children(path, below[i]!);
        await this.add(path);
      }
    }
  }

  async add(path: string): Promise<void> {
    if (path === '/') return;
    const bytes = 24 + Buffer.byteLength(path);
    // Before it is added: one name may be nearly as long as a request can be.
    if (this.#batchBytes + bytes > batchBytesMax) await this.flush();
    this.#batch.push(path);
    this.#batchBytes += bytes;
    if (this.#batch.length >= this.#options.batchMax) await this.flush();
  }

  async flush(): Promise<void> {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    this.#batchBytes = 0;
    const { signal, onProgress } = this.#options;
    try {
      const ops = batch.map((path) => ({ op: 'delete', path }) as const);
      if (batch.length > 1) await this.#client.multi(ops, { signal });
      else await this.#client.delete(batch[0]!, { signal });
      this.deleted += batch.length;
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'NOT_EMPTY')) throw error;
      // Somebody else is at work here: one by one, and what has new children in the next round.
      if (batch.length > 1) for (const path of batch) await this.#one(path);
    }
    onProgress(this.deleted);
  }

  async #one(path: string): Promise<void> {
    try {
      await this.#client.delete(path, { signal: this.#options.signal });
      this.deleted += 1;
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'NOT_EMPTY')) throw error;
    }
  }
}

// ── with Stats, and with data where they are wanted ───────────────────────────────────────────────

export interface Visited {
  readonly path: string;
  readonly depth: number;
  readonly stat: StatView;
  /** Only where it was asked for; null too where it may not be read. */
  readonly data: Buffer | null;
  /** The last of its parent's children. */
  readonly isLast: boolean;
}

export interface VisitOptions {
  readonly signal: AbortSignal;
  readonly depthMax?: number;
  readonly withData?: boolean;
  /** Told of what may not be read; without it that is an error. */
  readonly onRefused?: (path: string) => void;
}

interface Seen {
  readonly children: string[];
  readonly stat: StatView;
  readonly data: Buffer | null;
}

/** Parents before their children, and those in the order of their names. */
export async function* visitSubtree(
  client: Client,
  root: string,
  options: VisitOptions,
): AsyncGenerator<Visited, void, undefined> {
  const { onRefused: _, ...strict } = options;
  const seen = await look(client, root, strict); // of the root, not to be readable is the answer
  if (seen === null) throw new ZkError('NO_NODE', { op: 'getChildren2', path: root });
  yield* visit(client, root, seen, 0, true, options);
}

async function* visit(
  client: Client,
  path: string,
  { children, stat, data }: Seen,
  depth: number,
  isLast: boolean,
  options: VisitOptions,
): AsyncGenerator<Visited, void, undefined> {
  yield { path, depth, stat, data, isLast };
  const { depthMax = Number.POSITIVE_INFINITY, withData = false } = options;
  if (depth >= depthMax) return;
  const atOnce = withData ? dataAtOnce : aheadMax;
  for (let at = 0; at < children.length; at += atOnce) {
    const some = children.slice(at, at + atOnce).map((name) => childOf(path, name));
    const below = await Promise.all(some.map((each) => look(client, each, options)));
    for (const [i, each] of some.entries()) {
      const isTheLast = at + i === children.length - 1;
      if (below[i]) yield* visit(client, each, below[i], depth + 1, isTheLast, options);
    }
  }
}

/** Data may be a megabyte each. */
const dataAtOnce = 16;

async function look(client: Client, path: string, options: VisitOptions): Promise<Seen | null> {
  const { signal, withData, onRefused } = options;
  try {
    const [{ children, stat }, got] = await Promise.all([
      client.childrenAndStat(path, { signal }),
      withData ? client.get(path, { signal }) : null,
    ]);
    return { children: children.sort(), stat, data: got?.data ?? null };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    if (!isZkError(error, 'NO_AUTH') || onRefused === undefined) throw error;
    onRefused(path);
    return null;
  }
}
