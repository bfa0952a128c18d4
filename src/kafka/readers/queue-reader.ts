/**
 * A reader for clients that push: what they bring is queued here, up to a limit, until it is asked for.
 *
 * In: `push`, from whatever client. Out: batches, one at a time. When the queue is full the client is
 * told to hold the partition back (`onFull`), and to go on when there is room (`onRoom`). A seek drops
 * what is queued, and whatever still comes for the position of before.
 */

import { ArgumentError } from '../../client/index.ts';
import { type Deferred, deferred } from '../../support/index.ts';
import type { PartitionId } from '../partition.ts';
import {
  type KafkaRecord,
  type OffsetBounds,
  type PartitionReader,
  ReaderError,
  type RecordBatch,
} from '../reader.ts';

export interface QueueReaderHooks {
  readonly onFull: () => void;
  readonly onRoom: () => void;
  readonly onSeek: (offset: bigint) => void;
  readonly onClose: () => Promise<void>;
  /** Where it is to end. */
  readonly until?: bigint | undefined;
}

/** Records in one batch. */
const batchRecordsMax = 500;

export class QueueReader implements PartitionReader {
  readonly topic: string;
  readonly partition: string;
  readonly #recordsMax: number;
  readonly #hooks: QueueReaderHooks;
  #queue: RecordBatch[] = [];
  #records = 0;
  /** Where the next batch that is handed out begins, and where the next that comes in does. */
  #position: bigint;
  #expected: bigint;
  #highWatermark: bigint | null;
  #isPaused = false;
  #isFull = false;
  #waiting: Deferred<void> | undefined;
  #end: { readonly error?: unknown } | undefined;

  constructor(
    { topic, partition }: PartitionId,
    position: bigint,
    highWatermark: bigint | null,
    recordsMax: number,
    hooks: QueueReaderHooks,
  ) {
    this.topic = topic;
    this.partition = partition;
    this.#position = position;
    this.#expected = position;
    this.#highWatermark = highWatermark;
    this.#recordsMax = recordsMax;
    this.#hooks = hooks;
  }

  get position(): bigint {
    return this.#position;
  }

  /** Where the client has to go on. */
  get expected(): bigint {
    return this.#expected;
  }

  get highWatermark(): bigint | null {
    return this.#highWatermark;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** The client holds the partition back: the queue is full, or the reader paused. */
  get isHeldBack(): boolean {
    return this.#isFull || this.#isPaused;
  }

  get #isAtEnd(): boolean {
    return this.#hooks.until !== undefined && this.#position >= this.#hooks.until;
  }

  get isClosed(): boolean {
    return this.#end !== undefined;
  }

  /** `nextOffset`: where the client goes on, which in a compacted topic may be past the last record. */
  push(records: readonly KafkaRecord[], nextOffset: bigint, highWatermark: bigint): void {
    if (this.#end !== undefined) return;
    this.#highWatermark = highWatermark;
    const fresh = records.filter(({ offset }) => offset >= this.#expected);
    if (nextOffset > this.#expected) this.#expected = nextOffset;
    if (fresh.length === 0) {
      this.#pass(highWatermark);
      return;
    }
    this.#enqueue(fresh, highWatermark);
    this.#records += fresh.length;
    if (this.#records >= this.#recordsMax && !this.#isFull) {
      this.#isFull = true;
      this.#hooks.onFull();
    }
    this.#waiting?.resolve();
  }

  /** Nothing but what was compacted away, or aborted: whoever has what came before goes on behind it. */
  #pass(highWatermark: bigint): void {
    const last = this.#queue.pop();
    if (last !== undefined)
      this.#queue.push({ ...last, nextOffset: this.#expected, highWatermark });
    else if (this.#waiting !== undefined) {
      this.#position = this.#expected; // else with the next `next`
      if (this.#isAtEnd) this.#waiting.resolve();
    }
  }

  /** In pieces: a client may bring thousands at once, and who commits by batch wants to commit. */
  #enqueue(records: readonly KafkaRecord[], highWatermark: bigint): void {
    const { topic, partition } = this;
    for (let i = 0; i < records.length; i += batchRecordsMax) {
      const some = records.slice(i, i + batchRecordsMax);
      const isLast = i + batchRecordsMax >= records.length;
      const nextOffset = isLast ? this.#expected : some.at(-1)!.offset + 1n;
      this.#queue.push({ topic, partition, records: some, nextOffset, highWatermark });
    }
  }

  fail(error: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    this.#waiting?.resolve();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    for (;;) {
      const batch = this.#isPaused ? undefined : this.#queue.shift();
      if (batch !== undefined) {
        this.#taken(batch);
        return { done: false, value: batch };
      }
      if (this.#end !== undefined) {
        const { error } = this.#end;
        this.#end = {}; // a reader fails once; then it is done
        if (error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      if (this.#queue.length === 0) this.#position = this.#expected;
      if (this.#isAtEnd) return { done: true, value: undefined };
      this.#waiting = deferred();
      await this.#waiting.promise;
      this.#waiting = undefined;
    }
  }

  #taken(batch: RecordBatch): void {
    this.#records -= batch.records.length;
    this.#position = batch.nextOffset;
    this.#makeRoom();
  }

  /** At half, and not at once: else a fast reader would hold back and let go for every batch. */
  #makeRoom(): void {
    if (!this.#isFull || this.#records > this.#recordsMax / 2) return;
    this.#isFull = false;
    if (!this.#isPaused) this.#hooks.onRoom();
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    if (!this.#isFull) this.#hooks.onFull();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#isFull) this.#hooks.onRoom();
    this.#waiting?.resolve();
  }

  seek(offset: bigint): void {
    if (offset < 0n) throw new ArgumentError('offset', `0 or more is wanted, not ${offset}`);
    this.#queue = [];
    this.#records = 0;
    this.#position = offset;
    this.#expected = offset;
    this.#hooks.onSeek(offset);
    this.#makeRoom();
  }

  async return(): Promise<IteratorResult<RecordBatch, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    if (this.#end !== undefined && this.#queue.length === 0 && this.#end.error === undefined)
      return;
    this.#end = {};
    this.#queue = [];
    this.#waiting?.resolve();
    await this.#hooks.onClose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** An offset that the partition does not hold, and that is not its end either, is never read from. */
export function refuseOutside(
  id: PartitionId,
  at: bigint,
  { earliest, latest }: OffsetBounds,
): void {
  if (at >= earliest && at <= latest) return;
  const message = `${id.topic}/${id.partition} holds ${earliest} to ${latest}, not ${at}`;
  throw new ReaderError('OFFSET_OUT_OF_RANGE', message);
}
