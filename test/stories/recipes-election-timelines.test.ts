/** What has gone wrong in elections elsewhere, step by step, and what happens here instead. */

import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Election } from '../../src/recipes/election.ts';
import type { Term } from '../../src/recipes/term.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { reached, startZk } from '../zk.ts';

const long = { timeout: 20_000, interval: 10 };
const createOps = [1, 15];

function campaign(election: Election, history: string[] = []) {
  const run = (async () => {
    for await (const term of election) {
      history.push(`${term.id} elected`);
      await new Promise<void>((resolve) => {
        if (term.signal.aborted) resolve();
        term.signal.addEventListener('abort', () => {
          history.push(`${term.id} told`);
          resolve();
        });
      });
    }
  })();
  run.catch(() => {}); // whoever waits for it hears of it
  return run;
}

async function leads(election: Election): Promise<Term> {
  await vi.waitFor(() => expect(election.isLeading).toBe(true), long);
  return election.term!;
}

const owners = async (witness: Client, path: string) => {
  const names = await witness.children(path);
  const stats = await Promise.all(names.map((name) => witness.exists(`${path}/${name}`)));
  return stats.map((stat) => stat?.ephemeralOwner);
};

test('a node that a dying session made is not taken for ours by the session after it', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  await witness.create('/e');
  const clock = new MovableClock();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 8_000, clock });
  const old = client.sessionId!;
  // The create goes through, and its reply does not.
  zk.link.onFrame = ({ direction, bytes }) => {
    const isCreate = direction === 'toServer' && createOps.includes(bytes.readInt32BE(4));
    if (isCreate && bytes.includes('latch-')) zk.link.pause('toClient');
    return undefined;
  };
  const election = new Election(client, '/e', { id: 'a' });
  void campaign(election);
  await vi.waitFor(async () => expect(await owners(witness, '/e')).toEqual([old]), long);
  zk.link.onFrame = undefined;
  zk.link.refuse();
  zk.link.cut();

  // On its own clock the session is over; the server knows nothing of that yet.
  clock.advance(9_000);
  await vi.waitFor(() => expect(client.sessionId).not.toBe(old));
  zk.link.resume('toClient');
  await zk.link.accept();
  const term = await leads(election);

  expect(term.sessionId).not.toBe(old);
  expect((await witness.exists(term.path))!.ephemeralOwner).toBe(client.sessionId);
  await election.close();
});

test('a leader whose session was renewed stands behind its own old node, and waits until that is gone', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const clock = new MovableClock();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 4_000, clock });
  const history: string[] = [];
  const election = new Election(client, '/e', { id: 'a' });
  void campaign(election, history);
  const first = await leads(election);
  const held = first.path;

  clock.advance(5_000);

  expect(first.signal.aborted).toBe(true);
  const second = await leads(election);
  expect(await witness.exists(held)).toBeNull();
  expect(second.epoch).toBeGreaterThan(first.epoch);
  expect(second.sessionId).toBe(client.sessionId);
  expect(history).toEqual(['a elected', 'a told', 'a elected']);
  await election.close();
});

test('a leader that is cut off is told on its own clock before anybody else is elected', async () => {
  await using zk = await startZk();
  const cutOff = await zk.connect({ sessionTimeoutMs: 2_000 });
  const other = await zk.witness();
  const history: string[] = [];
  const first = new Election(cutOff, '/e', { id: 'a' });
  const second = new Election(other, '/e', { id: 'b' });
  void campaign(first, history);
  await leads(first);
  void campaign(second, history);
  await vi.waitFor(async () => expect(await second.candidates()).toHaveLength(2));

  zk.link.refuse();
  zk.link.cut();
  await leads(second);

  expect(history).toEqual(['a elected', 'a told', 'b elected']);
  await Promise.all([first.close(), second.close()]);
});

test('a leader whose session the server has ended learns it before it could lead again', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 8_000 });
  const other = await zk.witness();
  const history: string[] = [];
  const first = new Election(client, '/e', { id: 'a' });
  const second = new Election(other, '/e', { id: 'b' });
  void campaign(first, history);
  const old = await leads(first);
  void campaign(second);
  await vi.waitFor(async () => expect(await second.candidates()).toHaveLength(2));
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await zk.expire(client);
  const term = await leads(second);
  await zk.link.accept();
  await vi.waitFor(() => expect(history).toEqual(['a elected', 'a told']), long);

  expect(old.isLeading).toBe(false);
  expect(term.epoch).toBeGreaterThan(old.epoch);
  await vi.waitFor(async () =>
    expect((await second.candidates()).map(({ id }) => id)).toEqual(['b', 'a']),
  );
  expect(first.isLeading).toBe(false);
  await Promise.all([first.close(), second.close()]);
});

