/** What a consumer can be told, what it hands out, and what it says of itself. */

import type { GroupMemberOptions } from './group-options.ts';
import type { GroupMemberStatus, MemberState } from './group-status.ts';
import type { LayoutProblem } from './layout.ts';
import type { OffsetCommitter } from './offsets.ts';
import type { NotOwnerReason, OwnedPartition } from './owned-partition.ts';
import type { PartitionId } from './partition.ts';
import type { KafkaRecord, RecordBatch, RecordSource } from './reader.ts';

export interface ConsumerOptions extends GroupMemberOptions {
  readonly source: RecordSource;
  /** Where nothing was committed, or what was is gone. `none`: the loop throws. `earliest`. */
  readonly startFrom?: 'earliest' | 'latest' | 'none';
  /** Commit what is done by itself, this often; false: only `commit` does. 5 s. */
  readonly autoCommitMs?: number | false;
  /** Kafka's own offsets beside ZooKeeper's. */
  readonly committer?: OffsetCommitter;
  /** Which share of the session timeout may pass unanswered before nothing is handed out. 2/3. */
  readonly doubtShare?: number;
}

/**
 * Records of one partition. Iterating over the batch looks at the clock before each record and throws a
 * NotOwnerError instead of a record that another member may be working on.
 */
export interface ConsumerBatch extends RecordBatch, Iterable<KafkaRecord> {
  /** `consumerId-number`. */
  readonly thread: string;
  /** Grows from owner to owner of a partition: what a sink can refuse a stale writer by. */
  readonly epoch: bigint;
  /**
   * Aborts from the moment at which another member may read the partition. Looks at the clock whenever it is
   * asked: ask it before each side effect.
   */
  readonly signal: AbortSignal;
  /** Aborts when another member waits for the partition: finish soon. */
  readonly leaving: AbortSignal;
  /** This batch is done: commits its end. Rejects with a NotOwnerError when it is not ours any more. */
  commit(): Promise<void>;
}

export interface PartitionStatus extends PartitionId {
  readonly thread: string;
  readonly epoch: bigint;
  readonly sinceMs: number;
  readonly committed: bigint | null;
  readonly position: bigint | null;
  readonly highWatermark: bigint | null;
  /** Records between what is done and the end; null where the source cannot say. */
  readonly lag: bigint | null;
  readonly isPaused: boolean;
}

export interface ConsumerStatus extends GroupMemberStatus {
  readonly partitions: readonly PartitionStatus[];
  /** Nothing is handed out, since no server has answered for too long. */
  readonly isInDoubt: boolean;
}

export interface ConsumerEvents {
  state: [state: MemberState];
  assigned: [owned: OwnedPartition];
  /** Not ours any more: let go of, or lost. */
  ended: [owned: OwnedPartition, reason: NotOwnerReason];
  problem: [problem: LayoutProblem];
}
