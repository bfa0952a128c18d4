/** The lock where it is hard: lost replies, old sessions, pauses, a thousand waiters, giving up at any moment. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { type Grant, Lock } from '../../src/recipes/index.ts';
import { type LinkFrame, MovableClock } from '../../src/testing/index.ts';
import { loseReply, opCodes, watchedPaths } from '../faults.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const path = '/locks/hard';

const childrenOf = (client: Client) => client.children(path).catch(() => [] as string[]);
const lineOf = (client: Client, count: number) =>
  expect.poll(() => client.children(path).catch(() => []), { timeout: 15_000 }).toHaveLength(count);

/** The number of the op of each request that passes, without pings and handshakes. */
function requestsOf(zk: Zk): number[] {
  const seen: number[] = [];
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (direction === 'toServer' && index > 0 && bytes.readInt32BE(0) > 0) {
      seen.push(bytes.readInt32BE(4));
    }
    return 'pass';
  };
  return seen;
}

test('a thousand wait: each has its turn in order, and each hand-over takes at most four requests', async () => {
  await using zk = await startZk();
  const waiters = 1_000;
  const clients = await Promise.all(
    Array.from({ length: 5 }, () => zk.connect({ sessionTimeoutMs: 30_000 })),
  );
  const witness = await zk.witness();
  const first = await new Lock(clients[0]!, path).acquire();
  const tokens: bigint[] = [first.fencingToken];
  const all = Array.from({ length: waiters }, (_, i) =>
    new Lock(clients[i % 5]!, path).hold((lock) => {
      tokens.push(lock.fencingToken);
    }),
  );
  await lineOf(witness, waiters + 1);
  // Each watches its own node and one or two ahead. What a reply makes a client ask is behind it, so one look
  // may fall between the two.
  const areIdle = async () => {
    for (let trips = 0; trips < 5; trips++) {
      await Promise.all(clients.map((client) => client.exists('/')));
      if (clients.some(({ load }) => load.inFlight + load.waiting > 0)) return false;
    }
    return true;
  };
  await expect.poll(areIdle, { timeout: 15_000 }).toBe(true);
  const requests = requestsOf(zk);

  await first.release();
  await Promise.all(all);

  expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  expect(tokens).toHaveLength(waiters + 1);
  const count = (op: number) => requests.filter((one) => one === op).length;
  expect(count(opCodes.delete)).toBe(waiters + 1);
  // The third behind looks at the line. Then it has its turn without asking, as the first two had.
  expect(count(opCodes.children)).toBe(waiters - 2);
  // It watches the two ahead of it for that, unless somebody of the same client does so already.
  expect(count(opCodes.getData)).toBeLessThan(2 * waiters);
  expect(requests.length - count(opCodes.getData)).toBe(2 * waiters - 1);
  expect(await witness.children(path)).toEqual([]);
  expect(clients.map(({ load }) => load.watches)).toEqual([0, 0, 0, 0, 0]);
}, 60_000);

test("the signal aborts at the session's deadline on the holder's own clock, while the server still keeps its node", async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const [client, witness] = [await zk.connect({ clock }), await zk.witness()];
  const lock = await new Lock(client, path).acquire();
  zk.link.blackhole();
  const { deadlineMs } = client.state as { deadlineMs: number };

  clock.advance(deadlineMs - clock.nowMs() - 1_000);
  const before = lock.isHeld;
  clock.advance(1_000);

  expect([before, lock.isHeld]).toEqual([true, false]);
  expect(lock.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
  expect(await witness.exists(lock.path)).not.toBeNull();
});

test('when a holder cannot be heard, the next has the lock only after the holder knows that it has not', async () => {
  await using zk = await startZk();
  const [holder, next] = [await zk.connect({ sessionTimeoutMs: 4_000 }), await zk.witness()];
  const held = await new Lock(holder, path).acquire();
  const waiting = new Lock(next, path).acquire();
  await lineOf(next, 2);

  zk.link.blackhole();
  const lock = await waiting;

  expect([held.isHeld, held.signal.aborted]).toEqual([false, true]);
  expect(lock.fencingToken).toBeGreaterThan(held.fencingToken);
}, 40_000);

test('a process that is stopped past its session finds its signal aborted when it wakes, and its write is refused', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  await witness.create('/resource', '0 nobody');
  const { client: clientRoom, recipes } = {
    client: new URL('../../src/client/index.ts', import.meta.url).href,
    recipes: new URL('../../src/recipes/index.ts', import.meta.url).href,
  };
  const program = `
    import { connect } from ${JSON.stringify(clientRoom)};
    import { Lock } from ${JSON.stringify(recipes)};
    const zk = await connect(${JSON.stringify(zk.directAddress)}, { sessionTimeoutMs: 4_000 });
    const lock = await new Lock(zk, ${JSON.stringify(path)}).acquire();
    console.log('held', String(lock.fencingToken));
    await new Promise((resolve) => process.stdin.once('data', resolve));
    console.log('woke', lock.signal.aborted, lock.isHeld);
    await lock.guard([{ op: 'set', path: '/resource', data: 'stale' }]).then(
      () => console.log('written'),
      (error) => console.log('refused', error.code, error.reason),
    );
    process.exit(0);`;
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'close');
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const line = async () => String((await lines.next()).value);
    const [, token] = (await line()).split(' ');

    child.kill('SIGSTOP');
    const lock = await new Lock(witness, path).acquire(); // its session has to expire first
    await lock.guard([{ op: 'set', path: '/resource', data: 'fresh' }]);
    child.stdin.write('go on');
    child.kill('SIGCONT');

    expect(await line()).toBe('woke true false');
    expect(await line()).toBe('refused NOT_HELD sessionOver');
    expect(lock.fencingToken).toBeGreaterThan(BigInt(token!));
    expect(String((await witness.get('/resource')).data)).toBe('fresh');
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}, 60_000);

