import { expect, test } from 'vitest';
import { RawClient } from './raw-client.ts';
import { startTestServer } from './server.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

test('the port of a server is free again after it', async () => {
  const zk = await startTestServer();
  await zk.close();

  await using again = await startTestServer({ port: zk.port });
  expect(again.port).toBe(zk.port);
});

test('fixtures go in and come out as plain objects', async () => {
  await using zk = await startTestServer();

  await zk.load({ '/a/b/c': 'deep', '/a': 'top', '/none': null });

  expect(zk.tree()).toEqual({ '/a': 'top', '/a/b': '', '/a/b/c': 'deep', '/none': null });
});

test('the next op of a kind fails, and only that', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.failNext('create', 'CONNECTION_LOSS');
  zk.failNext('exists', 'NO_AUTH');
  const create = { path: '/a', data: null, acl: open, flags: 0 };

  expect(await client.err('exists', { path: '/', watch: false })).toBe(-102);
  expect(await client.err('create', create)).toBe(-4);
  expect(await client.err('create', create)).toBe(0);
  expect(zk.log.map(({ op }) => op)).toEqual(['exists', 'create', 'create']);
});

test('a paused link neither hears nor is heard until it is resumed', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.pause(client.sessionId);
  const xid = client.send('exists', { path: '/', watch: false });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(client.heard).toEqual([]);

  zk.resume(client.sessionId);

  expect((await client.reply(xid)).err).toBe(0);
});

test('a slow link is told everything in order, later', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.delay(client.sessionId, 50);
  const startMs = performance.now();

  const xids = [1, 2, 3].map(() => client.send('exists', { path: '/', watch: false }));
  await client.reply(xids[2]!);

  expect(performance.now() - startMs).toBeGreaterThan(45);
  expect(client.heard).toEqual(xids);
});
