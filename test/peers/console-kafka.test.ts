/**
 * The console in front of real Kafka brokers: lag as they tell it, a broker that dies and comes back in the
 * timeline, leaders that their own controller elects, offsets set to where the records end.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import { createTopic } from '../../src/kafka/index.ts';
import { startServer } from '../../src/server/index.ts';
import { type ConsoleAsked, consoleAt } from '../console-run.ts';
import { type KafkaBroker, startKafka } from './kafka/broker.ts';
import { findKafka, type KafkaPeer } from './kafka/fetch.ts';
import { kafkaTool } from './kafka/tool.ts';

const found = await findKafka();
const isMissing = typeof found === 'string';
const limitMs = 240_000;
const patience = { timeout: 90_000, interval: 250 };
const records = 50;

describe.skipIf(isMissing)(isMissing ? found : 'the console and Apache Kafka', () => {
  let brokers: KafkaBroker[] = [];
  let client: Client;
  let zk: ConsoleAsked;
  const endings: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const server = await startServer({ port: 0, inMemory: true, fourLetterWords: '*' });
    endings.push(() => server.close());
    const zookeeper = `${server.address}/kafka`;
    const start = (brokerId: number) => startKafka(found as KafkaPeer, { zookeeper, brokerId });
    brokers = await Promise.all([1, 2].map(start));
    for (const broker of brokers) endings.push(() => broker[Symbol.asyncDispose]());
    client = await connect(zookeeper);
    endings.push(async () => void (await client.close()));
    zk = await consoleAt(zookeeper, {}, { brokers: 'registered' });
    endings.push(async () => zk[Symbol.asyncDispose]());
    await createTopic(client, 'orders', { assignment: [[1, 2]] });
  }, limitMs);

  afterAll(async () => {
    for (const end of endings.reverse()) await end();
  }, 60_000);

  const get = async (path: string) => (await zk.get(path)).json;
  const timeline = async () => (await get('/api/kafka/timeline?name=orders&partition=0')).states;

  test('lag is what the brokers say, in records and in time, and offsets are set to the end', {
    timeout: limitMs,
  }, async () => {
    await expect.poll(async () => (await timeline()).at(-1)?.isr, patience).toEqual([1, 2]);
    const kafka = new Kafka({
      brokers: brokers.map(({ address }) => address),
      logLevel: logLevel.NOTHING,
      retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 2_000 },
    });
    const producer = kafka.producer();
    await producer.connect();
    const timestamp = String(Date.now() - 120_000);
    const messages = Array.from({ length: records }, (_, at) => ({ value: `${at}`, timestamp }));
    await producer.send({ topic: 'orders', acks: -1, messages });
    await producer.disconnect();
    await client.create('/consumers/billing/offsets/orders/0', '20', { parents: true });

    const row = async () => (await get('/api/groups')).rows[0];
    await expect.poll(async () => (await row()).lag, patience).toBe('30');
    const { behindMs, outlook } = await row();
    expect(behindMs).toBeGreaterThan(100_000);
    expect(outlook).toBe('never');
    const topics = await get('/api/kafka/topics');
    expect(topics.rows[0].groups).toEqual([{ group: 'billing', lag: '30' }]);

    const body = { name: 'billing', to: 'latest', dryRun: false, confirm: 'billing' };
    const { resets } = (await zk.post('/api/groups/reset', body)).json;
    expect(resets).toMatchObject([{ before: '20', after: String(records), outcome: 'set' }]);
    await expect.poll(async () => (await row()).lag, patience).toBe('0');
  });

  test("settings and moves that Kafka's own tools ask for are shown while they last", {
    timeout: limitMs,
  }, async () => {
    const bootstrap = ['--bootstrap-server', brokers[0]!.address];
    const configs = (...args: string[]) =>
      kafkaTool(found as KafkaPeer, 'configs', [...bootstrap, '--alter', ...args]);
    await configs(
      '--entity-type',
      'brokers',
      '--entity-default',
      '--add-config',
      'log.cleaner.threads=2',
    );
    await configs(
      '--entity-type',
      'users',
      '--entity-name',
      'ann@b',
      '--add-config',
      'SCRAM-SHA-256=[password=hush]',
    );
    await configs(
      '--entity-type',
      'clients',
      '--entity-default',
      '--add-config',
      'producer_byte_rate=100000000',
    );
    await createTopic(client, 'moved', { assignment: [[1]] });
    await expect
      .poll(async () => (await get('/api/kafka/topic?name=moved')).partitions[0].leader, patience)
      .toBe(1);
    const kafka = new Kafka({ brokers: [brokers[0]!.address], logLevel: logLevel.NOTHING });
    const producer = kafka.producer();
    await producer.connect();
    const value = Buffer.alloc(100_000, 'x');
    for (let at = 0; at < 5; at++) {
      await producer.send({ topic: 'moved', acks: -1, messages: [{ value }, { value }] });
    }
    await producer.disconnect();
    const folder = await mkdtemp(join(tmpdir(), 'drover-moves-'));
    endings.push(() => rm(folder, { recursive: true, force: true }));
    const plan = join(folder, 'plan.json');
    const partitions = [{ topic: 'moved', partition: 0, replicas: [2] }];
    await writeFile(plan, JSON.stringify({ version: 1, partitions }));
    const reassign = (...args: string[]) =>
      kafkaTool(found as KafkaPeer, 'reassign', [
        ...bootstrap,
        '--reassignment-json-file',
        plan,
        ...args,
      ]);

    await reassign('--execute', '--throttle', '1'); // a byte a second: it lasts until it is called off
    const rows = async () => (await get('/api/kafka/moves')).rows;
    await expect
      .poll(rows, patience)
      .toMatchObject([
        { topic: 'moved', from: [1], to: [2], adding: [2], removing: [1], state: 'moving' },
      ]);
    const answer = await zk.get('/api/kafka/configs');
    const named: {
      kind: string;
      name: string;
      values: { name: string; value: string | null }[];
    }[] = answer.json.rows;
    const valuesOf = (kind: string, name: string) =>
      named.find((one) => one.kind === kind && one.name === name)?.values;
    expect(valuesOf('broker', '<default>')).toEqual([{ name: 'log.cleaner.threads', value: '2' }]);
    expect(valuesOf('user', 'ann@b')).toEqual([{ name: 'SCRAM-SHA-256', value: null }]);
    expect(valuesOf('client', '<default>')).toMatchObject([{ name: 'producer_byte_rate' }]);
    expect(valuesOf('topic', 'moved')?.map(({ name }) => name)).toContain(
      'leader.replication.throttled.replicas',
    );
    expect(valuesOf('broker', '1')?.map(({ name }) => name)).toContain(
      'leader.replication.throttled.rate',
    );
    expect(answer.text).not.toMatch(/stored_key|salt=/);

    await reassign('--cancel');
    await expect.poll(rows, patience).toEqual([]);
  });

  test('a broker that dies and comes back is in the timeline, and leads again once the console asks', {
    timeout: limitMs,
  }, async () => {
    const [first] = brokers;
    await first!.kill();
    await expect.poll(async () => (await timeline()).at(-1).leader, patience).toBe(2);
    await first!.start();
    await expect.poll(async () => (await timeline()).at(-1).isr.length, patience).toBe(2);
    const elect = (more: object) => zk.post('/api/kafka/elect', { topic: 'orders', ...more });
    await expect
      .poll(async () => (await elect({})).json.candidates, patience)
      .toEqual([{ partition: 0, leader: 2, preferred: 1, whyNot: null }]);

    expect((await elect({ dryRun: false, confirm: 'orders' })).json.done).toBe(true);
    await expect.poll(async () => (await timeline()).at(-1).leader, patience).toBe(1);

    const leaders = (await timeline()).map(({ leader }: { leader: number | null }) => leader);
    expect(leaders).toContain(2);
  });

  test('when no broker answers, lag is unknown and the page is told why', {
    timeout: limitMs,
  }, async () => {
    for (const broker of brokers) await broker.kill();

    await expect
      .poll(async () => (await get('/api/groups')).lagUnknown, patience)
      .toMatch(/no broker|ECONNREFUSED|Connection|cannot be asked/i);
    const [row] = (await get('/api/groups')).rows;
    expect([row.lag, row.behindMs, row.outlook]).toEqual([null, null, 'unknown']);
  });
});
