/** A cache is, once things are quiet, what the server has; and what it tells adds up to that. */

import { expect, test } from 'vitest';
import { anyoneId, type Client, permissions } from '../../src/client/index.ts';
import { Cache, type CacheChange } from '../../src/recipes/index.ts';
import { persistentWatches, reached, startZk, type Zk } from '../zk.ts';

async function away(zk: Zk, client: Client, work: () => Promise<unknown>): Promise<void> {
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await work();
  await zk.link.accept();
}

/** What there is at and below a path, as path=data. */
async function onServer(client: Client, root: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of client.walk(root)) {
    const { data } = await client.get(path);
    found.push(`${path}=${data}`);
  }
  return found.sort();
}

const inCache = (cache: Cache) =>
  [...cache.nodes()].map(({ path, data }) => `${path}=${data}`).sort();

const text = ({ type, path, node }: CacheChange) => `${type} ${path}=${node.data}`;

async function take(changes: AsyncIterator<CacheChange>, count: number): Promise<CacheChange[]> {
  const taken: CacheChange[] = [];
  while (taken.length < count) {
    const { value, done } = await changes.next();
    if (done) throw new Error(`the loop ended after ${taken.length} changes`);
    taken.push(value);
  }
  return taken;
}

test('a subtree is loaded and follows every change', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/app', 'root');
  await writer.create('/app/a', '1');
  await writer.create('/app/a/deep', '2');
  await using cache = new Cache(client, '/app');
  const changes = cache.changes();

  const initial = await take(changes, 3);
  await writer.set('/app/a', '1b');
  await writer.create('/app/b', null);
  await writer.delete('/app/a/deep');
  const later = await take(changes, 3);

  expect(initial.map(text)).toEqual(['added /app=root', 'added /app/a=1', 'added /app/a/deep=2']);
  expect(later.map(text)).toEqual([
    'changed /app/a=1b',
    'added /app/b=null',
    'removed /app/a/deep=2',
  ]);
  expect(later[0]!.previous!.data!.toString()).toBe('1');
  expect(cache.state).toEqual({ name: 'current' });
  expect(cache.get('/app/a')!.data!.toString()).toBe('1b');
  expect(cache.get('/app/a/deep')).toBeUndefined();
  expect(cache.children('/app')).toEqual(['a', 'b']);
});

test('the scope decides what is in: the node alone, or the children alone', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  for (const path of ['/app', '/app/a', '/app/a/deep']) await writer.create(path, path);
  await using node = new Cache(client, '/app', { scope: 'node' });
  await using children = new Cache(client, '/app', { scope: 'children' });
  await Promise.all([node.ready, children.ready]);

  await writer.set('/app/a/deep', 'x');
  await writer.create('/app/b', 'b');
  await writer.set('/app', 'changed');
  await expect.poll(() => node.get()?.data?.toString()).toBe('changed');
  await expect.poll(() => children.get('/app/b')).toBeDefined();

  expect(inCache(node)).toEqual(['/app=changed']);
  expect(inCache(children)).toEqual(['/app/a=/app/a', '/app/b=b']);
});

test('a node that is not there yet is told of when it comes, goes and comes back', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await using cache = new Cache(client, '/base');
  await cache.ready;
  const changes = cache.changes();
  expect(cache.size).toBe(0);

  await writer.create('/base', '1');
  await writer.create('/base/child', 'c');
  await take(changes, 2);
  await writer.delete('/base/child');
  await writer.delete('/base');
  await take(changes, 2);
  await writer.create('/base', '2');
  await writer.create('/base/child', 'd');

  expect((await take(changes, 2)).map(text)).toEqual(['added /base=2', 'added /base/child=d']);
});

test('what happened while the link was away is found, in order, and stale is said meanwhile', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  for (const path of ['/t', '/t/changed', '/t/gone', '/t/gone/child', '/t/again', '/t/quiet']) {
    await writer.create(path, '0');
  }
  await using cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes({ initial: false });

  await away(zk, client, async () => {
    expect(cache.state).toMatchObject({ name: 'stale', sinceMs: expect.any(Number) });
    await writer.set('/t/changed', '1');
    await writer.delete('/t/gone/child');
    await writer.delete('/t/gone');
    await writer.delete('/t/again');
    await writer.create('/t/again', '0');
    await writer.create('/t/new', 'n');
    expect(cache.get('/t/changed')!.data!.toString()).toBe('0');
  });
  const told = (await take(changes, 6)).map(text);

  expect(new Set(told)).toEqual(
    new Set([
      'changed /t/changed=1',
      'removed /t/gone/child=0',
      'removed /t/gone=0',
      'removed /t/again=0',
      'added /t/again=0',
      'added /t/new=n',
    ]),
  );
  expect(told.indexOf('removed /t/gone/child=0')).toBeLessThan(told.indexOf('removed /t/gone=0'));
  expect(told.indexOf('removed /t/again=0')).toBeLessThan(told.indexOf('added /t/again=0'));
  await expect.poll(() => cache.state.name).toBe('current');
  expect(inCache(cache)).toEqual(await onServer(writer, '/t'));
});

