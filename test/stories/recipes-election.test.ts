import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Election } from '../../src/recipes/election.ts';
import { ElectionObserver } from '../../src/recipes/election-observer.ts';
import type { Term } from '../../src/recipes/term.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

const renewing = { renew: true, sessionTimeoutMs: 4_000 };

interface Event {
  readonly id: string;
  readonly type: 'elected' | 'told';
  readonly epoch: bigint;
}

/** Leads whenever elected, until told to stop. What happens is written down, in its order. */
function campaign(election: Election, history: Event[] = []) {
  const run = (async () => {
    for await (const term of election) {
      history.push({ id: term.id, type: 'elected', epoch: term.epoch });
      await stopped(term);
      history.push({ id: term.id, type: 'told', epoch: term.epoch });
    }
  })();
  run.catch(() => {}); // whoever waits for it hears of it
  return run;
}

function stopped(term: Term): Promise<void> {
  const { signal } = term;
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Waits until this one leads. */
async function leads(election: Election): Promise<Term> {
  await vi.waitFor(() => expect(election.isLeading).toBe(true), { timeout: 15_000, interval: 10 });
  return election.term!;
}

/** At most one leader at a time: whoever is elected comes after the one before was told, with a higher epoch. */
function checkHistory(history: readonly Event[]): void {
  let leading: Event | undefined;
  let epoch = 0n;
  for (const event of history) {
    if (event.type === 'elected') {
      expect(leading, `${event.id} elected while ${leading?.id} leads`).toBeUndefined();
      expect(event.epoch).toBeGreaterThan(epoch);
      epoch = event.epoch;
      leading = event;
    } else if (leading?.epoch === event.epoch) leading = undefined;
  }
}

async function leftBehind(client: Client): Promise<unknown> {
  return { watches: client.load.watches, nodes: await ephemeralsOf(client) };
}

test('the first to stand leads; the next in line follows when it goes, with a higher epoch', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect(), await zk.connect()];
  const history: Event[] = [];
  const elections = clients.map((client, i) => new Election(client, '/e', { id: `c${i}` }));
  for (const [i, election] of elections.entries()) {
    void campaign(election, history);
    await vi.waitFor(async () => expect(await election.candidates()).toHaveLength(i + 1));
  }

  for (const election of elections) {
    const term = await leads(election);
    expect(term).toMatchObject({ id: election.id, path: expect.stringContaining('/e/_c_') });
    await election.close();
    await vi.waitFor(() => expect(term.isLeading).toBe(false));
  }

  expect(history.map(({ id, type }) => `${id} ${type}`)).toEqual([
    ...['c0 elected', 'c0 told', 'c1 elected', 'c1 told', 'c2 elected', 'c2 told'],
  ]);
  checkHistory(history);
  await vi.waitFor(async () => {
    for (const client of clients)
      expect(await leftBehind(client)).toEqual({ watches: 0, nodes: [] });
  });
});

test('nodes are named and filled as those of the Java library', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const latch = new Election(client, '/latch', { id: 'host-a' });
  const selector = new Election(client, '/selector', { id: 'host-a', layout: 'selector' });
  void campaign(latch);
  void campaign(selector);
  await Promise.all([leads(latch), leads(selector)]);

  const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
  expect(latch.term!.path).toMatch(new RegExp(`^/latch/_c_${uuid}-latch-0000000000$`));
  expect(selector.term!.path).toMatch(new RegExp(`^/selector/_c_${uuid}-lock-0000000000$`));
  expect(String((await client.get(latch.term!.path)).data)).toBe('host-a');
  await Promise.all([latch.close(), selector.close()]);
});

test('leaving the body is a resignation: the candidate stands again at the end of the line', async () => {
  await using zk = await startZk();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const first = new Election(a, '/e', { id: 'a' });
  const second = new Election(b, '/e', { id: 'b' });
  const turns: string[] = [];
  const run = async (election: Election) => {
    for await (const term of election) {
      turns.push(term.id);
      if (turns.length >= 6) break;
      await vi.waitFor(async () => expect(await election.candidates()).toHaveLength(2));
    }
    await election.close();
  };
  const one = run(first);
  await leads(first);

  await Promise.race([one, run(second)]);
  await Promise.all([first.close(), second.close()]);

  expect(turns.slice(0, 6)).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
});

