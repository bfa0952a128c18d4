/**
 * Records through kafkajs (2.x), which has no way to be assigned a partition by hand.
 *
 * So each topic gets a consumer in a group of its own, with an assigner that gives it every partition;
 * those that nobody reads are paused. Nothing is committed: where to begin is said by `seek`, and how
 * far was read is the caller's to remember. A batch is taken only if it was fetched at the offset that
 * is expected, so what was under way before a seek does no harm.
 *
 *   import { Kafka } from 'kafkajs';
 *   const source = new KafkaJsSource(new Kafka({ brokers: ['127.0.0.1:9092'] }));
 *
 * What it costs: the first reader of a topic waits for the coordinator to let a new group in (three
 * seconds, with a broker's default). What is fetched ahead is bounded for each reader. kafkajs itself is
 * named by nobody here: whatever has its face will do.
 */

import { randomUUID } from 'node:crypto';
import {
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  type OptionTable,
  optionKinds,
  systemClock,
  unlessAborted,
} from '../../support/index.ts';
import { type PartitionId, partitionNumber } from '../partition.ts';
import {
  type KafkaRecord,
  type OffsetBounds,
  type OpenOptions,
  type PartitionReader,
  ReaderError,
  type RecordSource,
  type StartOffset,
} from '../reader.ts';
import { assignmentBytes, metadataBytes } from './assignment-bytes.ts';
import type {
  KafkaJs,
  KafkaJsAdmin,
  KafkaJsAssigner,
  KafkaJsBatch,
  KafkaJsBatchEnd,
  KafkaJsConsumer,
  KafkaJsMessage,
  KafkaJsMetadata,
} from './kafkajs-face.ts';
import { repairFetches } from './kafkajs-fetches.ts';
import { QueueReader, refuseOutside } from './queue-reader.ts';

export interface KafkaJsSourceOptions {
  /** Groups are named by this and a UUID. `drover-reader`. */
  readonly groupPrefix?: string;
  /** Records of one partition that may wait here. 2,000. */
  readonly bufferedRecordsMax?: number;
  /** Batches that kafkajs may hand over at once. 16. */
  readonly partitionsConcurrently?: number;
  /** How long kafkajs may try to join its group, as while a broker loads what it knows of groups. 30 s. */
  readonly joinTimeoutMs?: number;
  readonly clock?: Clock;
  /** More options for kafkajs's `consumer`, as `maxBytesPerPartition`. `maxWaitTimeInMs` is 500. */
  readonly consumer?: Readonly<Record<string, unknown>>;
}

const { text, number, clock, object } = optionKinds;
const sourceTable = {
  groupPrefix: text,
  bufferedRecordsMax: number,
  partitionsConcurrently: number,
  joinTimeoutMs: number,
  clock,
  consumer: object,
} satisfies OptionTable<KafkaJsSourceOptions>;

/** How often a partition may be fetched at another offset than asked for, in a row. */
const misfetchesMax = 5;
/**
 * So long a fetch may wait at a broker, as with Kafka's own consumers, and kafkajs before it looks again when
 * all is paused. Before that is over it does not see what was resumed; by itself it takes 5 s.
 */
const waitMs = 500;
/** A topic, where a config is asked for. */
const topicResource = 2;

interface Topic {
  readonly consumer: KafkaJsConsumer;
  readonly readers: Map<number, QueueReader>;
  readonly misfetches: Map<number, number>;
  /** Partitions that the group of one was given when it was last joined. */
  readonly assigned: Set<number>;
  readonly metadata: KafkaJsMetadata | undefined;
  /** The group was joined for the first time, or never will be. */
  readonly joined: Deferred<void>;
  readonly started: Promise<void>;
}

export class KafkaJsSource implements RecordSource {
  readonly #kafka: KafkaJs;
  readonly #options: Required<Omit<KafkaJsSourceOptions, 'consumer'>> & KafkaJsSourceOptions;
  readonly #topics = new Map<string, Topic>();
  readonly #compacted = new Set<string>();
  #admin: Promise<KafkaJsAdmin> | undefined;
  #isClosed = false;

