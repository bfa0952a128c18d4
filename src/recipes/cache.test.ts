/** Caches on servers that know no watches that stay, and what a cache costs. */

import { once } from 'node:events';
import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { ops, wireOf } from '../protocol/index.ts';
import { systemClock } from '../support/index.ts';
import { Link, startTestServer } from '../testing/index.ts';
import { Cache, type CacheScope } from './cache.ts';
import type { CacheChange } from './cache-ledger.ts';
import { PersistentWatcher } from './persistent-watcher.ts';

/** As a server before 3.6: it does not know the op, says so, and drops the link. */
async function oldServer() {
  const server = await startTestServer({
    onRequest({ op, sessionId }) {
      if (op !== 'addWatch') return undefined;
      setImmediate(() => server.drop(sessionId));
      return wireOf('UNIMPLEMENTED');
    },
  });
  return server;
}

const texts = (cache: Cache) =>
  [...cache.nodes()].map(({ path, data }) => `${path}=${data}`).sort();

async function onServer(client: Client, root: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of client.walk(root)) {
    found.push(`${path}=${(await client.get(path)).data}`);
  }
  return found.sort();
}

test.for<[CacheScope, string[]]>([
  ['node', ['/t=2']],
  ['children', ['/t/a=a2', '/t/b=b']],
  ['subtree', ['/t/a/deep/er=x', '/t/a/deep=d', '/t/a=a2', '/t/b=b', '/t=2']],
])('an old server gets one-shot watches: %s', async ([scope, expected]) => {
  await using server = await oldServer();
  await using client = await connect(server.address);
  await using writer = await connect(server.address);
  await using cache = new Cache(client, '/t', { scope });
  await cache.ready;

  await writer.create('/t', '1');
  await writer.create('/t/a', 'a');
  await writer.create('/t/a/deep', 'd');
  await expect.poll(() => texts(cache).length).toBe({ node: 1, children: 1, subtree: 3 }[scope]);
  await writer.set('/t', '2');
  await writer.set('/t/a', 'a2');
  await writer.create('/t/b', 'b');
  await writer.create('/t/a/deep/er', 'x');

  await expect.poll(() => texts(cache)).toEqual([...expected].sort());
  for (const path of ['/t/a/deep/er', '/t/a/deep', '/t/a', '/t/b', '/t']) await writer.delete(path);
  await expect.poll(() => cache.size).toBe(0);
  await writer.create('/t', 'back');
  await writer.create('/t/c', 'c');
  await expect.poll(() => texts(cache).length).toBe(scope === 'subtree' ? 2 : 1);
  await cache.close();
  expect(client.load.watches).toBe(0);
});

test.for([false, true])('a storm ends equal to the server (old server: %s)', async (isOld) => {
  await using server = isOld ? await oldServer() : await startTestServer();
  await using client = await connect(server.address, { renew: true });
  await using writer = await connect(server.address);
  await writer.create('/t', '');
  await using cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes();
  const faults: string[] = [];
  const mirror = new Map<string, CacheChange['node']>();
  const follow = (async () => {
    for await (const { type, path, node } of { [Symbol.asyncIterator]: () => changes }) {
      if (mirror.has(path) === (type === 'added')) faults.push(`${type} ${path}`);
      if (type === 'removed') mirror.delete(path);
      else mirror.set(path, node);
    }
  })();
  let seed = 11;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };

  for (let round = 0; round < 8; round++) {
    const work: Promise<unknown>[] = [];
    for (let i = 0; i < 80; i++) {
      const path = ['/t/a', '/t/b', '/t/a/x', '/t/a/y', '/t/b/z', '/t'][random(6)]!;
      const deed = random(4);
      if (deed === 0) work.push(writer.create(path, `${round}.${i}`));
      else if (deed === 1) work.push(writer.delete(path));
      else work.push(writer.set(path, `${round}.${i}`));
    }
    if (round % 3 === 1 && client.state.name === 'connected') server.drop(client.sessionId!);
    if (round === 5) await server.expire(client.sessionId!);
    await Promise.allSettled(work);
    await client.connected();
  }
  await writer.create('/t', '').catch(() => {});
  const expected = await onServer(writer, '/t');
  await expect.poll(() => texts(cache)).toEqual(expected);
  await expect
    .poll(() => [...mirror.values()].map(({ path, data }) => `${path}=${data}`).sort())
    .toEqual(expected);
  await cache.close();
  await follow;

  expect(faults).toEqual([]);
  expect(client.load.watches).toBe(0);
});

