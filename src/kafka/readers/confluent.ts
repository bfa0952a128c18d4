/**
 * Records through `@confluentinc/kafka-javascript` (or node-rdkafka), whose consumer is assigned its
 * partitions by hand, with offsets, and needs no group.
 *
 *   import Kafka from '@confluentinc/kafka-javascript';
 *   const source = new ConfluentSource(Kafka.KafkaConsumer, { 'bootstrap.servers': '127.0.0.1:9092' });
 *
 * One consumer serves all partitions of a source. It is asked for a few records at a time, and what
 * comes is queued for each reader, up to a limit; a reader that is full has its partition paused. A
 * reader that is moved has its partition taken away and given again at the new offset, between two calls
 * for records: what a call brings is then never of the place before.
 *
 * An error that comes behind records is dropped by the binding, and none says whose it is. So a partition
 * that has been silent for a while is asked for its bounds: is its offset gone, or all of it, it fails.
 *
 * The package is named by nobody here: whatever has its face will do.
 */

import { randomUUID } from 'node:crypto';
import { checkOptions, systemClock } from '../../support/index.ts';
import { type PartitionId, partitionNumber } from '../partition.ts';
import {
  type OffsetBounds,
  type PartitionReader,
  ReaderError,
  type RecordSource,
  type StartOffset,
} from '../reader.ts';
import {
  byPartition,
  type ConfluentSourceOptions,
  codeOf,
  confluentTable,
  disconnect,
  partitionTroubles,
  type RdKafkaCallback,
  type RdKafkaConsumer,
  type RdKafkaConsumerClass,
  type RdKafkaExtras,
  type RdKafkaMessage,
  type RdKafkaPartition,
  type RdKafkaWatermarks,
  recordOf,
} from './confluent-face.ts';
import { QueueReader, refuseOutside } from './queue-reader.ts';

export type {
  ConfluentSourceOptions,
  RdKafkaConsumer,
  RdKafkaConsumerClass,
  RdKafkaMessage,
  RdKafkaPartition,
} from './confluent-face.ts';

/** Between two tries when nothing is assigned or everything is held back. */
const idleMs = 50;
/** How long librdkafka waits for records in one call: short, as a call holds one of few threads. */
const consumeTimeoutMs = 100;

/** Looks that must agree before a partition counts as gone, unless the client has said so itself. */
const lossesMax = 3;

type Consumer = RdKafkaConsumer & RdKafkaExtras;

/** An open partition. */
interface Entry {
  readonly key: string;
  readonly id: PartitionId;
  readonly at: RdKafkaPartition;
  readonly reader: QueueReader;
  /** The client has yet to be told where the reader stands: what it brings is of another place. */
  isDue: boolean;
  /** How many looks in a row found that it, or its offset, is gone. */
  losses: number;
  /** When it last brought something, or was given to the client. */
  heardMs: number;
}

