/** The lock as its users meet it: order, giving up, losing it, who holds it. */

import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { type Grant, Lock, LockTimeoutError, NotHeldError } from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { loseReply, opCodes, watchedPaths } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

const path = '/locks/billing';

/** Resolves once so many stand in line. */
const lineOf = (client: Client, count: number) =>
  expect.poll(() => client.children(path).catch(() => []), { timeout: 15_000 }).toHaveLength(count);

const failure = (work: Promise<unknown>): Promise<Error & Record<string, unknown>> =>
  work.then(
    () => {
      throw new Error('it was granted');
    },
    (error) => error,
  );

test('one holds it at a time, in the order asked, and tokens only grow', async () => {
  await using zk = await startZk();
  const clients = await Promise.all([zk.connect(), zk.connect(), zk.connect()]);
  const order: number[] = [];
  const tokens: bigint[] = [];
  const first = await new Lock(clients[0]!, path).acquire();
  const waits: Promise<void>[] = [];
  for (let i = 0; i < 9; i++) {
    const waiting = new Lock(clients[i % 3]!, path).hold((lock) => {
      order.push(i);
      tokens.push(lock.fencingToken);
    });
    waits.push(waiting);
    await lineOf(clients[0]!, i + 2);
  }

  expect(order).toEqual([]);
  await first.release();
  await Promise.all(waits);

  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect([first.fencingToken, ...tokens]).toEqual([first.fencingToken, ...tokens].sort(byValue));
  expect(new Set(tokens).size).toBe(9);
});

const byValue = (a: bigint, b: bigint) => (a < b ? -1 : 1);

test('nodes are named as Curator names them, in a container, and say who made them', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = await new Lock(client, path).acquire();

  const [name] = await client.children(path);
  const { data, stat } = await client.get(`${path}/${name}`);

  expect(name).toMatch(/^_c_[0-9a-f-]{36}-lock-\d{10}$/);
  expect(lock.path).toBe(`${path}/${name}`);
  expect(data!.toString()).toMatch(/^.+:\d+$/);
  expect(stat.ephemeralOwner).toBe(client.sessionId);
  expect(lock.fencingToken).toBe(stat.czxid);
});

test('it is released once, and its signal aborts with it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = await new Lock(client, path).acquire();
  expect([lock.isHeld, lock.signal.aborted]).toEqual([true, false]);

  await Promise.all([lock.release(), lock.release()]);
  const next = await new Lock(client, path).acquire();
  await lock.release();

  expect([lock.isHeld, lock.signal.aborted, next.isHeld]).toEqual([false, true, true]);
  expect(lock.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'released' });
  expect(await client.children(path)).toHaveLength(1);
});

test('tryAcquire takes it when it is free, and else leaves nothing behind', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new Lock(client, path);

  const held = await lock.tryAcquire();
  const refused = await lock.tryAcquire();

  expect(held?.isHeld).toBe(true);
  expect(refused).toBeNull();
  expect(await client.children(path)).toHaveLength(1);
  expect(await watchedPaths(zk)).toEqual([held!.path]);
});

test('hold lets go when the work throws, and says what it threw', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new Lock(client, path);

  const thrown = lock.hold(() => {
    throw new Error('no money');
  });

  await expect(thrown).rejects.toThrow('no money');
  expect(await client.children(path)).toEqual([]);
  expect(await lock.hold(() => 7)).toBe(7);
});

test('hold rejects when the lock was lost while the work went on as if it were not', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];

  const lost = new Lock(client, path).hold(async (lock) => {
    await witness.delete(lock.path);
    await aborted(lock);
    return 'done';
  });

  await expect(lost).rejects.toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
});

const aborted = (lock: Pick<Grant, 'signal'>) =>
  new Promise<void>((resolve) => {
    if (lock.signal.aborted) resolve();
    else lock.signal.addEventListener('abort', () => resolve());
  });

test('who gives up while waiting leaves no node and no watch, and the next one gets the lock', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const holder = await new Lock(client, path).acquire();
  const patience = new AbortController();
  const impatient = failure(new Lock(other, path).acquire({ signal: patience.signal }));
  await lineOf(client, 2);
  const next = new Lock(client, path).acquire();
  await lineOf(client, 3);
  await expect.poll(() => watchedPaths(zk)).toHaveLength(3);

  patience.abort(new Error('enough'));

  expect((await impatient).message).toBe('enough');
  expect(await client.children(path)).toHaveLength(2);
  expect(other.load.watches).toBe(0);
  await holder.release();
  const held = await next;
  expect(await watchedPaths(zk)).toEqual([held.path]);
  await held.release();
  expect(await watchedPaths(zk)).toEqual([]);
});

test('a signal that is aborted already makes no node', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  const refused = await failure(
    new Lock(client, path).acquire({ signal: AbortSignal.abort(new Error('no')) }),
  );

  expect(refused.message).toBe('no');
  expect(await client.exists('/locks')).toBeNull();
});

