/** What the console changes of Kafka's: offsets and leaders. Shown, typed, written down, taken back. */

import { expect, test } from 'vitest';
import { Cast } from '../src/cli/demo-kafka-cast.ts';
import { permissions } from '../src/client/index.ts';
import { type ConsoleInTest, startConsoleInTest, textOf } from './console-run.ts';

async function plantGroup({ client }: ConsoleInTest) {
  for (const partition of ['0', '1']) {
    const path = `/consumers/g/offsets/orders/${partition}`;
    await client.create(path, '10', { parents: true });
  }
  await client.create('/consumers/g/owners/orders', '', { parents: true });
  await client.create('/consumers/g/owners/orders/1', 'me-0', { mode: 'ephemeral' });
}

const offsetAt = async ({ client }: ConsoleInTest, partition: number) =>
  (await client.get(`/consumers/g/offsets/orders/${partition}`)).data?.toString();

const rows = (resets: { before: string | null; after: string | null; outcome: string }[]) =>
  resets.map(({ before, after, outcome }) => `${before} → ${after} ${outcome}`);

test('offsets of a stopped group are shown, then set; those that a member reads are left alone', async () => {
  await using zk = await startConsoleInTest();
  await plantGroup(zk);
  const ask = (body: object) => zk.post('/api/groups/reset', { name: 'g', ...body });

  const shown = (await ask({ shiftBy: '-4' })).json;
  expect(rows(shown.resets)).toEqual(['10 → 6 wouldSet', '10 → 6 owned']);
  expect(await offsetAt(zk, 0)).toBe('10');
  const done = (await ask({ shiftBy: '-4', dryRun: false, confirm: 'g' })).json;
  expect(rows(done.resets)).toEqual(['10 → 6 set', '10 → 6 owned']);

  expect([await offsetAt(zk, 0), await offsetAt(zk, 1)]).toEqual(['6', '10']);
  expect((await ask({ to: 'latest' })).status).toBe(501);
  expect((await ask({})).status).toBe(400);
  expect((await ask({ to: '1', shiftBy: '1' })).status).toBe(400);
  expect((await ask({ to: '1', topic: 'none' })).status).toBe(404);
});

test('offsets are not touched before the name of the group was typed', async () => {
  await using zk = await startConsoleInTest();
  await plantGroup(zk);
  const ask = (confirm?: string) =>
    zk.post('/api/groups/reset', { name: 'g', to: '3', dryRun: false, confirm });

  expect([(await ask()).status, (await ask('G')).status]).toEqual([409, 409]);
  expect(await offsetAt(zk, 0)).toBe('10');
  expect((await zk.get('/api/audit')).json.entries).toEqual([]);
});

test('offsets that were set or deleted come back by undo, all of them, until somebody commits', async () => {
  await using zk = await startConsoleInTest();
  await plantGroup(zk);
  await zk.client.delete('/consumers/g/owners/orders/1');
  const ask = (body: object) =>
    zk.post('/api/groups/reset', { name: 'g', dryRun: false, confirm: 'g', ...body });
  const undo = (id: number) => zk.post('/api/audit/undo', { id });

  await ask({ to: '3' });
  const [set] = (await zk.get('/api/audit')).json.entries;
  expect(set).toMatchObject({ action: 'offsets', count: 2, ok: true, undo: 'possible' });
  expect([textOf(set.before.data), textOf(set.after.data)]).toEqual([
    'orders/0 10\norders/1 10',
    'orders/0 3\norders/1 3',
  ]);
  expect((await undo(set.id)).status).toBe(200);
  expect([await offsetAt(zk, 0), await offsetAt(zk, 1)]).toEqual(['10', '10']);

  const deleted = (await ask({ delete: true })).json;
  expect(rows(deleted.resets)).toEqual(['10 → null deleted', '10 → null deleted']);
  expect(await zk.client.children('/consumers/g/offsets/orders')).toEqual([]);
  const [entry] = (await zk.get('/api/audit')).json.entries;
  await undo(entry.id);
  expect([await offsetAt(zk, 0), await offsetAt(zk, 1)]).toEqual(['10', '10']);

  await ask({ to: '5' });
  const [last] = (await zk.get('/api/audit')).json.entries;
  await zk.client.set('/consumers/g/offsets/orders/1', '6');
  const refused = await undo(last.id);
  expect([refused.status, refused.json.error.message]).toEqual([
    409,
    'orders/1 is at 6 by now, and not at 5: somebody has committed since',
  ]);
  expect(await offsetAt(zk, 0)).toBe('5');
});

test('what a member reads again is not taken back under its feet', async () => {
  await using zk = await startConsoleInTest();
  await plantGroup(zk);
  await zk.post('/api/groups/reset', { name: 'g', to: '3', dryRun: false, confirm: 'g' });
  const [entry] = (await zk.get('/api/audit')).json.entries;
  await zk.client.create('/consumers/g/owners/orders/0', 'me-0', { mode: 'ephemeral' });

  const refused = await zk.post('/api/audit/undo', { id: entry.id });

  expect([refused.status, refused.json.error.message]).toMatchObject([
    409,
    expect.stringContaining('stop the group first'),
  ]);
  expect(await offsetAt(zk, 0)).toBe('3');
});

/** Three brokers that play, of which the first was away for a while: others lead what it should. */
async function plantCluster({ server }: ConsoleInTest) {
  const cast = await Cast.gather(server.address, () => {});
  for (const id of [1, 2, 3]) await cast.addBroker(id, { autoBalance: false });
  await cast.createTopics();
  return cast;
}

// biome-ignore lint/suspicious/noExplicitAny: what the console answered
const partitionsOf = async (zk: ConsoleInTest): Promise<any[]> =>
  (await zk.get('/api/kafka/topic?name=orders')).json.partitions;