export class ConfluentSource implements RecordSource {
  readonly #make: () => Consumer;
  readonly #options: Required<ConfluentSourceOptions>;
  readonly #entries = new Map<string, Entry>();
  #consumer: Promise<Consumer> | undefined;
  #loop: Promise<void> | undefined;
  /** What the client has been given. */
  readonly #assigned = new Map<string, RdKafkaPartition>();
  #wake: (() => void) | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(
    KafkaConsumer: RdKafkaConsumerClass,
    config: Readonly<Record<string, unknown>>,
    options: ConfluentSourceOptions = {},
  ) {
    checkOptions('ConfluentSource', options, confluentTable);
    this.#options = {
      bufferedRecordsMax: 2_000,
      consumeMax: 500,
      requestTimeoutMs: 10_000,
      silenceMs: 5_000,
      clock: systemClock,
      ...options,
    };
    this.#make = () =>
      new KafkaConsumer(
        {
          'group.id': `drover-reader-${randomUUID()}`, // never joined: it has to have one
          'fetch.wait.max.ms': 100, // a reader that is moved waits for the fetch under way: half a second
          ...config,
          'enable.auto.commit': false,
          'enable.auto.offset.store': false,
        },
        { 'auto.offset.reset': 'error' },
      );
  }

  async open(
    id: PartitionId,
    from: StartOffset,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<PartitionReader> {
    const { topic } = id;
    const partition = partitionNumber(id);
    const bounds = await this.bounds(id);
    const at = typeof from === 'bigint' ? from : bounds[from];
    refuseOutside(id, at, bounds);
    const consumer = await this.#connected();
    signal?.throwIfAborted();
    this.#refuseClosed();
    const key = `${topic}/${partition}`;
    if (this.#entries.has(key)) {
      throw new ReaderError('SOURCE_FAILED', `${key} is open already; close it first`);
    }
    const one = [{ topic, partition }];
    const reader = new QueueReader(id, at, bounds.latest, this.#options.bufferedRecordsMax, {
      onFull: () => this.#guard(entry, () => consumer.pause(one)),
      onRoom: () => this.#guard(entry, () => consumer.resume(one)),
      onSeek: () => this.#due(entry),
      onClose: async () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
        this.#wake?.();
      },
    });
    const start = { isDue: true, losses: 0, heardMs: 0 };
    const entry: Entry = { key, id, at: { topic, partition }, reader, ...start };
    this.#entries.set(key, entry);
    this.#due(entry);
    this.#loop ??= this.#consume(consumer);
    return reader;
  }

  async bounds(id: PartitionId): Promise<OffsetBounds> {
    const partition = partitionNumber(id);
    const consumer = await this.#connected();
    const { requestTimeoutMs } = this.#options;
    const { lowOffset, highOffset } = await this.#ask<RdKafkaWatermarks>(id, (done) =>
      consumer.queryWatermarkOffsets(id.topic, partition, requestTimeoutMs, done),
    );
    return { earliest: BigInt(lowOffset), latest: BigInt(highOffset) };
  }

  async offsetForTime(id: PartitionId, timestampMs: number): Promise<bigint> {
    const partition = partitionNumber(id);
    const consumer = await this.#connected();
    const asked = [{ topic: id.topic, partition, offset: Math.floor(timestampMs) }];
    const [found] = await this.#ask<RdKafkaPartition[]>(id, (done) =>
      consumer.offsetsForTimes(asked, this.#options.requestTimeoutMs, done),
    );
    const offset = found?.offset ?? -1;
    return offset < 0 ? (await this.bounds(id)).latest : BigInt(offset);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([...this.#entries.values()].map(({ reader }) => reader.close()));
    this.#wake?.();
    await this.#loop;
    const consumer = await this.#consumer?.catch(() => undefined); // never came to be
    if (consumer !== undefined) await disconnect(consumer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── what is assigned ──────────────────────────────────────────────────────────────────────────

  async #connected(): Promise<Consumer> {
    this.#refuseClosed();
    this.#consumer ??= new Promise((resolve, reject) => {
      const consumer = this.#make();
      consumer.connect({ timeout: this.#options.requestTimeoutMs }, (error) => {
        if (error !== null && error !== undefined) {
          disconnect(consumer).then(() => reject(error), reject); // or its threads would stay
          return;
        }
        consumer.setDefaultConsumeTimeout(consumeTimeoutMs);
        // Else the time counts for every record anew, and a slow trickle is kept back for minutes.
        consumer.setDefaultIsTimeoutOnlyForFirstMessage?.(true);
        resolve(consumer);
      });
    });
    try {
      return await this.#consumer;
    } catch (cause) {
      this.#consumer = undefined; // the next who asks tries anew
      throw new ReaderError('SOURCE_FAILED', 'no broker can be reached', { cause });
    }
  }

  /**
   * Gives the client what is due and takes away what is gone. Only between two calls for records, so that
   * whatever the next one brings is of the places that stand here.
   */
  #settle(consumer: Consumer): void {
    const due = [...this.#entries.values()].filter(({ isDue }) => isDue);
    const gone = [...this.#assigned].filter(([key]) => this.#entries.get(key)?.isDue !== false);
    if (due.length + gone.length === 0) return;
    try {
      if (consumer.incrementalAssign !== undefined && consumer.incrementalUnassign !== undefined) {
        if (gone.length > 0) consumer.incrementalUnassign(gone.map(([, at]) => at));
        for (const [key] of gone) this.#assigned.delete(key);
        if (due.length > 0) consumer.incrementalAssign(due.map(placeOf));
        this.#given(consumer, due);
      } else {
        // It can only be told everything at once.
        const all = [...this.#entries.values()];
        consumer.assign(all.map(placeOf));
        this.#assigned.clear();
        this.#given(consumer, all);
      }
    } catch (cause) {
      this.#failAll(new ReaderError('SOURCE_FAILED', 'partitions cannot be assigned', { cause }));
    }
  }

  #given(consumer: Consumer, entries: readonly Entry[]): void {
    for (const entry of entries) {
      entry.isDue = false;
      entry.losses = 0;
      entry.heardMs = this.#options.clock.nowMs();
      this.#assigned.set(entry.key, entry.at);
    }
    // librdkafka remembers that a partition was paused, also when it is taken away and given again.
    const held = entries.filter(({ reader }) => reader.isHeldBack).map(({ at }) => at);
    const free = entries.filter(({ reader }) => !reader.isHeldBack).map(({ at }) => at);
    if (held.length > 0) consumer.pause(held);
    if (free.length > 0) consumer.resume(free);
  }

  /** Its reader stands elsewhere now, or is new: what comes is not of it until it has been assigned. */
  #due(entry: Entry): void {
    entry.isDue = true;
    this.#wake?.();
  }

  /** What the client refuses to do for a partition is the end of its reader, and told by it. */
  #guard(entry: Entry, work: () => unknown): void {
    if (this.#isClosed || entry.isDue || this.#entries.get(entry.key) !== entry) return;
    try {
      work();
    } catch (cause) {
      this.#fail(entry, new ReaderError('SOURCE_FAILED', `${entry.key} is lost`, { cause }));
    }
  }

  #fail(entry: Entry, error: ReaderError): void {
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    entry.reader.fail(error);
  }

  #failAll(error: ReaderError): void {
    for (const entry of [...this.#entries.values()]) this.#fail(entry, error);
  }

  // ── what comes ────────────────────────────────────────────────────────────────────────────────

  async #consume(consumer: Consumer): Promise<void> {
    while (!this.#isClosed) {
      this.#settle(consumer);
      const messages = await this.#some(consumer);
      this.#took(consumer, messages);
      this.#lookAtSilent();
      // It waits for records by itself, but returns at once where nothing is assigned.
      if (messages.length === 0) await this.#rest();
    }
  }

  #some(consumer: Consumer): Promise<RdKafkaMessage[]> {
    if (this.#entries.size === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      consumer.consume(this.#options.consumeMax, (error, messages) => {
        const isWell = error === null || error === undefined;
        if (!isWell) this.#failed(error);
        resolve(isWell ? messages : []);
      });
    });
  }

  /** It does not say whose error it is: what is of one partition is found by looking at all. */
  #failed(cause: Error): void {
    if (partitionTroubles.has(codeOf(cause) ?? 0)) {
      for (const entry of this.#entries.values()) entry.heardMs = suspected;
      return;
    }
    this.#failAll(new ReaderError('SOURCE_FAILED', cause.message, { cause }));
  }

  /** Until somebody wants something else, but not for long. */
  #rest(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(idleMs, resolve, true);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** One at a time, who was silent longest first: many silent partitions are no storm of requests. */
  #lookAtSilent(): void {
    if (this.#isLooking || this.#isClosed) return;
    const sinceMs = this.#options.clock.nowMs() - this.#options.silenceMs;
    let silent: Entry | undefined;
    for (const entry of this.#entries.values()) {
      if (entry.isDue || entry.heardMs > sinceMs || entry.reader.isHeldBack) continue;
      if (silent === undefined || entry.heardMs < silent.heardMs) silent = entry;
    }
    if (silent !== undefined) void this.#look(silent);
  }

  async #look(entry: Entry): Promise<void> {
    const { id, reader, heardMs } = entry;
    this.#isLooking = true;
    entry.heardMs = this.#options.clock.nowMs();
    const { expected } = reader;
    try {
      refuseOutside(id, expected, await this.bounds(id));
      entry.losses = 0;
      // librdkafka has stopped reading one of those that were suspected: this may be the one.
      if (heardMs === suspected) this.#due(entry);
    } catch (error) {
      // A broker that cannot be asked now may come back: librdkafka goes on trying, and so do we. One
      // that has just come back may not know yet what it has: so it has to say so again.
      if (!(error instanceof ReaderError) || !lost.has(error.code)) return;
      if (entry.isDue || reader.expected !== expected) return; // it was moved meanwhile
      entry.losses += heardMs === suspected ? lossesMax : 1;
      if (entry.losses >= lossesMax) this.#fail(entry, error);
    } finally {
      this.#isLooking = false;
    }
  }

  #took(consumer: Consumer, messages: readonly RdKafkaMessage[]): void {
    for (const [key, some] of byPartition(messages)) {
      const entry = this.#entries.get(key);
      if (entry === undefined || entry.isDue) continue;
      entry.heardMs = this.#options.clock.nowMs();
      const { topic, partition } = entry.at;
      const next = some.at(-1)!.offset + 1;
      this.#guard(entry, () => {
        const { highOffset } = consumer.getWatermarkOffsets(topic, partition);
        const high = BigInt(Math.max(highOffset, next)); // what is not known yet is below 0
        entry.reader.push(some.map(recordOf), BigInt(next), high);
      });
    }
  }

  async #ask<T>(id: PartitionId, ask: (done: RdKafkaCallback<T>) => unknown): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      ask((error, result) => {
        if (error === null || error === undefined) return resolve(result);
        const trouble = partitionTroubles.get(codeOf(error) ?? 0);
        const code = trouble === 'NO_PARTITION' ? trouble : 'SOURCE_FAILED';
        const message = `${id.topic}/${id.partition} cannot be asked for: ${error.message}`;
        reject(new ReaderError(code, message, { cause: error }));
      });
    });
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ReaderError('CLOSED', 'the source was closed');
  }
}

/** Heard of so long ago that it is looked at next. */
const suspected = Number.NEGATIVE_INFINITY;
const lost: ReadonlySet<string> = new Set(['OFFSET_OUT_OF_RANGE', 'NO_PARTITION']);

function placeOf({ at, reader }: Entry): RdKafkaPartition {
  return { ...at, offset: Number(reader.expected) };
}
