/**
 * The reader for Confluent's client, on a real broker: everything that a reader promises, a group, and
 * alignment. Runs where the client was built before (`npm run test:confluent`).
 */

import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { align } from '../../src/align/index.ts';
import { type Client, connect } from '../../src/client/index.ts';
import { Consumer, describeGroup, type PartitionReader } from '../../src/kafka/index.ts';
import {
  ConfluentSource,
  type ConfluentSourceOptions,
  type RdKafkaConsumerClass,
} from '../../src/kafka/readers/confluent.ts';
import { startTestServer, type TestServer } from '../../src/testing/index.ts';
import { type KafkaBroker, startKafka } from './kafka/broker.ts';
import { findConfluent } from './kafka/confluent.ts';
import { findKafka, type KafkaPeer } from './kafka/fetch.ts';

const kafkaFound = await findKafka();
const client = findConfluent();
const missing = [kafkaFound, client].find((one) => typeof one === 'string') as string | undefined;

const limitMs = 180_000;
const topic = 'records';
const partitions = 3;
const each = 5_000;
const startMs = 1_700_000_000_000;
const id = (partition: number, of = topic) => ({ topic: of, partition: String(partition) });
const eventually = <T>(check: () => Promise<T> | T) =>
  vi.waitFor(check, { timeout: 60_000, interval: 200 });