test('a time-out names the holder, its session, its age and how many wait', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const waiter = await zk.connect();
  await new Lock(client, path, { data: 'host-a:4711' }).acquire();
  const patience = new AbortController();
  const first = failure(new Lock(waiter, path).acquire({ signal: patience.signal }));
  await lineOf(client, 2);

  const clock = new MovableClock();
  const second = failure(new Lock(waiter, path, { clock }).acquire({ timeoutMs: 60_000 }));
  await expect.poll(() => waiter.load.watches).toBe(3); // on two nodes of its own, and the holder's
  clock.advance(60_000);
  const late = await second;

  expect(late).toBeInstanceOf(LockTimeoutError);
  expect(late.message).toMatch(
    new RegExp(
      `^/locks/billing held by host-a:4711 \\(session 0x${client.sessionId!.toString(16)}\\) for \\d+\\.\\d s, 2 waiting; gave up after 60000 ms$`,
    ),
  );
  expect(late).toMatchObject({ code: 'LOCK_TIMEOUT', path, waiting: 2, timeoutMs: 60_000 });
  expect(await client.children(path)).toHaveLength(2);
  patience.abort();
  await first;
  expect(waiter.load.watches).toBe(0);
});

test('holder and queue tell who stands where', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect(), await zk.connect()];
  const lock = new Lock(clients[0]!, path);
  expect([await lock.holder(), await lock.queue()]).toEqual([null, []]);
  const held = await new Lock(clients[0]!, path, { data: 'a' }).acquire();
  const waits: Promise<Grant>[] = [];
  for (const [i, name] of ['b', 'c'].entries()) {
    waits.push(new Lock(clients[i + 1]!, path, { data: name }).acquire());
    await lineOf(clients[0]!, i + 2);
  }

  const [holder, queue] = [await lock.holder(), await lock.queue()];

  expect(holder).toMatchObject({ path: held.path, sessionId: held.sessionId });
  expect(holder!.fencingToken).toBe(held.fencingToken);
  expect(holder!.ageMs).toBeGreaterThanOrEqual(0);
  expect([holder, ...queue].map((one) => String(one!.data))).toEqual(['a', 'b', 'c']);
  expect(queue.map((one) => one.sessionId)).toEqual([clients[1]!.sessionId, clients[2]!.sessionId]);
  await held.release();
  await (await waits[0]!).release();
  await (await waits[1]!).release();
});

test('the holder hears that somebody wants the lock, and keeps it until it lets go', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.connect()];
  const lock = new Lock(client, path);
  expect(await new Lock(other, path).requestRevocation()).toBeNull();
  const held = await lock.acquire();
  const waiting = new Lock(other, path).acquire();
  await lineOf(client, 2);

  const asked = await new Lock(other, path).requestRevocation();

  await expect.poll(() => held.revocation.aborted).toBe(true);
  expect(asked!.path).toBe(held.path);
  expect(String((await client.get(held.path)).data)).toBe('__REVOKE__');
  expect(held.isHeld).toBe(true);
  await held.release();
  expect((await waiting).isHeld).toBe(true);
});

test('a write under guard is done while the lock is held, and refused once its node is gone', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await client.create('/balance', '100');
  const lock = await new Lock(client, path).acquire();

  const [set, created] = await lock.guard([
    { op: 'set', path: '/balance', data: '90' },
    { op: 'create', path: '/receipt' },
  ]);
  const wrong = await failure(lock.guard([{ op: 'delete', path: '/none' }]));
  zk.link.pause('toClient'); // so that the holder cannot have heard of it
  await witness.delete(lock.path);
  const refused = failure(lock.guard([{ op: 'set', path: '/balance', data: '0' }]));
  zk.link.heal();

  expect([set.version, created.path]).toEqual([1, '/receipt']);
  expect(wrong).toMatchObject({ name: 'MultiError', code: 'NO_NODE', index: 0, path: '/none' });
  expect(await refused).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(String((await witness.get('/balance')).data)).toBe('90');
  expect(lock.isHeld).toBe(false);
});

test('a grant whose node somebody deleted aborts', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const lock = await new Lock(client, path).acquire();

  await witness.delete(lock.path);
  await aborted(lock);

  expect(lock.signal.reason).toBeInstanceOf(NotHeldError);
  expect(lock.signal.reason).toMatchObject({ reason: 'nodeDeleted' });
  await lock.release();
  expect(client.load.watches).toBe(0);
});

test('a contender whose node somebody deleted fails, and is never the holder', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const held = await new Lock(client, path).acquire();
  const waiting = failure(new Lock(client, path).acquire());
  await lineOf(client, 2);
  const behind = new Lock(client, path).acquire();
  await lineOf(client, 3);
  const [second] = await new Lock(client, path).queue();

  await witness.delete(second!.path);

  expect(await waiting).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  await held.release();
  expect((await behind).isHeld).toBe(true);
  expect(await client.children(path)).toHaveLength(1);
});

