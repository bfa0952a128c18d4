/** Readers together, writers alone, in the order asked. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { LockUpgradeError, ReadWriteLock, type SharedGrant } from '../../src/recipes/index.ts';
import { loseReply, opCodes, watchedPaths, watchFor } from '../faults.ts';
import { startZk } from '../zk.ts';

const path = '/locks/table';

const lineOf = (client: Client, count: number, at = path) =>
  expect.poll(() => client.children(at).catch(() => []), { timeout: 15_000 }).toHaveLength(count);

test('readers have it together, a writer has it alone, and nodes are named as Curator names them', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const [first, second] = [new ReadWriteLock(one, path), new ReadWriteLock(two, path)];

  const reads = [await first.read.acquire(), await second.read.acquire()];
  const write = watchFor(second.write.acquire());
  await lineOf(one, 3);
  expect(await first.write.tryAcquire()).toBeNull();
  await reads[0]!.release();
  expect(write.isGranted).toBe(false);
  await reads[1]!.release();
  const held = await write.waiting;

  expect(reads[0]!.path).toMatch(/\/_c_[0-9a-f-]{36}-__READ__\d{10}$/);
  expect(held.path).toMatch(/\/_c_[0-9a-f-]{36}-__WRIT__\d{10}$/);
  expect(await first.read.tryAcquire()).toBeNull();
  await held.release();
  expect((await first.read.tryAcquire())?.isHeld).toBe(true);
});

test('a reader does not wait for a writer that came after it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReadWriteLock(client, path);
  const write = await lock.write.acquire();
  const read = watchFor(lock.read.acquire());
  await lineOf(client, 2);
  const later = watchFor(lock.write.acquire());
  await lineOf(client, 3);

  await write.release();

  const reading = await read.waiting;
  expect([reading.isHeld, later.isGranted]).toEqual([true, false]);
  await reading.release();
  await later.waiting;
});

test('a writer that waits is not overtaken by readers that come later', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReadWriteLock(client, path);
  const read = await lock.read.acquire();
  const write = watchFor(lock.write.acquire());
  await lineOf(client, 2);
  const late = watchFor(lock.read.acquire());
  await lineOf(client, 3);

  const [holders, queue] = [await lock.holders(), await lock.queue()];
  await read.release();
  const writing = await write.waiting;

  expect([holders.length, queue.length]).toEqual([1, 2]);
  expect(late.isGranted).toBe(false);
  await writing.release();
  expect((await late.waiting).isHeld).toBe(true);
});

test('a writer that goes over to reading lets no waiting writer in between', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const lock = new ReadWriteLock(client, path);
  const owner = {};
  const write = await lock.write.acquire({ owner });
  const waiting = watchFor(new ReadWriteLock(other, path).write.acquire());
  await lineOf(client, 2);

  const read = await lock.read.acquire({ owner });
  const [holders] = [await lock.holders()];
  await write.release();
  await expect.poll(() => lock.queue()).toHaveLength(1);
  const listed = await lock.holders();
  const stillReads = await lock.read.acquire({ owner });

  expect(waiting.isGranted).toBe(false);
  expect([holders.length, listed.length]).toEqual([2, 1]);
  expect(listed[0]!.path).toBe(read.path);
  expect(read.path.slice(-10)).toBe(write.path.slice(-10));
  expect([read.isHeld, stillReads.isHeld]).toEqual([true, true]);
  await stillReads.release();
  await read.release();
  const next = await waiting.waiting;
  expect(next.fencingToken).toBeGreaterThan(read.fencingToken);
});

test('a reader that asks to write is told so, and does not wait for itself', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReadWriteLock(client, path);
  const owner = {};
  const read = await lock.read.acquire({ owner });

  const refused = lock.write.acquire({ owner });

  await expect(refused).rejects.toBeInstanceOf(LockUpgradeError);
  await expect(lock.write.tryAcquire({ owner })).rejects.toMatchObject({ code: 'LOCK_UPGRADE' });
  expect(await client.children(path)).toHaveLength(1);
  await read.release();
  const write = await lock.write.acquire({ owner });
  const under = await lock.read.acquire({ owner });
  expect((await lock.write.acquire({ owner })).fencingToken).toBe(write.fencingToken);
  expect(under.isHeld).toBe(true);
});

test('one owner that asks to write and to read at once gets both', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new ReadWriteLock(client, path);
  const owner = {};

  const both = await Promise.all([lock.write.acquire({ owner }), lock.read.acquire({ owner })]);

  expect(both.map((grant) => grant.isHeld)).toEqual([true, true]);
  expect(await client.children(path)).toHaveLength(2);
});

test('going over to reading needs the write lock still to be there, and works through a lost reply', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const lock = new ReadWriteLock(client, path);
  const [owner, other] = [{}, {}];
  const write = await lock.write.acquire({ owner });
  loseReply(zk, opCodes.multi);
  const read = await lock.read.acquire({ owner });
  expect(zk.link.stats.cuts).toBe(1);
  expect([read.isHeld, (await client.children(path)).length]).toEqual([true, 2]);
  await read.release();
  await write.release();
  const lost = await lock.write.acquire({ owner: other });
  zk.link.pause('toClient');
  await witness.delete(lost.path);

  const refused = lock.read.acquire({ owner: other });
  zk.link.heal();

  await expect(refused).rejects.toMatchObject({ code: 'NOT_HELD' });
  expect(await witness.children(path)).toEqual([]);
});

test('readers of one client that wait for the same writer give up one by one, and the rest still hear', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const lock = new ReadWriteLock(client, path);
  const write = await new ReadWriteLock(other, path).write.acquire();
  const patience = Array.from({ length: 4 }, () => new AbortController());
  const reads = patience.map(({ signal }) => watchFor(lock.read.acquire({ signal })));
  await lineOf(other, 5);
  await expect.poll(() => watchedPaths(zk)).toHaveLength(5);

  for (const one of patience.slice(0, 3)) one.abort();
  const late = watchFor(lock.read.acquire());
  await Promise.allSettled(reads.slice(0, 3).map((one) => one.waiting));
  await lineOf(other, 3);
  await write.release();

  const held = [await reads[3]!.waiting, await late.waiting];
  await Promise.all(held.map((grant) => grant.release()));
  expect(await watchedPaths(zk)).toEqual([]);
  expect(client.load.watches).toBe(0);
});

test('five clients that read, write, go over, give up and let go at random: never a reader with a writer, and all come to their end', async () => {
  await using zk = await startZk();
  const clients = await Promise.all(Array.from({ length: 5 }, () => zk.connect()));
  let runs = 0;
  const step = fc.record({
    who: fc.integer({ min: 0, max: 4 }),
    what: fc.constantFrom('read', 'write', 'both', 'giveUp', 'release'),
  });

  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const at = `${path}-${runs++}`;
      const holding = new Map<object, 'reader' | 'writer'>();
      const held: { who: number; grant: SharedGrant; key: object }[] = [];
      const waits: { who: number; patience: AbortController; done: Promise<void> }[] = [];
      const broken: string[] = [];
      const took = (owner: object, key: object, side: 'reader' | 'writer') => {
        const others = [...holding].filter(([one]) => (one as { owner: object }).owner !== owner);
        const isAlone =
          side === 'reader' ? others.every(([, its]) => its === 'reader') : others.length === 0;
        if (!isAlone) broken.push(`${side} with ${others.map(([, its]) => its)}`);
        holding.set(key, side);
      };
      const locks = clients.map((client) => new ReadWriteLock(client, at));
      const ask = (who: number, what: 'read' | 'write' | 'both') => {
        const owner = {};
        const patience = new AbortController();
        const options = { owner, signal: patience.signal };
        const take = async (side: 'read' | 'write') => {
          const grant = await locks[who]![side].acquire(options);
          const key = { owner };
          took(owner, key, side === 'read' ? 'reader' : 'writer');
          held.push({ who, grant, key });
        };
        const work = async () => {
          if (what !== 'read') await take('write');
          if (what !== 'write') await take('read');
        };
        waits.push({
          who,
          patience,
          done: work().catch((error) => {
            if (!patience.signal.aborted) throw error;
          }),
        });
      };
      const letGo = async (who: number) => {
        const index = held.findIndex((one) => one.who === who);
        if (index === -1) return;
        const [one] = held.splice(index, 1);
        holding.delete(one!.key);
        await one!.grant.release();
      };
      for (const { who, what } of steps) {
        if (what === 'release') await letGo(who);
        else if (what === 'giveUp') waits.find((one) => one.who === who)?.patience.abort();
        else ask(who, what);
      }
      // Everyone lets go of what it has, again and again, until nobody waits any more.
      let isOver = false;
      const all = Promise.all(waits.map((one) => one.done)).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        for (let who = 0; who < 5; who++) await letGo(who);
        await clients[0]!.sync();
      }
      await all;
      while (held.length > 0) await letGo(held[0]!.who);
      expect(broken).toEqual([]);
      expect(await clients[0]!.children(at).catch(() => [])).toEqual([]);
    }),
    { numRuns: 25 },
  );
  expect(clients.map((client) => client.load.watches)).toEqual([0, 0, 0, 0, 0]);
}, 60_000);
