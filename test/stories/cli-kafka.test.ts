/** A Kafka cluster and its groups, as the command line shows and changes them. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { createTopic, layout07, layout08 } from '../../src/kafka/index.ts';
import { runInProcess } from '../cli-run.ts';
import { addBroker, eventually, stateOf, type TestBroker } from '../kafka.ts';
import { startZk, type Zk } from '../zk.ts';

let dir: string;
let zk: Zk;
let client: Client;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'drover-cli-kafka-'));
  zk = await startZk();
  client = await zk.witness();
});

afterEach(async () => {
  await zk[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

const kafka = (...words: string[]) => runInProcess(zk.directAddress, ['kafka', ...words]);
const json = (...words: string[]) => kafka(...words, '--json');

async function put(path: string, data: string | null): Promise<void> {
  await client.create(path, data ?? '', { parents: true });
}

async function close(...brokers: TestBroker[]): Promise<void> {
  for (const { broker } of brokers) await broker.close({ handOverMs: 0 });
}

/** As a Java member and its group would have left it. */
async function putGroup(group: string, offsets: Record<string, number>): Promise<void> {
  for (const [partition, offset] of Object.entries(offsets)) {
    await put(layout08.offset.at({ group, topic: 'orders', partition }), String(offset));
  }
}

async function putMember(owner: Client, group: string, partitions: string[]): Promise<void> {
  const consumer = `${group}_host-1`;
  const data = layout08.consumer.format({
    pattern: 'static',
    subscription: new Map([['orders', 1]]),
    timestampMs: 1,
  })!;
  await owner.create(layout08.consumer.at({ group, consumer }), data, {
    mode: 'ephemeral',
    parents: true,
  });
  for (const partition of partitions) {
    const path = layout08.owner.at({ group, topic: 'orders', partition });
    await owner.create(path, `${consumer}-0`, { mode: 'ephemeral', parents: true });
  }
}

/** A file a partition, with records of the given ages. */
function writeRecords(topic: string, partition: number, agesMs: readonly number[]): void {
  const lines = agesMs.map(
    (age) => `${JSON.stringify({ timestamp: Date.now() - age, value: 'x' })}\n`,
  );
  writeFileSync(join(dir, `${topic}-${partition}.ndjson`), lines.join(''));
}

test('brokers, topics, one topic and the controller are shown', async () => {
  const [a, b] = [await addBroker(zk, 1, { rack: 'r1' }), await addBroker(zk, 2, { rack: 'r2' })];
  await createTopic(client, 'orders', {
    assignment: [
      [1, 2],
      [2, 1],
    ],
    config: { 'retention.ms': '5' },
  });
  await eventually(async () => expect((await stateOf(client, 'orders', 1)).leader).toBe(2));

  const brokers = await json('brokers');
  const topics = await json('topics');
  const topic = await json('topic', 'orders');
  const controller = await json('controller');

  expect(brokers.records).toMatchObject([
    { id: 1, rack: 'r1', isController: true, leads: 1, holds: 2, behind: 0 },
    { id: 2, rack: 'r2', isController: false, leads: 1, holds: 2, behind: 0 },
  ]);
  expect(topics.records).toMatchObject([
    { topic: 'orders', partitions: 2, replicas: '2', noLeader: 0, config: { 'retention.ms': '5' } },
  ]);
  expect(topic.records).toMatchObject([
    { partition: '0', leader: 1, leaderEpoch: 0, replicas: [1, 2], isr: [1, 2], faults: [] },
    { partition: '1', leader: 2, replicas: [2, 1], faults: [] },
  ]);
  expect(controller.records).toMatchObject([{ brokerId: 1, epoch: 1, deletions: [] }]);
  expect((await kafka('brokers')).lines[1]).toMatch(/^1\* +PLAINTEXT:\/\/broker1:9092 +r1 /);
  expect((await kafka('doctor')).code).toBe(0);
  await close(b, a);
});

