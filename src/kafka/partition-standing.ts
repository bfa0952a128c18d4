/**
 * How a partition stands, as those see it who look at a cluster: who holds it, who leads it and who is
 * in sync.
 *
 * In: what was read of a topic. Out: one flat shape, in which "no leader" is null and not -1. What of
 * it is a fault is for whoever shows it to say.
 */

import { noLeader, type ReplicaSet } from './layout-topic.ts';
import type { PartitionSeen } from './topics.ts';

export interface PartitionStanding extends ReplicaSet {
  /** Null: none. */
  readonly leader: number | null;
  readonly leaderEpoch: number | null;
  readonly isr: readonly number[];
}

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
  };
}
