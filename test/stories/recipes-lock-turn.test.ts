/** How a turn comes: what is asked for it, and that nobody has one who should not, however those ahead leave. */

import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Lock, NotHeldError } from '../../src/recipes/index.ts';
import { opCodes, watchedPaths } from '../faults.ts';
import { seeded } from '../random.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const path = '/locks/turn';

const lineOf = (client: Client, count: number) =>
  expect.poll(() => client.children(path).catch(() => []), { timeout: 15_000 }).toHaveLength(count);
const quiet = (...clients: Client[]) =>
  expect
    .poll(() => clients.every(({ load }) => load.inFlight + load.waiting === 0), {
      timeout: 15_000,
    })
    .toBe(true);

/** What passes: the number of the op of each request, and a dash for each reply or event. */
function trafficOf(zk: Zk): (number | '-')[] {
  const seen: (number | '-')[] = [];
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0 || bytes.readInt32BE(0) === -2) return 'pass'; // handshakes and pings
    seen.push(direction === 'toServer' ? bytes.readInt32BE(4) : '-');
    return 'pass';
  };
  return seen;
}

/** A holder that no cut reaches, and so many who wait behind it, each a client of its own behind the link. */
async function lineUp(zk: Zk, waiters: number) {
  const witness = await zk.witness();
  const holder = await new Lock(witness, path).acquire();
  const clients: Client[] = [];
  const calledOff: AbortController[] = [];
  const waits: Promise<{ readonly token?: bigint; readonly error?: unknown }>[] = [];
  const granted: number[] = [];
  for (let i = 0; i < waiters; i++) {
    const client = await zk.connect();
    const stop = new AbortController();
    const wait = new Lock(client, path).acquire({ signal: stop.signal }).then(
      (grant) => {
        granted.push(i);
        return { token: grant.fencingToken };
      },
      (error: unknown) => ({ error }),
    );
    clients.push(client);
    calledOff.push(stop);
    waits.push(wait);
    await lineOf(witness, i + 2);
  }
  await quiet(...clients);
  return { witness, holder, clients, calledOff, waits, granted };
}

test('a free lock takes three requests and two ways to the server and back', async () => {
  await using zk = await startZk({ since: '3.5', what: 'creates that answer with a Stat' });
  const client = await zk.connect();
  const lock = new Lock(client, path);
  await (await lock.acquire()).release(); // makes the nodes above
  await quiet(client);
  const traffic = trafficOf(zk);

  const grant = await lock.acquire();
  const atGrant = [...traffic];
  await grant.release();

  expect(atGrant).toEqual([opCodes.create, opCodes.children, '-', '-']);
  expect(traffic.slice(4)).toEqual([opCodes.delete, '-']);
  expect(client.load.watches).toBe(0);
});

test('who is next asks nothing when the holder lets go', async () => {
  await using zk = await startZk();
  const { holder, waits } = await lineUp(zk, 1);
  const traffic = trafficOf(zk);

  await holder.release();
  const { token } = await waits[0]!;

  expect(token).toBeGreaterThan(holder.fencingToken);
  expect(traffic).toEqual(['-']); // that the holder's node is gone
});

test('who is third asks nothing when the two ahead of it let go', async () => {
  await using zk = await startZk();
  const { holder, clients, waits } = await lineUp(zk, 2);
  const traffic = trafficOf(zk);

  await holder.release();
  await waits[0];
  await clients[0]!.close(); // its node goes with its session
  const { token } = await waits[1]!;

  expect(token).toBeGreaterThan(holder.fencingToken);
  expect(traffic).not.toContain(opCodes.children);
  expect(traffic).not.toContain(opCodes.getData);
});

test.each([1, 2, 3, 4])(
  'whoever leaves next (seed %i), the first of those left has the turn',
  async (seed) => {
    await using zk = await startZk();
    const random = seeded(seed);
    const { holder, clients, calledOff, waits, granted } = await lineUp(zk, 8);
    const theHolder = -1;
    const left = [theHolder, ...waits.keys()];
    const expected: number[] = [];

    while (left.length > 1) {
      const [who] = left.splice(Math.floor(random() * left.length), 1);
      if (who === theHolder) {
        await holder.release();
      } else if (expected.includes(who!)) {
        await clients[who!]!.close(); // its node goes with its session
      } else {
        calledOff[who!]!.abort();
        await waits[who!];
      }
      const first = left[0]!;
      if (first !== theHolder && !expected.includes(first)) {
        await waits[first];
        expected.push(first);
      }
      await quiet(...clients);
      expect(granted).toEqual(expected);
    }
    await Promise.all(clients.map((client) => client.close()));
    await expect.poll(() => watchedPaths(zk)).toEqual([]);
  },
);

