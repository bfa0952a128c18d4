/** Helpers over whole stretches of the tree: parents made, subtrees walked and deleted. */

import {
  childOf,
  deleteBatchMax,
  frameBytesMax,
  isWithin,
  isZkError,
  parentOf,
  type StatView,
  ZkError,
} from '../protocol/index.ts';
import type { DataInput } from './arguments.ts';
import type { Client, CreateOptions } from './client.ts';
import type { CallOptions } from './core.ts';
import type { Created } from './multi-ops.ts';

/** Nodes that are asked for at once: enough to hide the way to the server, few enough to be polite. */
const walkAtOnce = 64;
/** How often a subtree that others keep adding to is looked through again. */
const roundsMax = 10;

export async function createWithParents(
  client: Client,
  path: string,
  data: DataInput | undefined,
  { parents: _, ...options }: CreateOptions,
): Promise<Created> {
  const { signal, timeoutMs, acl } = options;
  const inherited = {
    ...(signal && { signal }),
    ...(timeoutMs && { timeoutMs }),
    ...(acl && { acl }),
  };
  // Bounded by how often somebody else may delete what was just made.
  for (let round = 0; ; round++) {
    try {
      return await client.create(path, data, options);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE') || round === roundsMax) throw error;
    }
    const parent = parentOf(path);
    if (parent === null || parent === '/') throw new ZkError('NO_NODE', { op: 'create', path });
    try {
      await createWithParents(client, parent, undefined, inherited);
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }
}

export interface WalkOptions extends CallOptions {
  /** 0 is the node itself alone, 1 its children too, and so on. No limit unless said. */
  readonly depthMax?: number;
  /**
   * Called for each node below the first that may not be read: it is left out, with all below it. Without this
   * such a node ends the walk with NO_AUTH.
   */
  readonly onUnreadable?: (path: string) => void;
}

export interface Walked {
  readonly path: string;
  readonly stat: StatView;
  readonly depth: number;
}

/**
 * Level by level. Not a picture of one moment: what others make or delete meanwhile may or may not
 * be in it. A node that goes while it is visited is left out; the first one missing is NO_NODE.
 */
export async function* walk(
  client: Client,
  root: string,
  { depthMax = Number.POSITIVE_INFINITY, onUnreadable, ...options }: WalkOptions,
): AsyncGenerator<Walked, void, undefined> {
  let level = [root];
  for (let depth = 0; level.length > 0 && depth <= depthMax; depth++) {
    const below: string[] = [];
    for (let at = 0; at < level.length; at += walkAtOnce) {
      const paths = level.slice(at, at + walkAtOnce);
      const seen = await Promise.all(
        paths.map((path) => visit(client, path, options, depth > 0 ? onUnreadable : undefined)),
      );
      for (const [i, node] of seen.entries()) {
        const path = paths[i]!;
        if (node === null) {
          if (depth === 0) throw new ZkError('NO_NODE', { op: 'walk', path });
          continue;
        }
        if (depth < depthMax) for (const name of node.children) below.push(childOf(path, name));
        yield { path, stat: node.stat, depth };
      }
    }
    level = below;
  }
}

async function visit(
  client: Client,
  path: string,
  options: CallOptions,
  onUnreadable: ((path: string) => void) | undefined,
) {
  try {
    return await client.childrenAndStat(path, options);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    if (!isZkError(error, 'NO_AUTH') || onUnreadable === undefined) throw error;
    onUnreadable(path);
    return null;
  }
}

export interface DeleteProgress {
  /** Told after every batch how many nodes are gone. */
  readonly onProgress?: (deleted: number) => void;
}

export async function deleteRecursive(
  client: Client,
  root: string,
  { onProgress, ...options }: CallOptions & DeleteProgress,
): Promise<number> {
  let deleted = 0;
  // Of everything there is the server's own nodes stay; below a chroot none of them is.
  const isAll = root === '/' && client.chroot === '';
  for (let round = 0; round < roundsMax; round++) {
    const paths: string[] = [];
    try {
      for await (const { path } of walk(client, root, options)) {
        if (path !== '/' && !(isAll && isWithin(path, '/zookeeper'))) paths.push(path);
      }
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
      if (round === 0) throw new ZkError('NO_NODE', { op: 'deleteRecursive', path: root });
      return deleted;
    }
    for (const batch of batches(paths.reverse())) {
      deleted += await deleteBatch(client, batch, options);
      onProgress?.(deleted);
    }
    if ((await client.exists(root, options)) === null) return deleted;
    if (root === '/' && paths.length === 0) return deleted;
  }
  throw new ZkError('NOT_EMPTY', {
    op: 'deleteRecursive',
    path: root,
    detail: `others keep adding to it; ${deleted} nodes were deleted in ${roundsMax} rounds`,
  });
}

/** At most so many, and so many bytes, that a batch stays far below what a server takes. */
function* batches(paths: readonly string[]): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const size = 24 + Buffer.byteLength(path);
    if (batch.length > 0 && (batch.length === deleteBatchMax || bytes + size > frameBytesMax / 4)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(path);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

async function deleteBatch(
  client: Client,
  batch: readonly string[],
  options: CallOptions,
): Promise<number> {
  try {
    await client.multi(
      batch.map((path) => ({ op: 'delete', path }) as const),
      options,
    );
    return batch.length;
  } catch (error) {
    if (!isZkError(error, 'NO_NODE', 'NOT_EMPTY')) throw error;
  }
  // Somebody else is at work here: one by one, leaving what has new children for the next round.
  const outcomes = await Promise.all(
    batch.map(async (path) => {
      try {
        await client.delete(path, options);
        return 1;
      } catch (error) {
        if (isZkError(error, 'NO_NODE', 'NOT_EMPTY')) return 0;
        throw error;
      }
    }),
  );
  return outcomes.reduce<number>((sum, one) => sum + one, 0);
}
