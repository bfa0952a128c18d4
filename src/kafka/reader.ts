/**
 * Where records come from: the small face that every Kafka client, and a plain file, can show.
 *
 * A source opens readers, one for each partition. A reader is an async iterator of batches, in the
 * order of the offsets, that is asked for one batch at a time; what it fetches ahead is bounded by its
 * source. It can be paused, resumed and moved; it ends where the partition is known to end, and after
 * `close`. Offsets are bigints, times are milliseconds since 1970.
 *
 * Not promised: that offsets have no gaps (a compacted topic has), or that timestamps only grow.
 * Nothing here commits: what has been read is remembered by whoever reads.
 */

import type { PartitionId } from './partition.ts';

export interface KafkaRecord {
  readonly offset: bigint;
  /** As the producer or the broker said; null where nobody did. */
  readonly timestampMs: number | null;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, Buffer | string | undefined>>;
}

export interface RecordBatch extends PartitionId {
  /** In the order of their offsets. At least one. */
  readonly records: readonly KafkaRecord[];
  /**
   * The records' own timestamps, NaN where there is none, from a reader that has just seen them: who
   * goes by time alone need not look at each record again.
   */
  readonly timestampsMs?: readonly number[];
  /** Where to go on after this batch: what to commit once it is done. */
  readonly nextOffset: bigint;
  /** The offset that the next record written to the partition will have, as known with this batch. */
  readonly highWatermark: bigint;
}

export type StartOffset = bigint | 'earliest' | 'latest';

export interface OffsetBounds {
  /** The first record there still is. */
  readonly earliest: bigint;
  /** One past the last: the high watermark. */
  readonly latest: bigint;
}

export interface PartitionReader extends AsyncIterableIterator<RecordBatch> {
  readonly topic: string;
  readonly partition: string;
  /** The offset that the next batch begins at, or is expected to. */
  readonly position: bigint;
  /** Null until the first look at the partition. At `position === highWatermark` all has been read. */
  readonly highWatermark: bigint | null;
  readonly isPaused: boolean;
  /** One call at a time. Done when the partition is known to hold no more, ever, or it was closed. */
  next(): Promise<IteratorResult<RecordBatch, undefined>>;
  /** From now on `next` waits, also one that is waiting already. What was handed out stays so. */
  pause(): void;
  resume(): void;
  /** The next batch begins here. What was fetched ahead is dropped. */
  seek(offset: bigint): void;
  /** `next` is done for this reason, by whoever closed it or its source, and not at an end. */
  readonly isClosed?: boolean;
  /** Ends `next`, lets go of files and links. Safe to call again. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OpenOptions {
  readonly signal?: AbortSignal;
  /** Nothing from here on is wanted: behind it `next` may be done, though the last offsets hold no record. */
  readonly until?: bigint;
}

export interface RecordSource {
  /** Rejects with OFFSET_OUT_OF_RANGE where there is no such offset any more, or not yet. */
  open(partition: PartitionId, from: StartOffset, options?: OpenOptions): Promise<PartitionReader>;
  bounds(partition: PartitionId): Promise<OffsetBounds>;
  /** The first offset whose record is not older than this; the high watermark when there is none. */
  offsetForTime(partition: PartitionId, timestampMs: number): Promise<bigint>;
  /** Closes every reader. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type ReaderErrorCode =
  /** There is no record at this offset: too old, or not yet written. Look at `bounds`. */
  | 'OFFSET_OUT_OF_RANGE'
  | 'NO_PARTITION'
  /** A record that cannot be read; the message says where. */
  | 'BAD_RECORD'
  /** The client below failed; `cause` has its error. */
  | 'SOURCE_FAILED'
  | 'CLOSED';

export class ReaderError extends Error {
  override readonly name = 'ReaderError';
  readonly code: ReaderErrorCode;

  constructor(code: ReaderErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.code = code;
  }
}

export function isReaderError(error: unknown, code: ReaderErrorCode): error is ReaderError {
  return error instanceof ReaderError && error.code === code;
}
