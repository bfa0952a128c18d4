import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Barrier, type BarrierError, DoubleBarrier } from '../../src/recipes/index.ts';
import { failureOf } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

const failure = failureOf<BarrierError>;

/** What has happened so far, once every read that was sent before is answered. */
async function settled(client: Client): Promise<void> {
  for (let i = 0; i < 5; i++) await client.sync('/');
}

test('who waits at a barrier waits until it is opened', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [new Barrier(client, '/b/gate'), new Barrier(witness, '/b/gate')];
  expect([await theirs.close(), await mine.close()]).toEqual([true, false]);
  let passed = 0;
  const waiting = [1, 2, 3].map(() => mine.wait().then(() => passed++));

  await expect.poll(() => client.load.watches).toBe(1);
  await witness.set('/b/gate', 'a change that is no opening');
  await settled(client);
  expect([passed, await mine.isOpen()]).toEqual([0, false]);
  await theirs.open();
  await Promise.all(waiting);

  expect([passed, await mine.isOpen(), client.load.watches]).toEqual([3, true, 0]);
  await mine.wait();
  await theirs.open();
});

test('a link that breaks and comes back opens no barrier, and one opened meanwhile is open', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [new Barrier(client, '/gate'), new Barrier(witness, '/gate')];
  await theirs.close();
  let hasPassed = false;
  const waiting = mine.wait().then(() => {
    hasPassed = true;
  });
  await expect.poll(() => client.load.watches).toBe(1);

  zk.link.cut();
  await reached(client, 'suspended');
  await reached(client, 'connected');
  await settled(client);
  expect(hasPassed).toBe(false);
  zk.link.refuse();
  zk.link.cut();
  await theirs.open();
  await zk.link.accept();

  await waiting;
});

test('a new session is no way through a barrier', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ renew: true }), await zk.witness()];
  const [mine, theirs] = [new Barrier(client, '/gate'), new Barrier(witness, '/gate')];
  await theirs.close();
  let hasPassed = false;
  const waiting = mine.wait().then(() => {
    hasPassed = true;
  });
  await expect.poll(() => client.load.watches).toBe(1);
  const began = new Promise((resolve) => client.once('session', resolve));

  await zk.expire(client);
  await began;
  await expect.poll(() => client.load.watches).toBe(1);
  await settled(client);
  expect(hasPassed).toBe(false);

  await theirs.open();
  await waiting;
});

test('a wait that is called off leaves no watch', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const barrier = new Barrier(client, '/gate');
  await barrier.close();
  const abort = new AbortController();

  const waits = [
    failure(barrier.wait({ timeoutMs: 50 })),
    failure(barrier.wait({ signal: abort.signal })),
  ];
  const late = await waits[0]!;
  abort.abort(new Error('enough'));

  expect(late).toMatchObject({ code: 'TIMEOUT', path: '/gate' });
  expect((await waits[1]!).message).toBe('enough');
  await expect.poll(() => client.load.watches).toBe(0);
});

test('a barrier that is deleted as it fills up is not tried for without end', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const barrier = new DoubleBarrier(client, '/b', 1, { name: 'me' });
  const exists = 3;
  let asked: number | undefined;
  let deleted: Promise<unknown> | undefined;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0) return 'pass';
    const xid = bytes.readInt32BE(0);
    if (direction === 'toServer') {
      if (bytes.readInt32BE(4) === exists && bytes.includes('/b/me')) asked ??= xid;
    } else if (deleted === undefined && xid === asked) {
      // It has seen that it is there. What it says to that is held back until nothing is.
      zk.link.pause('toServer');
      deleted = witness.deleteRecursive('/b').then(() => zk.link.resume('toServer'));
    }
    return 'pass';
  };

  const refused = await failure(barrier.enter());

  await deleted;
  expect(refused.code).toBe('LOST_PLACE');
});

test('nobody goes in before all are there, nor out before all have left', async () => {
  await using zk = await startZk();
  const clients = await Promise.all([zk.connect(), zk.connect(), zk.witness()]);
  const members = clients.map((client, i) => new DoubleBarrier(client, '/b', 3, { name: `m${i}` }));
  const log: string[] = [];
  const enter = (i: number) => members[i]!.enter().then(() => log.push(`in ${i}`));
  const leave = (i: number) => members[i]!.leave().then(() => log.push(`out ${i}`));

  const entering = [enter(0), enter(1)];
  await expect.poll(async () => (await members[2]!.members()).length).toBe(2);
  await Promise.all(clients.map(settled));
  expect(log).toEqual([]);
  await Promise.all([...entering, enter(2)]);
  expect(log.splice(0).sort()).toEqual(['in 0', 'in 1', 'in 2']);

  const leaving = [leave(0), leave(2)];
  await expect.poll(async () => (await members[1]!.members()).length).toBe(2);
  await Promise.all(clients.map(settled));
  expect(log).toEqual([]);
  await Promise.all([...leaving, leave(1)]);

  expect(log.sort()).toEqual(['out 0', 'out 1', 'out 2']);
  expect(await clients[2]!.children('/b')).toEqual([]);
  await expect.poll(() => clients.map((client) => client.load.watches)).toEqual([0, 0, 0]);
});

