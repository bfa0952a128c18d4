import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';
import { Appointment } from '../../src/recipes/appointment.ts';
import type { Candidate } from '../../src/recipes/candidate.ts';
import { Election } from '../../src/recipes/election.ts';
import { ElectionObserver } from '../../src/recipes/election-observer.ts';
import { askMaster, MasterPage } from '../../src/recipes/master-page.ts';
import { StaticElection } from '../../src/recipes/static-election.ts';
import type { Term } from '../../src/recipes/term.ts';
import { deferred } from '../../src/support/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { isOp, opCodes } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

const long = { timeout: 15_000, interval: 10 };

function campaign(election: Candidate, history: string[] = []) {
  const run = (async () => {
    for await (const term of election) {
      history.push(`${term.id} elected`);
      const { signal } = term;
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve());
      });
      history.push(`${term.id} told`);
    }
  })();
  run.catch(() => {}); // whoever waits for it hears of it
  return run;
}

async function leads(election: Candidate): Promise<Term> {
  await vi.waitFor(() => expect(election.isLeading).toBe(true), long);
  return election.term!;
}

test('all race for one node, which says who won', async () => {
  await using zk = await startZk();
  const [a, b, witness] = [await zk.connect(), await zk.connect(), await zk.witness()];
  const candidates = [
    new StaticElection(a, '/currentMaster', { id: 'a' }),
    new StaticElection(b, '/currentMaster', { id: 'b' }),
  ];
  const history: string[] = [];
  const loops = candidates.map((candidate) => campaign(candidate, history));
  await vi.waitFor(() => expect(candidates.filter((one) => one.isLeading)).toHaveLength(1), long);
  const winner = candidates.find((one) => one.isLeading)!;
  const other = candidates.find((one) => one !== winner)!;
  const { epoch } = winner.term!;

  const { data, stat } = await witness.get('/currentMaster');
  expect([String(data), stat.czxid]).toEqual([winner.id, epoch]);
  await winner.close();
  const next = await leads(other);

  expect(next.epoch).toBeGreaterThan(epoch);
  await other.close();
  // Whoever closes a leader waits for its loop, which lets go: only then have its own events come, too.
  await Promise.all(loops);
  expect(await witness.exists('/currentMaster')).toBeNull();
  expect(history).toEqual([
    `${winner.id} elected`,
    `${winner.id} told`,
    `${other.id} elected`,
    `${other.id} told`,
  ]);
  expect([a.load.watches, b.load.watches]).toEqual([0, 0]);
});

test('two candidates of one session do not both lead', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const [a, b] = ['a', 'b'].map((id) => new StaticElection(client, '/m', { id }));
  void campaign(a!);
  await leads(a!);
  void campaign(b!);
  zk.link.cut();
  await client.exists('/m');

  expect(b!.isLeading).toBe(false);
  await a!.close();
  await leads(b!);
  await b!.close();
});

test('a candidate whose session is still in the way of its own waits, and asks for nothing', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [a, b] = ['a', 'b'].map((id) => new StaticElection(client, '/m', { id }));
  const done = deferred();
  const leading = a!.lead(() => done.promise);
  const term = await leads(a!);
  void campaign(b!);
  await client.exists('/m');

  const told = new Promise((resolve) => term.signal.addEventListener('abort', resolve));
  await witness.delete('/m');
  await told;
  for (let i = 0; i < 5; i++) await client.exists('/m'); // b has looked
  const before = zk.link.stats.frames.toServer;
  for (let i = 0; i < 20; i++) await client.exists('/m');

  expect(zk.link.stats.frames.toServer - before).toBe(20);
  done.resolve();
  await leading;
  await leads(b!);
  await b!.close();
});

test('two candidates of one session that both lost their replies do not both lead', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  zk.link.onFrame = ({ direction, bytes }) => {
    const isCreate = direction === 'toServer' && isOp(bytes, opCodes.create);
    if (isCreate) zk.link.pause('toClient');
    return undefined;
  };
  const candidates = ['a', 'b'].map((id) => new StaticElection(client, '/m', { id }));
  const history: string[] = [];
  for (const candidate of candidates) void campaign(candidate, history);
  await vi.waitFor(async () => expect(await witness.exists('/m')).not.toBeNull());
  zk.link.onFrame = undefined;
  zk.link.cut();
  zk.link.resume('toClient');

  await vi.waitFor(() => expect(candidates.some((one) => one.isLeading)).toBe(true), long);
  await Promise.all([client.exists('/m'), client.exists('/m')]);
  await client.sync('/m');

  expect(candidates.filter((one) => one.isLeading)).toHaveLength(1);
  const [leader] = candidates.filter((one) => one.isLeading);
  const [other] = candidates.filter((one) => one !== leader);
  await leader!.close();
  await leads(other!);
  expect(history).toHaveLength(3);
  await other!.close();
});