describe.skipIf(missing !== undefined)(missing ?? 'Confluent’s client on Apache Kafka', () => {
  let server: TestServer;
  let broker: KafkaBroker;
  let zk: Client;
  let kafka: Kafka;

  const open = (options: ConfluentSourceOptions = {}) =>
    new ConfluentSource(
      client as RdKafkaConsumerClass,
      { 'bootstrap.servers': broker.address },
      options,
    );
  const make = (name: string, count: number) =>
    admin((one) =>
      one.createTopics({
        waitForLeaders: true,
        topics: [
          {
            topic: name,
            numPartitions: count,
            replicationFactor: 1,
            // The records are from 2023: else they would be deleted at the first look.
            configEntries: [{ name: 'retention.ms', value: '-1' }],
          },
        ],
      }),
    );
  async function admin<T>(work: (one: ReturnType<Kafka['admin']>) => Promise<T>): Promise<T> {
    const one = kafka.admin();
    await one.connect();
    try {
      return await eventually(() => work(one)); // a broker answers before it has a controller
    } finally {
      await one.disconnect();
    }
  }
  async function send(to: string, messages: Parameters<typeof sendWith>[2]): Promise<void> {
    await sendWith(kafka, to, messages);
  }

  beforeAll(async () => {
    server = await startTestServer({ tickTimeMs: 500 });
    zk = await connect(server.address);
    await zk.create('/kafka');
    const zookeeper = `${server.address}/kafka`;
    broker = await startKafka(kafkaFound as KafkaPeer, { zookeeper, brokerId: 1 });
    await zk.close();
    zk = await connect(zookeeper, { sessionTimeoutMs: 10_000 });
    kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
    await make(topic, partitions);
    for (let from = 0; from < each; from += 1_000) {
      await send(
        topic,
        Array.from({ length: 1_000 * partitions }, (_, i) => ({
          partition: i % partitions,
          key: `key ${i}`,
          value: `${i % partitions}:${from + Math.floor(i / partitions)}`,
          timestamp: String(startMs + from),
          headers: { trace: 'x', bytes: Buffer.from([1, 0, 2]) },
        })),
      );
    }
  }, limitMs);

  afterAll(async () => {
    await zk?.close();
    await broker?.[Symbol.asyncDispose]();
    await server?.close();
  }, 60_000);

  test('batches come from any offset, with timestamps, headers and the high watermark', {
    timeout: limitMs,
  }, async () => {
    await using source = open();
    expect(await source.bounds(id(0))).toEqual({ earliest: 0n, latest: BigInt(each) });
    const reader = await source.open(id(0), 5n);

    const { value: first } = await reader.next();
    let next = first!.nextOffset;
    while (reader.position < BigInt(each)) {
      const { value } = await reader.next();
      for (const { offset, value: text } of value!.records) {
        expect([offset, String(text)]).toEqual([next, `0:${next}`]);
        next += 1n;
      }
    }

    expect(first!.highWatermark).toBe(BigInt(each));
    expect(first!.records[0]).toEqual({
      offset: 5n,
      timestampMs: startMs,
      key: Buffer.from('key 15'),
      value: Buffer.from('0:5'),
      headers: { trace: Buffer.from('x'), bytes: Buffer.from([1, 0, 2]) },
    });
    expect(next).toBe(BigInt(each));
  });

  test('times lead to offsets, and what there is not is refused by name', {
    timeout: limitMs,
  }, async () => {
    await using source = open();

    expect(await source.offsetForTime(id(1), startMs + 1)).toBe(1_000n);
    expect(await source.offsetForTime(id(1), 0)).toBe(0n);
    expect(await source.offsetForTime(id(1), startMs + 1e9)).toBe(BigInt(each));
    await expect(source.open(id(0), BigInt(each + 1))).rejects.toMatchObject({
      code: 'OFFSET_OUT_OF_RANGE',
    });
    await expect(source.open(id(partitions), 0n)).rejects.toMatchObject({ code: 'NO_PARTITION' });
    await expect(source.bounds(id(0, 'none'))).rejects.toMatchObject({ code: 'NO_PARTITION' });
  });

  test('a reader is moved back and ahead while records are on their way', {
    timeout: limitMs,
  }, async () => {
    await using source = open({ bufferedRecordsMax: 300, consumeMax: 100 });
    const reader = await source.open(id(0), 'earliest');
    const other = await source.open(id(1), 'earliest');

    for (let i = 0; i < 30; i++) {
      const at = BigInt((i * 1_999) % (each - 10));
      if (i % 2 === 0) await reader.next(); // more is on its way now
      reader.seek(at);
      const { value } = await reader.next();
      expect(value!.records[0]!.offset).toBe(at);
      expect(String(value!.records[0]!.value)).toBe(`0:${at}`);
    }

    // Whoever is not moved goes on where it was.
    await drain(other);
  });

  test('one that is paused waits, alone, and goes on where it was', {
    timeout: limitMs,
  }, async () => {
    await using source = open({ bufferedRecordsMax: 200, consumeMax: 100 });
    const paused = await source.open(id(0), 'earliest');
    const other = await source.open(id(1), 'earliest');
    await paused.next();
    const at = paused.position;

    paused.pause();
    let hasCome = false;
    const next = paused.next().then((result) => {
      hasCome = true;
      return result;
    });
    await drain(other);
    expect(hasCome).toBe(false);
    paused.resume();

    expect((await next).value!.records[0]!.offset).toBe(at);
    await drain(paused);
  });

  test('what is written comes, also deletions, and closing ends who waits', {
    timeout: limitMs,
  }, async () => {
    await make('fresh', 1);
    const source = open();
    const reader = await source.open(id(0, 'fresh'), 'latest');
    const next = reader.next();

    await send('fresh', [
      { partition: 0, key: 'a', value: 'new' },
      { partition: 0, key: 'a', value: null },
    ]);
    const records = [...(await next).value!.records];
    while (records.length < 2) records.push(...(await reader.next()).value!.records);
    const waiting = reader.next();
    await source.close();

    expect(records.map(({ value }) => value && String(value))).toEqual(['new', null]);
    expect((await waiting).done).toBe(true);
    await expect(source.bounds(id(0))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('records that are deleted under a reader, and a topic that is, end it by name', {
    timeout: limitMs,
  }, async () => {
    await make('short', 2);
    await send(
      'short',
      Array.from({ length: 400 }, (_, i) => ({ partition: i % 2, value: `${i}` })),
    );
    await using source = open({ silenceMs: 1_000 });
    const behind = await source.open(id(0, 'short'), 10n);
    const well = await source.open(id(1, 'short'), 150n);
    behind.pause();

    await admin(async (one) => {
      await one.fetchTopicOffsets('short'); // so that it knows who leads
      const partitions = [{ partition: 0, offset: '100' }];
      await one.deleteTopicRecords({ topic: 'short', partitions });
    });
    behind.seek(20n);
    behind.resume();

    await expect(behind.next()).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
    await drain(well, 200n);
    const again = await source.open(id(0, 'short'), 'earliest');
    expect((await again.next()).value!.records[0]!.offset).toBe(100n);
    await drain(again, 200n);
    const gone = again.next();
    await admin((one) => one.deleteTopics({ topics: ['short'] }));
    await expect(gone).rejects.toMatchObject({ code: 'NO_PARTITION' });
  });

  test('a group shares the partitions, one joins, one leaves, and nothing is lost', {
    timeout: limitMs,
  }, async () => {
    const seen = new Map<string, number>();
    const run = async (name: string, until: () => boolean) => {
      await using source = open();
      await using session = await connect(`${server.address}/kafka`, { sessionTimeoutMs: 10_000 });
      const group = { group: 'billing', subscribe: { topics: [topic] }, consumerId: name };
      const consumer = new Consumer(session, { ...group, source });
      const timer = setInterval(() => until() && void consumer.close(), 50);
      for await (const { records, commit } of consumer) {
        for (const { value } of records)
          seen.set(String(value), (seen.get(String(value)) ?? 0) + 1);
        await commit();
      }
      clearInterval(timer);
    };
    const isDone = () => seen.size === partitions * each;

    await Promise.all([
      run('first', isDone),
      run('second', () => isDone() || seen.size > each),
      run('third', isDone),
    ]);

    expect(seen.size).toBe(partitions * each);
    const { partitions: offsets } = await describeGroup(zk, { group: 'billing' });
    expect(offsets.map(({ offset }) => offset)).toEqual(Array(partitions).fill(BigInt(each)));
  });

  test('readers are kept in step by event time', { timeout: limitMs }, async () => {
    await using source = open();
    await using run = align(zk, {
      group: 'replay',
      source,
      topics: { [topic]: partitions },
      mode: { period: '1s' },
      from: startMs,
      to: startMs + each - 1_000, // the last are past it, and so it is known to be over
    });
    const periods: number[] = [];
    let count = 0;
    for await (const batch of run) {
      count += batch.records.length;
      periods.push(Math.floor(batch.records[0]!.timestampMs! / 1_000));
      await batch.done();
    }

    expect(count).toBe(partitions * (each - 1_000));
    expect(periods).toEqual([...periods].sort((a, b) => a - b));
    expect(new Set(periods).size).toBe(each / 1_000 - 1);
  });

  test('a broker that dies and returns is read on, without a gap', {
    timeout: limitMs,
  }, async () => {
    await using source = open();
    const reader = await source.open(id(2), BigInt(each - 1));
    await reader.next();
    const next = reader.next();

    await broker.kill();
    await broker.start();
    await eventually(() => send(topic, [{ partition: 2, value: 'after' }]));

    const { value } = await next;
    expect(value!.records[0]!.offset).toBe(BigInt(each));
    expect(String(value!.records[0]!.value)).toBe('after');
  });
});

async function drain(reader: PartitionReader, end = BigInt(each)): Promise<void> {
  while (reader.position < end) {
    const at = reader.position;
    const { value } = await reader.next();
    expect(value!.records[0]!.offset).toBe(at);
  }
}

async function sendWith(
  kafka: Kafka,
  topic: string,
  messages: {
    readonly partition: number;
    readonly value: string | null;
    readonly key?: string;
    readonly timestamp?: string;
    readonly headers?: Record<string, string | Buffer>;
  }[],
): Promise<void> {
  const producer = kafka.producer();
  await producer.connect();
  try {
    await producer.send({ topic, messages });
  } finally {
    await producer.disconnect();
  }
}
