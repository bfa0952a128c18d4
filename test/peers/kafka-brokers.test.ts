/**
 * Real Apache Kafka on `drover serve`: three brokers, a stock client, and everything dies once.
 *
 * What Kafka's own tools say of topics and offsets is held against what our readers say. Then our own
 * adapter, consumer and command line read from the same brokers, and Burrow reads the offsets they left.
 */

import { Kafka, logLevel, type Producer } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import {
  Consumer,
  createTopic,
  deleteTopic,
  describeGroup,
  growTopic,
  openKafkaJsOffsets,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  resetOffsets,
} from '../../src/kafka/index.ts';
import { KafkaJsSource } from '../../src/kafka/readers/kafkajs.ts';
import { runInProcess } from '../cli-run.ts';
import { type KafkaBroker, startKafka } from './kafka/broker.ts';
import { startBurrow } from './kafka/burrow.ts';
import { Drover } from './kafka/drover.ts';
import { findBurrow, findKafka, type KafkaPeer } from './kafka/fetch.ts';
import { describeTopics, kafkaTool } from './kafka/tool.ts';

const found = await findKafka();
const isMissing = typeof found === 'string';
const isStrict = process.env.CI === 'true';

test.runIf(isMissing && isStrict)('Kafka is here', () => expect(found).not.toBeTypeOf('string'));

const topic = 'records';
const partitions = 6;
const total = 100_000;
const batch = 1_000;
const limitMs = 240_000;

const eventually = <T>(check: () => Promise<T> | T) =>
  vi.waitFor(check, { timeout: 60_000, interval: 200 });

