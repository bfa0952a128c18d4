/** Several locks as one: all of them or none. */

import { expect, test } from 'vitest';
import { Lock, MultiLock } from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { watchedPaths } from '../faults.ts';
import { startZk } from '../zk.ts';

test('all are taken, in the order of their paths, and let go of together', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const locks = new MultiLock(client, ['/l/b', '/l/a', '/l/c']);

  const held = await locks.acquire();

  expect(locks.locks.map((lock) => lock.path)).toEqual(['/l/a', '/l/b', '/l/c']);
  expect(held.fencingTokens).toEqual([...held.fencingTokens].sort((a, b) => Number(a - b)));
  expect(await new Lock(client, '/l/b').tryAcquire()).toBeNull();
  await held.release();
  expect([held.isHeld, held.signal.aborted]).toEqual([false, true]);
  expect(await watchedPaths(zk)).toEqual([]);
  expect((await new Lock(client, '/l/b').tryAcquire())?.isHeld).toBe(true);
});

test('two that name the same locks in another order do not wait for each other', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const paths = ['/l/a', '/l/b', '/l/c'];
  const there = new MultiLock(one, paths);
  const back = new MultiLock(two, [...paths].reverse());
  let inside = 0;
  let most = 0;
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await one.sync();
    inside -= 1;
  };

  await Promise.all(
    [there, back].map(async (locks) => {
      for (let i = 0; i < 10; i++) await locks.hold(work);
    }),
  );

  expect(most).toBe(1);
});

test('when one cannot be had in time, none is kept, and the error names the one in the way', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const inTheWay = await new Lock(other, '/l/b', { data: 'host-b:1' }).acquire();
  const clock = new MovableClock();
  const locks = new MultiLock(client, ['/l/a', '/l/b', '/l/c'], { clock });

  expect(await locks.tryAcquire()).toBeNull();
  const waitsLong = locks.acquire({ timeoutMs: 60_000 }).catch((error) => error);
  await expect.poll(() => client.children('/l/b')).toHaveLength(2);
  clock.advance(60_000);
  const late = await waitsLong;
  const patience = new AbortController();
  const waiting = locks.acquire({ signal: patience.signal }).catch((error) => error);
  await expect.poll(() => client.children('/l/b')).toHaveLength(2);
  patience.abort(new Error('enough'));

  expect(late).toMatchObject({ code: 'LOCK_TIMEOUT', path: '/l/b' });
  expect(late.message).toContain('/l/b held by host-b:1');
  expect((await waiting).message).toBe('enough');
  expect(await client.children('/l/a')).toEqual([]);
  expect(await client.children('/l/b')).toHaveLength(1);
  expect(client.load.watches).toBe(0);
  expect(inTheWay.isHeld).toBe(true);
});

test('when one is lost, all are: while waiting for the rest, and afterwards', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const blocker = await new Lock(other, '/l/b').acquire();
  const locks = new MultiLock(client, ['/l/a', '/l/b']);
  const waiting = locks.acquire().catch((error) => error);
  await expect.poll(() => client.children('/l/b')).toHaveLength(2);

  const [first] = await other.children('/l/a');
  await other.delete(`/l/a/${first}`);
  expect(await waiting).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(await other.children('/l/b')).toHaveLength(1);
  await blocker.release();
  const held = await locks.acquire();
  await client.create('/data');
  await held.guard([{ op: 'set', path: '/data', data: 'mine' }]);
  await other.delete(held.grants[1]!.path);
  await expect.poll(() => held.signal.aborted).toBe(true);

  await expect(held.guard([{ op: 'set', path: '/data', data: 'late' }])).rejects.toMatchObject({
    code: 'NOT_HELD',
    path: held.grants[1]!.path,
  });
  await held.release();
  expect(await other.children('/l/a')).toEqual([]);
  expect(String((await other.get('/data')).data)).toBe('mine');
});

test('no path, or one named twice, is refused', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(() => new MultiLock(client, [])).toThrow(/paths/);
  expect(() => new MultiLock(client, ['/a', '/a'])).toThrow(/twice/);
});
