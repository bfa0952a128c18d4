/**
 * How old a record is that nobody reads: the lag of a group in time.
 *
 * In: a partition, the next offset to read, and somebody who knows the first offset at or after a time.
 * Brokers cannot be asked for a record's time without reading it, so the time is looked for by halving, to
 * within a twentieth. No record is read and no group is joined.
 */

import type { PartitionId } from './partition.ts';
import type { RecordSource } from './reader.ts';

/** Longest age that is looked for. */
const ageMaxMs = 10 * 365 * 86_400_000;
const firstAgeMs = 1_000;
const precision = 0.05;

/** How old the record at `offset` is, which has to be there. */
export async function timeLagMs(
  source: Pick<RecordSource, 'offsetForTime'>,
  id: PartitionId,
  offset: bigint,
  nowMs: number,
): Promise<number> {
  // The record is at least as old as this: what came since then lies behind it.
  const isOlder = async (ageMs: number) => (await source.offsetForTime(id, nowMs - ageMs)) > offset;
  let [young, old] = [0, firstAgeMs];
  while (await isOlder(old)) {
    young = old;
    old *= 2;
    if (old > ageMaxMs) return young;
  }
  while (old - young > Math.max(firstAgeMs / 4, old * precision)) {
    const middle = Math.round((young + old) / 2);
    if (await isOlder(middle)) young = middle;
    else old = middle;
  }
  return young;
}