test('a reconnect compares, and reads only what changed', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await using writer = await connect(server.address);
  await writer.create('/t');
  for (let i = 0; i < 20; i++) await writer.create(`/t/n${i}`, 'x'.repeat(1_000));
  await using cache = new Cache(client, '/t', { scope: 'children' });
  await cache.ready;
  await writer.set('/t/n7', 'changed');
  await expect.poll(() => cache.get('/t/n7')!.data!.toString()).toBe('changed');
  const before = server.log.length;

  const suspended = once(client, 'state');
  server.drop(client.sessionId!);
  await suspended;
  expect(cache.state).toMatchObject({ name: 'stale' });
  await expect.poll(() => cache.state.name).toBe('current');

  const asked = server.log.slice(before).filter(({ op }) => op === 'getData' || op === 'exists');
  expect(asked.map(({ op }) => op)).toEqual(Array.from({ length: 20 }, () => 'exists'));
});

test('what the server refuses in passing is asked for again, a bounded number of times', async () => {
  let refusals = 3;
  await using server = await startTestServer({
    onRequest: ({ op }) =>
      op === 'getData' && refusals-- > 0 ? wireOf('SYSTEM_ERROR') : undefined,
  });
  await using client = await connect(server.address);
  await client.create('/t', 'x');

  await using cache = new Cache(client, '/t');
  await cache.ready;
  expect(texts(cache)).toEqual(['/t=x']);
});

test('a list of children that no frame holds ends the cache, and says what to set', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address, { frameBytesMax: 2_000 });
  await using writer = await connect(server.address);
  await writer.create('/t');
  for (let i = 0; i < 30; i++) await writer.create(`/t/${'x'.repeat(100)}${i}`);

  const cache = new Cache(client, '/t');

  await expect(cache.ready).rejects.toMatchObject({ code: 'CACHE_OVERFLOW' });
  await expect(cache.ready).rejects.toThrow('set frameBytesMax');
});

test('bad arguments are refused by name', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);

  expect(() => new Cache(client, 'no-slash')).toThrow(/^path: /);
  expect(() => new Cache(client, '/a', { scope: 'all' as never })).toThrow(/^scope: /);
  expect(() => new Cache(client, '/a', { nodesMax: 0 })).toThrow(/^nodesMax: /);
  expect(() => new Cache({} as Client, '/a')).toThrow(/^client: /);
});

test('a session found over as the reply to its watch comes leaves no cache without a watch', async () => {
  await using server = await startTestServer();
  await using link = await Link.to({ host: '127.0.0.1', port: server.port });
  await using writer = await connect(server.address);
  await writer.create('/t');
  // As after a pause of the process: the reply is here, and the timer has not fired yet.
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  await using client = await connect(link.address, { clock, renew: true, sessionTimeoutMs: 5_000 });
  const first = client.sessionId;
  let xid: number | undefined;
  link.onFrame = ({ direction, bytes, index }) => {
    if (index === 0) return 'pass';
    const isAsked = direction === 'toServer' && bytes.readInt32BE(4) === ops.addWatch.code;
    if (isAsked) xid ??= bytes.readInt32BE(0);
    else if (direction === 'toClient' && bytes.readInt32BE(0) === xid) aheadMs = 6_000;
    return 'pass';
  };
  const armed: bigint[] = [];
  await using cache = new Cache(client, '/t');
  await using watcher = new PersistentWatcher(client, '/t', () => {}, {
    onArmed: ({ sessionId }) => armed.push(sessionId),
  });
  await Promise.all([cache.ready, watcher.ready]);
  await expect.poll(() => cache.state.name).toBe('current');

  await writer.create('/t/a', 'a');

  expect(client.sessionId).not.toBe(first);
  expect(armed.at(-1)).toBe(client.sessionId);
  await expect.poll(() => texts(cache)).toEqual(['/t/a=a', '/t=']);
});
