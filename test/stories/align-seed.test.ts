/** The document's coordinator, in its own layout and beside a member that behaves as the Java program does. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { SeedCoordinator } from '../../src/align/seed-coordinator.ts';
import type { Client } from '../../src/client/index.ts';
import { JavaMember } from '../align-java-member.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const root = '/kcc';
const topicPartitions = { t: [0, 1], 'u.v': [0] };
const startMs = 1_700_000_040_000;
const options = { root, topicPartitions, startMs, period: '60s' } as const;
const java = { root, plan: topicPartitions, start: startMs / 1_000, period: 60 };
const minute = (count: number) => startMs + count * 60_000;
const [t0, t1, u0] = [
  { topic: 't', partition: '0' },
  { topic: 't', partition: '1' },
  { topic: 'u.v', partition: '0' },
] as const;

let zk: Zk;
let witness: Client;
const open: SeedCoordinator[] = [];

beforeEach(async () => {
  zk = await startZk();
  witness = await zk.witness();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
  await zk[Symbol.asyncDispose]();
});

async function member(layout: 'seed' | 'java', client?: Client): Promise<SeedCoordinator> {
  const on = client ?? (await zk.connect());
  const coordinator = await SeedCoordinator.open(on, { layout, ...options });
  open.push(coordinator);
  return coordinator;
}

const text = async (path: string) => (await witness.get(`${root}/${path}`)).data?.toString();

test('the document’s nodes hold what it says, and the limit moves when everybody is there', async () => {
  const [one, two] = [await member('seed'), await member('seed')];

  expect([one.checkLimit(minute(1) - 1), one.checkLimit(minute(1))]).toEqual([true, false]);
  await expect.poll(() => text('topic-partitions')).toBe('t:0,1;\nu.v:0;');
  expect(await text('coordinator')).toBe(String(minute(1) / 1_000));
  let isThere = false;
  const waiting = one.currentPeriodComplete([t0, t1]).then((limit) => {
    isThere = true;
    return limit;
  });
  await expect.poll(() => text('progress')).toBe('t.0:1700000100;t.1:1700000100;');
  expect(isThere).toBe(false);
  const both = await Promise.all([waiting, two.currentPeriodComplete([u0])]);

  expect(both).toEqual([minute(2), minute(2)]);
  expect(await text('coordinator')).toBe(String(minute(2) / 1_000));
});

test('one member may complete its partitions one by one, in any order', async () => {
  const one = await member('seed');

  const all = [u0, t1, t0].map((each) => one.currentPeriodComplete([each]));

  expect(await Promise.all(all)).toEqual([minute(2), minute(2), minute(2)]);
});

test('what is said in any moment of the turn before it is told', async () => {
  const one = await member('seed');

  for (let turns = 0; turns < 20; turns++) {
    one.reached([t0, t1]);
    const told = `t.0:${one.limitMs / 1_000};t.1:${one.limitMs / 1_000};`;
    await expect.poll(async () => (await text('progress'))?.slice(0, told.length)).toBe(told);
    const before = one.limitMs;
    one.reached([t0]); // told already: this turn changes nothing, and no event comes of it
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    one.reached([u0]);

    await expect.poll(() => one.limitMs).toBe(before + 60_000);
  }
});

test.each(['seed', 'java'] as const)(
  '%s: a follower that waits goes on when the leader dies',
  async (layout) => {
    const first = await zk.connect();
    const leader = await member(layout, first);
    const follower = await member(layout);
    expect([leader.isLeader, follower.isLeader]).toEqual([true, false]);

    const waiting = follower.currentPeriodComplete([t0, t1, u0]);
    void leader; // never completes anything, and leads
    const moved = await waiting;
    await first.close();
    await expect.poll(() => follower.isLeader).toBe(true);
    const after = await follower.currentPeriodComplete([t0, t1, u0]);

    expect([moved, after]).toEqual([minute(2), minute(3)]);
  },
);

test('a new session stands again, and says again what went with the old', async () => {
  const renewed = await zk.connect({ renew: true });
  const one = await member('java', renewed);
  const two = await member('java');
  const waiting = one.currentPeriodComplete([t0, t1]);
  await expect.poll(() => witness.children(`${root}/share/progress`)).toHaveLength(2);

  await zk.expire(renewed);
  await expect
    .poll(async () => {
      const stat = await witness.exists(`${root}/share/progress/t.0`);
      return stat !== null && stat.ephemeralOwner === renewed.sessionId;
    })
    .toBe(true);

  expect(await two.currentPeriodComplete([u0])).toBe(minute(2));
  expect(await waiting).toBe(minute(2));
});

test.for(['seed', 'java'] as const)(
  '%s: a leader that is closed without a link leads no more when its client has one again',
  async (layout) => {
    const client = await zk.connect();
    const one = await member(layout, client);
    const two = await member(layout);
    await expect.poll(() => one.isLeader).toBe(true);

    zk.link.refuse();
    zk.link.cut();
    await reached(client, 'suspended');
    await one.close();
    await zk.link.accept();

    expect(await two.currentPeriodComplete([t0, t1, u0])).toBe(minute(2));
  },
);

test('who comes later begins where the group is', async () => {
  const one = await member('java');
  one.finish([t0, t1]);
  await one.currentPeriodComplete([u0]);
  await one.currentPeriodComplete([u0]);

  const late = await member('java');

  expect(late.limitMs).toBe(minute(3));
});

test('a partition that has ended holds nobody back', async () => {
  const [one, two] = [await member('java'), await member('java')];
  two.finish([u0]);

  expect(await one.currentPeriodComplete([t0, t1])).toBe(minute(2));
  expect(await one.currentPeriodComplete([t0, t1])).toBe(minute(3));
});

test('a leader whose node in the election has gone moves nothing, and stands again', async () => {
  const client = await zk.connect();
  const one = await member('java', client);
  await expect.poll(() => text('share/topic-partitions')).toBe('t:0,1;u.v:0;');
  const seen: unknown[] = [];
  const { multi } = client;
  // Between the decision and the write its node goes, as it does for one that was paused too long.
  client.multi = async (ops, more) => {
    client.multi = multi;
    const [place] = await witness.children(`${root}/leader`);
    await witness.delete(`${root}/leader/${place}`);
    try {
      return (await multi.call(client, ops, more)) as never;
    } catch (error) {
      seen.push((error as { code: string }).code, await text('share/coordinator'));
      throw error;
    }
  };

  const moved = await one.currentPeriodComplete([t0, t1, u0]);

  expect(seen).toEqual(['NO_NODE', String(startMs / 1_000)]);
  expect(moved).toBe(minute(2));
  expect(await witness.children(`${root}/leader`)).toHaveLength(1);
});

test('ours follows a leader as the Java program is one', async () => {
  const javaMember = new JavaMember(await zk.connect(), java);
  await javaMember.start();
  const ours = await member('java');
  expect([javaMember.isLeading, ours.isLeader]).toEqual([true, false]);

  for (const count of [2, 3, 4]) {
    const waiting = ours.currentPeriodComplete([t1, u0]);
    await javaMember.currentPeriodComplete(['t.0']);

    expect(await waiting).toBe(minute(count));
    expect(javaMember.currentMaxTimestamp).toBe(minute(count) / 1_000);
  }
  expect(await text('share/topic-partitions')).toBe('t:0,1;u.v:0;');
});

test('members as the Java program has them follow ours as a leader', async () => {
  const ours = await member('java');
  const javaMember = new JavaMember(await zk.connect(), java);
  await javaMember.start();
  expect([javaMember.isLeading, ours.isLeader]).toEqual([false, true]);
  expect(await text('share/coordinator')).toBe(String(startMs / 1_000));

  for (const count of [2, 3, 4]) {
    const waiting = javaMember.currentPeriodComplete(['t.0', 't.1']);

    expect(await ours.currentPeriodComplete([u0])).toBe(minute(count));
    await waiting;
    expect(javaMember.currentMaxTimestamp).toBe(minute(count) / 1_000);
  }
});

test('when the Java leader goes and takes the shared nodes along, ours goes on', async () => {
  const client = await zk.connect();
  const javaMember = new JavaMember(client, java);
  await javaMember.start();
  const [one, two] = [await member('java'), await member('java')];
  const first = [one.currentPeriodComplete([t1]), two.currentPeriodComplete([u0])];
  await javaMember.currentPeriodComplete(['t.0']);
  await Promise.all(first);

  const waiting = [one.currentPeriodComplete([t1]), two.currentPeriodComplete([u0])];
  await client.close();
  await expect.poll(() => one.isLeader || two.isLeader).toBe(true);

  expect(await one.currentPeriodComplete([t0])).toBe(minute(3));
  expect(await Promise.all(waiting)).toEqual([minute(3), minute(3)]);
  expect(await text('share/coordinator')).toBe(String(minute(3) / 1_000));
});

test('waiting ends with its signal and with the coordinator', async () => {
  const one = await member('seed');
  const stop = new AbortController();
  const byUs = one.currentPeriodComplete([t0], { signal: stop.signal });
  const byClose = one.currentPeriodComplete([t1]);
  const told = Promise.allSettled([byUs, byClose]);

  stop.abort(new Error('enough'));
  await one.close();

  expect(await told).toMatchObject([{ reason: { message: 'enough' } }, { status: 'rejected' }]);
  expect(await witness.children(`${root}/leader`)).toEqual([]);
});

test('what the layout cannot say is refused', async () => {
  const client = await zk.connect();
  const make = (more: object) => () =>
    new SeedCoordinator(client, { layout: 'java', ...options, ...more });

  expect(make({ period: 1_500 })).toThrow(/whole seconds/);
  expect(make({ startMs: 5 })).toThrow(/whole seconds/);
  expect(make({ topicPartitions: {} })).toThrow(/none/);
  expect(make({ layout: 'perl' })).toThrow(/one of seed, java/);
  expect(make({ topicPartitions: { 'a;b': [0] } })).toThrow(/cannot be written/);
});
