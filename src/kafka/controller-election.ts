/**
 * Who leads a partition next: the five ways in which Kafka's controller decides it.
 *
 * In: who holds the partition, its state as it stands in ZooKeeper, and who lives. Out: the state to
 * write, with the leader's epoch one higher, or null when nobody can lead. Pure. The order of the
 * assignment decides between candidates, never the order of the ISR.
 */

import type { PartitionState, ReplicaSet } from './layout-topic.ts';

export type ElectionStrategy =
  /** The leader is gone: the first live one of the ISR. */
  | 'offline'
  /** As `offline`; where the ISR is gone too, the first live replica, at the price of records. */
  | 'unclean'
  /** The replicas are being moved: the first of the new ones. */
  | 'reassign'
  /** The first of the assignment, or nobody. */
  | 'preferred'
  /** The leader is about to leave. */
  | 'controlledShutdown';

export interface Situation {
  readonly set: ReplicaSet;
  readonly state: PartitionState;
  /** Brokers that live and are not about to leave. */
  readonly live: ReadonlySet<number>;
  /** Brokers that live and have asked to leave. */
  readonly leaving: ReadonlySet<number>;
}

export function elect(
  strategy: ElectionStrategy,
  { set, state, live, leaving }: Situation,
): PartitionState | null {
  const { isr } = state;
  const inSync = (id: number) => live.has(id) && isr.includes(id);
  const led = (leader: number | undefined, nextIsr: readonly number[]): PartitionState | null =>
    leader === undefined
      ? null
      : { ...state, leader, leaderEpoch: state.leaderEpoch + 1, isr: nextIsr };

  switch (strategy) {
    case 'offline':
    case 'unclean': {
      const clean = led(
        set.replicas.find(inSync),
        isr.filter((id) => live.has(id)),
      );
      if (clean !== null || strategy === 'offline') return clean;
      const anyone = set.replicas.find((id) => live.has(id));
      const unclean = led(anyone, [anyone!]);
      return unclean && { ...unclean, isRecovering: true };
    }
    case 'reassign':
      return led(targetOf(set).find(inSync), isr);
    case 'preferred': {
      const [preferred] = set.replicas;
      return led(preferred !== undefined && inSync(preferred) ? preferred : undefined, isr);
    }
    case 'controlledShutdown':
      return led(
        set.replicas.find((id) => inSync(id) && !leaving.has(id)),
        isr.filter((id) => !leaving.has(id)),
      );
  }
}

/** The first state of a partition that never had one: all who live are in sync with nothing. */
export function firstState(set: ReplicaSet, live: ReadonlySet<number>): PartitionState | null {
  const isr = set.replicas.filter((id) => live.has(id));
  const [leader] = isr;
  if (leader === undefined) return null;
  return { leader, leaderEpoch: 0, controllerEpoch: 0, isr, isRecovering: false };
}

/** Where a partition is going: its replicas without those that are to leave. */
export function targetOf({ replicas, removing }: ReplicaSet): readonly number[] {
  return replicas.filter((id) => !removing.includes(id));
}

/** Where it came from. */
export function originOf({ replicas, adding }: ReplicaSet): readonly number[] {
  return replicas.filter((id) => !adding.includes(id));
}

/** Both old and new, while it moves. New ones first, in the order wanted. */
export function reassignTo(set: ReplicaSet, target: readonly number[]): ReplicaSet {
  const origin = originOf(set);
  const replicas = [...new Set([...target, ...origin])];
  return {
    replicas,
    adding: replicas.filter((id) => !origin.includes(id)),
    removing: replicas.filter((id) => !target.includes(id)),
  };
}

export function isReassigning({ adding, removing }: ReplicaSet): boolean {
  return adding.length > 0 || removing.length > 0;
}
