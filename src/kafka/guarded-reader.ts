/**
 * A reader whose failures all come out of one place: its `next`.
 *
 * A Kafka client may throw whenever it is told to pause, to resume or to seek, or reject later: while its
 * connection is down, most of them do. Those calls are made from watches and timers, where an error would
 * end the process. So an error of any call is kept, and `next` rejects with it, also a `next` that is
 * waiting already: there its caller recovers, as it does from any other failure of the source.
 *
 * In: any reader. Out: the same reader, of which only `next` and `close` reject. A `close` that takes too
 * long rejects, so that a client that never answers cannot keep its caller waiting.
 */

import { type Clock, type Deferred, deferred } from '../support/index.ts';
import { type PartitionReader, ReaderError, type RecordBatch } from './reader.ts';

/** What a {@link GuardedReader} needs besides the reader. */
export interface GuardOptions {
  readonly clock: Clock;
  /**
   * How long the reader may take to close.
   *
   * @default 5_000
   */
  readonly closeTimeoutMs?: number;
}

/**
 * Any reader, with all its failures coming out of `next`: pausing, resuming and seeking never throw.
 * Use it where those calls are made from a watch or a timer, in which nothing could catch an error.
 */
export class GuardedReader implements PartitionReader {
  readonly topic: string;
  readonly partition: string;
  readonly #reader: PartitionReader;
  readonly #options: GuardOptions;
  #failure: { readonly error: unknown } | undefined;
  #waiting: Deferred<never> | undefined;
  /** Where a seek that failed was to go. */
  #soughtTo: bigint | undefined;
  /** What the reader said last: it holds while the reader cannot say. */
  #position: bigint;
  #highWatermark: bigint | null = null;

  constructor(reader: PartitionReader, options: GuardOptions) {
    this.#reader = reader;
    this.#options = options;
    this.topic = reader.topic;
    this.partition = reader.partition;
    this.#position = reader.position;
  }

  get position(): bigint {
    if (this.#soughtTo !== undefined) return this.#soughtTo;
    this.#attempt(() => {
      this.#position = this.#reader.position;
    });
    return this.#position;
  }

  get highWatermark(): bigint | null {
    this.#attempt(() => {
      this.#highWatermark = this.#reader.highWatermark;
    });
    return this.#highWatermark;
  }

  get isPaused(): boolean {
    let isPaused = false;
    this.#attempt(() => {
      isPaused = this.#reader.isPaused;
    });
    return isPaused;
  }

  get isClosed(): boolean {
    let isClosed = false;
    this.#attempt(() => {
      isClosed = this.#reader.isClosed === true;
    });
    return isClosed;
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const waiting = deferred<never>();
    this.#waiting = waiting;
    try {
      return await Promise.race([this.#reader.next(), waiting.promise]);
    } finally {
      this.#waiting = undefined;
    }
  }

  pause(): void {
    this.#attempt(() => this.#reader.pause());
  }

  resume(): void {
    this.#attempt(() => this.#reader.resume());
  }

  seek(offset: bigint): void {
    this.#attempt(() => this.#reader.seek(offset));
    if (this.#failure !== undefined) this.#soughtTo = offset;
  }

  /** The call may also turn out to be asynchronous, against its type, and reject. */
  #attempt(call: () => unknown): void {
    try {
      const result = call();
      if (result instanceof Promise) result.catch((error) => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#waiting?.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async close(): Promise<void> {
    const { clock, closeTimeoutMs = 5_000 } = this.#options;
    const late = deferred<never>();
    const timer = clock.after(closeTimeoutMs, () => {
      const what = `${this.topic}/${this.partition} was not closed within ${closeTimeoutMs} ms`;
      late.reject(new ReaderError('SOURCE_FAILED', `${what}; it is left behind`));
    });
    try {
      await Promise.race([this.#reader.close(), late.promise]);
    } finally {
      timer.cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
