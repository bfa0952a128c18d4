/**
 * Cuts and handovers in storage: where every partition goes on.
 *
 * A cut lies in one node, made in the very transaction that moves the limit; a large one lies in parts
 * below its node, which are made before, and count only once the pointer in `limit` names them. So a
 * leader that loses its term half way leaves nothing that anybody reads.
 *
 * A partition is opened at the later of the last cut and the last handover. Both are marks up to which
 * everything is done, so the later one loses nothing.
 */

import { isZkError, type MultiOp } from '../client/index.ts';
import type { OwnedPartition, PartitionId } from '../kafka/index.ts';
import { keyOf } from '../kafka/index.ts';
import type { Cut } from './group-clock.ts';
import {
  type AlignPaths,
  type CutPointer,
  cutNode,
  formatCut,
  formatHandover,
  type Handover,
  parseCut,
  parseHandover,
  type StoredCut,
} from './layout.ts';
import type { Pass } from './partition-clock.ts';
import { type AlignClient, ensurePath } from './session.ts';

/** Offsets in one node: far below the megabyte that a node holds. */
const offsetsPerNode = 10_000;

/** How many cuts stay readable: a restart needs the last, a slow callback those before. */
export const cutsKept = 16;

export interface CutInput {
  readonly cut: Cut;
  readonly start: number | null;
  readonly epoch: bigint;
}

/** What makes a cut of ordinary size, as part of the transaction that moves the limit. */
export function cutOps(
  paths: AlignPaths,
  input: CutInput,
): { ops: MultiOp[]; pointer: CutPointer } {
  const { cut, start, epoch } = input;
  const node = cutNode(cut.end, epoch);
  const parts = Math.ceil(cut.offsets.size / offsetsPerNode);
  const isLarge = parts > 1;
  const pointer = { end: cut.end, start, node, parts: isLarge ? parts : 0 };
  if (isLarge) return { ops: [], pointer };
  const data = formatCut({ epoch, start, end: cut.end, offsets: cut.offsets });
  return { ops: [{ op: 'create', path: paths.cut(node), data }], pointer };
}

/** The parts of a large cut: before the pointer says that they count. Made already is fine. */
export async function writeParts(
  client: AlignClient,
  paths: AlignPaths,
  { cut, start, epoch }: CutInput,
  pointer: CutPointer,
): Promise<void> {
  if (pointer.parts === 0) return;
  const folder = paths.cut(pointer.node);
  await ensurePath(client, folder);
  const all = [...cut.offsets];
  for (let i = 0; i < pointer.parts; i++) {
    const offsets = new Map(all.slice(i * offsetsPerNode, (i + 1) * offsetsPerNode));
    const data = formatCut({ epoch, start, end: cut.end, offsets });
    try {
      await client.create(partPath(folder, i), { data });
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

export async function readHandover(
  client: AlignClient,
  paths: AlignPaths,
  partition: PartitionId,
): Promise<Handover | null> {
  const path = paths.handover(partition);
  try {
    return parseHandover((await client.get(path)).data, path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

/** Only while the partition is still ours: the server looks, in the same transaction. */
export async function writeHandover(
  client: AlignClient,
  paths: AlignPaths,
  owned: OwnedPartition,
  handover: Handover,
): Promise<void> {
  const path = paths.handover(owned);
  const data = formatHandover(handover);
  const check = { op: 'check', path: owned.path, version: owned.version } as const;
  for (let tries = 1; ; tries++) {
    owned.signal.throwIfAborted();
    try {
      await client.multi([check, { op: 'set', path, data }]);
      return;
    } catch (error) {
      if (!isZkError(error, 'NO_NODE') || tries === handoverTriesMax) throw error;
    }
    // There is none yet; or the ownership is gone, and then this is refused as well.
    await ensurePath(client, path.slice(0, path.lastIndexOf('/')));
    try {
      await client.multi([check, { op: 'create', path, data }]);
      return;
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }
}

const handoverTriesMax = 3;

export interface StartPoint {
  readonly offset: bigint;
  readonly positionMs?: number;
  readonly passes: readonly Pass[];
}

/** Where a partition goes on. Null: it was never read. */
export function startPoint(
  partition: PartitionId,
  cut: StoredCut | null,
  handover: Handover | null,
): StartPoint | null {
  const offset = cut?.offsets.get(keyOf(partition));
  if (handover !== null && (offset === undefined || handover.offset > offset)) {
    const { positionMs, reached } = handover;
    const passes = cut === null ? reached : reached.filter(({ end }) => end > cut.end);
    return { offset: handover.offset, passes, ...(positionMs !== null && { positionMs }) };
  }
  if (offset === undefined) return null;
  return { offset, positionMs: cut!.end, passes: [] };
}