test('those ahead may give up in any order: nobody has a turn before the holder lets go', async () => {
  await using zk = await startZk();
  const { witness, holder, clients, calledOff, waits, granted } = await lineUp(zk, 6);

  for (const i of [3, 1, 0]) {
    calledOff[i]!.abort();
    await waits[i];
  }
  await lineOf(witness, 4);
  await quiet(...clients);

  expect(granted).toEqual([]);
  await holder.release();
  await waits[2];
  expect(granted).toEqual([2]);
  for (const [i, next] of [
    [2, 4],
    [4, 5],
  ] as const) {
    await clients[i]!.close(); // its node goes with its session
    await waits[next];
  }
  expect(granted).toEqual([2, 4, 5]);
  await Promise.all(clients.map((client) => client.close()));
  await expect.poll(() => watchedPaths(zk)).toEqual([]);
});

test('a holder that is asked to let go, and does not, wakes nobody', async () => {
  await using zk = await startZk();
  const { holder, clients, waits, granted } = await lineUp(zk, 2);

  for (let i = 0; i < 3; i++) {
    await new Lock(clients[1]!, path).requestRevocation();
    await quiet(...clients);
  }

  expect(holder.revocation.aborted).toBe(true);
  expect(granted).toEqual([]);
  await holder.release();
  await waits[0];
  expect(granted).toEqual([0]);
});

test('who lost its node while its link was away has no turn, though the holder has let go meanwhile', async () => {
  await using zk = await startZk();
  const { witness, holder, clients, waits, granted } = await lineUp(zk, 1);
  const [, own] = (await witness.children(path)).sort((a, b) =>
    a.slice(-10).localeCompare(b.slice(-10)),
  );
  zk.link.refuse();
  zk.link.cut();
  await reached(clients[0]!, 'suspended');

  await witness.delete(`${path}/${own}`);
  await holder.release();
  zk.link.dribble(8); // the two events come one by one, in whichever order the server has them
  await zk.link.accept();

  const { error } = await waits[0]!;
  expect(error).toBeInstanceOf(NotHeldError);
  expect(error).toMatchObject({ reason: 'nodeDeleted' });
  expect(granted).toEqual([]);
});

test('who lost its node, and then the one ahead lets go, has no turn', async () => {
  await using zk = await startZk();
  const { witness, holder, waits, granted } = await lineUp(zk, 1);
  const own = (await witness.children(path)).find((name) => !holder.path.endsWith(name))!;

  // Both leave in one chunk: the events come as near to each other as they can.
  await witness.multi([
    { op: 'delete', path: `${path}/${own}` },
    { op: 'delete', path: holder.path },
  ]);

  expect((await waits[0]!).error).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(granted).toEqual([]);
});

test('who closes a client that holds and waits gives the waiter no turn', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const lock = new Lock(client, path);
  await lock.acquire();
  const waiting = lock.acquire();
  await lineOf(client, 2);
  await quiet(client);

  await client.close();

  await expect(waiting).rejects.toMatchObject({ code: 'NOT_HELD' });
});

/**
 * The last in line is told that its node has changed, and cannot ask what it is now: so its own node is not
 * watched when it and both ahead of it go.
 */
async function loseUnwatched(zk: Zk, last: number, content: string) {
  const line = await lineUp(zk, last + 1);
  const { witness, clients } = line;
  const names = (await witness.children(path)).sort((a, b) =>
    a.slice(-10).localeCompare(b.slice(-10)),
  );
  zk.link.pause('toServer');
  await witness.set(`${path}/${names.at(-1)!}`, content);
  await expect.poll(() => clients[last]!.load.inFlight).toBe(1); // the read that watches it again

  // From the back: a waiter ahead hears of its own node first, and has no turn in between.
  await witness.multi(
    names.reverse().map((name) => ({ op: 'delete' as const, path: `${path}/${name}` })),
  );
  return line;
}

test.each([
  ['the one ahead goes', 0, 'another name'],
  ['both ahead go', 1, 'another name'],
  ['both ahead go, after it was asked to let go', 1, '__REVOKE__'],
])('who lost its node while that was not watched has no turn when %s', async (_, last, content) => {
  await using zk = await startZk();
  const { waits, granted } = await loseUnwatched(zk, last, content);

  zk.link.resume('toServer');

  expect((await waits[last]!).error).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(granted).toEqual([]);
});