test('the reply to a create is lost: one node is made, and it gets the lock', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/locks');
  await client.create(path);
  loseReply(zk, opCodes.create);

  const lock = await new Lock(client, path).acquire();

  expect(zk.link.stats.cuts).toBe(1);
  expect(await client.children(path)).toHaveLength(1);
  expect(lock.isHeld).toBe(true);
});

test('letting go works through a lost reply and a link that is away', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const first = await new Lock(client, path).acquire();
  loseReply(zk, opCodes.delete);
  await first.release();
  const second = await new Lock(client, path).acquire();
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  const released = second.release();

  expect(second.isHeld).toBe(false);
  expect(await witness.children(path)).toHaveLength(1);
  await zk.link.accept();
  await released;
  expect(await witness.children(path)).toEqual([]);
});

test('a lost link does not end the grant; the end of the session does', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = await new Lock(client, path).acquire();

  zk.link.cut();
  await reached(client, 'suspended');
  expect(lock.isHeld).toBe(true);
  await client.connected();
  expect(lock.isHeld).toBe(true);
  await zk.expire(client);
  await aborted(lock);

  expect(lock.signal.reason).toMatchObject({ reason: 'sessionOver' });
  await lock.release();
});

test('who gives up while the link is away hears of it at once, and its node goes when the link is back', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const held = await new Lock(witness, path).acquire();
  const patience = new AbortController();
  const waiting = failure(new Lock(client, path).acquire({ signal: patience.signal }));
  await lineOf(witness, 2);
  await expect.poll(() => watchedPaths(zk)).toHaveLength(2);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  patience.abort(new Error('enough'));

  expect((await waiting).message).toBe('enough');
  expect(await witness.children(path)).toHaveLength(2);
  await zk.link.accept();
  await lineOf(witness, 1);
  await expect.poll(() => watchedPaths(zk)).toEqual([held.path]);
  expect(client.load.watches).toBe(0);
});

test('a session that ends between create and list gets no lock, also when a new one has begun', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const witness = await zk.witness();
  await client.create(path, '', { parents: true });
  const oldSession = client.sessionId!;
  let expired: Promise<void> | undefined;
  let list: number | undefined;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0 || expired !== undefined) return 'pass';
    const xid = bytes.readInt32BE(0);
    if (direction === 'toServer') {
      if (bytes.readInt32BE(4) === opCodes.children) list ??= xid;
      return 'pass';
    }
    if (xid !== list) return 'pass'; // the reply to the create arrives
    zk.link.refuse(); // or else it would take its session back in between
    expired = zk.expire(client).then(() => zk.link.accept());
    return 'cut'; // the list is asked for again, on whatever session there is then
  };

  const refused = await failure(new Lock(client, path).acquire());
  await expired;

  expect(refused).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
  await client.connected();
  expect(client.sessionId).not.toBe(oldSession);
  expect(await witness.children(path)).toEqual([]);
  expect((await new Lock(client, path).acquire()).sessionId).toBe(client.sessionId);
});

test('the node of an old session that is still there holds up its own client too', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const witness = await zk.witness();
  const held = await new Lock(client, path).acquire();
  // As if the server had not noticed yet: a node that is not the new session's, and ahead of it.
  const old = await witness.create(`${path}/_c_00000000-0000-0000-0000-000000000000-lock-`, '', {
    mode: 'ephemeralSequential',
  });
  await zk.expire(client);
  await aborted(held);
  await client.connected();

  const again = new Lock(client, path).acquire();
  await lineOf(witness, 2);
  expect(await new Lock(witness, path).holder()).toMatchObject({ path: old.path });
  await witness.delete(old.path);

  expect((await again).sessionId).toBe(client.sessionId);
  expect(held.isHeld).toBe(false);
});

test('a container that is taken away while we join is made again', async () => {
  await using zk = await startZk({ since: '3.5', what: 'containers' });
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const asked: number[] = [];
  let reaped: Promise<void> | undefined;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0) return 'pass';
    const xid = bytes.readInt32BE(0);
    if (direction === 'toServer') {
      const isContainer = bytes.readInt32BE(4) === opCodes.createContainer;
      if (isContainer && bytes.includes(path)) asked.push(xid);
    } else if (reaped === undefined && asked.includes(xid) && bytes.readInt32BE(12) === 0) {
      // It is told that the container is there. What it then asks for is held back until it is not.
      zk.link.pause('toServer');
      reaped = witness.delete(path).then(() => zk.link.resume('toServer'));
    }
    return 'pass';
  };

  const lock = await new Lock(client, path).acquire();

  await reaped;
  expect(lock.isHeld).toBe(true);
  expect(asked.length).toBe(3); // without its parent, then once, then again
});

test('what is no path, signal or time is refused before anything is sent', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(() => new Lock(client, 'locks')).toThrow(/path: a path must start with \//);
  const lock = new Lock(client, path);
  await expect(lock.acquire({ timeoutMs: -1 })).rejects.toThrow(/timeoutMs/);
  await expect(lock.acquire({ signal: {} as AbortSignal })).rejects.toThrow(/signal/);
  expect(await client.exists('/locks')).toBeNull();
});
