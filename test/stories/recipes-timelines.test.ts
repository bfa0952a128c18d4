/**
 * Timelines by which locks and elections elsewhere came to have two holders, step by step, and what
 * happens here instead. Some stand in recipes-election-timelines.test.ts and recipes-lock-hard.test.ts.
 *
 *   CURATOR-498         a node that a dying session made is not taken for ours …       (elections)
 *                       a node that the old session made, and whose reply was lost …   (locks)
 *   CURATOR-504, -644   links that come and go in quick succession …
 *                       an answer that comes after the candidate has gone …            (elections)
 *   CURATOR-604         a holder with a new session is behind whoever waited …
 *   CURATOR-620         a leader whose session was renewed stands behind its own old node … (elections)
 *   CURATOR-645         two that lose their nodes at the same time settle …            (elections)
 *   CURATOR-653         two that come back together and lose their nodes in turn …
 *   CURATOR-696         a leader whose session the server has ended learns it …        (elections)
 */

import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Election, Lock } from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { reached, startZk } from '../zk.ts';

const long = { timeout: 15_000 };

/** Leads whenever it can. What it is told, and when it was elected, stands in the history. */
function stand(election: Election, history: string[]): void {
  void (async () => {
    for await (const term of election) {
      history.push(`${election.id} elected`);
      await new Promise<void>((resolve) => {
        const told = () => {
          history.push(`${election.id} told`);
          resolve();
        };
        if (term.signal.aborted) told();
        else term.signal.addEventListener('abort', told, { once: true });
      });
    }
  })().catch((error) => history.push(String(error)));
}

test('two that come back together and lose their nodes in turn: each is told, and the other leads', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const history: string[] = [];
  const first = new Election(b, '/e', { id: 'b' });
  const second = new Election(a, '/e', { id: 'a' });
  stand(first, history);
  await vi.waitFor(() => expect(history).toEqual(['b elected']), long);
  stand(second, history);
  await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(2), long);

  // The servers were away, and both find their links again at the same moment.
  zk.link.refuse();
  zk.link.cut();
  await Promise.all([reached(a, 'suspended'), reached(b, 'suspended')]);
  await zk.link.accept();
  await Promise.all([reached(a, 'connected'), reached(b, 'connected')]);
  expect(history).toEqual(['b elected']); // a link that was lost and found again ends no term
  for (const [leader, follower] of [
    [first, second],
    [second, first],
    [first, second],
  ] as const) {
    const [node] = await leader.candidates();
    await witness.delete(node!.path);
    await vi.waitFor(() => expect(follower.isLeading).toBe(true), long);
    await vi.waitFor(() => expect(leader.isLeading).toBe(false), long);
    await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(2), long);
  }

  // Who is deleted by a third hears of it when the other does, not before: there only epochs protect.
  const of = (id: string) => history.filter((line) => line.startsWith(id));
  expect(of('b')).toEqual(['b elected', 'b told', 'b elected', 'b told']);
  expect(of('a')).toEqual(['a elected', 'a told', 'a elected']);
  await Promise.all([first.close(), second.close()]);
});

test('links that come and go in quick succession neither add a node nor end a term', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const client = await zk.connect();
  const history: string[] = [];
  const election = new Election(client, '/e', { id: 'a' });
  const rival = new Election(witness, '/e', { id: 'b' });
  stand(election, history);
  await vi.waitFor(() => expect(history).toEqual(['a elected']), long);
  stand(rival, history);
  await vi.waitFor(async () => expect(await rival.candidates()).toHaveLength(2), long);
  const line = (await witness.children('/e')).sort();

  for (let i = 0; i < 6; i++) {
    const { connections } = zk.link.stats;
    zk.link.cut({ reset: i % 2 === 0 });
    // Every other time the next cut comes while it is still shaking hands.
    if (i % 2 === 0) await zk.link.until((stats) => stats.connections > connections);
    else await reached(client, 'connected');
  }
  await client.exists('/e');

  expect((await witness.children('/e')).sort()).toEqual(line);
  expect(history).toEqual(['a elected']);
  expect(election.isLeading).toBe(true);
  await Promise.all([election.close(), rival.close()]);
});

test('a holder with a new session is behind whoever waited, and behind its own old node', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const holder = await zk.connect({ renew: true, sessionTimeoutMs: 10_000, clock });
  const other = await zk.witness();
  const [lock, theirs] = [new Lock(holder, '/lock'), new Lock(other, '/lock')];
  const old = await lock.acquire();
  const identity = holder.identity!;
  const waiting = theirs.acquire();
  await vi.waitFor(async () => expect(await theirs.queue()).toHaveLength(1), long);
  zk.link.refuse();
  zk.link.cut();
  await reached(holder, 'suspended');

  // On its own clock the session is over; the server keeps the old one, and with it the old node.
  clock.advance(11_000);
  expect(old.isHeld).toBe(false);
  await zk.link.accept();
  const again = lock.acquire();
  await vi.waitFor(async () => expect(await theirs.queue()).toHaveLength(2), long);

  expect((await theirs.holder())?.path).toBe(old.path); // as the server knows no better
  expect(holder.sessionId).not.toBe(old.sessionId);
  await zk.expire({ identity } as Client); // and now it does
  const next = await waiting;
  expect(old.fencingToken).toBeLessThan(next.fencingToken);
  await next.release();
  const last = await again;
  expect(last.sessionId).toBe(holder.sessionId);
  expect(last.fencingToken).toBeGreaterThan(next.fencingToken);
  await last.release();
});