test('a win whose reply was lost is still a win, once', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  zk.link.onFrame = ({ direction, bytes }) => {
    const isCreate = direction === 'toServer' && isOp(bytes, opCodes.create);
    if (isCreate) zk.link.pause('toClient');
    return undefined;
  };
  const election = new StaticElection(client, '/m', { id: 'a' });
  const history: string[] = [];
  void campaign(election, history);
  await vi.waitFor(async () => expect(await witness.exists('/m')).not.toBeNull());
  const { czxid } = (await witness.exists('/m'))!;
  zk.link.onFrame = undefined;
  zk.link.cut();
  zk.link.resume('toClient');

  const term = await leads(election);

  expect(term.epoch).toBe(czxid);
  expect(history).toEqual(['a elected']);
  await election.close();
});

test('a candidate that is called off while its win is on the way leaves no node', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  zk.link.onFrame = ({ direction, bytes }) => {
    const isCreate = direction === 'toServer' && isOp(bytes, opCodes.create);
    if (isCreate) zk.link.pause('toClient');
    return undefined;
  };
  const election = new StaticElection(client, '/m', { id: 'a' });
  const history: string[] = [];
  const run = campaign(election, history);
  await vi.waitFor(async () => expect(await witness.exists('/m')).not.toBeNull());

  const closing = election.close();
  zk.link.onFrame = undefined;
  zk.link.resume('toClient');
  await Promise.all([closing, run]);

  expect(history).toEqual([]);
  expect(await witness.exists('/m')).toBeNull();
  expect(client.load.watches).toBe(0);
});

test('an operator names a candidate in line: the leader is told, all ahead go behind it, and it leads', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect(), await zk.connect()];
  const elections = clients.map(
    (client, i) => new Election(client, '/e', { id: `c${i}`, appointable: true }),
  );
  const history: string[] = [];
  const loops: Promise<void>[] = [];
  for (const [i, election] of elections.entries()) {
    loops.push(campaign(election, history));
    await vi.waitFor(async () => expect(await election.candidates()).toHaveLength(i + 1), long);
  }
  const [first, , last] = elections as [Election, Election, Election];
  const term = await leads(first);

  await new Appointment(await zk.witness(), '/e').appoint('c2', { by: 'ops' });
  const next = await leads(last);

  expect(term.signal.reason).toMatchObject({ code: 'STEPPED_DOWN', reason: 'appointed' });
  expect(next.epoch).toBeGreaterThan(term.epoch);
  expect(history).toEqual(['c0 elected', 'c0 told', 'c2 elected']);
  await vi.waitFor(async () => expect(await first.candidates()).toHaveLength(3), long);
  expect((await first.candidates())[0]!.id).toBe('c2');
  await Promise.all(elections.map((election) => election.close()));
  await Promise.all(loops);
  expect(clients.map(({ load }) => load.watches)).toEqual([0, 0, 0]);
});

test('an appointment of somebody who is not there changes nothing until it comes', async () => {
  await using zk = await startZk();
  const [a, b, operator] = [await zk.connect(), await zk.connect(), await zk.witness()];
  const first = new Election(a, '/e', { id: 'a', appointable: true });
  const history: string[] = [];
  void campaign(first, history);
  const term = await leads(first);
  const appointment = new Appointment(operator, '/e');
  await operator.set('/e-appointed', 'b'); // as an operator would by zkCli
  expect(await appointment.current()).toEqual({ id: 'b' });
  await vi.waitFor(async () => expect((await operator.exists('/e-appointed'))!.version).toBe(1));
  expect(term.isLeading).toBe(true);

  const second = new Election(b, '/e', { id: 'b', appointable: true });
  void campaign(second, history);
  await leads(second);

  expect(history).toEqual(['a elected', 'a told', 'b elected']);
  await appointment.clear();
  expect(await appointment.current()).toBeNull();
  expect(second.isLeading).toBe(true);
  await Promise.all([first.close(), second.close()]);
});

