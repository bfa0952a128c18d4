/** Reads that are a lot of work are done a part at a time, so that one client does not hold up all others. */

import { expect, test, vi } from 'vitest';
import { Reader } from '../jute/index.ts';
import { ops } from '../protocol/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { readWorkMax } from './turns.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, flags = 0) => ({ path, data: null, acl: open, flags });
const ephemerals = 5_000;
/** Requests that look at all ephemerals until others get their turn. */
const atOnce = Math.ceil(readWorkMax / ephemerals) + 1;

async function start() {
  const zk = await startTestServer();
  const greedy = await RawClient.connect(zk.port);
  const other = await RawClient.connect(zk.port);
  const parts = Array.from({ length: ephemerals }, (_, i) => ({
    op: 'create' as const,
    request: node(`/e${i}`, 1),
  }));
  await greedy.ask('multi', parts);
  const [connection] = [...zk.engine.connections];
  connection!.resetStats();
  return { zk, greedy, other, connection: connection! };
}

/** The replies of the link by the time another has the reply to a request that came right behind its own. */
async function repliesBefore(other: RawClient, connection: { packetsSent: number }) {
  await other.ask('exists', { path: '/', watch: false });
  return connection.packetsSent;
}

test('a client that asks thousands of times for its ephemeral nodes lets others in between', async () => {
  const { zk, greedy, other, connection } = await start();
  await using _ = zk;
  const sent = greedy.atOnce(() =>
    Array.from({ length: 20 * atOnce }, () => greedy.send('getEphemerals', { prefixPath: '#' })),
  );
  while (connection.packetsReceived < sent.length) await new Promise(setImmediate);

  expect(await repliesBefore(other, connection)).toBeLessThan(5 * atOnce);

  for (const xid of sent) expect((await greedy.reply(xid)).err).toBe(0);
  expect(greedy.heard.filter((one) => typeof one === 'number').slice(-sent.length)).toEqual(sent);
});

test('what a client asks behind much work is answered in turn, and sees the writes before it alone', async () => {
  const { zk, greedy, other, connection } = await start();
  await using _ = zk;
  const looks = Array.from({ length: 2 * atOnce }, () => 'getEphemerals' as const);
  const look = () => looks.map((op) => greedy.send(op, { prefixPath: '#' }));
  const get = () => greedy.send('getData', { path: '/e0', watch: false });
  const set = () => greedy.send('setData', { path: '/e0', data: null, version: -1 });
  const sent = greedy.atOnce(() => {
    const all: number[] = [];
    const gets: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      all.push(...look(), set());
      const xid = get();
      gets.push(xid);
      all.push(xid);
    }
    return { all, gets };
  });
  while (connection.packetsReceived < sent.all.length) await new Promise(setImmediate);

  expect(await repliesBefore(other, connection)).toBeLessThan(6 * atOnce);

  const versions: number[] = [];
  for (const xid of sent.all) {
    const { err, body } = await greedy.reply(xid);
    expect(err).toBe(0);
    if (!sent.gets.includes(xid)) continue;
    versions.push(ops.getData.response.read(new Reader(body)).stat.version);
  }
  expect(versions).toEqual([1, 2, 3, 4, 5, 6]);
  expect(greedy.heard.filter((one) => typeof one === 'number').slice(-sent.all.length)).toEqual(
    sent.all,
  );
});

test('the nodes below a node are counted anew when some came or went, and not when data changed', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const parts = Array.from({ length: 2_000 }, (_, i) => ({
    op: 'create' as const,
    request: node(`/a/${i}`),
  }));
  await client.ask('create', node('/a'));
  await client.ask('multi', parts);
  const countBelow = vi.spyOn(zk.engine.tree, 'countBelow');
  const count = async () => (await client.ask('getAllChildrenNumber', { path: '/a' })).totalNumber;

  for (let i = 0; i < 10; i += 1) {
    await client.ask('setData', { path: '/a/1', data: null, version: -1 });
    expect(await count()).toBe(2_000);
  }
  expect(countBelow).toHaveBeenCalledTimes(1);
  await client.ask('create', node('/a/more'));
  expect(await count()).toBe(2_001);
  await client.ask('delete', { path: '/a/more', version: -1 });
  expect(await count()).toBe(2_000);
  expect(countBelow).toHaveBeenCalledTimes(3);
});

test('all nodes are counted without a walk', async () => {
  await using zk = await startTestServer();
  await zk.load({ '/a/b/c': '' });
  const client = await RawClient.connect(zk.port);
  const children = vi.spyOn(zk.engine.tree.nodes, 'childrenOf');

  const { totalNumber } = await client.ask('getAllChildrenNumber', { path: '/' });

  expect(totalNumber).toBe(zk.engine.tree.nodes.count - 1);
  expect(children).not.toHaveBeenCalled();
});
