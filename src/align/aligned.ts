/** What an aligned reader hands out, tells and shows. */

import type {
  GroupMemberStatus,
  KafkaRecord,
  OwnedPartition,
  PartitionId,
} from '../kafka/index.ts';
import type { QuarantineReason } from './event-time.ts';
import type { Lane } from './lane.ts';
import type { StoredLimit } from './layout.ts';

/**
 * Records of one partition, up to the group's limit. Iterating over the batch looks at the clock before each
 * record and throws the signal's reason instead of a record that another member may be working on.
 */
export interface AlignedBatch extends PartitionId, Iterable<KafkaRecord> {
  /** In the order of their offsets. At least one. */
  readonly records: readonly KafkaRecord[];
  /** When each happened; null where that is not known, and the policy is to deliver. */
  readonly timesMs: readonly (number | null)[];
  readonly nextOffset: bigint;
  /** Of the ownership: grows from owner to owner of the partition. */
  readonly epoch: bigint;
  /**
   * Aborts from the moment at which another member may read the partition. Looks at the clock whenever it is
   * asked: ask it before each side effect.
   */
  readonly signal: AbortSignal;
  /** It was worked off. False when the partition was lost meanwhile: then somebody does it again. */
  done(): Promise<boolean>;
}

export interface LaneStatus extends PartitionId {
  readonly state: Lane['state'];
  readonly positionMs: number | null;
  readonly offset: bigint | null;
  readonly lag: bigint | null;
  /** The next record lies at or beyond the limit. */
  readonly isHeldBack: boolean;
  readonly isInHand: boolean;
  readonly records: number;
  /** Later than the allowance. */
  readonly lateRecords: number;
  /** The time of the next record, where it is so far ahead that it is not believed yet. */
  readonly aheadMs: number | null;
}

export interface AlignStatus {
  readonly id: string;
  readonly limit: StoredLimit | null;
  /** People hold the group, and the limit has come to where they do. */
  readonly isPaused: boolean;
  readonly isLeading: boolean;
  readonly isInDoubt: boolean;
  /** Going on past the limit, without a link. */
  readonly isFailingOpen: boolean;
  readonly partitions: readonly LaneStatus[];
  readonly records: number;
  /** Records whose time cannot be believed: with `skip` all of them were left out. */
  readonly quarantined: number;
  /** Which share of its time it had records, and all of them too early. */
  readonly waitingShare: number;
  readonly reports: number;
  readonly member: GroupMemberStatus;
}

export interface AlignEvents {
  limit: [limit: StoredLimit];
  assigned: [owned: OwnedPartition];
  ended: [owned: OwnedPartition];
  quarantined: [partition: PartitionId, record: KafkaRecord, reason: QuarantineReason];
  /** A record lies further beyond the limit than `maxAhead`: it waits until others confirm it. */
  ahead: [partition: PartitionId, record: KafkaRecord, timeMs: number, limitMs: number | null];
  /** Something went wrong and is being dealt with; `where` is a node, or a partition. */
  problem: [where: string, error: unknown];
  failOpen: [isOpen: boolean];
}

export function laneStatus(lane: Lane): LaneStatus {
  const { topic, partition } = lane.owned;
  const { state, positionMs, lag, isHeldBack, isInHand, lateRecords, aheadMs } = lane;
  return {
    topic,
    partition,
    state,
    positionMs,
    offset: lane.handover()?.offset ?? null,
    lag,
    isHeldBack,
    isInHand,
    records: lane.recordsHanded,
    lateRecords,
    aheadMs,
  };
}
