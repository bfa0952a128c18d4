/**
 * Asks brokers how far their partitions reach, through kafkajs where it is installed: for who shows lag.
 *
 * In: addresses. Out: the ends of a partition, and the offset at a time; null where kafkajs is not there.
 * Joins no group and reads no record. A topic is asked for once within `keptMs`, however many of its
 * partitions are wanted. It tries little and gives up soon: whoever asks can say "unknown".
 */

import { type PartitionId, partitionNumber } from '../partition.ts';
import { ReaderError, type RecordSource } from '../reader.ts';
import type { KafkaJsAdmin } from './kafkajs-face.ts';
import { loadKafkaJs } from './kafkajs-load.ts';

export type OffsetSource = Pick<RecordSource, 'bounds' | 'offsetForTime' | 'close'>;

export interface KafkaJsOffsetsOptions {
  /** For how long an answer stands. 1 s. */
  readonly keptMs?: number;
  readonly timeoutMs?: number;
}

type Answer<T> = { readonly atMs: number; readonly value: Promise<T> };

/** Answers kept at once; the oldest goes. */
const keptMax = 1_000;

/** Null: kafkajs is not installed. Rejects with a ReaderError when no broker can be asked. */
export async function openKafkaJsOffsets(
  brokers: readonly string[],
  { keptMs = 1_000, timeoutMs = 5_000 }: KafkaJsOffsetsOptions = {},
): Promise<OffsetSource | null> {
  const kafkajs = await loadKafkaJs();
  if (kafkajs === null) return null;
  const kafka = new kafkajs.Kafka({
    clientId: 'drover',
    brokers: [...brokers],
    connectionTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retry: { retries: 1, initialRetryTime: 100 },
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const admin = kafka.admin() as KafkaJsAdmin;
  try {
    await admin.connect();
  } catch (cause) {
    await admin.disconnect().catch(() => {}); // what it failed with is told below
    throw new ReaderError('SOURCE_FAILED', `no broker can be asked: ${reasonOf(cause)}`, { cause });
  }
  return new KafkaJsOffsets(admin, keptMs);
}

class KafkaJsOffsets implements OffsetSource {
  readonly #admin: KafkaJsAdmin;
  readonly #keptMs: number;
  readonly #answers = new Map<string, Answer<unknown>>();

  constructor(admin: KafkaJsAdmin, keptMs: number) {
    this.#admin = admin;
    this.#keptMs = keptMs;
  }

  async bounds(id: PartitionId) {
    const partition = partitionNumber(id);
    const all = await this.#kept(id.topic, () => this.#admin.fetchTopicOffsets(id.topic));
    const one = all.find((each) => each.partition === partition);
    if (one === undefined) {
      throw new ReaderError('NO_PARTITION', `${id.topic} has no partition ${partition}`);
    }
    return { earliest: BigInt(one.low), latest: BigInt(one.high) };
  }

  async offsetForTime(id: PartitionId, timestampMs: number): Promise<bigint> {
    const partition = partitionNumber(id);
    const all = await this.#kept(`${id.topic} ${timestampMs}`, () =>
      this.#admin.fetchTopicOffsetsByTimestamp(id.topic, timestampMs),
    );
    const one = all.find((each) => each.partition === partition);
    const offset = one === undefined ? -1n : BigInt(one.offset);
    return offset < 0n ? (await this.bounds(id)).latest : offset;
  }

  async close(): Promise<void> {
    await this.#admin.disconnect();
  }

  async #kept<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const nowMs = performance.now();
    const before = this.#answers.get(key) as Answer<T> | undefined;
    if (before !== undefined && nowMs - before.atMs < this.#keptMs) return before.value;
    const value = ask().catch((cause: unknown) => {
      this.#answers.delete(key);
      throw new ReaderError('SOURCE_FAILED', `${key} cannot be asked for: ${reasonOf(cause)}`, {
        cause,
      });
    });
    this.#answers.delete(key);
    this.#answers.set(key, { atMs: nowMs, value });
    if (this.#answers.size > keptMax) this.#answers.delete(this.#answers.keys().next().value!);
    return value;
  }
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
