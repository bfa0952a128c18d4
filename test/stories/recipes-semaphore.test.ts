/** So many leases and no more, over all clients. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { LockTimeoutError, Semaphore, SemaphoreMutex } from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { loseReply, opCodes, watchedPaths, watchFor } from '../faults.ts';
import { startZk } from '../zk.ts';

const path = '/semaphores/db';

const childrenOf = (client: Client, at: string) => client.children(at).catch(() => [] as string[]);
const leasesOf = (client: Client) => childrenOf(client, `${path}/leases`);
const turnsOf = (client: Client) => childrenOf(client, `${path}/locks`);
const int = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

/** Resolves once one waits for room: it is alone in line and watches the leases. */
const waitsForRoom = (client: Client, watches: number) =>
  expect.poll(() => client.load.watches).toBe(watches);

test('as many leases as the limit says, named as Curator names them, and the next waits for one to come back', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const first = new Semaphore(one, path, { limit: 2 });
  const second = new Semaphore(two, path, { limit: 2 });

  const [a] = [await first.acquire(), await second.acquire()];
  const third = watchFor(second.acquire());
  await expect.poll(() => second.queue()).toHaveLength(1);
  expect(third.isGranted).toBe(false);
  await a!.release();
  const c = await third.waiting;

  expect(c.grants[0]!.path).toMatch(/\/leases\/_c_[0-9a-f-]{36}-lease-\d{10}$/);
  expect(await leasesOf(one)).toHaveLength(2);
  expect(await turnsOf(one)).toEqual([]);
  expect((await first.holders()).map((one) => one.sessionId)).toEqual([
    two.sessionId,
    two.sessionId,
  ]);
  expect(two.load.watches).toBe(2); // one on each lease that it has
});

test('several leases come all at once or not at all', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const semaphore = new Semaphore(client, path, { limit: 3 });
  const held = await semaphore.acquire({ count: 2 });

  expect(await semaphore.tryAcquire({ count: 2 })).toBeNull();
  expect(await leasesOf(client)).toHaveLength(2);
  const waiting = watchFor(semaphore.acquire({ count: 3 }));
  await waitsForRoom(client, 4); // two leases, our turn, the list of leases
  expect(await leasesOf(client)).toHaveLength(2);
  await held.release();

  expect((await waiting.waiting).grants).toHaveLength(3);
  await expect(semaphore.acquire({ count: 4 })).rejects.toThrow(/3 leases in all/);
  await expect(semaphore.acquire({ count: 0 })).rejects.toThrow(/count/);
});

test('two that want most of the leases do not each take half and wait for ever', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect()];

  const rounds = clients.map(async (client) => {
    const semaphore = new Semaphore(client, path, { limit: 4 });
    for (let i = 0; i < 10; i++) await semaphore.hold(() => {}, { count: 3 });
  });
  await Promise.all(rounds);

  expect(await leasesOf(clients[0]!)).toEqual([]);
});

test('tryAcquire does not wait, not even behind one that does, and leaves nothing', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const semaphore = new Semaphore(client, path, { limit: 2 });
  const held = await semaphore.tryAcquire();
  const waiting = watchFor(new Semaphore(other, path, { limit: 2 }).acquire({ count: 2 }));
  await waitsForRoom(other, 2);

  const refused = await semaphore.tryAcquire();

  expect(refused).toBeNull();
  expect([await leasesOf(client), await turnsOf(client)].map((all) => all.length)).toEqual([1, 1]);
  await held!.release();
  await (await waiting.waiting).release();
  expect((await semaphore.tryAcquire({ count: 2 }))?.isHeld).toBe(true);
});

