/**
 * How a partition stands, as those see it who look at a cluster: who holds it, who leads it and who is
 * in sync.
 *
 * In: what was read of a topic. Out: one flat shape, in which "no leader" is null and not -1, and what is
 * wrong with it.
 */

import { noLeader, type ReplicaSet } from './layout-topic.ts';
import type { PartitionSeen } from './topics.ts';

export interface PartitionStanding extends ReplicaSet {
  /** Null: none. */
  readonly leader: number | null;
  readonly leaderEpoch: number | null;
  readonly isr: readonly number[];
  /** False: the controller has not dealt with it yet. */
  readonly hasState: boolean;
}

export type PartitionFault = 'no state' | 'no leader' | 'out of sync' | 'not preferred' | 'moving';

/** One that the controller has not dealt with yet has neither a leader nor replicas in sync. */
export function standingOf(partition: PartitionSeen): PartitionStanding {
  const { replicas, adding, removing, state } = partition;
  return {
    leader: state === null || state.leader === noLeader ? null : state.leader,
    leaderEpoch: state?.leaderEpoch ?? null,
    replicas,
    isr: state?.isr ?? [],
    adding,
    removing,
    hasState: state !== null,
  };
}

/**
 * What is wrong with it, or at least under way. A replica that is being added is not missed before it
 * has come: brokers count under-replicated partitions so, too.
 */
export function faultsOf(partition: PartitionStanding): PartitionFault[] {
  const { hasState, leader, replicas, isr, adding, removing } = partition;
  const faults: PartitionFault[] = [];
  if (!hasState) faults.push('no state');
  else if (leader === null) faults.push('no leader');
  else if (leader !== replicas[0]) faults.push('not preferred');
  const due = replicas.length - adding.length;
  if (hasState && isr.length < due) faults.push('out of sync');
  if (adding.length + removing.length > 0) faults.push('moving');
  return faults;
}
