/**
 * An aligned group as people see it: who waits at the limit is paused, whose owner has not spoken yet is
 * opening, and who leads is named.
 *
 * Members say where they are when they come past a boundary, and not in between: a position is where a
 * partition was then.
 */

import {
  type AlignSnapshot,
  alignPaths,
  readAlignment,
  type SeenPartition,
} from '../align/index.ts';
import type { Client } from '../client/index.ts';
import { partitionOf } from '../kafka/index.ts';
import { Election } from '../recipes/index.ts';

export type ShownState =
  | 'reading'
  | 'paused'
  | 'idle'
  /** Its next record is too far ahead of the others to be believed yet. */
  | 'ahead'
  | 'finished'
  | 'stopped'
  /** Its owner has not said where it is. */
  | 'opening'
  | 'unowned';

export interface ShownPartition {
  readonly topic: string;
  readonly partition: string;
  readonly state: ShownState;
  readonly member: string | null;
  readonly positionMs: number | null;
  readonly offset: bigint | null;
}

export interface Alignment
  extends Pick<
    AlignSnapshot,
    'group' | 'limit' | 'holdMs' | 'isPaused' | 'calledMs' | 'members' | 'rule'
  > {
  readonly partitions: readonly ShownPartition[];
  readonly leader: string | null;
  /** The one that everybody waits for. */
  readonly slowest: ShownPartition | null;
}

/** Null when there is no such group. */
export async function readGroup(client: Client, group: string): Promise<Alignment | null> {
  const seen = await readAlignment(client, group);
  if (seen === null) return null;
  const [first] = await new Election(client, alignPaths(group).election).candidates();
  return {
    ...seen,
    leader: first?.id ?? null,
    partitions: seen.partitions.map((one) => shownOf(one, seen.limit?.isFinished === true)),
    slowest: seen.slowest && shownOf(seen.slowest, false),
  };
}

function shownOf(seen: SeenPartition, isFinished: boolean): ShownPartition {
  const { key, member, positionMs, offset } = seen;
  return { ...partitionOf(key), state: stateOf(seen, isFinished), member, positionMs, offset };
}

function stateOf(seen: SeenPartition, isFinished: boolean): ShownState {
  const { state, isWaiting, member, positionMs, aheadMs } = seen;
  if (state === 'idle' && aheadMs !== null) return 'ahead';
  if (state !== 'reading' && state !== 'unknown') return state;
  if (member === null) return isFinished ? 'finished' : 'unowned';
  if (positionMs === null) return 'opening';
  return isWaiting ? 'paused' : 'reading';
}