test('a broker that is gone shows in every view, and the doctor says how bad it is', async () => {
  const [a, b] = [await addBroker(zk, 1), await addBroker(zk, 2)];
  await createTopic(client, 'orders', { assignment: [[1, 2]] });
  await createTopic(client, 'alone', { assignment: [[2]] });
  await eventually(async () => expect((await stateOf(client, 'alone', 0)).leader).toBe(2));
  await close(b);
  await eventually(async () => expect((await stateOf(client, 'alone', 0)).leader).toBe(-1));

  const brokers = await kafka('brokers');
  const topic = await kafka('topic', 'alone');
  const doctor = await json('doctor', '--no-ask');

  expect(brokers.out).toContain('! gone, and expected by topics: 2');
  expect(topic.lines.at(-1)).toMatch(/^0 +none ! .*no leader/);
  expect(doctor.code).toBe(2);
  expect(doctor.records.map(({ severity, what }) => [severity, what])).toEqual([
    ['critical', '1 partition has no leader: alone/0'],
    ['critical', '1 broker that topics count on is gone: 2'],
    ['warning', '1 partition has replicas that are out of sync: orders/0'],
    [undefined, undefined],
  ]);
  await close(a);
});

test('leaders are asked home only with --write', async () => {
  const [a, b] = [await addBroker(zk, 1), await addBroker(zk, 2)];
  await createTopic(client, 'orders', { assignment: [[2, 1]] });
  await eventually(async () => expect((await stateOf(client, 'orders', 0)).leader).toBe(2));
  await close(b);
  await eventually(async () => expect((await stateOf(client, 'orders', 0)).leader).toBe(1));
  const again = await addBroker(zk, 2);
  await eventually(() => a.service.leads.get('orders/0')!.changeIsr([1, 2]));

  const shown = await json('elect');
  const refused = await json('elect', '--write', '--read-only');
  const before = await client.exists(layout08.preferredElection.at());
  const asked = await kafka('elect', 'orders/0', '--write', '--yes');

  expect(shown.records).toEqual([
    { topic: 'orders', partition: 0, leader: 1, preferred: 2, isElectable: true },
  ]);
  expect(shown.err).toContain('nothing was changed: --write does it');
  expect(refused.code).toBe(6);
  expect(before).toBeNull();
  expect(asked.code).toBe(0);
  await eventually(async () => expect((await stateOf(client, 'orders', 0)).leader).toBe(2));
  expect((await kafka('elect', 'none')).code).toBe(6);
  await close(again, a);
});

test('partitions are moved as words or a file say, and what moves is shown', async () => {
  const [a, b] = [await addBroker(zk, 1), await addBroker(zk, 2)];
  await createTopic(client, 'orders', { assignment: [[1], [1]] });
  await eventually(async () => expect((await stateOf(client, 'orders', 1)).leader).toBe(1));
  const file = join(dir, 'plan.json');
  const partitions = [{ topic: 'orders', partition: 1, replicas: [2, 1] }];
  writeFileSync(file, JSON.stringify({ version: 1, partitions }));

  const shown = await json('reassign', 'orders/0=2', '--file', file);
  const done = await kafka('reassign', 'orders/0=2', '--file', file, '--write');

  expect(shown.records).toEqual([
    { topic: 'orders', partition: 0, from: [1], to: [2] },
    { topic: 'orders', partition: 1, from: [1], to: [2, 1] },
  ]);
  expect(done.code).toBe(0);
  const moving = await eventually(async () => {
    const said = await json('reassign');
    expect(said.records.at(-1)).toEqual({ moving: 2 });
    return said;
  });
  expect(moving.records[0]).toMatchObject({
    topic: 'orders',
    partition: '0',
    adding: [2],
    missing: [2],
  });
  for (const partition of [0, 1]) {
    await eventually(() => a.service.leads.get(`orders/${partition}`)!.changeIsr([1, 2]));
  }
  await eventually(async () => expect((await json('reassign')).records).toEqual([{ moving: 0 }]));
  expect((await json('topic', 'orders')).records).toMatchObject([
    { replicas: [2] },
    { replicas: [2, 1] },
  ]);
  await close(b, a);
});

test('during a move to KRaft, leaders and replicas are refused instead of asked of nobody', async () => {
  const a = await addBroker(zk, 1);
  const b = await addBroker(zk, 2);
  await createTopic(client, 'orders', { assignment: [[1, 2]] });
  await eventually(async () => expect((await stateOf(client, 'orders', 0)).leader).toBe(1));
  await close(a, b);
  const brokers = { 1: 'a', 2: 'b' };
  for (const [id, host] of Object.entries(brokers)) {
    const data = { version: 3, host, port: 1, endpoints: [`PLAINTEXT://${host}:1`] };
    await client.create(layout08.broker.at({ id }), JSON.stringify(data));
  }
  const state = layout08.partitionState.at({ topic: 'orders', partition: 0 });
  await client.set(
    state,
    '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[1,2]}',
  );
  await put(layout08.controller.at(), '{"version":2,"brokerid":3000,"kraftControllerEpoch":5}');

  const elect = await kafka('elect', '--write', '--yes');
  const move = await kafka('reassign', 'orders/0=2,1', '--write', '--yes');
  const shown = await kafka('reassign');

  expect([elect.code, move.code, shown.code]).toEqual([6, 6, 0]);
  expect(elect.err).toContain('a KRaft controller leads this cluster');
  expect(await client.exists(layout08.reassign.at())).toBeNull();
  expect(await client.exists(layout08.preferredElection.at())).toBeNull();
});