test('who gives up while waiting for room leaves no node and no watch, and the next has its turn', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const held = await new Semaphore(client, path, { limit: 1 }).acquire();
  const patience = new AbortController();
  const semaphore = new Semaphore(other, path, { limit: 1 });
  const waiting = semaphore.acquire({ signal: patience.signal });
  await waitsForRoom(other, 2);
  const next = new Semaphore(client, path, { limit: 1 }).acquire();
  await expect.poll(() => turnsOf(client)).toHaveLength(2);

  patience.abort(new Error('enough'));

  await expect(waiting).rejects.toThrow('enough');
  expect(other.load.watches).toBe(0);
  await held.release();
  const got = await next;
  expect(got.isHeld).toBe(true);
  expect(await turnsOf(client)).toEqual([]);
  expect(await watchedPaths(zk)).toEqual([got.grants[0]!.path]);
});

test('a time-out names who has the leases and how many wait', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await new Semaphore(client, path, { limit: 1, data: 'host-a:4711' }).acquire();

  const clock = new MovableClock();
  const waiting = new Semaphore(client, path, { limit: 1, clock })
    .acquire({ timeoutMs: 60_000 })
    .catch((error) => error);
  await waitsForRoom(client, 3); // the lease, our turn, the list of leases
  clock.advance(60_000);
  const late = await waiting;

  expect(late).toBeInstanceOf(LockTimeoutError);
  expect(late.message).toMatch(
    /^\/semaphores\/db held by host-a:4711 \(session 0x[0-9a-f]+\) for \d+\.\d s, 1 waiting; gave up after 60000 ms$/,
  );
  expect(await turnsOf(client)).toEqual([]);
});

test('a limit in a node: more room lets the next in, less takes nothing away', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const semaphore = new Semaphore(client, path, { limit: { path: '/limit' } });
  await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'NO_NODE', path: '/limit' });
  await client.create('/limit', int(1));
  const first = await semaphore.acquire();
  const second = watchFor(semaphore.acquire());
  await waitsForRoom(client, 4); // the lease, our turn, the leases, the limit

  await client.set('/limit', int(2));
  const held = await second.waiting;
  await client.set('/limit', int(1));
  expect(await semaphore.limit()).toBe(1);
  expect([first.isHeld, held.isHeld, await semaphore.tryAcquire()]).toEqual([true, true, null]);
  await first.release();
  expect(await semaphore.tryAcquire()).toBeNull();
  await held.release();

  expect((await semaphore.tryAcquire())?.isHeld).toBe(true);
  await client.set('/limit', 'a lot');
  await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'DATA_INCONSISTENCY' });
  expect(await turnsOf(client)).toEqual([]);
});

test('one whose session ends while it waits, or with leases, leaves none', async () => {
  await using zk = await startZk();
  const [client, holder, waiter] = [await zk.connect(), await zk.connect(), await zk.connect()];
  const held = await new Semaphore(holder, path, { limit: 2 }).acquire({ count: 2 });
  const waiting = new Semaphore(waiter, path, { limit: 2 }).acquire().catch((error) => error);
  await waitsForRoom(waiter, 2);

  await zk.expire(waiter);
  expect(await waiting).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
  expect(await turnsOf(client)).toEqual([]);
  await zk.expire(holder);
  await expect.poll(() => held.signal.aborted).toBe(true);

  expect((await new Semaphore(client, path, { limit: 2 }).acquire({ count: 2 })).isHeld).toBe(true);
  expect(await leasesOf(client)).toHaveLength(2);
});

test('the reply to the making of leases is lost: they are made once, and none is forgotten', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const semaphore = new Semaphore(client, path, { limit: 3 });
  await (await semaphore.acquire()).release();
  loseReply(zk, opCodes.multi);

  const leases = await semaphore.acquire({ count: 2 });

  expect(zk.link.stats.cuts).toBe(1);
  expect(await leasesOf(client)).toHaveLength(2);
  await leases.release();
  expect(await leasesOf(client)).toEqual([]);
});