describe.skipIf(isMissing)(isMissing ? found : 'Apache Kafka on drover serve', () => {
  const peer = found as KafkaPeer;
  let server: Drover;
  let brokers: KafkaBroker[] = [];
  let zk: Client;
  let kafka: Kafka;

  const bootstrap = () => brokers.map(({ address }) => address).join(',');
  const start = (brokerId: number) =>
    startKafka(peer, {
      zookeeper: `${server.address}/kafka`,
      brokerId,
      config: {
        'default.replication.factor': '3',
        'min.insync.replicas': '2',
        'offsets.topic.replication.factor': '3',
      },
    });
  const untilInSync = () =>
    eventually(async () => {
      const seen = await readTopic(zk, topic);
      for (const { state, replicas } of seen!.partitions) {
        expect([...state!.isr].sort()).toEqual([...replicas].sort());
        expect(state!.leader).toBeGreaterThan(0);
      }
    });

  beforeAll(async () => {
    server = await Drover.serve();
    brokers = await Promise.all([1, 2, 3].map(start));
    zk = await connect(`${server.address}/kafka`, { renew: true, sessionTimeoutMs: 30_000 });
    kafka = new Kafka({
      brokers: brokers.map(({ address }) => address),
      logLevel: logLevel.NOTHING,
      retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 2_000 },
    });
  }, limitMs);

  afterAll(async () => {
    await zk?.close();
    await Promise.all(brokers.map((broker) => broker[Symbol.asyncDispose]()));
    await server?.[Symbol.asyncDispose]();
  }, 60_000);

  test('our readers say what Kafka says of itself', { timeout: limitMs }, async () => {
    const admin = kafka.admin();
    await admin.connect();
    // A broker answers before it has heard who is the controller, and which others there are.
    await eventually(async () => {
      const { controller, brokers: known } = await admin.describeCluster();
      expect([controller === null, known.length]).toEqual([false, 3]);
    });
    await admin.createTopics({
      topics: [{ topic, numPartitions: partitions, replicationFactor: 3 }],
    });
    await untilInSync();

    const cluster = await admin.describeCluster();
    await admin.disconnect();
    const told = await describeTopics(peer, bootstrap());
    const seen = await readTopic(zk, topic);

    expect(await readTopicNames(zk)).toEqual([topic]);
    expect(
      seen!.partitions.map(({ partition, replicas, state }) => ({
        topic,
        partition,
        leader: state!.leader,
        replicas,
        isr: [...state!.isr].sort(),
      })),
    ).toEqual(told);
    expect((await readController(zk)).brokerId).toBe(cluster.controller);
    expect(
      (await readBrokers(zk)).map(({ id, registration }) => [
        id,
        registration.host,
        registration.port,
      ]),
    ).toEqual(cluster.brokers.map(({ nodeId, host, port }) => [nodeId, host, port]).sort());
  });

  test('what we ask for, Kafka’s controller does', { timeout: limitMs }, async () => {
    const drover = (...words: string[]) =>
      runInProcess(`${server.address}/kafka`, ['kafka', ...words, '--write', '--yes']);
    const partition = async () => {
      const seen = (await readTopic(zk, 'moved'))!.partitions[0]!;
      return { replicas: seen.replicas, leader: seen.state?.leader, isr: seen.state?.isr.length };
    };

    await createTopic(zk, 'moved', { assignment: [[1, 2]] });
    await eventually(async () => expect(await partition()).toMatchObject({ leader: 1, isr: 2 }));
    expect((await drover('reassign', 'moved/0=2,3')).code).toBe(0);
    const moved = { replicas: [2, 3], leader: 2, isr: 2 };
    await eventually(async () => expect(await partition()).toEqual(moved));
    expect((await drover('reassign', 'moved/0=3,2')).code).toBe(0);
    await eventually(async () => expect((await partition()).replicas).toEqual([3, 2]));
    expect((await drover('elect', 'moved')).code).toBe(0);
    const elected = { replicas: [3, 2], leader: 3, isr: 2 };
    await eventually(async () => expect(await partition()).toEqual(elected));
    await growTopic(zk, 'moved', { partitions: 3 });
    await eventually(async () => {
      const { partitions: all } = (await readTopic(zk, 'moved'))!;
      expect(all.map(({ state }) => state?.isr.length)).toEqual([2, 2, 2]);
    });
    await deleteTopic(zk, 'moved');
    await eventually(async () => expect(await readTopicNames(zk)).toEqual([topic]));
  });

  test('100,000 records, and everything dies once: nothing is lost', {
    timeout: limitMs,
  }, async () => {
    const producer = kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    const epochBefore = (await readController(zk)).epoch!;
    let next = 0;
    const produce = async (count: number) => {
      for (const end = next + count; next < end; next += batch) await send(producer, next);
    };

    await produce(20_000);
    const { brokerId: controller } = await readController(zk);
    const follower = brokers.find(({ id }) => id !== controller)!;
    await follower.kill();
    await produce(20_000);
    await follower.start();
    await produce(10_000);
    await server.kill();
    const during = produce(10_000); // brokers serve on without ZooKeeper
    await server.start();
    await during;
    await untilInSync();
    const leaving = brokers.find(({ id }) => id === controller)!;
    await leaving.kill();
    await eventually(async () => {
      const { brokerId } = await readController(zk);
      expect(brokerId).not.toBeNull();
      expect(brokerId).not.toBe(controller);
    });
    await produce(20_000);
    await leaving.start();
    await produce(20_000);
    await producer.disconnect();
    await untilInSync();

    expect(next).toBe(total);
    expect((await readController(zk)).epoch!).toBeGreaterThan(epochBefore);
    const got = await consumeAll(kafka, await endsOf(bootstrap()));
    expect(got.size).toBe(total);
    const told = await kafkaTool(peer, 'offsets', [
      '--bootstrap-server',
      bootstrap(),
      '--topic',
      topic,
    ]);
    const ends = await endsOf(bootstrap());
    expect(told.trim().split('\n').sort()).toEqual(
      ends.map((end, partition) => `${topic}:${partition}:${end}`),
    );
  });

  test('our adapter reads them all, from any offset', { timeout: limitMs }, async () => {
    await using source = new KafkaJsSource(kafka);
    const values = new Set<string>();

    await Promise.all(
      Array.from({ length: partitions }, async (_, partition) => {
        const id = { topic, partition: String(partition) };
        const { latest } = await source.bounds(id);
        await using reader = await source.open(id, 'earliest');
        let expected = 0n;
        while (reader.position < latest) {
          const { value } = await reader.next();
          for (const record of value!.records) {
            expect(record.offset).toBeGreaterThanOrEqual(expected);
            expected = record.offset + 1n;
            values.add(String(record.value));
          }
        }
        reader.seek(latest - 1n);
        const { value: last } = await reader.next();
        expect(last!.records[0]!.offset).toBe(latest - 1n);
        const at = last!.records[0]!.timestampMs!;
        expect(await source.offsetForTime(id, at)).toBeLessThanOrEqual(latest - 1n);
      }),
    );

    expect(values.size).toBe(total);
  });

  test('a group of ours reads from real brokers, and its lag is told', {
    timeout: limitMs,
  }, async () => {
    await using source = new KafkaJsSource(kafka);
    const ends = await endsOf(bootstrap());
    const before = await lag();
    const consumer = new Consumer(zk, { group: 'billing', subscribe: { topics: [topic] }, source });
    const sum = ends.reduce((a, b) => a + b, 0n);
    let count = 0n;

    for await (const { records, commit } of consumer) {
      count += BigInt(records.length);
      await commit();
      if (count >= sum) break;
    }
    await consumer.close();

    expect(before).toEqual({ partitions: 0, known: 0, lag: null });
    const { partitions: offsets } = await describeGroup(zk, { group: 'billing' });
    expect(offsets.map(({ offset }) => offset)).toEqual(ends);
    expect(await lag()).toEqual({ partitions, known: partitions, lag: 0 });
    const doctor = await runInProcess(`${server.address}/kafka`, ['kafka', 'doctor', '--json']);
    expect(doctor.records.filter(({ severity }) => severity === 'critical')).toEqual([]);

    async function lag() {
      const said = await runInProcess(`${server.address}/kafka`, ['kafka', 'lag', '--json']);
      return said.records.at(-1);
    }
  });

  test('Burrow reads our offsets', { timeout: limitMs }, async (context) => {
    const program = await findBurrow();
    if (typeof program === 'string') {
      expect(isStrict, program).toBe(false);
      return context.skip(program);
    }
    await using monitor = await startBurrow(program.program, {
      zookeeper: server.address,
      chroot: '/kafka',
      brokers: brokers.map(({ address }) => address),
    });
    const ends = await endsOf(bootstrap());
    const ids = ends.map((_, partition) => ({ topic, partition: String(partition) }));
    const seen = async (lag: number) => {
      const lags = await monitor.lags('billing', topic);
      expect(lags).toEqual(
        ends.map((end, partition) => ({ partition, offset: Number(end) - lag, lag })),
      );
    };

    // What our group left, and what is written from now on: Burrow hears of that by watches.
    await eventually(() => seen(0));
    await resetOffsets(zk, { group: 'billing', partitions: ids, rule: { shiftBy: -7n } });
    await eventually(() => seen(7));

    expect(await monitor.groups()).toContain('billing');
  });
});