test('a move that makes no sense is refused before anything is written', async () => {
  const a = await addBroker(zk, 1);
  await createTopic(client, 'orders', { assignment: [[1]] });

  const words = await kafka('reassign', 'orders=1', '--write');
  const dead = await kafka('reassign', 'orders/0=7', '--write');
  const none = await kafka('reassign', 'orders/9=1', '--write');
  const noFile = await kafka('reassign', '--file', join(dir, 'none.json'), '--write');

  expect([words.code, dead.code, none.code, noFile.code]).toEqual([2, 6, 6, 2]);
  expect(await client.exists(layout08.reassign.at())).toBeNull();
  await close(a);
});

test('lag is told in records and in time where somebody can be asked, else it is unknown', async () => {
  await put(layout08.topic.at({ topic: 'orders' }), '{"version":1,"partitions":{"0":[1],"1":[1]}}');
  await putGroup('billing', { 0: 1, 1: 2 });
  writeRecords('orders', 0, [90_000, 60_000, 10_000]);
  writeRecords('orders', 1, [90_000, 60_000]);

  const asked = await json('lag', 'billing', '--ndjson', dir);
  const unknown = await json('lag', '--no-ask');
  const text = await kafka('lag', '--no-ask');

  expect(asked.records).toMatchObject([
    { group: 'billing', partition: '0', offset: 1, earliest: 0, latest: 3, lag: 2 },
    { group: 'billing', partition: '1', offset: 2, latest: 2, lag: 0, lagMs: 0 },
    { partitions: 2, known: 2, lag: 2 },
  ]);
  expect(asked.records[0].lagMs).toBeGreaterThan(50_000);
  expect(asked.records[0].lagMs).toBeLessThan(70_000);
  expect(unknown.records[0]).toMatchObject({ offset: 1, latest: null, lag: null, lagMs: null });
  expect(text.lines.at(-1)).toBe('lag unknown');
});

test('brokers that cannot be asked leave lag unknown, with a sentence', async () => {
  const a = await addBroker(zk, 1, { endpoints: ['PLAINTEXT://127.0.0.1:9'] });
  const b = await addBroker(zk, 2, { endpoints: ['SSL://127.0.0.1:10'] });
  await createTopic(client, 'orders', { assignment: [[1]] });
  await putGroup('billing', { 0: 1 });

  const refused = await json('lag');
  await close(a);
  const secure = await json('lag');

  expect(refused).toMatchObject({ code: 0 });
  expect(refused.records[0]).toMatchObject({ offset: 1, lag: null, lagMs: null });
  expect(refused.err).toContain('lag is unknown: no broker can be asked');
  expect(secure.err).toContain('no broker listens without TLS and SASL');
  await close(b);
});

test('a group is shown with its members, owners and what nobody reads', async () => {
  await put(
    layout08.topic.at({ topic: 'orders' }),
    '{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}',
  );
  await putGroup('billing', { 0: 5 });
  await putMember(await zk.connect(), 'billing', ['0', '1']);

  const groups = await json('groups');
  const group = await json('group', 'billing');
  const owners = await json('owners');
  const none = await kafka('group', 'nobody');

  expect(groups.records).toMatchObject([
    { group: 'billing', members: 1, idle: 0, partitions: 3, owned: 2 },
  ]);
  expect(group.records.slice(0, 4)).toMatchObject([
    { member: 'billing_host-1', owns: 2, pattern: 'static', subscription: { orders: 1 } },
    { partition: '0', owner: 'billing_host-1-0', consumerId: 'billing_host-1', offset: 5 },
    { partition: '1', owner: 'billing_host-1-0', offset: null },
    { partition: '2', owner: null },
  ]);
  expect(owners.records.map(({ partition, owner }) => [partition, owner])).toEqual([
    ['0', 'billing_host-1-0'],
    ['1', 'billing_host-1-0'],
    ['2', null],
  ]);
  expect(none).toMatchObject({ code: 6, err: 'drover: there is no group nobody in ZooKeeper\n' });
  const doctor = await json('doctor', '--no-ask');
  const says = doctor.records.map(({ what }) => what);
  expect(says).toContain('group billing: 1 partition without an owner, orders/2');
});

