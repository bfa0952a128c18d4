/**
 * Recipes on a client that gives every call a deadline (`requestTimeoutMs`), through outages that last
 * longer: calls may fail, and what they were about must not stay on the server for ever.
 */

import { expect, test } from 'vitest';
import {
  DoubleBarrier,
  GroupMember,
  Lock,
  Queue,
  Semaphore,
  StaticElection,
} from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { isOp, opCodes } from '../faults.ts';
import { startZk, type Zk } from '../zk.ts';

const requestTimeoutMs = 300;

async function start() {
  const zk = await startZk();
  const clock = new MovableClock();
  const client = await zk.connect({ clock, requestTimeoutMs });
  const witness = await zk.witness();
  return { zk, clock, client, witness, [Symbol.asyncDispose]: () => zk[Symbol.asyncDispose]() };
}

/** No reply comes any more from the first request of this op on, which the server has. */
function holdReplies(zk: Zk, code: number): Promise<void> {
  return new Promise((resolve) => {
    zk.link.onFrame = ({ index, direction, bytes }) => {
      if (index === 0 || direction !== 'toServer' || !isOp(bytes, code)) return 'pass';
      zk.link.onFrame = undefined;
      zk.link.pause('toClient');
      resolve();
      return 'pass';
    };
  });
}

async function loseLink({ zk, client }: Awaited<ReturnType<typeof start>>): Promise<void> {
  zk.link.refuse();
  zk.link.cut();
  await expect.poll(() => client.state.name).toBe('suspended');
}

test('a lock is let go of when the link is back', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  const held = await new Lock(client, '/lock').acquire();
  await loseLink(world);

  const released = held.release();
  clock.advance(2 * requestTimeoutMs);
  await zk.link.accept();
  await released;

  expect(await witness.children('/lock')).toEqual([]);
});

test('a member leaves when the link is back', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  const member = new GroupMember(client, '/group', 'a');
  await member.ready;
  await loseLink(world);

  await member.close();
  clock.advance(2 * requestTimeoutMs);
  await zk.link.accept();

  await expect.poll(() => witness.children('/group')).toEqual([]);
});

test('a contender that was not told of its place in time leaves none', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  await client.create('/lock');
  const held = holdReplies(zk, opCodes.create);

  const waiting = new Lock(client, '/lock').acquire().catch((error) => error);
  await held;
  await expect.poll(() => witness.children('/lock')).toHaveLength(1);
  clock.advance(requestTimeoutMs);
  await expect.poll(() => client.load.waiting + client.load.inFlight).toBeGreaterThan(2); // it looks
  clock.advance(requestTimeoutMs);
  expect(await waiting).toMatchObject({ code: 'OPERATION_TIMEOUT' });
  zk.link.resume('toClient');

  await expect.poll(() => witness.children('/lock')).toEqual([]);
});

test('leases that were not told of in time are had, or none is left', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  const semaphore = new Semaphore(client, '/semaphore', { limit: 2 });
  await (await semaphore.acquire({ count: 2 })).release();
  const held = holdReplies(zk, opCodes.multi);

  const taking = semaphore.acquire({ count: 2 });
  await held;
  await expect.poll(() => witness.children('/semaphore/leases')).toHaveLength(2);
  for (let times = 0; times < 12; times++) {
    clock.advance(requestTimeoutMs);
    await new Promise(setImmediate); // it asks anew
  }
  zk.link.resume('toClient');
  const leases = await taking;
  await leases.release();

  expect(await witness.children('/semaphore/leases')).toEqual([]);
});

test('an item whose claim was not told of in time is had after all', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  await using source = new Queue(witness, '/queue');
  await source.put('x');
  await using queue = new Queue(client, '/queue');
  const held = holdReplies(zk, opCodes.multi);

  const taking = queue.take();
  await held;
  for (let times = 0; times < 12; times++) {
    clock.advance(requestTimeoutMs);
    await new Promise(setImmediate); // it asks anew
  }
  zk.link.resume('toClient');

  expect(String((await taking).data)).toBe('x');
});

test('a candidate that was not told of its node in time leads in the end', async () => {
  await using world = await start();
  const { zk, clock, client } = world;
  const held = holdReplies(zk, opCodes.create);

  const leading = new StaticElection(client, '/master', { id: 'a', clock }).lead(async () => 'led');
  await held;
  clock.advance(requestTimeoutMs);
  await new Promise(setImmediate); // it looks
  clock.advance(2 * requestTimeoutMs);
  zk.link.resume('toClient');

  expect(await leading).toBe('led');
});

test('a member of a barrier that was not told of its place in time is in it', async () => {
  await using world = await start();
  const { zk, clock, client, witness } = world;
  await client.create('/barrier');
  const held = holdReplies(zk, opCodes.create);

  const barrier = new DoubleBarrier(client, '/barrier', 1);
  const entering = barrier.enter();
  await held;
  await expect.poll(() => witness.children('/barrier')).toHaveLength(1);
  await loseLink(world);
  clock.advance(2 * requestTimeoutMs);
  zk.link.resume('toClient');
  await zk.link.accept();
  await entering;
  await barrier.leave();

  expect(await witness.children('/barrier')).toEqual([]);
});