test('a body that throws ends the loop with its error, and the next one leads', async () => {
  await using zk = await startZk();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const failing = new Election(a, '/e', { id: 'a' });
  const next = new Election(b, '/e', { id: 'b' });
  const failed = (async () => {
    for await (const _ of failing) {
      await vi.waitFor(async () => expect(await failing.candidates()).toHaveLength(2));
      throw new Error('my work failed');
    }
  })();
  await leads(failing);
  void campaign(next);

  await expect(failed).rejects.toThrow('my work failed');
  await leads(next);

  expect(await leftBehind(a)).toEqual({ watches: 0, nodes: [] });
  await next.close();
});

test('one term can be led by a function, which is handed what it returns', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const election = new Election(client, '/e');

  const result = await election.lead(async (term) => `led ${term.isLeading}`);

  expect(result).toBe('led true');
  expect(await leftBehind(client)).toEqual({ watches: 0, nodes: [] });
});

test('resigning from outside tells the work, which is done before another leads', async () => {
  await using zk = await startZk();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const [first, second] = [new Election(a, '/e', { id: 'a' }), new Election(b, '/e', { id: 'b' })];
  let finish!: () => void;
  const slow = (async () => {
    for await (const term of first) {
      await stopped(term);
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    }
  })();
  const term = await leads(first);
  void campaign(second);
  await vi.waitFor(async () => expect(await second.candidates()).toHaveLength(2));

  first.resign();

  expect(term.signal.reason).toMatchObject({ code: 'STEPPED_DOWN', reason: 'resigned' });
  await vi.waitFor(() => expect(finish).toBeTypeOf('function'));
  expect((await second.candidates()).map(({ id }) => id)).toEqual(['a', 'b']);
  expect(second.isLeading).toBe(false);
  finish();
  await leads(second);
  await vi.waitFor(async () =>
    expect((await second.candidates()).map(({ id }) => id)).toEqual(['b', 'a']),
  );
  await Promise.all([first.close(), second.close()]);
  await slow;
});

test('work that does not stop when told loses its place when the grace is over', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const [a, b] = [await zk.connect(), await zk.connect()];
  const stuck = new Election(a, '/e', { id: 'a', clock, graceMs: 60_000 });
  const next = new Election(b, '/e', { id: 'b' });
  let finish!: () => void;
  const run = stuck.lead(
    () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
  );
  await leads(stuck);
  void campaign(next);
  await vi.waitFor(async () => expect(await next.candidates()).toHaveLength(2));
  stuck.resign();
  expect(next.isLeading).toBe(false);

  clock.advance(60_000);

  await leads(next);
  finish();
  await run;
  await next.close();
});

test('a session that ends is the end of the term, and a renewed one stands again', async () => {
  await using zk = await startZk();
  const client = await zk.connect(renewing);
  const history: Event[] = [];
  const election = new Election(client, '/e', { id: 'a' });
  void campaign(election, history);
  const term = await leads(election);

  await zk.expire(client);
  await vi.waitFor(() => expect(history).toHaveLength(3), { timeout: 15_000 });

  expect(term.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
  const next = await leads(election);
  expect(next.epoch).toBeGreaterThan(term.epoch);
  expect(next.sessionId).toBe(client.sessionId);
  checkHistory(history);
  await election.close();
});

test('without renewal the end of the session ends the loop, and says so', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const election = new Election(client, '/e');
  const run = campaign(election);
  await leads(election);

  await zk.expire(client);

  await expect(run).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
});

test('a link that comes back in time changes nothing: no demotion, no new node', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const election = new Election(client, '/e', { id: 'a' });
  void campaign(election);
  const term = await leads(election);

  for (let i = 0; i < 3; i++) {
    zk.link.cut();
    await reached(client, 'suspended');
    await reached(client, 'connected');
  }

  expect(term.isLeading).toBe(true);
  expect(election.term).toBe(term);
  expect((await witness.children('/e')).map((name) => `/e/${name}`)).toEqual([term.path]);
  await election.close();
});