test('offsets are shown first, set only with --write, and never under an owner', async () => {
  await put(layout08.topic.at({ topic: 'orders' }), '{"version":1,"partitions":{"0":[1],"1":[1]}}');
  await putGroup('billing', { 0: 5, 1: 6 });
  const offsetOf = async (partition: number) => {
    const path = layout08.offset.at({ group: 'billing', topic: 'orders', partition });
    return (await client.get(path)).data?.toString();
  };

  const shown = await json('offsets', 'reset', 'billing', '--to', '3');
  const untouched = await offsetOf(0);
  const refused = await kafka('offsets', 'reset', 'billing', '--to', '3', '--write', '--read-only');
  const shifted = await kafka('offsets', 'reset', 'billing', '--shift=-2', '--write', '--yes');
  const owner = await zk.connect();
  await putMember(owner, 'billing', ['0']);
  const owned = await json('offsets', 'reset', 'billing', '--to', '0', '--write');

  expect(shown.records).toMatchObject([
    { partition: '0', before: 5, after: 3, outcome: 'wouldSet' },
    { partition: '1', before: 6, after: 3, outcome: 'wouldSet' },
  ]);
  expect(untouched).toBe('5');
  expect(refused.code).toBe(6);
  expect(shifted.code).toBe(0);
  expect(owned.records.map(({ outcome }) => outcome)).toEqual(['owned', 'set']);
  expect(owned.code).toBe(6);
  expect([await offsetOf(0), await offsetOf(1)]).toEqual(['3', '0']);
});

test('offsets go to an end or a time as the records say', async () => {
  await put(layout08.topic.at({ topic: 'orders' }), '{"version":1,"partitions":{"0":[1]}}');
  await putGroup('billing', { 0: 1 });
  writeRecords('orders', 0, [90_000, 60_000, 10_000]);
  const reset = (...words: string[]) =>
    json('offsets', 'reset', 'billing', '--ndjson', dir, '--write', ...words);

  const latest = await reset('--to', 'latest');
  const time = await reset('--time', String(Date.now() - 70_000), '--topic', 'orders');
  const both = await reset('--to', '1', '--shift', '2');
  const unknown = await json('offsets', 'reset', 'billing', '--to', 'latest', '--no-ask');

  expect(latest.records).toMatchObject([{ before: 1, after: 3, outcome: 'set' }]);
  expect(time.records).toMatchObject([{ before: 3, after: 1, outcome: 'set' }]);
  expect([both.code, unknown.code]).toEqual([2, 6]);
});

test('a cluster of 0.7 is read as one', async () => {
  await client.create('/brokers/ids/29', 'mota29-1394675777000:mota29:9092', {
    mode: 'ephemeral',
    parents: true,
  });
  await client.create(layout07.topicBroker.at({ topic: 'orders', broker: 29 }), '2', {
    mode: 'ephemeral',
    parents: true,
  });
  await put(layout07.offset.at({ group: 'g', topic: 'orders', partition: '29-0' }), '42');

  const brokers = await json('brokers');
  const topic = await json('topic', 'orders');
  const controller = await kafka('controller');
  const lag = await json('lag', 'g');
  const elect = await kafka('elect');

  expect(brokers.records).toMatchObject([{ id: 29, leads: 2, holds: 2, isController: false }]);
  expect(topic.records.map(({ partition, leader }) => [partition, leader])).toEqual([
    ['29-0', 29],
    ['29-1', 29],
  ]);
  expect(controller.out).toBe('Kafka 0.7 has no controller\n');
  expect(lag.records[0]).toMatchObject({ partition: '29-0', offset: 42, lag: null });
  expect(elect.code).toBe(6);
});

test('a cluster of 0.7 whose brokers count millions of partitions is shown, with the problems', async () => {
  const count = '150000';
  await put('/brokers/ids/1', 'h-1:h:9092');
  for (const topic of ['a', 'b']) {
    for (let broker = 1; broker <= 10; broker++) {
      await put(layout07.topicBroker.at({ topic, broker }), broker < 10 ? count : '1000000');
    }
  }

  const topics = await kafka('topics');
  const one = await kafka('topic', 'b');

  expect(topics.code).toBe(0);
  expect(topics.out).toMatch(/^! .*200000/m);
  expect(topics.out).toContain('! /brokers/topics/b/10: ');
  expect(one.code).toBe(0);
}, 60_000);

