/**
 * Records through `@confluentinc/kafka-javascript` (or node-rdkafka), whose consumer is assigned its
 * partitions by hand, with offsets, and needs no group.
 *
 *   import Kafka from '@confluentinc/kafka-javascript';
 *   const source = new ConfluentSource(Kafka.KafkaConsumer, { 'bootstrap.servers': '127.0.0.1:9092' });
 *
 * One consumer serves all partitions of a source. It is asked for a few records at a time, and what
 * comes is queued for each reader, up to a limit; a reader that is full has its partition paused. When a
 * partition is opened or closed, all are assigned anew, each where its reader stands.
 *
 * The package is named by nobody here: whatever has its face will do.
 */

import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../support/index.ts';
import { type PartitionId, partitionNumber } from '../partition.ts';
import {
  type KafkaRecord,
  type OffsetBounds,
  type PartitionReader,
  ReaderError,
  type RecordSource,
  type StartOffset,
} from '../reader.ts';
import { QueueReader } from './queue-reader.ts';

/** A record, as librdkafka's binding gives it. */
export interface RdKafkaMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly timestamp?: number | undefined;
  readonly key?: Buffer | string | null | undefined;
  readonly value: Buffer | null;
  readonly headers?: readonly Readonly<Record<string, Buffer | string>>[] | undefined;
}

export interface RdKafkaPartition {
  topic: string;
  partition: number;
  offset?: number;
}

type Callback<T> = (error: Error | null, result: T) => void;

/** As much of a consumer as is used. */
export interface RdKafkaConsumer {
  connect(options: object, done: Callback<unknown>): unknown;
  disconnect(done: Callback<unknown>): unknown;
  assign(partitions: RdKafkaPartition[]): unknown;
  consume(count: number, done: Callback<RdKafkaMessage[]>): unknown;
  setDefaultConsumeTimeout(timeoutMs: number): unknown;
  pause(partitions: RdKafkaPartition[]): unknown;
  resume(partitions: RdKafkaPartition[]): unknown;
  seek(at: RdKafkaPartition, timeoutMs: number, done: Callback<unknown>): unknown;
  getWatermarkOffsets(
    topic: string,
    partition: number,
  ): { readonly lowOffset: number; readonly highOffset: number };
  queryWatermarkOffsets(
    topic: string,
    partition: number,
    timeoutMs: number,
    done: Callback<{ readonly lowOffset: number; readonly highOffset: number }>,
  ): unknown;
  offsetsForTimes(
    partitions: RdKafkaPartition[],
    timeoutMs: number,
    done: Callback<RdKafkaPartition[]>,
  ): unknown;
}

export type RdKafkaConsumerClass = new (
  config: Record<string, unknown>,
  topicConfig: Record<string, unknown>,
) => RdKafkaConsumer;

export interface ConfluentSourceOptions {
  /** Records of one partition that may wait here. 2,000. */
  readonly bufferedRecordsMax?: number;
  /** Records asked for at once. 500. */
  readonly consumeMax?: number;
  /** How long a broker may take to answer. 10 s. */
  readonly requestTimeoutMs?: number;
  readonly clock?: Clock;
}

/** Between two tries when nothing is assigned or everything is held back, and after an error. */
const idleMs = 50;
/** How long librdkafka waits for records in one call: short, as a call holds one of few threads. */
const consumeTimeoutMs = 100;