async function send(producer: Producer, first: number): Promise<void> {
  const messages = Array.from({ length: batch }, (_, i) => ({ value: `record ${first + i}` }));
  // kafkajs gives up on a batch after its retries: it is sent again, so a record may come twice.
  for (let tries = 1; ; tries++) {
    try {
      await producer.send({ topic, acks: -1, messages });
      return;
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

async function endsOf(bootstrap: string): Promise<bigint[]> {
  const source = (await openKafkaJsOffsets(bootstrap.split(',')))!;
  try {
    const all = Array.from({ length: partitions }, (_, i) =>
      source.bounds({ topic, partition: String(i) }),
    );
    return (await Promise.all(all)).map(({ latest }) => latest);
  } finally {
    await source.close();
  }
}

/** Everything there is, with a stock client in a group of Kafka's own. */
async function consumeAll(kafka: Kafka, ends: readonly bigint[]): Promise<Set<string>> {
  const values = new Set<string>();
  const positions = new Map<number, bigint>();
  const consumer = kafka.consumer({ groupId: 'stock' });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    // A consumer that says it begins anew has not failed: brokers that were killed load their groups.
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) reject(payload.error);
    });
    consumer
      .run({
        autoCommit: false,
        eachBatch: async ({ batch: { partition, messages } }) => {
          for (const { value, offset } of messages) {
            values.add(String(value));
            positions.set(partition, BigInt(offset) + 1n);
          }
          if (ends.every((end, at) => (positions.get(at) ?? 0n) >= end)) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return values;
}