test('where the limit leaves no room and nobody has a lease, the limit is waited for and not asked for', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/limit', int(0));
  let looks = 0;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    const isLook = index > 0 && direction === 'toServer' && bytes.includes('/limit');
    if (isLook && bytes.readInt32BE(4) === opCodes.getData) looks += 1;
    return 'pass';
  };

  const waiting = new Semaphore(client, path, { limit: { path: '/limit' } }).acquire();
  await expect.poll(() => looks).toBeGreaterThan(1);
  for (let trips = 0; trips < 20; trips++) await client.exists('/');
  const asked = looks;
  await witness.set('/limit', int(1));

  await (await waiting).release();
  expect(asked).toBe(2); // once, and once with a watch
});

test('one that has lost its turn without knowing it makes no lease', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const semaphore = new Semaphore(client, path, { limit: 1 });
  await (await semaphore.acquire()).release();
  let stolen: Promise<unknown> | undefined;
  let asked: number | undefined;
  let multis = 0;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0) return 'pass';
    if (direction === 'toServer') {
      const op = bytes.readInt32BE(4);
      if (op === opCodes.multi) multis += 1;
      if (op === opCodes.children && bytes.includes('/leases')) asked ??= bytes.readInt32BE(0);
    } else if (stolen === undefined && bytes.readInt32BE(0) === asked) {
      // It sees that there is room. What it says to that is held back until somebody else has taken it.
      zk.link.pause('toServer');
      zk.link.pause('toClient');
      stolen = (async () => {
        const [name] = await witness.children(`${path}/locks`);
        await witness.delete(`${path}/locks/${name}`);
        await new Semaphore(witness, path, { limit: 1 }).acquire();
        zk.link.heal();
      })();
    }
    return 'pass';
  };

  const refused = await semaphore.acquire().catch((error) => error);

  await stolen;
  expect(multis).toBe(1); // it did try, and the server refused
  expect(refused).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(await leasesOf(witness)).toHaveLength(1);
});

test('five clients that take and give back at random never have more than there is, and none is left', async () => {
  await using zk = await startZk();
  const clients = await Promise.all(Array.from({ length: 5 }, () => zk.connect()));
  let runs = 0;
  const round = fc.record({
    who: fc.integer({ min: 0, max: 4 }),
    count: fc.integer({ min: 1, max: 3 }),
    givesUp: fc.boolean(),
  });

  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 5, maxLength: 15 }), async (rounds) => {
      const at = `${path}-${runs++}`;
      let taken = 0;
      let most = 0;
      await Promise.all(
        rounds.map(async ({ who, count, givesUp }) => {
          const semaphore = new Semaphore(clients[who]!, at, { limit: 3 });
          const patience = new AbortController();
          const work = semaphore.hold(
            async () => {
              taken += count;
              most = Math.max(most, taken);
              await clients[who]!.sync();
              taken -= count;
            },
            { count, signal: patience.signal },
          );
          if (givesUp) queueMicrotask(() => patience.abort());
          await work.catch((error) => {
            if (!patience.signal.aborted) throw error;
          });
        }),
      );
      expect(most).toBeLessThanOrEqual(3);
      await expect.poll(() => childrenOf(clients[0]!, `${at}/locks`)).toEqual([]);
      expect(await childrenOf(clients[0]!, `${at}/leases`)).toEqual([]);
    }),
    { numRuns: 20 },
  );
  await expect.poll(() => clients.map((client) => client.load.watches)).toEqual([0, 0, 0, 0, 0]);
}, 60_000);

test('the semaphore mutex is a lock in its own layout', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const mutex = new SemaphoreMutex(client, path);
  const first = await mutex.acquire();
  const second = mutex.acquire();
  await expect.poll(() => mutex.queue()).toHaveLength(1);

  expect(await mutex.tryAcquire()).toBeNull();
  expect((await mutex.holder())!.path).toBe(first.path);
  await first.release();
  const held = await second;

  expect(held.fencingToken).toBeGreaterThan(first.fencingToken);
  await held.release();
  expect(await mutex.hold(() => 3)).toBe(3);
});
