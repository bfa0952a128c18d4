import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { watchChildren, watchNode } from './node-watch.ts';

const client = (server: TestServer): Promise<Client> =>
  connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 10_000 });
const opsOf = (server: TestServer) => server.log.map(({ op }) => op);

test('where there is no node, nothing is watched', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);

  expect([await watchNode(zk, '/a'), await watchChildren(zk, '/a')]).toEqual([null, null]);
  expect(zk.load.watches).toBe(0);
});

test('all who wait for one thing share a read and a watch, and hear of the change', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);
  await zk.create('/a', 'x');

  const all = await Promise.all([watchNode(zk, '/a'), watchNode(zk, '/a'), watchNode(zk, '/a')]);
  const late = await watchNode(zk, '/a');
  await zk.set('/a', 'y');

  expect(opsOf(server).filter((op) => op === 'getData')).toHaveLength(1);
  for (const one of [...all, late]) {
    expect([String(one!.found.data), (await one!.changed).type]).toEqual(['x', 'dataChanged']);
  }
  expect(String((await watchNode(zk, '/a'))!.found.data)).toBe('y');
});

test('who has made the node finds it, whatever somebody else was told just before', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);

  server.pause(zk.sessionId!);
  const early = watchNode(zk, '/a'); // answered in one chunk with the create
  const made = zk.create('/a', 'x').then(() => watchNode(zk, '/a'));
  server.resume(zk.sessionId!);

  expect(await early).toBeNull();
  expect(String((await made)?.found.data)).toBe('x');
});

test('the watch goes with the last who waits, and not before', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);
  await zk.create('/a');
  const [first, second] = [await watchChildren(zk, '/a'), await watchChildren(zk, '/a')];

  await first!.stop();
  await first!.stop();
  expect(zk.load.watches).toBe(1);
  await second!.stop();

  expect(zk.load.watches).toBe(0);
  expect(opsOf(server).filter((op) => op === 'removeWatches')).toHaveLength(1);
});

test('who begins to wait while the watch is being taken away still hears of the next change', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);
  await zk.create('/a');
  const first = await watchNode(zk, '/a');

  const stopped = first!.stop();
  const [second, third] = await Promise.all([watchNode(zk, '/a'), watchNode(zk, '/a')]);
  await stopped;
  await third!.stop();
  await zk.set('/a', 'y');

  expect((await second!.changed).type).toBe('dataChanged');
});

test('the end of the session is an event, and what is asked afterwards is refused', async () => {
  await using server = await startTestServer();
  await using zk = await client(server);
  await zk.create('/a');
  const watched = await watchNode(zk, '/a');

  await zk.close();

  expect((await watched!.changed).type).toBe('none');
  await watched!.stop();
  await expect(watchNode(zk, '/a')).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
});
