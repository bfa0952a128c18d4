/** A lock that its owner may take again. */

import { expect, test } from 'vitest';
import { ReentrantLock } from '../../src/recipes/index.ts';
import { startZk } from '../zk.ts';

const path = '/locks/again';

test('the owner takes it again, releases in any order, and it goes with the last', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReentrantLock(client, path);
  const owner = {};

  const outer = await lock.acquire({ owner });
  const inner = await lock.acquire({ owner });
  const third = await lock.tryAcquire({ owner });

  expect([lock.count(owner), (await client.children(path)).length]).toEqual([3, 1]);
  expect(inner.fencingToken).toBe(outer.fencingToken);
  await outer.release();
  await outer.release();
  expect([lock.count(owner), outer.isHeld, inner.isHeld]).toEqual([2, false, true]);
  await third!.release();
  expect(await client.children(path)).toHaveLength(1);
  expect(inner.signal.aborted).toBe(false);
  await inner.release();
  expect([lock.count(owner), inner.signal.aborted]).toEqual([0, true]);
  expect(await client.children(path)).toEqual([]);
});

test('another owner waits, in the same process, until all of them are released', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReentrantLock(client, path);
  const [mine, theirs] = [{}, {}];
  const held = [await lock.acquire({ owner: mine }), await lock.acquire({ owner: mine })];
  let hasIt = false;
  const other = lock.acquire({ owner: theirs }).then((grant) => {
    hasIt = true;
    return grant;
  });
  await expect.poll(() => client.children(path)).toHaveLength(2);

  await held[0]!.release();
  expect(await lock.tryAcquire({ owner: {} })).toBeNull();
  expect(hasIt).toBe(false);
  await held[1]!.release();

  expect((await other).isHeld).toBe(true);
});

test('two requests of one owner at the same time make one node', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReentrantLock(client, path);
  const owner = {};

  const both = await Promise.all([lock.acquire({ owner }), lock.acquire({ owner })]);

  expect(await client.children(path)).toHaveLength(1);
  expect(lock.count(owner)).toBe(2);
  await Promise.all(both.map((grant) => grant.release()));
  expect(await client.children(path)).toEqual([]);
});

test('when the first of two requests of one owner gives up, the second asks for itself', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const lock = new ReentrantLock(client, path);
  const owner = {};
  const held = await new ReentrantLock(other, path).acquire({ owner });
  const patience = new AbortController();
  const first = lock.acquire({ owner, signal: patience.signal });
  const second = lock.acquire({ owner });
  await expect.poll(() => client.children(path)).toHaveLength(2);

  patience.abort(new Error('enough'));

  await expect(first).rejects.toThrow('enough');
  await held.release();
  expect((await second).isHeld).toBe(true);
  expect(lock.count(owner)).toBe(1);
});

test('a lock that was lost is not had again by asking again, only after all is released', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const lock = new ReentrantLock(client, path);
  const owner = {};
  const held = await lock.acquire({ owner });
  await witness.delete(held.path);
  await expect.poll(() => held.signal.aborted).toBe(true);

  await expect(lock.acquire({ owner })).rejects.toMatchObject({ code: 'NOT_HELD' });
  await held.release();
  const again = await lock.acquire({ owner });

  expect(again.fencingToken).toBeGreaterThan(held.fencingToken);
});

test('nested work under hold', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReentrantLock(client, path);
  const owner = {};

  const result = await lock.hold(() => lock.hold(() => lock.count(owner), { owner }), { owner });

  expect([result, lock.count(owner)]).toEqual([2, 0]);
  await expect(lock.acquire({ owner: 7 as unknown as object })).rejects.toThrow(/owner/);
});