  constructor(kafka: KafkaJs, options: KafkaJsSourceOptions = {}) {
    checkOptions('KafkaJsSource', options, sourceTable);
    this.#kafka = kafka;
    this.#options = {
      groupPrefix: 'drover-reader',
      bufferedRecordsMax: 2_000,
      partitionsConcurrently: 16,
      joinTimeoutMs: 30_000,
      clock: systemClock,
      ...options,
    };
  }

  async open(
    id: PartitionId,
    from: StartOffset,
    { signal, until }: OpenOptions = {},
  ): Promise<PartitionReader> {
    const { topic } = id;
    const partition = partitionNumber(id);
    const bounds = await this.bounds(id);
    const at = typeof from === 'bigint' ? from : bounds[from];
    refuseOutside(id, at, bounds);
    const entry = this.#topicOf(topic);
    await (signal === undefined ? entry.started : unlessAborted(entry.started, signal));
    if (!entry.assigned.has(partition)) await this.#learn(entry, id);
    signal?.throwIfAborted();
    this.#refuseClosed();
    if (entry.readers.has(partition)) {
      throw new ReaderError(
        'SOURCE_FAILED',
        `${topic}/${partition} is open already; close it first`,
      );
    }
    const { consumer, readers } = entry;
    const one = [{ topic, partitions: [partition] }];
    const seek = (offset: bigint) => consumer.seek({ topic, partition, offset: String(offset) });
    const reader = new QueueReader(id, at, bounds.latest, this.#options.bufferedRecordsMax, {
      onFull: () => consumer.pause(one),
      onRoom: () => consumer.resume(one),
      onSeek: seek,
      until,
      onClose: async () => {
        if (readers.get(partition) !== reader) return;
        readers.delete(partition);
        if (!this.#isClosed) consumer.pause(one);
      },
    });
    readers.set(partition, reader);
    try {
      seek(at);
      consumer.resume(one);
    } catch (cause) {
      readers.delete(partition); // or it would count as open for good
      const message = `${topic}/${partition} cannot be read before kafkajs is connected again`;
      throw new ReaderError('SOURCE_FAILED', message, { cause });
    }
    return reader;
  }

  async bounds(id: PartitionId): Promise<OffsetBounds> {
    const partition = partitionNumber(id);
    const admin = await this.#connectedAdmin();
    const found = (await this.#asked(admin.fetchTopicOffsets(id.topic), id)).find(
      (one) => one.partition === partition,
    );
    if (found === undefined) {
      throw new ReaderError('NO_PARTITION', `${id.topic} has no partition ${partition}`);
    }
    return { earliest: BigInt(found.low), latest: BigInt(found.high) };
  }

  async offsetForTime(id: PartitionId, timestampMs: number): Promise<bigint> {
    const partition = partitionNumber(id);
    const admin = await this.#connectedAdmin();
    const found = await this.#asked(admin.fetchTopicOffsetsByTimestamp(id.topic, timestampMs), id);
    const one = found.find((entry) => entry.partition === partition);
    const offset = one === undefined ? -1n : BigInt(one.offset);
    return offset < 0n ? (await this.bounds(id)).latest : offset;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { readers } of this.#topics.values()) {
      await Promise.all([...readers.values()].map((reader) => reader.close()));
    }
    await Promise.all(
      [...this.#topics.values()].map(async ({ consumer, joined, started }) => {
        joined.reject(closedError());
        await started.catch(() => {}); // who opened it was told
        await consumer.disconnect();
      }),
    );
    this.#topics.clear();
    await (await this.#admin?.catch(() => undefined))?.disconnect();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── the consumer of a topic ───────────────────────────────────────────────────────────────────

  #topicOf(topic: string): Topic {
    this.#refuseClosed();
    const known = this.#topics.get(topic);
    if (known !== undefined) return known;
    const readers = new Map<number, QueueReader>();
    const assigned = new Set<number>();
    let metadata: KafkaJsMetadata | undefined;
    const { groupPrefix, consumer: more } = this.#options;
    const consumer = this.#kafka.consumer({
      maxWaitTimeInMs: waitMs,
      ...more,
      groupId: `${groupPrefix}-${randomUUID()}`,
      partitionAssigners: [
        (config) => {
          metadata = config.cluster;
          repairFetches(config.cluster, {
            isCompacted: (name) => this.#isCompacted(name),
            onOutOfRange: (name, partition, offset) => this.#outOfRange(name, partition, offset),
          });
          return everything(config);
        },
      ],
    });
    const joined = deferred();
    const started = this.#start(topic, consumer, readers, assigned, joined);
    const misfetches = new Map();
    const entry: Topic = { consumer, readers, misfetches, assigned, metadata, joined, started };
    this.#topics.set(topic, entry);
    started.catch(() => {
      this.#topics.delete(topic); // the next who opens tries anew
      consumer.disconnect().catch(() => {});
    });
    return entry;
  }

  async #start(
    topic: string,
    consumer: KafkaJsConsumer,
    readers: Map<number, QueueReader>,
    assigned: Set<number>,
    joined: Deferred<void>,
  ): Promise<void> {
    const { clock, joinTimeoutMs } = this.#options;
    const deadlineMs = clock.nowMs() + joinTimeoutMs;
    try {
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        const partitions = payload.memberAssignment[topic] ?? [];
        assigned.clear();
        for (const partition of partitions) assigned.add(partition);
        this.#joined(topic, partitions, consumer, readers);
        joined.resolve();
      });
      consumer.on(consumer.events.CRASH, ({ payload }) => {
        const message = `kafkajs gave up on ${topic}: ${payload.error.message}`;
        const error = new ReaderError('SOURCE_FAILED', message, { cause: payload.error });
        if (!payload.restart || clock.nowMs() >= deadlineMs) joined.reject(error);
        if (payload.restart) return;
        for (const reader of readers.values()) reader.fail(error);
        this.#topics.delete(topic);
      });
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => this.#passed(payload));
      joined.promise.catch(() => {}); // told below, or too late to matter
      await consumer.connect();
      await consumer.subscribe({ topics: [topic] });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: this.#options.partitionsConcurrently,
        eachBatch: async ({ batch, resolveOffset }) => this.#took(batch, resolveOffset),
      });
      await joined.promise;
    } catch (cause) {
      if (cause instanceof ReaderError) throw cause;
      throw new ReaderError('SOURCE_FAILED', `${topic} cannot be read`, { cause });
    }
  }

  /**
   * A partition that was added since: by itself kafkajs would hear of it in minutes. What it is told now it
   * sees when it fetches next; then it joins anew, and the reader goes on from there.
   */
  async #learn({ metadata }: Topic, id: PartitionId): Promise<void> {
    if (metadata === undefined) return;
    await this.#asked(metadata.refreshMetadata(), id);
    const known = metadata.findTopicPartitionMetadata(id.topic);
    if (known.some(({ partitionId }) => partitionId === partitionNumber(id))) return;
    const message = `${id.topic}/${id.partition} is not known to every broker yet`;
    throw new ReaderError('SOURCE_FAILED', message);
  }

  /** Everything is assigned to us; only what somebody reads is fetched, from where it stands. */
  #joined(
    topic: string,
    assigned: readonly number[],
    consumer: KafkaJsConsumer,
    readers: ReadonlyMap<number, QueueReader>,
  ): void {
    const idle = assigned.filter((partition) => readers.get(partition)?.isHeldBack !== false);
    if (idle.length > 0) consumer.pause([{ topic, partitions: idle }]);
    for (const [partition, reader] of readers) {
      consumer.seek({ topic, partition, offset: String(reader.expected) });
    }
  }

  #took(batch: KafkaJsBatch, resolveOffset: (offset: string) => void): void {
    const { topic, partition } = batch;
    const entry = this.#topics.get(topic);
    const reader = entry?.readers.get(partition);
    if (entry === undefined || reader === undefined || reader.isClosed) return;
    // Fetched for an offset of before a seek; or out of range, and kafkajs went elsewhere by itself.
    if (batch.fetchedOffset !== undefined && BigInt(batch.fetchedOffset) !== reader.expected) {
      this.#misfetched(entry, reader, batch);
      return;
    }
    entry.misfetches.delete(partition);
    const last = batch.lastOffset();
    resolveOffset(last);
    const records = batch.messages.map(recordOf);
    reader.push(records, BigInt(last) + 1n, BigInt(batch.highWatermark));
  }

  /**
   * Marks of transactions, and records of those that were aborted, kafkajs passes without a word to
   * `eachBatch`. They count only right where the reader is: they may be of before a seek.
   */
  #passed({
    topic,
    partition,
    batchSize,
    firstOffset,
    lastOffset,
    highWatermark,
  }: KafkaJsBatchEnd) {
    const reader = this.#topics.get(topic)?.readers.get(partition);
    const from = firstOffset ?? lastOffset; // null: it found nothing at all, and goes on by one
    if (batchSize > 0 || reader === undefined || from !== String(reader.expected)) return;
    reader.push([], BigInt(lastOffset) + 1n, BigInt(highWatermark));
  }

  #misfetched(entry: Topic, reader: QueueReader, { topic, partition }: KafkaJsBatch): void {
    const count = (entry.misfetches.get(partition) ?? 0) + 1;
    entry.misfetches.set(partition, count);
    if (count <= misfetchesMax) {
      entry.consumer.seek({ topic, partition, offset: String(reader.expected) });
      return;
    }
    this.#outOfRange(topic, partition, reader.expected);
  }

  /** Unless it was asked for before a seek. */
  #outOfRange(topic: string, partition: number, offset: bigint): void {
    const entry = this.#topics.get(topic);
    const reader = entry?.readers.get(partition);
    if (entry === undefined || reader === undefined || reader.expected !== offset) return;
    entry.readers.delete(partition);
    entry.misfetches.delete(partition);
    entry.consumer.pause([{ topic, partitions: [partition] }]);
    const message = `${topic}/${partition} has no offset ${offset} any more`;
    reader.fail(new ReaderError('OFFSET_OUT_OF_RANGE', message));
  }

  /** Where that cannot be asked, it does not count as compacted: nothing is passed over unseen. */
  async #isCompacted(topic: string): Promise<boolean> {
    if (this.#compacted.has(topic)) return true;
    const configNames = ['cleanup.policy'];
    try {
      const admin = await this.#connectedAdmin();
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: topicResource, name: topic, configNames }],
      });
      if (!resources[0]?.configEntries[0]?.configValue.includes('compact')) return false;
    } catch {
      return false; // asked again with the next fetch
    }
    this.#compacted.add(topic);
    return true;
  }

  async #connectedAdmin(): Promise<KafkaJsAdmin> {
    this.#refuseClosed();
    this.#admin ??= (async () => {
      const admin = this.#kafka.admin();
      await admin.connect();
      return admin;
    })();
    try {
      return await this.#admin;
    } catch (cause) {
      this.#admin = undefined; // the next who asks tries anew
      throw new ReaderError('SOURCE_FAILED', 'no broker can be asked', { cause });
    }
  }

  async #asked<T>(answer: Promise<T>, { topic, partition }: PartitionId): Promise<T> {
    try {
      return await answer;
    } catch (cause) {
      throw new ReaderError('SOURCE_FAILED', `${topic}/${partition} cannot be asked for`, {
        cause,
      });
    }
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw closedError();
  }
}

function closedError(): ReaderError {
  return new ReaderError('CLOSED', 'the source was closed');
}

/** An assigner for groups of one: all partitions of all topics are the first member's. */
const everything: KafkaJsAssigner = ({ cluster }) => ({
  name: 'drover-everything',
  version: 1,
  protocol: ({ topics }) => ({ name: 'drover-everything', metadata: metadataBytes(topics) }),
  async assign({ members, topics }) {
    const partitions = Object.fromEntries(
      topics.map((topic) => [
        topic,
        cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId),
      ]),
    );
    return members.map(({ memberId }, i) => ({
      memberId,
      memberAssignment: assignmentBytes(i === 0 ? partitions : {}),
    }));
  },
});

function recordOf({ offset, timestamp, key, value, headers }: KafkaJsMessage): KafkaRecord {
  const ms = Number(timestamp);
  return {
    offset: BigInt(offset),
    timestampMs: Number.isFinite(ms) && ms >= 0 ? ms : null,
    key: key ?? null,
    value: value ?? null,
    ...(headers && { headers: headers as NonNullable<KafkaRecord['headers']> }),
  };
}
