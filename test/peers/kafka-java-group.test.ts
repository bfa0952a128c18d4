/**
 * Java's own consumers and ours in one group, on real brokers: they divide the partitions, hand them over to
 * each other, take over from the dead, and go on from each other's offsets.
 */

import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, test, vi } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import { Consumer, createTopic, describeGroup, readTopic } from '../../src/kafka/index.ts';
import { KafkaJsSource } from '../../src/kafka/readers/kafkajs.ts';
import { startTestServer } from '../../src/testing/index.ts';
import { startKafka } from './kafka/broker.ts';
import { findKafka, findOldKafka, type KafkaPeer } from './kafka/fetch.ts';
import { JavaConsumer } from './kafka/java-consumer.ts';

const brokers = await findKafka();
const old = await findOldKafka();
const missing = [brokers, old].find((one) => typeof one === 'string') as string | undefined;

test.runIf(missing !== undefined && process.env.CI === 'true')('Kafka is here', () =>
  expect(missing).toBeUndefined(),
);

const group = 'billing';
const topic = 'orders';
const partitions = 4;
const sessionTimeoutMs = 10_000;
const eventually = <T>(check: () => Promise<T> | T) =>
  vi.waitFor(check, { timeout: 90_000, interval: 200 });

/** A member of ours that reads and commits until it is told to leave. */
class Ours {
  readonly values = new Set<string>();
  readonly #source: KafkaJsSource;
  readonly #session: Client;
  readonly #consumer: Consumer;
  readonly #done: Promise<void>;

  private constructor(session: Client, source: KafkaJsSource, consumerId: string) {
    this.#session = session;
    this.#source = source;
    const subscribe = { topics: [topic] };
    this.#consumer = new Consumer(session, { group, subscribe, consumerId, source });
    this.#done = this.#read();
  }

  static async join(zookeeper: string, kafka: Kafka, consumerId: string): Promise<Ours> {
    const session = await connect(zookeeper, { sessionTimeoutMs });
    return new Ours(session, new KafkaJsSource(kafka), consumerId);
  }

  async #read(): Promise<void> {
    for await (const { records, commit } of this.#consumer) {
      for (const { value } of records) this.values.add(String(value));
      await commit();
    }
  }

  async leave(): Promise<void> {
    await this.#consumer.close();
    await this.#done;
    await this.#source.close();
    await this.#session.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}

describe.skipIf(missing !== undefined)(missing ?? 'Java 1.1 and ours in one group', () => {
  test('members of both kinds join, leave and die, and nothing is lost', {
    timeout: 400_000,
  }, async () => {
    await using server = await startTestServer({ tickTimeMs: 500 });
    await using root = await connect(server.address);
    await root.create('/kafka');
    const zookeeper = `${server.address}/kafka`;
    await using broker = await startKafka(brokers as KafkaPeer, { zookeeper, brokerId: 1 });
    await using zk = await connect(zookeeper);
    const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
    await createTopic(zk, topic, { assignment: Array(partitions).fill([1]) });
    await eventually(async () => {
      const seen = (await readTopic(zk, topic))!.partitions.map(({ state }) => state?.leader);
      expect(seen).toEqual(Array(partitions).fill(1));
    });
    const join = (consumerId: string, fromStart: boolean) =>
      JavaConsumer.start(old as KafkaPeer, {
        ...{ zookeeper, group, topic, consumerId, fromStart, sessionTimeoutMs },
      });
    const shared = (expected: Record<string, number>) =>
      eventually(async () => expect(await ownersOf(zk)).toEqual(expected));
    const sources: (() => Iterable<string>)[] = [];
    let sent = 0;
    const allIsRead = async () => {
      const producer = kafka.producer();
      await producer.connect();
      const messages = Array.from({ length: 100 * partitions }, (_, i) => ({
        partition: i % partitions,
        value: `record ${sent + i}`,
      }));
      await producer.send({ topic, messages });
      await producer.disconnect();
      sent += messages.length;
      const wanted = Array.from({ length: sent }, (_, i) => `record ${i}`);
      await eventually(() => {
        const read = new Set(sources.flatMap((values) => [...values()]));
        expect(wanted.filter((value) => !read.has(value))).toEqual([]);
      });
    };

    await using java1 = await join('java1', true);
    sources.push(() => java1.lines());
    await shared({ java1: 4 });
    await allIsRead();

    await using ours1 = await Ours.join(zookeeper, kafka, 'ours1');
    sources.push(() => ours1.values);
    await shared({ java1: 2, ours1: 2 });
    await allIsRead();

    await using java2 = await join('java2', false);
    sources.push(() => java2.lines());
    await shared({ java1: 2, java2: 1, ours1: 1 });
    await using ours2 = await Ours.join(zookeeper, kafka, 'ours2');
    sources.push(() => ours2.values);
    await shared({ java1: 1, java2: 1, ours1: 1, ours2: 1 });
    await allIsRead();

    await java1.kill();
    await shared({ java2: 2, ours1: 1, ours2: 1 });
    await allIsRead();

    await ours1.leave();
    await shared({ java2: 2, ours2: 2 });
    await allIsRead();

    await java2.stop();
    await shared({ ours2: 4 });
    await allIsRead();

    await eventually(async () => {
      const { partitions: offsets, problems } = await describeGroup(zk, { group });
      const end = BigInt(sent / partitions);
      expect(offsets.map(({ offset }) => offset)).toEqual(Array(partitions).fill(end));
      expect(problems).toEqual([]);
    });
    expect(ours2.values.size).toBeGreaterThan(0);
    expect(java2.lines().filter((line) => line.startsWith('record'))).not.toEqual([]);
  });
});

/** How many partitions each member has. */
async function ownersOf(zk: Client): Promise<Record<string, number>> {
  const { partitions: all } = await describeGroup(zk, { group });
  const counts: Record<string, number> = {};
  for (const { owner } of all) {
    const name = owner?.replace(`${group}_`, '').replace(/-\d+$/, '') ?? 'nobody';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
