/**
 * Cuts in storage, and where a partition goes on.
 *
 * A cut lies in one node, made in the very transaction that moves the limit; a large one lies in parts
 * below its node, which are made before, and count only once the pointer in `limit` names them. So a
 * leader that loses its term half way leaves nothing that anybody reads.
 *
 * A partition is opened at the later of the last cut and the last handover. Both are marks up to which
 * everything is done, so the later one loses nothing.
 */

import { isZkError, type MultiOp } from '../client/index.ts';
import { ensurePath, keyOf, type PartitionId } from '../kafka/index.ts';
import type { Cut } from './group-clock.ts';
import {
  type AlignPaths,
  type CutPointer,
  cutNode,
  formatCut,
  type Handover,
  inNodes,
  parseCut,
  type StoredCut,
} from './layout.ts';
import type { Pass } from './partition-clock.ts';
import type { AlignClient } from './session.ts';

/** How many cuts stay readable: a restart needs the last, a slow callback those before. */
export const cutsKept = 16;

export interface CutInput {
  readonly cut: Cut;
  readonly start: number | null;
  readonly epoch: bigint;
}

export interface CutPlan {
  readonly pointer: CutPointer;
  /** What makes a cut of ordinary size, as part of the transaction that moves the limit. */
  readonly ops: readonly MultiOp[];
  /** What each part of a large one holds; they are made before. */
  readonly parts: readonly string[];
}

export function planCut(paths: AlignPaths, { cut, start, epoch }: CutInput): CutPlan {
  const node = cutNode(cut.end, epoch);
  const nodes = inNodes([...cut.offsets], ([key, offset]) => key.length + String(offset).length);
  const parts = nodes.map((some) => formatCut({ ...cut, epoch, start, offsets: new Map(some) }));
  const pointer = { end: cut.end, start, node, parts: parts.length > 1 ? parts.length : 0 };
  if (parts.length > 1) return { pointer, ops: [], parts };
  return { pointer, ops: [{ op: 'create', path: paths.cut(node), data: parts[0]! }], parts: [] };
}

/** The parts of a large cut: before the pointer says that they count. Made already is fine. */
export async function writeParts(
  client: AlignClient,
  paths: AlignPaths,
  { pointer, parts }: CutPlan,
): Promise<void> {
  if (parts.length === 0) return;
  const folder = paths.cut(pointer.node);
  await ensurePath(client, folder);
  for (const [i, data] of parts.entries()) {
    try {
      await client.create(partPath(folder, i), data);
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
      await client.set(partPath(folder, i), data); // of an attempt before: our epoch is in its name
    }
  }
}

const partPath = (folder: string, i: number) => `${folder}/part-${String(i).padStart(4, '0')}`;

/** Null when it is not there any more. */
export async function readCut(
  client: AlignClient,
  paths: AlignPaths,
  pointer: CutPointer,
): Promise<StoredCut | null> {
  const path = paths.cut(pointer.node);
  try {
    if (pointer.parts === 0) return parseCut((await client.get(path)).data, path);
    const offsets = new Map<string, bigint>();
    let first: StoredCut | undefined;
    for (let i = 0; i < pointer.parts; i++) {
      const at = partPath(path, i);
      const part = parseCut((await client.get(at)).data, at);
      first ??= part;
      for (const [key, offset] of part.offsets) offsets.set(key, offset);
    }
    return { ...first!, offsets };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

/** Takes an old cut away, parts first. Gone already is fine. */
export async function deleteCut(client: AlignClient, path: string): Promise<void> {
  try {
    for (const name of await client.children(path)) await client.delete(`${path}/${name}`);
    await client.delete(path);
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
  }
}

export interface StartPoint {
  readonly offset: bigint;
  readonly positionMs?: number;
  /** The latest record before it, as far as it can be known; none that is not covered by a cut otherwise. */
  readonly lastMs?: number;
  readonly passes: readonly Pass[];
}

interface Stored {
  readonly cut: StoredCut | null;
  readonly handover: Handover | null;
  readonly allowanceMs: number;
}

/** Where a partition goes on. Null: it was never read. */
export function startPoint(
  partition: PartitionId,
  { cut, handover, allowanceMs }: Stored,
): StartPoint | null {
  const offset = cut?.offsets.get(keyOf(partition));
  if (handover !== null && (offset === undefined || handover.offset > offset)) {
    const { positionMs, lastMs, reached } = handover;
    return {
      offset: handover.offset,
      passes: cut === null ? reached : reached.filter(({ end }) => end > cut.end),
      ...(positionMs !== null && { positionMs }),
      ...(lastMs !== null && { lastMs }),
    };
  }
  if (offset === undefined) return null;
  const { end, isFinal } = cut!;
  // What the allowance let in before the offset belongs to a period that is to be ended as well.
  const hasMore = allowanceMs > 0 && !isFinal;
  return {
    offset,
    positionMs: end,
    ...(hasMore && { lastMs: end + allowanceMs - 1 }),
    passes: [],
  };
}