test('calling off the wait leaves no node and no watch, and the others in their places', async () => {
  await using zk = await startZk();
  const [a, b, c] = [await zk.connect(), await zk.connect(), await zk.connect()];
  const first = new Election(a, '/e', { id: 'a' });
  const middle = new Election(b, '/e', { id: 'b' });
  const last = new Election(c, '/e', { id: 'c' });
  void campaign(first);
  await leads(first);
  const abort = new AbortController();
  const waiting = (async () => {
    for await (const _ of middle.terms({ signal: abort.signal })) throw new Error('elected');
  })();
  await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(2));
  void campaign(last);
  await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(3));

  abort.abort(new Error('enough'));

  await expect(waiting).rejects.toThrow('enough');
  expect(await leftBehind(b)).toEqual({ watches: 0, nodes: [] });
  expect((await first.candidates()).map(({ id }) => id)).toEqual(['a', 'c']);
  await first.close();
  await leads(last);
  await last.close();
});

test('two loops at once on one candidate are refused', async () => {
  await using zk = await startZk();
  const election = new Election(await zk.connect(), '/e', { id: 'a' });
  void campaign(election);
  await leads(election);

  await expect(campaign(election)).rejects.toThrow('a stands for /e already; one loop at a time');
  await election.close();
});

test('what a leader guards by its term is refused once it leads no more', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/result');
  const election = new Election(client, '/e');
  void campaign(election);
  const term = await leads(election);
  await term.guard([{ op: 'set', path: '/result', data: 'by the leader' }]);

  await witness.delete(term.path);

  await expect(
    term.guard([{ op: 'set', path: '/result', data: 'too late' }]),
  ).rejects.toMatchObject({ code: 'NOT_HELD' });
  expect(String((await witness.get('/result')).data)).toBe('by the leader');
  await election.close();
});

test('observers follow the leader and nothing else', async () => {
  await using zk = await startZk();
  const [a, b, watching] = [await zk.connect(), await zk.connect(), await zk.witness()];
  await using observer = new ElectionObserver(watching, '/e');
  const seen: (string | null)[] = [];
  const run = (async () => {
    for await (const leader of observer) seen.push(leader?.id ?? null);
  })();
  await observer.ready;
  expect([observer.leader, observer.isCurrent, observer.ageMs]).toEqual([null, true, 0]);

  const [first, second] = [new Election(a, '/e', { id: 'a' }), new Election(b, '/e', { id: 'b' })];
  void campaign(first);
  const term = await leads(first);
  await vi.waitFor(() => expect(observer.leader).toMatchObject({ id: 'a', epoch: term.epoch }));
  void campaign(second);
  await vi.waitFor(async () => expect(await second.candidates()).toHaveLength(2));
  await first.close();
  await vi.waitFor(() => expect(observer.leader).toMatchObject({ id: 'b' }));
  await second.close();
  await vi.waitFor(() => expect(observer.leader).toBeNull());

  await observer.close();
  await run;
  expect(seen).toEqual([null, 'a', 'b', null]);
  expect(watching.load.watches).toBe(0);
});

test('an observer without a link keeps the last leader, and says how old that is', async () => {
  await using zk = await startZk();
  const [leading, watching] = [await zk.witness(), await zk.connect()];
  const election = new Election(leading, '/e', { id: 'a' });
  void campaign(election);
  await leads(election);
  const clock = new MovableClock();
  await using observer = new ElectionObserver(watching, '/e', { clock });
  await observer.ready;
  zk.link.refuse();
  zk.link.cut();
  await reached(watching, 'suspended');

  clock.advance(7_000);

  expect(observer.isCurrent).toBe(false);
  expect(observer.leader).toMatchObject({ id: 'a' });
  expect(observer.ageMs).toBeGreaterThanOrEqual(7_000);
  await election.close();
  await zk.link.accept();
  await vi.waitFor(() => expect([observer.isCurrent, observer.leader]).toEqual([true, null]));
});
