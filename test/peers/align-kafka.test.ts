/** Processes that read real Kafka in step, killed and stopped at random: nothing is lost. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { align } from '../../src/align/index.ts';
import { connect } from '../../src/client/index.ts';
import { KafkaJsSource } from '../../src/kafka/readers/kafkajs.ts';
import { startTestServer } from '../../src/testing/index.ts';
import { byStart, makeData, readPeriods } from '../align-data.ts';
import { linesOf, runRounds } from '../align-processes.ts';
import { runInProcess } from '../cli-run.ts';
import { startKafka } from './kafka/broker.ts';
import { findKafka, type KafkaPeer } from './kafka/fetch.ts';

const found = await findKafka();
const isMissing = typeof found === 'string';

test.runIf(isMissing && process.env.CI === 'true')('Kafka is here', () =>
  expect(found).not.toBeTypeOf('string'),
);

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-kafka-'));
});

afterEach(() => rm(dir, { recursive: true, force: true }));

const rounds = Number(process.env.ALIGN_ROUNDS ?? 3);
const seed = Number(process.env.ALIGN_SEED ?? 1);
const periodMs = 60_000;
const topics = { orders: 6, payments: 4, clicks: 2 };
/** What a batch of ten costs where a broker dies under the work. */
const workMs = 150;

describe.skipIf(isMissing)(isMissing ? found : 'Apache Kafka', () => {
  test(`4 processes over 12 partitions lose nothing (seed ${seed})`, {
    timeout: 180_000 + rounds * 60_000,
  }, async () => {
    await using server = await startTestServer({ tickTimeMs: 500, extendedTypesEnabled: true });
    await using client = await connect(server.address);
    await client.create('/kafka');
    const zookeeper = `${server.address}/kafka`;
    await using broker = await startKafka(found as KafkaPeer, { zookeeper, brokerId: 1 });
    const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
    const admin = kafka.admin();
    const producer = kafka.producer();
    await Promise.all([admin.connect(), producer.connect()]);
    await admin.createTopics({
      waitForLeaders: true,
      topics: Object.entries(topics).map(([topic, numPartitions]) => ({
        topic,
        numPartitions,
        replicationFactor: 1,
      })),
    });
    const data = await makeData(join(dir, 'all'), {
      topics,
      records: 1_000 * rounds,
      startMs: 1_700_000_040_000,
      spanMs: 6 * rounds * periodMs,
      seed,
    });
    const words = ['--brokers', broker.address, '--topics', Object.keys(topics).join(',')];

    const result = await runRounds({
      address: server.address,
      client,
      dir,
      lines: await linesOf(join(dir, 'all'), topics),
      periodMs,
      processes: 4,
      rounds,
      seed,
      sessionTimeoutMs: 3_000,
      input: {
        words,
        append: async (topic, partition, lines) => {
          if (lines.length === 0) return;
          const messages = lines.map((value) => ({ partition, value }));
          await producer.send({ topic, messages });
        },
      },
    });
    const plan = await runInProcess(server.address, [
      ...['align', 'plan', ...words, '--event-time', 'ts', '--period', '60s', '--json'],
    ]);
    await Promise.all([admin.disconnect(), producer.disconnect()]);

    expect([result.lastCode, result.lastErr]).toEqual([0, expect.anything()]);
    expect(byStart(await readPeriods(result.out))).toEqual(byStart(data.expected(periodMs)));
    expect(result.tooEarly).toEqual([]);
    expect(result.compared).toBeGreaterThan(0);
    expect(plan.records.at(-1)).toMatchObject({ topics: 3, partitions: 12, records: data.count });
  });

  test('a broker that is killed and started again under a run ends nothing, and nothing is lost', {
    timeout: 300_000,
  }, async () => {
    const [partitions, each] = [4, 500];
    await using server = await startTestServer({ tickTimeMs: 500, extendedTypesEnabled: true });
    await using client = await connect(server.address, { renew: true });
    await client.create('/kafka');
    const zookeeper = `${server.address}/kafka`;
    const config = { 'log.retention.ms': '-1' }; // the records are of long ago
    const peer = found as KafkaPeer;
    await using broker = await startKafka(peer, { zookeeper, brokerId: 1, config });
    const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
    const [admin, producer] = [kafka.admin(), kafka.producer()];
    await Promise.all([admin.connect(), producer.connect()]);
    const topic = { topic: 't', numPartitions: partitions, replicationFactor: 1 };
    await admin.createTopics({ waitForLeaders: true, topics: [topic] });
    for (let partition = 0; partition < partitions; partition++) {
      const messages = Array.from({ length: each }, (_, i) => {
        return {
          partition,
          value: `${partition}:${i}`,
          timestamp: String(1_700_000_040_000 + i * 6_000),
        };
      });
      await producer.send({ topic: 't', messages });
    }
    await Promise.all([admin.disconnect(), producer.disconnect()]);
    await using source = new KafkaJsSource(kafka);
    const mode = { period: '1m' } as const;
    const options = { group: 'g', source, mode, batchRecordsMax: 10 };
    const run = align(client, { ...options, topics: { t: partitions } });
    const seen = new Set<string>();
    const loop = (async () => {
      for await (const batch of run) {
        for (const { value } of batch.records) seen.add(String(value));
        await delay(workMs); // so that there is work left while the broker is away
        await batch.done();
      }
    })();
    const ended = loop.then(
      () => 'ended',
      (error) => error,
    );
    const reached = (count: number) =>
      expect.poll(() => seen.size, { timeout: 120_000 }).toBeGreaterThanOrEqual(count);

    for (const count of [100, 600, 1_100]) {
      await reached(count);
      await broker.kill();
      await expect
        .poll(() => client.exists('/kafka/brokers/ids/1'), { timeout: 30_000 })
        .toBeNull();
      await broker.start();
    }
    await reached(partitions * each);

    await broker.kill();
    const beganMs = performance.now();
    await run.close();
    expect(performance.now() - beganMs).toBeLessThan(15_000);
    expect(await ended).toBe('ended');
  });
});