test('in a static election the leader steps down for the one appointed, and the others stand back', async () => {
  await using zk = await startZk();
  const [a, b, operator] = [await zk.connect(), await zk.connect(), await zk.witness()];
  const options = { appointable: true, standBackMs: 30_000 };
  const first = new StaticElection(a, '/m', { id: 'a', ...options });
  const second = new StaticElection(b, '/m', { id: 'b', ...options });
  const history: string[] = [];
  void campaign(first, history);
  await leads(first);
  void campaign(second, history);

  await new Appointment(operator, '/m').appoint('b');
  await leads(second);

  expect(history).toEqual(['a elected', 'a told', 'b elected']);
  await Promise.all([first.close(), second.close()]);
});

test('in a static election somebody leads even if the one appointed never comes', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const [a, operator] = [await zk.connect(), await zk.witness()];
  const election = new StaticElection(a, '/m', {
    ...{ id: 'a', appointable: true, standBackMs: 60_000, clock },
  });
  const history: string[] = [];
  void campaign(election, history);
  await leads(election);
  await new Appointment(operator, '/m').appoint('nobody');
  await vi.waitFor(() => expect(history).toEqual(['a elected', 'a told']), long);

  await vi.waitFor(() => {
    clock.advance(60_000);
    expect(election.isLeading).toBe(true);
  }, long);

  expect(history).toEqual(['a elected', 'a told', 'a elected']);
  await election.close();
});

test('the page says who is master, and how sure that is', async () => {
  await using zk = await startZk();
  const [leading, watching] = [await zk.witness(), await zk.connect()];
  const clock = new MovableClock();
  await using observer = new ElectionObserver(watching, '/m', { layout: 'static', clock });
  await observer.ready;
  const page = new MasterPage(observer);
  const server = createServer(page.handle).listen(0, '127.0.0.1');
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/master`;
  await expect(askMaster(url)).rejects.toMatchObject({
    code: 'MASTER_UNKNOWN',
    message: `no page says who is master: ${url} knows none`,
  });

  const election = new StaticElection(leading, '/m', { id: 'host-a' });
  void campaign(election);
  const { epoch } = await leads(election);
  await vi.waitFor(() => expect(observer.leader).not.toBeNull());
  const fresh = await askMaster(url);
  zk.link.refuse();
  zk.link.cut();
  await reached(watching, 'suspended');
  clock.advance(5_000);
  const stale = await askMaster([url, 'http://127.0.0.1:1/']);
  const response = await fetch(url, { method: 'HEAD' });
  page.name('host-b');
  const named = await askMaster(url);
  await zk.link.accept();
  await vi.waitFor(() => expect(observer.isCurrent).toBe(true));
  const again = await askMaster(url);
  const refused = await fetch(url, { method: 'POST' });

  expect(fresh).toEqual({
    ...{ master: 'host-a', epoch, source: 'zookeeper', stale: false, ageMs: 0, url },
  });
  expect(stale).toMatchObject({ master: 'host-a', epoch, source: 'lastKnown', stale: true });
  expect(stale.ageMs).toBeGreaterThanOrEqual(5_000);
  expect(Number(response.headers.get('age'))).toBeGreaterThanOrEqual(5);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(named).toMatchObject({ master: 'host-b', epoch: null, source: 'operator', stale: true });
  expect(again).toMatchObject({ master: 'host-a', source: 'zookeeper' });
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  await election.close();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

test('a candidate that has its node and cannot look at it, as links keep breaking, leads in the end', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ readRetries: 0, backoff: { firstMs: 1 } });
  const election = new StaticElection(client, '/master', { id: 'a' });
  let isMade = false;
  let cutsLeft = 3;
  zk.link.onFrame = ({ index, direction, bytes }) => {
    if (index === 0) return 'pass';
    const isAsked = direction === 'toServer';
    if (isAsked && isOp(bytes, opCodes.create)) isMade = true;
    // The reply to the create, and then each look at the node.
    const isCut = isMade && cutsLeft > 0 && (!isAsked || bytes.readInt32BE(4) === opCodes.getData);
    if (!isCut) return 'pass';
    cutsLeft -= 1;
    return 'cut';
  };

  const led = await election.lead(async (term) => term.epoch);

  expect(led).toBeGreaterThan(0n);
  expect(cutsLeft).toBe(0);
});
