/**
 * As much of `@confluentinc/kafka-javascript`, or of node-rdkafka, as the adapter uses, so that nothing of
 * it has to be installed to build; and the adapter's options.
 */

import { type Clock, type OptionTable, optionKinds } from '../../support/index.ts';
import type { KafkaRecord } from '../reader.ts';

export interface ConfluentSourceOptions {
  /** Records of one partition that may wait here. 2,000. */
  readonly bufferedRecordsMax?: number;
  /** Records asked for at once. 500. */
  readonly consumeMax?: number;
  /** How long a broker may take to answer. 10 s. */
  readonly requestTimeoutMs?: number;
  /** A partition that brought nothing for so long is asked whether it is still there. 5 s. */
  readonly silenceMs?: number;
  readonly clock?: Clock;
}

const { number, clock } = optionKinds;
export const confluentTable = {
  bufferedRecordsMax: number,
  consumeMax: number,
  requestTimeoutMs: number,
  silenceMs: number,
  clock,
} satisfies OptionTable<ConfluentSourceOptions>;

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

export interface RdKafkaPlace {
  topic: string;
  partition: number;
  offset: number;
}

export interface RdKafkaWatermarks {
  readonly lowOffset: number;
  readonly highOffset: number;
}

// biome-ignore lint/suspicious/noExplicitAny: the packages say Error, LibrdKafkaError, null or undefined
export type RdKafkaCallback<T> = (error: any, result: T) => void;

/** As much of a consumer as is used. */
export interface RdKafkaConsumer {
  connect(options: { timeout?: number }, done: RdKafkaCallback<unknown>): unknown;
  disconnect(done: RdKafkaCallback<unknown>): unknown;
  assign(partitions: RdKafkaPartition[]): unknown;
  consume(count: number, done: RdKafkaCallback<RdKafkaMessage[]>): unknown;
  setDefaultConsumeTimeout(timeoutMs: number): unknown;
  pause(partitions: RdKafkaPartition[]): unknown;
  resume(partitions: RdKafkaPartition[]): unknown;
  getWatermarkOffsets(topic: string, partition: number): RdKafkaWatermarks;
  queryWatermarkOffsets(
    topic: string,
    partition: number,
    timeoutMs: number,
    done: RdKafkaCallback<RdKafkaWatermarks>,
  ): unknown;
  offsetsForTimes(
    partitions: RdKafkaPlace[],
    timeoutMs: number,
    done: RdKafkaCallback<RdKafkaPartition[]>,
  ): unknown;
}

/** What the packages have and do not declare; older ones may lack it. */
export interface RdKafkaExtras {
  incrementalAssign?(partitions: RdKafkaPartition[]): unknown;
  incrementalUnassign?(partitions: RdKafkaPartition[]): unknown;
  setDefaultIsTimeoutOnlyForFirstMessage?(isIt: boolean): unknown;
}

export type RdKafkaConsumerClass = new (
  config: Record<string, unknown>,
  topicConfig: Record<string, unknown>,
) => RdKafkaConsumer;

/**
 * What became of a partition, by the code of an error: librdkafka's own are negative. Codes that are not
 * here tell of the client as a whole.
 */
export const partitionTroubles: ReadonlyMap<number, 'OFFSET_OUT_OF_RANGE' | 'NO_PARTITION'> =
  new Map([
    [1, 'OFFSET_OUT_OF_RANGE'], // OFFSET_OUT_OF_RANGE
    [-140, 'OFFSET_OUT_OF_RANGE'], // _AUTO_OFFSET_RESET: out of range, and told not to start elsewhere
    [3, 'NO_PARTITION'], // UNKNOWN_TOPIC_OR_PART
    [-188, 'NO_PARTITION'], // _UNKNOWN_TOPIC
    [-190, 'NO_PARTITION'], // _UNKNOWN_PARTITION
  ]);

export function codeOf(error: unknown): number | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}

/** Records of one partition that came together stay together. */
export function byPartition(messages: readonly RdKafkaMessage[]): Map<string, RdKafkaMessage[]> {
  const all = new Map<string, RdKafkaMessage[]>();
  for (const message of messages) {
    const key = `${message.topic}/${message.partition}`;
    const some = all.get(key);
    if (some === undefined) all.set(key, [message]);
    else some.push(message);
  }
  return all;
}

export function recordOf(message: RdKafkaMessage): KafkaRecord {
  const { offset, timestamp, key, value, headers } = message;
  return {
    offset: BigInt(offset),
    timestampMs: timestamp === undefined || timestamp < 0 ? null : timestamp,
    key: key === undefined || key === null ? null : Buffer.from(key),
    value,
    ...(headers && { headers: Object.assign({}, ...headers) }),
  };
}

export function disconnect(consumer: RdKafkaConsumer): Promise<void> {
  return new Promise((resolve) => {
    consumer.disconnect(() => resolve());
  });
}