test('a ready node that a dead round left behind lets nobody in', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/b/ready', '', { parents: true });
  const [first, second] = [new DoubleBarrier(client, '/b', 2), new DoubleBarrier(witness, '/b', 2)];
  let isIn = false;
  const entering = first.enter().then(() => {
    isIn = true;
  });

  await expect.poll(() => client.load.watches).toBe(1);
  await settled(client);
  expect(isIn).toBe(false);

  await second.enter();
  await entering;
  await Promise.all([first.leave(), second.leave()]);
  expect(await witness.children('/b')).toEqual([]);
});

test('who comes late to a round that is in goes in at once, and is waited for', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const members = ['a', 'b', 'c'].map((name) => new DoubleBarrier(client, '/b', 2, { name }));
  await Promise.all([members[0]!.enter(), members[1]!.enter()]);
  const late = new DoubleBarrier(witness, '/b', 2, { name: 'late' });

  await late.enter();
  let hasLeft = false;
  const leaving = Promise.all([members[0]!.leave(), members[1]!.leave()]).then(() => {
    hasLeft = true;
  });
  await expect.poll(() => late.members()).toEqual(['a', 'late']);
  await settled(client);
  expect(hasLeft).toBe(false);
  await late.leave();

  await leaving;
});

test('a member whose session ends inside is not waited for, and hears that it lost its place', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ renew: true }), await zk.witness()];
  const dies = new DoubleBarrier(client, '/b', 2, { name: 'z' });
  const stays = new DoubleBarrier(witness, '/b', 2, { name: 'a' });
  await Promise.all([dies.enter(), stays.enter()]);

  const leaving = stays.leave();
  const began = new Promise((resolve) => client.once('session', resolve));
  await zk.expire(client);
  await leaving;
  await began;

  expect((await failure(dies.leave())).code).toBe('LOST_PLACE');
  expect((await failure(dies.leave())).code).toBe('NOT_IN');
  await expect.poll(() => witness.children('/b')).toEqual([]);
});

test('a member whose session ends while it waits to go in does not go in', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ renew: true }), await zk.witness()];
  const dies = new DoubleBarrier(client, '/b', 2, { name: 'dies' });
  const entering = failure(dies.enter());
  await expect.poll(() => client.load.watches).toBe(1);

  await zk.expire(client);

  expect((await entering).code).toBe('LOST_PLACE');
  const other = new DoubleBarrier(witness, '/b', 2);
  expect((await failure(other.enter({ timeoutMs: 50 }))).message).toContain(
    'nobody (0) and this one',
  );
});

test('a name that is taken is refused, and the other is not harmed', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const first = new DoubleBarrier(client, '/b', 2, { name: 'same' });
  const entering = first.enter();
  await expect.poll(() => first.members()).toEqual(['same']);

  const error = await failure(new DoubleBarrier(witness, '/b', 2, { name: 'same' }).enter());
  await new DoubleBarrier(witness, '/b', 2, { name: 'other' }).enter();
  await entering;

  expect(error.code).toBe('DUPLICATE_NAME');
  expect(error.message).toContain(`0x${client.sessionId!.toString(16)}`);
  for (const name of ['ready', 'a/b', '']) {
    expect(() => new DoubleBarrier(client, '/b', 2, { name })).toThrow('name');
  }
  expect(() => new DoubleBarrier(client, '/b', 0)).toThrow('size');
});

test('who gives up is no member any more, and leaves no watch', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const [one, two] = [new DoubleBarrier(client, '/b', 3), new DoubleBarrier(client, '/b', 3)];

  const entering = failure(one.enter({ signal: abort.signal }));
  const late = await failure(two.enter({ timeoutMs: 50 }));
  abort.abort(new Error('enough'));

  expect(late.code).toBe('TIMEOUT');
  expect((await entering).message).toBe('enough');
  await expect.poll(() => one.members()).toEqual([]);
  await expect.poll(() => client.load.watches).toBe(0);
});

test('a member whose create lost its reply is in once', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/b');
  let hasCut = false;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (direction !== 'toClient' || index === 0 || hasCut || bytes.readInt32BE(0) <= 0)
      return 'pass';
    hasCut = true;
    return 'cut';
  };
  const mine = new DoubleBarrier(client, '/b', 2, { name: 'mine' });

  await Promise.all([mine.enter(), new DoubleBarrier(witness, '/b', 2).enter()]);

  expect(zk.link.stats.cuts).toBe(1);
  expect(await mine.members()).toHaveLength(2);
});

test('round after round, with links that break, nobody passes before its round is full', async () => {
  await using zk = await startZk();
  const options = { backoff: { firstMs: 1, maxMs: 5 } };
  const clients = await Promise.all([1, 2, 3, 4].map(() => zk.connect(options)));
  let replies = 0;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 43 === 0 ? 'cut' : 'pass';
  const early: string[] = [];

  for (let round = 0; round < 8; round++) {
    let [inside, outside] = [0, 0];
    await Promise.all(
      clients.map(async (client, i) => {
        const member = new DoubleBarrier(client, `/b-${round}`, 4, { name: `m${i}` });
        inside += 1;
        await member.enter();
        if (inside < 4) early.push(`in ${round}.${i}`);
        outside += 1;
        await member.leave();
        if (outside < 4) early.push(`out ${round}.${i}`);
      }),
    );
  }

  expect(early).toEqual([]);
  expect(zk.link.stats.cuts).toBeGreaterThan(3);
}, 60_000);