export class ConfluentSource implements RecordSource {
  readonly #make: () => RdKafkaConsumer;
  readonly #options: Required<ConfluentSourceOptions>;
  readonly #readers = new Map<
    string,
    { readonly at: RdKafkaPartition; readonly reader: QueueReader }
  >();
  #consumer: Promise<RdKafkaConsumer> | undefined;
  #loop: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    KafkaConsumer: RdKafkaConsumerClass,
    config: Readonly<Record<string, unknown>>,
    options: ConfluentSourceOptions = {},
  ) {
    this.#options = {
      bufferedRecordsMax: 2_000,
      consumeMax: 500,
      requestTimeoutMs: 10_000,
      clock: systemClock,
      ...options,
    };
    this.#make = () =>
      new KafkaConsumer(
        {
          'group.id': `drover-reader-${randomUUID()}`, // never joined: it has to have one
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
    if (at < bounds.earliest || at > bounds.latest) {
      const { earliest, latest } = bounds;
      const message = `${topic}/${partition} holds ${earliest} to ${latest}, not ${at}`;
      throw new ReaderError('OFFSET_OUT_OF_RANGE', message);
    }
    const consumer = await this.#connected();
    signal?.throwIfAborted();
    this.#refuseClosed();
    const key = `${topic}/${partition}`;
    if (this.#readers.has(key)) {
      throw new ReaderError('SOURCE_FAILED', `${key} is open already; close it first`);
    }
    const one = [{ topic, partition }];
    const reader = new QueueReader(id, at, bounds.latest, this.#options.bufferedRecordsMax, {
      onFull: () => consumer.pause(one),
      onRoom: () => consumer.resume(one),
      onSeek: () => this.#assign(consumer),
      onClose: async () => {
        if (this.#readers.get(key)?.reader !== reader) return;
        this.#readers.delete(key);
        if (!this.#isClosed) this.#assign(consumer);
      },
    });
    this.#readers.set(key, { at: { topic, partition }, reader });
    this.#assign(consumer);
    this.#loop ??= this.#consume(consumer);
    return reader;
  }

  async bounds(id: PartitionId): Promise<OffsetBounds> {
    const partition = partitionNumber(id);
    const consumer = await this.#connected();
    const { lowOffset, highOffset } = await this.#ask<{ lowOffset: number; highOffset: number }>(
      id,
      (done) =>
        consumer.queryWatermarkOffsets(id.topic, partition, this.#options.requestTimeoutMs, done),
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
    await Promise.all([...this.#readers.values()].map(({ reader }) => reader.close()));
    await this.#loop;
    const consumer = await this.#consumer?.catch(() => undefined);
    if (consumer !== undefined) {
      await new Promise<void>((resolve) => {
        consumer.disconnect(() => resolve());
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── the consumer ──────────────────────────────────────────────────────────────────────────────

  async #connected(): Promise<RdKafkaConsumer> {
    this.#refuseClosed();
    this.#consumer ??= new Promise((resolve, reject) => {
      const consumer = this.#make();
      consumer.connect({ timeout: this.#options.requestTimeoutMs }, (error) => {
        if (error !== null && error !== undefined) return reject(error);
        consumer.setDefaultConsumeTimeout(consumeTimeoutMs);
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

  /** Every reader's partition, from where it expects to go on: what was under way before is dropped. */
  #assign(consumer: RdKafkaConsumer): void {
    const all = [...this.#readers.values()];
    consumer.assign(all.map(({ at, reader }) => ({ ...at, offset: Number(reader.expected) })));
    const held = all.filter(({ reader }) => reader.isHeldBack).map(({ at }) => at);
    if (held.length > 0) consumer.pause(held);
  }

  async #consume(consumer: RdKafkaConsumer): Promise<void> {
    while (!this.#isClosed) {
      const messages = await this.#some(consumer);
      this.#took(consumer, messages);
      // It waits for records by itself, but returns at once where nothing is assigned.
      if (messages.length === 0) await this.#rest();
    }
  }

  #some(consumer: RdKafkaConsumer): Promise<RdKafkaMessage[]> {
    if (this.#readers.size === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      consumer.consume(this.#options.consumeMax, (error, messages) => {
        if (error !== null && error !== undefined) this.#failed(error);
        resolve(error ? [] : messages);
      });
    });
  }

  /** What librdkafka does not mend by itself is told to every reader: whose it is, it does not say. */
  #failed(cause: Error): void {
    const isGone = /out of range|offset/i.test(cause.message);
    const code = isGone ? 'OFFSET_OUT_OF_RANGE' : 'SOURCE_FAILED';
    const error = new ReaderError(code, cause.message, { cause });
    for (const { reader } of this.#readers.values()) reader.fail(error);
    this.#readers.clear();
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.after(idleMs, resolve, true);
    });
  }

  /** Records of one partition that came together stay together. */
  #took(consumer: RdKafkaConsumer, messages: readonly RdKafkaMessage[]): void {
    const byPartition = new Map<string, RdKafkaMessage[]>();
    for (const message of messages) {
      const key = `${message.topic}/${message.partition}`;
      const some = byPartition.get(key);
      if (some === undefined) byPartition.set(key, [message]);
      else some.push(message);
    }
    for (const [key, some] of byPartition) {
      const entry = this.#readers.get(key);
      if (entry === undefined) continue;
      const { topic, partition } = entry.at;
      const next = some.at(-1)!.offset + 1;
      const { highOffset } = consumer.getWatermarkOffsets(topic, partition);
      const high = BigInt(Math.max(highOffset, next)); // what is not known yet is below 0
      entry.reader.push(some.map(recordOf), BigInt(next), high);
    }
  }

  async #ask<T>(id: PartitionId, ask: (done: Callback<T>) => unknown): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      ask((error, result) => {
        if (error === null || error === undefined) return resolve(result);
        const message = `${id.topic}/${id.partition} cannot be asked for: ${error.message}`;
        reject(new ReaderError('SOURCE_FAILED', message, { cause: error }));
      });
    });
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ReaderError('CLOSED', 'the source was closed');
  }
}

function recordOf(message: RdKafkaMessage): KafkaRecord {
  const { offset, timestamp, key, value, headers } = message;
  return {
    offset: BigInt(offset),
    timestampMs: timestamp === undefined || timestamp < 0 ? null : timestamp,
    key: key === undefined || key === null ? null : Buffer.from(key),
    value,
    ...(headers && { headers: Object.assign({}, ...headers) }),
  };
}