test('garbage in one node is told with its path, and all else is shown', async () => {
  await put(layout08.topic.at({ topic: 'bad' }), '{{{');
  await put(layout08.topic.at({ topic: 'good' }), '{"version":1,"partitions":{"0":[1]}}');
  await put(layout08.offset.at({ group: 'g', topic: 'good', partition: 0 }), 'many');

  const topics = await kafka('topics');
  const bad = await kafka('topic', 'bad');
  const group = await json('group', 'g');

  expect(topics.out).toMatch(/^good /m);
  expect(topics.out).toContain('! /brokers/topics/bad: ');
  expect(bad.code).toBe(6);
  expect(group.records.at(-1).problem).toMatchObject({ path: '/consumers/g/offsets/good/0' });
});

test('names of strangers reach no terminal as they are', async () => {
  await put('/consumers/\u202eevil/ids', null);
  await put(layout08.topic.at({ topic: 'bidi\u202e' }), '{"version":1,"partitions":{"0":[1]}}');
  await put(layout08.topicConfig.at({ topic: 'bidi\u202e' }), '{"config":{"a":"\u009b2J"}}');

  const said = [
    await kafka('groups'),
    await kafka('topics'),
    await kafka('topic', 'bidi\u202e'),
    await kafka('doctor', '--no-ask'),
  ];

  for (const { out } of said) expect(out).not.toMatch(/[\u202e\u009b]/);
});

test('--watch prints again what has changed, and only that', async () => {
  await put(layout08.topic.at({ topic: 'orders' }), '{"version":1,"partitions":{"0":[1]}}');
  await putGroup('billing', { 0: 5 });
  const path = layout08.offset.at({ group: 'billing', topic: 'orders', partition: 0 });
  const ended = new AbortController();
  let all = '';

  const watching = runInProcess(
    zk.directAddress,
    ['kafka', 'lag', '--no-ask', '--watch', '--interval', '0.05', '--json'],
    {
      signal: ended.signal,
      onOut: (out) => {
        all = out;
      },
    },
  );
  await eventually(() => expect(all).toContain('"offset":5'));
  await client.set(path, '6');
  await eventually(() => expect(all).toContain('"offset":6'));
  ended.abort();
  const { code, records } = await watching;

  expect(code).toBe(0);
  expect(records.flatMap(({ offset }) => offset ?? [])).toEqual([5, 6]);
});

test('every view can be watched, and a change that is watched goes on with what becomes of it', async () => {
  await put(layout08.topic.at({ topic: 'orders' }), '{"version":1,"partitions":{"0":[1],"1":[1]}}');
  await putGroup('billing', { 0: 5, 1: 7 });
  await putMember(client, 'billing', []);
  const views = [
    ...[['brokers'], ['topics'], ['topic', 'orders'], ['controller'], ['groups']],
    ...[['group', 'billing'], ['owners'], ['offsets', 'billing'], ['doctor', '--no-ask']],
  ];
  const shape = (records: readonly object[]) => records.map((one) => Object.keys(one));

  for (const words of views) {
    const once = await json(...words);
    const watched = await json(...words, '--watch', '--interval', '0.05', '--count', '2');
    const text = await kafka(...words, '--watch', '--count', '1');

    expect(shape(watched.records).slice(0, once.records.length), words[0]).toEqual(
      shape(once.records),
    );
    expect([watched.code, text.code], words[0]).toEqual([once.code, once.code]);
    expect(text.out, words[0]).not.toBe('');
  }

  const change = ['offsets', 'reset', 'billing', '--to', '3', '--write', '--yes'];
  const reset = await json(...change, '--watch', '--count', '1');
  expect(reset.code).toBe(0);
  expect(shape(reset.records)).toEqual(
    shape([...reset.records.slice(0, 2), ...(await json('group', 'billing')).records]),
  );
  expect(reset.records.slice(0, 2)).toMatchObject([{ after: 3 }, { after: 3 }]);
});

test('what is not there, or makes no sense, is a sentence', async () => {
  const unknown = await kafka('nonsense');
  const noTopic = await kafka('topic', 'none');
  const noName = await kafka('topic');
  const brokers = await kafka('lag', '--brokers', 'nonsense');
  const rule = await kafka('offsets', 'reset', 'g', '--to', 'never');

  expect([unknown.code, noTopic.code, noName.code, brokers.code, rule.code]).toEqual([
    2, 6, 2, 2, 2,
  ]);
  expect(unknown.err).toContain('there is drover kafka brokers, topics');
});
