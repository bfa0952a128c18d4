/**
 * Opens topics of a cluster through kafkajs where it is installed: for who has addresses and no client.
 *
 * In: addresses, names of topics. Out: a source, and which partitions each topic has; null where kafkajs
 * is not there. Bounded, a partition ends where it ended when it was opened.
 */

import type { PartitionId } from '../partition.ts';
import {
  type PartitionReader,
  ReaderError,
  type RecordBatch,
  type RecordSource,
  type StartOffset,
} from '../reader.ts';
import { KafkaJsSource } from './kafkajs.ts';
import type { KafkaJs } from './kafkajs-face.ts';
import { loadKafkaJs } from './kafkajs-load.ts';

export interface OpenedTopics {
  readonly source: RecordSource;
  /** Partitions by topic, in order. */
  readonly topics: ReadonlyMap<string, readonly string[]>;
}

export async function openKafkaJsSource(
  brokers: readonly string[],
  names: readonly string[],
  { isBounded = false }: { readonly isBounded?: boolean } = {},
): Promise<OpenedTopics | null> {
  const kafkajs = await loadKafkaJs();
  if (kafkajs === null) return null;
  const kafka = new kafkajs.Kafka({
    clientId: 'drover',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const admin = kafka.admin();
  const topics = new Map<string, readonly string[]>();
  try {
    await admin.connect();
    const metadata = await admin.fetchTopicMetadata({ topics: [...names] });
    for (const { name, partitions } of metadata.topics) {
      const ids = partitions.map(({ partitionId }) => partitionId).sort((a, b) => a - b);
      topics.set(name, ids.map(String));
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReaderError('SOURCE_FAILED', `${brokers.join(',')} cannot be asked: ${why}`, {
      cause,
    });
  } finally {
    await admin.disconnect();
  }
  const source = new KafkaJsSource(kafka as unknown as KafkaJs);
  return { source: isBounded ? boundedSource(source) : source, topics };
}

/** As the source, but every partition ends where it ended when it was opened. */
export function boundedSource(source: RecordSource): RecordSource {
  return {
    async open(partition: PartitionId, from: StartOffset, options = {}) {
      const { latest } = await source.bounds(partition);
      const reader = await source.open(partition, from, { ...options, until: latest });
      return new BoundedReader(reader, latest);
    },
    bounds: (partition) => source.bounds(partition),
    offsetForTime: (partition, timestampMs) => source.offsetForTime(partition, timestampMs),
    close: () => source.close(),
    [Symbol.asyncDispose]: () => source.close(),
  };
}

class BoundedReader implements PartitionReader {
  readonly #reader: PartitionReader;
  readonly #end: bigint;

  constructor(reader: PartitionReader, end: bigint) {
    this.#reader = reader;
    this.#end = end;
  }

  get topic() {
    return this.#reader.topic;
  }

  get partition() {
    return this.#reader.partition;
  }

  get position() {
    return this.#reader.position;
  }

  get highWatermark() {
    return this.#end;
  }

  get isPaused() {
    return this.#reader.isPaused;
  }

  get isClosed() {
    return this.#reader.isClosed ?? false;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    if (this.#reader.position >= this.#end) return { done: true, value: undefined };
    const result = await this.#reader.next();
    if (result.done) return result;
    const { value: batch } = result;
    if (batch.nextOffset <= this.#end) return result;
    const records = batch.records.filter(({ offset }) => offset < this.#end);
    if (records.length === 0) return { done: true, value: undefined };
    return { done: false, value: { ...batch, records, nextOffset: this.#end } };
  }

  pause(): void {
    this.#reader.pause();
  }

  resume(): void {
    this.#reader.resume();
  }

  seek(offset: bigint): void {
    this.#reader.seek(offset);
  }

  async return(): Promise<IteratorResult<RecordBatch, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