test('a new session goes on where the last one ended', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const writer = await zk.witness();
  await writer.create('/t', '0');
  await using cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes({ initial: false });

  await zk.expire(client);
  await writer.set('/t', '1');
  expect((await take(changes, 1)).map(text)).toEqual(['changed /t=1']);
  await writer.create('/t/live');

  expect((await take(changes, 1)).map(text)).toEqual(['added /t/live=']);
});

test('without renew the cache ends with the session, and what it knew can still be asked for', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/t', '0');
  const cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes({ initial: false });

  await zk.expire(client);

  await expect(changes.next()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  expect(cache.state).toMatchObject({ name: 'closed', error: { code: 'SESSION_EXPIRED' } });
  expect(cache.get('/t')!.data!.toString()).toBe('0');
});

test('closing it leaves no watch behind and ends every loop', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  await client.create('/t');
  const cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes({ initial: false });
  const next = changes.next();

  await cache.close();
  await client.sync('/');
  const { frames } = zk.link.stats;
  await client.create('/t/quiet');

  expect(await next).toEqual({ done: true, value: undefined });
  expect(client.load.watches).toBe(0);
  expect(zk.link.stats.frames.toClient).toBe(frames.toClient + 1);
  expect(client.listenerCount('state')).toBe(0);
  expect(cache.state).toMatchObject({ name: 'closed' });
});

test('closing it while it loads leaves nothing behind either', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const cache = new Cache(client, '/t', { signal: abort.signal });

  abort.abort();
  await cache.close();
  await expect(cache.ready).rejects.toThrow('closed');
  await client.sync('/');

  await expect.poll(() => client.load.watches).toBe(0);
});

test('past its limits it ends with an error that says which', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/t');
  for (const name of ['a', 'b', 'c']) await client.create(`/t/${name}`, 'x'.repeat(2_000));

  const few = new Cache(client, '/t', { nodesMax: 3 });
  const small = new Cache(client, '/t', { bytesMax: 5_000 });

  await expect(few.ready).rejects.toMatchObject({ code: 'CACHE_OVERFLOW' });
  await expect(few.ready).rejects.toThrow('more than 3 nodes');
  await expect(small.ready).rejects.toThrow('more than 5000 bytes');
});

test('a reader that stays behind is told so, and nobody else is harmed', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/t', '0');
  await using cache = new Cache(client, '/t', { nodesMax: 10 });
  await cache.ready;
  const slow = cache.changes({ initial: false, bufferMax: 1 });
  const good = cache.changes({ initial: false });

  const told: string[] = [];
  for (let i = 1; i <= 20; i++) {
    await client.set('/t', String(i));
    const [change] = await take(good, 1);
    told.push(change!.node.data!.toString());
  }

  await expect(slow.next()).rejects.toMatchObject({ code: 'WATCH_OVERFLOW' });
  expect(told).toEqual(Array.from({ length: 20 }, (_, i) => String(i + 1)));
});

test('a storm of changes with cuts in it ends equal to the server, and was told in order', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const writers = [await zk.witness(), await zk.witness()];
  await writers[0]!.create('/t', '');
  await using cache = new Cache(client, '/t');
  await cache.ready;
  const changes = cache.changes();
  const mirror = new Map<string, CacheChange['node']>();
  const faults: string[] = [];
  let lastZxid = 0n;
  const follow = (async () => {
    for await (const { type, path, node, zxid } of { [Symbol.asyncIterator]: () => changes }) {
      const known = mirror.get(path);
      if (type === 'added' && known) faults.push(`${path} was there`);
      if (type !== 'added' && !known) faults.push(`${path} was not there`);
      if (type === 'changed' && node.stat.mzxid <= known!.stat.mzxid)
        faults.push(`${path} is older`);
      if (zxid !== null && zxid < lastZxid) faults.push(`${zxid} after ${lastZxid}`);
      if (zxid !== null) lastZxid = zxid;
      if (type === 'removed') mirror.delete(path);
      else mirror.set(path, node);
    }
  })();

  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  for (let round = 0; round < 6; round++) {
    const work: Promise<unknown>[] = [];
    for (let i = 0; i < 120; i++) {
      const writer = writers[i % 2]!;
      const path = `/t/n${random(12)}`;
      const deed = random(4);
      if (deed === 0) work.push(writer.create(path, `${round}.${i}`));
      else if (deed === 1) work.push(writer.delete(path));
      else work.push(writer.set(path, `${round}.${i}`));
    }
    if (round % 2 === 1) zk.link.cut();
    await Promise.allSettled(work);
  }
  const expected = await onServer(writers[0]!, '/t');
  await expect.poll(() => inCache(cache)).toEqual(expected);
  await expect
    .poll(() => [...mirror.values()].map(({ path, data }) => `${path}=${data}`).sort())
    .toEqual(expected);
  await cache.close();
  await follow;

  expect(faults).toEqual([]);
});

test('a node that may be read by now is no longer among those that may not', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/t');
  await writer.create('/t/a', '', { acl: [{ perms: permissions.write, id: anyoneId }] });
  await using cache = new Cache(client, '/t');
  await cache.ready;
  expect(cache.unreadable).toEqual(['/t/a']);

  await writer.delete('/t/a');
  await writer.create('/t/a', '1');
  await expect.poll(() => cache.get('/t/a')?.data?.toString()).toBe('1');

  expect(cache.unreadable).toEqual([]);
});
