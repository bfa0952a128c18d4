/**
 * The kafkajs reader on a real broker, where not every offset holds a record that is to be read: marks of
 * transactions, records of those that were aborted, and what compaction has left; and where partitions are
 * added, or records deleted. Groups and alignment get each committed record and no other, and come to the end.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel, type Transaction } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { align } from '../../src/align/index.ts';
import { type Client, connect } from '../../src/client/index.ts';
import { Consumer } from '../../src/kafka/index.ts';
import { KafkaJsSource } from '../../src/kafka/readers/kafkajs.ts';
import { boundedSource } from '../../src/kafka/readers/kafkajs-open.ts';
import { startTestServer, type TestServer } from '../../src/testing/index.ts';
import { type KafkaBroker, startKafka } from './kafka/broker.ts';
import { findKafka, type KafkaPeer } from './kafka/fetch.ts';

const found = await findKafka();
const isMissing = typeof found === 'string';

const limitMs = 180_000;
const startMs = 1_700_000_040_000;
const patience = { timeout: 60_000, interval: 200 };

type Sent = { readonly key?: Buffer | string; readonly value: string; readonly timestamp?: string };

describe.skipIf(isMissing)(isMissing ? found : 'kafkajs on Apache Kafka', () => {
  let server: TestServer;
  let broker: KafkaBroker;
  let zk: Client;
  let kafka: Kafka;
  const disconnects: (() => Promise<void>)[] = [];

  async function make(
    topic: string,
    numPartitions = 1,
    config: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const admin = kafka.admin();
    await admin.connect();
    const configEntries = Object.entries({ 'retention.ms': '-1', ...config }).map(
      ([name, value]) => ({ name, value }),
    );
    const topics = [{ topic, numPartitions, replicationFactor: 1, configEntries }];
    await admin.createTopics({ waitForLeaders: true, topics });
    await admin.disconnect();
  }

  async function producer(transactionalId?: string) {
    const config = { idempotent: true, maxInFlightRequests: 1, transactionTimeout: 600_000 };
    const one = kafka.producer({ ...config, ...(transactionalId && { transactionalId }) });
    await one.connect();
    disconnects.push(() => one.disconnect());
    return one;
  }

  const send = (
    to: Pick<Transaction, 'send'>,
    topic: string,
    values: readonly (string | Sent)[],
    partition = 0,
  ) =>
    to.send({
      topic,
      messages: values.map((one) => ({
        partition,
        ...(typeof one === 'string' ? { value: one } : one),
      })),
    });

  /** All that there is from an offset on, up to where the last mark will be: a commit does not wait for it. */
  async function read(topic: string, from: bigint, end: bigint): Promise<string[]> {
    await using source = boundedSource(new KafkaJsSource(kafka));
    const partition = { topic, partition: '0' };
    await vi.waitFor(
      async () => expect((await source.bounds(partition)).latest).toBe(end),
      patience,
    );
    const reader = await source.open(partition, from);
    const values: string[] = [];
    for await (const { records } of reader) {
      values.push(...records.map(({ value }) => String(value)));
    }
    return values;
  }

  beforeAll(async () => {
    server = await startTestServer({ tickTimeMs: 500 });
    zk = await connect(server.address);
    await zk.create('/kafka');
    const zookeeper = `${server.address}/kafka`;
    broker = await startKafka(found as KafkaPeer, {
      zookeeper,
      brokerId: 1,
      config: { 'log.cleaner.enable': 'true', 'log.cleaner.backoff.ms': '200' },
    });
    await zk.close();
    zk = await connect(zookeeper, { sessionTimeoutMs: 10_000 });
    kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
  }, limitMs);

  afterAll(async () => {
    await Promise.all(disconnects.map((disconnect) => disconnect()));
    await zk?.close();
    await broker?.[Symbol.asyncDispose]();
    await server?.close();
  }, 60_000);

  test('records of aborted transactions that overlap stay where they are, wherever reading begins', {
    timeout: limitMs,
  }, async () => {
    await make('overlapping');
    const [first, second] = [await producer('overlap-1'), await producer('overlap-2')];
    for (const endsFirst of [0, 1]) {
      const both = [await first.transaction(), await second.transaction()];
      await send(both[0]!, 'overlapping', ['aborted', 'aborted']);
      await send(both[1]!, 'overlapping', ['aborted']);
      await send(both[0]!, 'overlapping', ['aborted']);
      await both[endsFirst]!.abort();
      await both[1 - endsFirst]!.abort();
      const good = await first.transaction();
      await send(good, 'overlapping', [`committed ${endsFirst}`]);
      await good.commit();
    }

    const all: string[][] = [];
    for (const from of [0n, 1n, 2n, 3n, 4n, 7n, 8n, 10n]) {
      all.push(await read('overlapping', from, 16n));
    }

    const [both, one] = [['committed 0', 'committed 1'], ['committed 1']];
    expect(all).toEqual([both, both, both, both, both, one, one, one]);
  });

  test('a record with a key of four zero bytes does not end an aborted transaction', {
    timeout: limitMs,
  }, async () => {
    await make('zeros');
    const one = await producer('zeros');
    const bad = await one.transaction();
    await send(bad, 'zeros', ['aborted', { key: Buffer.alloc(4), value: 'aborted' }, 'aborted']);
    await bad.abort();
    const good = await one.transaction();
    await send(good, 'zeros', [{ key: Buffer.alloc(4), value: 'committed' }]);
    await good.commit();

    expect(await read('zeros', 0n, 6n)).toEqual(['committed']);
  });

  test('a compacted partition is read to its end, whatever is left of its batches', {
    timeout: limitMs,
  }, async () => {
    await make('compacted', 1, {
      'cleanup.policy': 'compact',
      'min.cleanable.dirty.ratio': '0.001',
      'segment.bytes': '150', // a batch is a segment
    });
    const [first, second] = [await producer(), await producer()];
    const keys = (text: string, round: number) =>
      [...text].map((key) => ({ key, value: `${key}${round}` }));
    await send(first, 'compacted', keys('abcde', 1)); // loses its end
    await send(second, 'compacted', keys('cde', 2)); // loses all
    await send(await producer(), 'compacted', keys('cde', 3));
    await send(first, 'compacted', keys('f', 1));
    await send(first, 'compacted', keys('g', 1));
    await vi.waitFor(() => {
      const path = join(broker.dir, 'logs', 'cleaner-offset-checkpoint');
      expect(readFileSync(path, 'utf8')).toMatch(/^compacted 0 1[12]$/m);
    }, patience);

    const end = ['c3', 'd3', 'e3', 'f1', 'g1'];
    expect(await read('compacted', 0n, 13n)).toEqual(['a1', 'b1', ...end]);
    for (const from of [2n, 4n, 5n, 7n, 8n])
      expect(await read('compacted', from, 13n)).toEqual(end);
  });

  test('a partition that is added is read within seconds', { timeout: limitMs }, async () => {
    await make('growing');
    await using source = new KafkaJsSource(kafka);
    await using first = await source.open({ topic: 'growing', partition: '0' }, 'earliest');
    const admin = kafka.admin();
    await admin.connect();
    await admin.createPartitions({ topicPartitions: [{ topic: 'growing', count: 2 }] });
    await admin.disconnect();
    await send(await producer(), 'growing', ['new'], 1);

    await using added = await source.open({ topic: 'growing', partition: '1' }, 'earliest');
    const { value } = await added.next();
    await send(await producer(), 'growing', ['old'], 0);

    expect(value!.records.map((record) => String(record.value))).toEqual(['new']);
    expect((await first.next()).value!.records.map((record) => String(record.value))).toEqual([
      'old',
    ]);
  });

  test('records that were deleted while a reader was held back are missed aloud', {
    timeout: limitMs,
  }, async () => {
    await make('shrinking');
    const one = await producer();
    for (let i = 0; i < 10; i++) await send(one, 'shrinking', [`${i}`]);
    await using source = new KafkaJsSource(kafka);
    const partition = { topic: 'shrinking', partition: '0' };
    const reader = await source.open(partition, 0n);
    reader.pause();
    const admin = kafka.admin();
    await admin.connect();
    await admin.fetchTopicOffsets('shrinking'); // it has to know who leads
    const partitions = [{ partition: 0, offset: '5' }];
    await admin.deleteTopicRecords({ topic: 'shrinking', partitions });
    await admin.disconnect();
    reader.seek(0n); // what was fetched ahead was not deleted

    reader.resume();

    await expect(reader.next()).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
    await reader.close();
    const again = await source.open(partition, 'earliest');
    expect((await again.next()).value!.records.map(({ offset }) => offset)[0]).toBe(5n);
  });

  test('a group, and alignment, get what was committed and nothing else, also before an open end', {
    timeout: limitMs,
  }, async () => {
    const topic = 'mixed';
    await make(topic, 3);
    const producers = await Promise.all([1, 2, 3].map((i) => producer(`mixed-${i}`)));
    const plain = await producer();
    const committed: string[] = [];
    let count = 0;
    // The third partition has nothing but what was aborted.
    for (let round = 0; round < 40; round++) {
      const open = await Promise.all(producers.map((one) => one.transaction()));
      const values = open.map(() => [] as string[]);
      for (let i = 0; i < 6; i++) {
        const who = (round + i) % 3;
        const isAborted = (round + who) % 2 === 0;
        const value = `${isAborted ? 'aborted' : 'committed'} ${count}`;
        const timestamp = String(startMs + count++ * 500);
        const partition = isAborted ? i >> 1 : i % 2;
        await send(open[who]!, topic, [{ value, timestamp }], partition);
        if (!isAborted) values[who]!.push(value);
      }
      for (const who of round % 3 === 0 ? [2, 0, 1] : [0, 1, 2]) {
        if ((round + who) % 2 === 0) await open[who]!.abort();
        else await open[who]!.commit();
      }
      committed.push(...values.flat());
      const value = `plain ${round}`;
      await send(plain, topic, [{ value, timestamp: String(startMs + count++ * 500) }], round % 2);
      committed.push(value);
    }
    const last = await producers[0]!.transaction();
    await send(last, topic, [{ value: 'last', timestamp: String(startMs + count * 500) }]);
    const byName = (a: string, b: string) => (a < b ? -1 : 1);

    await using source = new KafkaJsSource(kafka);
    const got: string[] = [];
    const consume = async (one: Consumer, enough: number) => {
      for await (const batch of one) {
        got.push(...batch.records.map(({ value }) => String(value)));
        await batch.commit();
        if (got.length >= enough) return;
      }
    };
    const member = () =>
      new Consumer(zk, { group: 'readers', subscribe: { topics: [topic] }, source });
    const early = member();
    await consume(early, committed.length / 2);
    await early.close();
    await using late = member();
    await consume(late, committed.length);
    expect([...got].sort(byName)).toEqual([...committed].sort(byName));

    await using bounded = boundedSource(new KafkaJsSource(kafka));
    await using run = align(zk, {
      group: 'aligned',
      source: bounded,
      topics: { [topic]: 3 },
      mode: { period: '10s' },
    });
    const aligned: string[] = [];
    for await (const batch of run) {
      aligned.push(...batch.records.map(({ value }) => String(value)));
      await batch.done();
    }
    expect([...aligned].sort(byName)).toEqual([...committed].sort(byName));

    await last.commit();
    await consume(late, committed.length + 1);
    expect(got.slice(committed.length)).toEqual(['last']);
  });
});
