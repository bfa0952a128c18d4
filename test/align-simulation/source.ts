/** Partitions that grow as the world goes on, and readers that live in a process of it. */

import type {
  OffsetBounds,
  PartitionId,
  PartitionReader,
  RecordBatch,
  RecordSource,
  StartOffset,
} from '../../src/kafka/index.ts';
import { type Deferred, deferred } from '../../src/support/index.ts';
import type { Process } from '../kafka-simulation/world.ts';

/** One partition: the event times of its records, by offset. */
export class Log {
  readonly timesMs: number[] = [];
  /** Offsets of records whose time nobody should believe. */
  readonly junk = new Set<number>();
  /** There will be no more. */
  isEnded = false;
  readonly #waiting = new Set<() => void>();

  append(timeMs: number): void {
    this.timesMs.push(timeMs);
    this.#wake();
  }

  end(): void {
    this.isEnded = true;
    this.#wake();
  }

  #wake(): void {
    for (const heard of this.#waiting) heard();
    this.#waiting.clear();
  }

  changed(heard: () => void): void {
    this.#waiting.add(heard);
  }
}

export interface SourceOptions {
  readonly latencyMs: () => number;
  readonly batchMax: number;
}

export class SimSource implements RecordSource {
  readonly #process: Process;
  readonly #logs: ReadonlyMap<string, Log>;
  readonly #options: SourceOptions;

  constructor(process: Process, logs: ReadonlyMap<string, Log>, options: SourceOptions) {
    this.#process = process;
    this.#logs = logs;
    this.#options = options;
  }

  #logOf({ topic, partition }: PartitionId): Log {
    return this.#logs.get(`${topic}/${partition}`)!;
  }

  async open(partition: PartitionId, from: StartOffset): Promise<PartitionReader> {
    await this.#wait(this.#options.latencyMs());
    const log = this.#logOf(partition);
    const latest = BigInt(log.timesMs.length);
    const at = from === 'earliest' ? 0n : from === 'latest' ? latest : from;
    return new SimReader(partition, log, at, this.#process, this.#options);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#process.clock.after(ms, resolve));
  }

  async bounds(partition: PartitionId): Promise<OffsetBounds> {
    return { earliest: 0n, latest: BigInt(this.#logOf(partition).timesMs.length) };
  }

  async offsetForTime(partition: PartitionId, timestampMs: number): Promise<bigint> {
    const { timesMs } = this.#logOf(partition);
    const at = timesMs.findIndex((timeMs) => timeMs >= timestampMs);
    return BigInt(at === -1 ? timesMs.length : at);
  }

  async close(): Promise<void> {}
  async [Symbol.asyncDispose](): Promise<void> {}
}

class SimReader implements PartitionReader {
  readonly topic: string;
  readonly partition: string;
  position: bigint;
  highWatermark: bigint | null = null;
  isPaused = false;
  readonly #log: Log;
  readonly #process: Process;
  readonly #options: SourceOptions;
  #isClosed = false;
  #woken: Deferred<void> | undefined;

  constructor(
    { topic, partition }: PartitionId,
    log: Log,
    at: bigint,
    process: Process,
    options: SourceOptions,
  ) {
    this.topic = topic;
    this.partition = partition;
    this.position = at;
    this.#log = log;
    this.#process = process;
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    for (;;) {
      if (this.#isClosed) return { done: true, value: undefined };
      await this.#wait(this.#options.latencyMs());
      const from = Number(this.position);
      const { timesMs, isEnded } = this.#log;
      this.highWatermark = BigInt(timesMs.length);
      if (this.#isClosed) continue;
      if (this.isPaused || (from >= timesMs.length && !isEnded)) {
        await this.#more();
        continue;
      }
      if (from >= timesMs.length) return { done: true, value: undefined };
      const end = Math.min(timesMs.length, from + this.#options.batchMax);
      const records = timesMs.slice(from, end).map((timestampMs, i) => ({
        offset: BigInt(from + i),
        timestampMs,
        key: null,
        value: null,
      }));
      this.position = BigInt(end);
      const { topic, partition, highWatermark } = this;
      const nextOffset = this.position;
      return { done: false, value: { topic, partition, records, nextOffset, highWatermark } };
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#process.clock.after(ms, resolve));
  }

  async #more(): Promise<void> {
    const woken = deferred();
    this.#woken = woken;
    this.#log.changed(() => this.#process.deliver(() => woken.resolve()));
    await woken.promise;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.#woken?.resolve();
  }

  seek(offset: bigint): void {
    this.position = offset;
    this.#woken?.resolve();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#woken?.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
