import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RawClient, startTestServer } from '../testing/index.ts';
import { Sessions } from './sessions.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const ephemeral = (path: string) => ({ path, data: null, acl: open, flags: 1 });

test('a session that is not heard of ends between its timeout and one tick more', () => {
  const sessions = new Sessions(1_000, 1n);
  const session = sessions.create(4_000, 500);

  expect(sessions.due(4_999)).toEqual([]);
  expect(sessions.due(5_000)).toEqual([session]);
});

test('hearing of a session puts its end off', () => {
  const sessions = new Sessions(1_000, 1n);
  const session = sessions.create(4_000, 0);

  sessions.touch(session, 3_000);

  expect(sessions.due(7_999)).toEqual([]);
  expect(sessions.due(8_000)).toEqual([session]);
});

test('expiry takes the ephemeral nodes in one txn and closes the link', async () => {
  await using zk = await startTestServer({ tickTimeMs: 1_000 });
  const witness = await RawClient.connect(zk.port, { timeOut: 20_000 });
  const client = await RawClient.connect(zk.port, { timeOut: 2_000 });
  await client.ask('create', ephemeral('/a'));
  await client.ask('create', ephemeral('/b'));
  const before = (await witness.ping()).zxid;

  zk.clock.advance(4_000);
  await client.ended();

  expect(await witness.err('exists', { path: '/a', watch: false })).toBe(-101);
  expect(await witness.err('exists', { path: '/b', watch: false })).toBe(-101);
  expect((await witness.ping()).zxid).toBe(before + 1n);
});

test('an expired session is refused when it comes back', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const { sessionId, passwd } = client;

  await zk.expire(sessionId);
  await client.ended();

  expect((await RawClient.connect(zk.port, { sessionId, passwd })).sessionId).toBe(0n);
});

test('a session lives on without a link until its time is over', async () => {
  await using zk = await startTestServer({ tickTimeMs: 1_000 });
  const client = await RawClient.connect(zk.port, { timeOut: 4_000 });
  await client.ask('create', ephemeral('/a'));
  const { sessionId, passwd } = client;

  zk.drop(sessionId);
  await client.ended();
  zk.clock.advance(2_000);
  await setTimeout(5);
  const back = await RawClient.connect(zk.port, { sessionId, passwd });

  expect(back.sessionId).toBe(sessionId);
  expect(await back.err('exists', { path: '/a', watch: false })).toBe(0);
});

test('a stall of the process expires nobody whose bytes wait to be read', async () => {
  await using zk = await startTestServer({ tickTimeMs: 100 });
  const client = await RawClient.connect(zk.port, { timeOut: 200 });
  expect(client.timeOut).toBe(200);
  await client.ask('create', ephemeral('/a'));

  for (let i = 0; i < 5; i++) {
    client.send('ping', {}, -2); // in the server's socket from now on, and not read yet
    const untilMs = performance.now() + 600;
    while (performance.now() < untilMs);
    await setTimeout(5);
  }

  expect(client.isClosed).toBe(false);
  expect(zk.engine.stats.sessionsExpired).toBe(0);
});

test('a close that races expiry deletes everything exactly once', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const witness = await RawClient.connect(zk.port);
  await client.ask('create', ephemeral('/a'));
  await witness.ask('addWatch', { path: '/', mode: 1 });

  client.send('closeSession', {});
  const expired = zk.expire(client.sessionId);
  await client.ended();
  await expired;

  expect(await witness.events()).toEqual(['deleted /a']);
});