test("a node that the old session made, and whose reply was lost, is not taken for the new session's", async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const client = await zk.connect({ renew: true, clock });
  const witness = await zk.witness();
  await witness.create(path, '', { parents: true });
  const oldSession = client.sessionId!;
  loseReply(zk, opCodes.create);
  zk.link
    .until(({ cuts }) => cuts === 1)
    .then(
      () => zk.link.refuse(),
      () => {},
    );

  const acquiring = new Lock(client, path).acquire();
  await reached(client, 'suspended');
  await lineOf(witness, 1); // the server has it, and keeps it, as the old session lives there
  clock.advance(11_000);
  await zk.link.accept();
  const lock = await acquiring;

  expect(lock.sessionId).not.toBe(oldSession);
  expect(lock.sessionId).toBe(client.sessionId);
  const [name, ...others] = await witness.children(path);
  expect([`${path}/${name}`, others]).toEqual([lock.path, []]);
  expect((await witness.exists(lock.path))!.ephemeralOwner).toBe(lock.sessionId);
});

test('giving up at any moment leaves no node and no watch, whether the lock is free or not', async () => {
  for (const isFree of [true, false]) {
    // Create, list and own watch, each asked and answered; where it is held, one watch more.
    const last = isFree ? 6 : 8;
    for (let frames = 1; frames <= last; frames++) {
      await using zk = await startZk();
      const [client, witness] = [await zk.connect(), await zk.witness()];
      const holder = isFree ? undefined : await new Lock(witness, path).acquire();
      const patience = new AbortController();
      let seen = 0;
      zk.link.onFrame = () => {
        seen += 1;
        if (seen === frames) patience.abort(new Error('enough'));
        return 'pass';
      };
      // A free lock is had within these frames, or not; either way nothing may be left in the end.
      const granted = await new Lock(client, path)
        .acquire({ signal: patience.signal })
        .catch((error: Error) => error);
      zk.link.onFrame = undefined;
      if (!(granted instanceof Error)) await granted.release();
      else expect(granted.message).toBe('enough');

      expect(await childrenOf(witness)).toHaveLength(isFree ? 0 : 1);
      expect(await watchedPaths(zk)).toEqual(holder ? [holder.path] : []);
      expect(client.load.watches).toBe(0);
      await holder?.release();
      expect(await new Lock(witness, path).tryAcquire()).not.toBeNull();
    }
  }
}, 60_000);

test('a link that is cut at any frame costs neither the lock nor a node', async () => {
  for (const direction of ['toServer', 'toClient'] as const) {
    for (let frames = 1; frames <= 8; frames++) {
      await using zk = await startZk();
      const [client, witness] = [await zk.connect(), await zk.witness()];
      let left = frames;
      zk.link.onFrame = (frame: LinkFrame) => {
        if (frame.direction !== direction || frame.index === 0) return 'pass';
        left -= 1;
        return left === 0 ? 'cut' : 'pass';
      };

      const lock = await new Lock(client, path).acquire();
      const [holder] = await witness.children(path);
      await lock.release();

      expect(lock.path).toBe(`${path}/${holder}`);
      expect(await witness.children(path)).toEqual([]);
      expect(client.load.watches).toBe(0);
    }
  }
}, 60_000);

test('a server without a quorum proves nothing: the grant ends', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = await new Lock(client, path).acquire();
  const { signal } = lock;
  const state = client.state as Extract<Client['state'], { name: 'connected' }>;

  client.emit('state', { ...state, readOnly: true }, state);

  expect(signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'readOnly' });
  await lock.release();
  expect(await client.children(path)).toEqual([]);
});

test('when the client closes, its grants end and those who wait fail', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const held: Grant = await new Lock(client, path).acquire();
  const waiting = new Lock(client, path).acquire().catch((error) => error);
  await lineOf(witness, 2);
  await client.exists(path); // answered behind its create: it knows by then that it is in line
  await new Promise((resolve) => setImmediate(resolve));

  await client.close();

  expect(held.signal.reason).toMatchObject({ code: 'NOT_HELD' });
  expect(await waiting).toMatchObject({ code: 'NOT_HELD' });
  await held.release();
  expect(await witness.children(path)).toEqual([]);
});