test('after all links were cut at once the line is as it was, and one leads', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const clients = await Promise.all([1, 2, 3, 4].map(() => zk.connect()));
  const elections = clients.map((client, i) => new Election(client, '/e', { id: `c${i}` }));
  for (const [i, election] of elections.entries()) {
    void campaign(election);
    await vi.waitFor(async () => expect(await witness.children('/e')).toHaveLength(i + 1), long);
  }
  await leads(elections[0]!);
  const line = (await witness.children('/e')).sort();

  for (let i = 0; i < 5; i++) {
    zk.link.cut({ reset: i % 2 === 0 });
    await Promise.all(clients.map((client) => client.exists('/e')));
  }

  expect((await witness.children('/e')).sort()).toEqual(line);
  expect(elections.map(({ isLeading }) => isLeading)).toEqual([true, false, false, false]);
  await elections[0]!.close();
  await leads(elections[1]!);
  expect((await witness.children('/e')).length).toBe(3);
  await Promise.all(elections.map((election) => election.close()));
});

test('two that lose their nodes at the same time settle: neither chases the other without end', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const [first, second] = [new Election(a, '/e', { id: 'a' }), new Election(b, '/e', { id: 'b' })];
  void campaign(first);
  await leads(first);
  void campaign(second);
  await vi.waitFor(async () => expect(await witness.children('/e')).toHaveLength(2));
  const before = await witness.childrenAndStat('/e');

  const gone = before.children.map((name) => ({ op: 'delete', path: `/e/${name}` }) as const);
  await witness.multi(gone);
  await vi.waitFor(
    () => expect([first.isLeading, second.isLeading].sort()).toEqual([false, true]),
    long,
  );
  await vi.waitFor(async () => expect(await witness.children('/e')).toHaveLength(2), long);

  // Each made one node again, and that is all.
  const after = await witness.childrenAndStat('/e');
  expect(after.stat.cversion - before.stat.cversion).toBe(4);
  await Promise.all([first.close(), second.close()]);
});

test('an answer that comes after the candidate has gone elects nobody', async () => {
  await using zk = await startZk();
  const other = await zk.witness();
  const client = await zk.connect();
  const first = new Election(other, '/e', { id: 'b' });
  const leaving = new Election(client, '/e', { id: 'a' });
  void campaign(first);
  await leads(first);
  const history: string[] = [];
  const run = campaign(leaving, history);
  await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(2));
  zk.link.pause('toClient');
  await first.close();

  const closing = leaving.close();
  zk.link.resume('toClient');
  await Promise.all([closing, run]);

  expect(history).toEqual([]);
  await vi.waitFor(async () => expect(await other.children('/e')).toEqual([]));
  expect(client.load.watches).toBe(0);
});

test('somebody deletes the whole election: it is made again, and one leads', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const [first, second] = [
    new Election(a, '/d/e', { id: 'a' }),
    new Election(b, '/d/e', { id: 'b' }),
  ];
  void campaign(first);
  const term = await leads(first);
  void campaign(second);
  await vi.waitFor(async () => expect(await witness.children('/d/e')).toHaveLength(2));

  await witness.deleteRecursive('/d');

  await vi.waitFor(() => expect(term.isLeading).toBe(false), long);
  await vi.waitFor(() => expect([first.isLeading, second.isLeading]).toContain(true), long);
  await vi.waitFor(async () => expect(await witness.children('/d/e')).toHaveLength(2), long);
  await Promise.all([first.close(), second.close()]);
});

test('a leader that resigns again and again, and loses sessions in between, is always elected again', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 4_000 });
  const history: string[] = [];
  const election = new Election(client, '/e', { id: 'a' });
  void campaign(election, history);

  for (let i = 0; i < 12; i++) {
    const term = await leads(election);
    if (i % 4 === 3) await zk.expire(client);
    else election.resign();
    await vi.waitFor(() => expect(election.term).not.toBe(term), long);
  }
  await leads(election);

  expect(history.filter((line) => line === 'a elected')).toHaveLength(13);
  await election.close();
});

test('a hand-over costs a handful of requests however long the line is', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const counts: number[] = [];
  for (const size of [4, 24]) {
    const path = `/e${size}`;
    const clients = await Promise.all(Array.from({ length: size }, () => zk.connect()));
    const elections = clients.map((client, i) => new Election(client, path, { id: `c${i}` }));
    for (const [i, election] of elections.entries()) {
      void campaign(election);
      await vi.waitFor(async () => expect(await witness.children(path)).toHaveLength(i + 1), long);
    }
    await leads(elections[0]!);
    await Promise.all(clients.map((client) => client.exists(path))); // all have done what they had to do

    let requests = 0;
    zk.link.onFrame = ({ direction, bytes }) => {
      if (direction === 'toServer' && bytes.readInt32BE(0) > 0) requests += 1;
      return undefined;
    };
    await elections[0]!.close();
    await leads(elections[1]!);
    await Promise.all(clients.map((client) => client.exists(path)));
    zk.link.onFrame = undefined;
    counts.push(requests - size); // but for those that we asked ourselves
    await Promise.all(elections.map((election) => election.close()));
  }

  // The one that goes, the one that follows, and nobody else: one request more or less is a matter of timing.
  for (const count of counts) expect(count).toBeLessThan(8);
});