test('leaders are elected from the page once the topic is typed; a timeline tells who left and came back', async () => {
  await using zk = await startConsoleInTest();
  const cast = await plantCluster(zk);
  const elect = (body: object) => zk.post('/api/kafka/elect', { topic: 'orders', ...body });
  const timeline = async () =>
    (await zk.get(`/api/kafka/timeline?name=orders&partition=${partition}`)).json;
  const all = { isr: expect.toSatisfy((isr: number[]) => isr.length === 3) };
  await expect.poll(() => partitionsOf(zk)).toMatchObject(Array(6).fill(all));
  const partition = (await partitionsOf(zk)).find(({ leader }) => leader === 1).partition;
  expect((await timeline()).states.at(-1)).toMatchObject({ leader: 1 });

  await cast.killBroker(1);
  await expect.poll(async () => (await timeline()).states.at(-1).isr).not.toContain(1);
  const unable = (await elect({ partitions: [partition] })).json.candidates;
  expect(unable).toMatchObject([{ partition, preferred: 1, whyNot: 'broker 1 does not live' }]);
  await cast.addBroker(1, { autoBalance: false });
  await expect.poll(async () => (await timeline()).states.at(-1).isr).toContain(1);

  const able = async () => (await elect({})).json.candidates as { whyNot: string | null }[];
  await expect
    .poll(async () => (await able()).filter(({ whyNot }) => whyNot === null))
    .not.toEqual([]);
  expect((await elect({ dryRun: false, confirm: 'order' })).status).toBe(409);
  expect(await zk.client.exists('/admin/preferred_replica_election')).toBeNull();
  expect((await elect({ dryRun: false, confirm: 'orders' })).json.done).toBe(true);
  await expect.poll(async () => (await timeline()).states.at(-1).leader).toBe(1);

  const seen = await timeline();
  expect(seen).toMatchObject({ from: 'seen', topic: 'orders', partition });
  const leaders = seen.states.map(({ leader }: { leader: number }) => leader);
  expect([leaders[0], leaders.at(-1)]).toEqual([1, 1]);
  expect(leaders.some((leader: number) => leader !== 1)).toBe(true);
  const times = seen.states.map(({ atMs }: { atMs: number }) => atMs);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  const [entry] = (await zk.get('/api/audit')).json.entries;
  expect(entry).toMatchObject({ action: 'elect', ok: true, note: 'orders', undo: 'no' });
  expect(textOf(entry.before.data)).toMatch(new RegExp(`orders/${partition} [23]`));
  expect(textOf(entry.after.data)).toContain(`orders/${partition} 1`);
  expect((await zk.get('/api/kafka/timeline?name=orders&partition=99')).status).toBe(404);
  expect((await zk.post('/api/kafka/elect', { topic: 'none' })).status).toBe(404);
  await cast.close();
});

test('a cluster that leaves ZooKeeper is told from one that stays', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create(
    '/brokers/topics/t',
    JSON.stringify({ version: 1, partitions: { 0: [1] } }),
    { parents: true },
  );
  expect((await zk.get('/api/kafka')).json).toMatchObject({
    found: 'zookeeper',
    isMigrating: false,
  });

  const isMigrating = async () => (await zk.get('/api/kafka')).json.isMigrating;
  const { client } = zk;
  await client.create('/controller', '{"version":2,"brokerid":9,"kraftControllerEpoch":4}');
  await client.create('/migration', '{"version":0,"kraft_controller_id":9}');

  expect(await isMigrating()).toBe(true);
  const refused = await zk.post('/api/kafka/elect', { topic: 't' });
  expect([refused.status, refused.json.error.message]).toEqual([
    409,
    expect.stringContaining('KRaft controller'),
  ]);

  await client.delete('/controller'); // between two KRaft controllers
  expect(await isMigrating()).toBe(true);
  await client.create('/controller', '{"version":2,"brokerid":1,"kraftControllerEpoch":-1}');
  expect(await isMigrating()).toBe(false); // rolled back; /migration stays for ever
});

test.each([
  ['null data', null],
  ['a state in which no controller moves it', '{"version":0,"kraft_controller_id":-1}'],
  ['nothing that can be read', 'garbage'],
])('a cluster whose /migration holds %s is not being moved', async (_, data) => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/migration', data);

  expect((await zk.get('/api/kafka')).json.isMigrating).toBe(false);
});

test('offsets that were changed before one was refused are written down, and come back', async () => {
  await using zk = await startConsoleInTest();
  for (const topic of ['first', 'second']) {
    await zk.client.create(`/consumers/g/offsets/${topic}/0`, '10', { parents: true });
  }
  const closed = [{ perms: permissions.read, id: { scheme: 'world', id: 'anyone' } }];
  await zk.client.create('/consumers/g/owners');
  await zk.client.create('/consumers/g/owners/second', '', { acl: closed });
  const offset = async () =>
    (await zk.client.get('/consumers/g/offsets/first/0').catch(() => null))?.data?.toString();

  for (const [way, left] of [
    [{ to: '3' }, '3'],
    [{ delete: true }, undefined],
  ] as const) {
    const asked = { name: 'g', dryRun: false, confirm: 'g', ...way };
    expect((await zk.post('/api/groups/reset', asked)).status).toBe(403);
    expect(await offset()).toBe(left);
    const [entry] = (await zk.get('/api/audit')).json.entries;

    expect(entry).toMatchObject({ action: 'offsets', ok: false, count: 1, undo: 'possible' });
    expect((await zk.post('/api/audit/undo', { id: entry.id })).status).toBe(200);
    expect(await offset()).toBe('10');
  }
});
