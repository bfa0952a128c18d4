import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test, vi } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { attachedSessions, sessionsOf } from '../../src/recipes/attached-sessions.ts';
import { Machine } from '../../src/recipes/machine.ts';
import { type MachineChange, MachineMonitor } from '../../src/recipes/machine-monitor.ts';
import { MovableClock, startTestServer } from '../../src/testing/index.ts';
import { reached, startZk } from '../zk.ts';

const long = { timeout: 15_000, interval: 10 };

function told(monitor: AsyncIterable<MachineChange>): string[] {
  const seen: string[] = [];
  void (async () => {
    for await (const { machine, from, to } of monitor) {
      seen.push(`${machine.name} ${from ?? 'new'} ${to} ${machine.reason}`);
    }
  })().catch((error) => seen.push(`error ${error.code}`));
  return seen;
}

test('a machine is up from when it comes until it leaves, and is remembered as down', async () => {
  await using zk = await startZk();
  const [client, watching] = [await zk.connect(), await zk.witness()];
  await using monitor = new MachineMonitor(watching, { expected: ['db-1'] });
  const seen = told(monitor);
  await monitor.ready;
  expect(monitor.get('db-1')).toMatchObject({ state: 'down', reason: 'neverSeen' });

  const machine = new Machine(client, { name: 'db-1', data: '{"cores":8}' });
  await using other = new Machine(client, { name: 'web-1' });
  await other.ready;
  await vi.waitFor(() => expect(monitor.counts).toEqual({ up: 2, suspect: 0, down: 0 }), long);
  expect(monitor.get('db-1')).toMatchObject({ sessionId: client.sessionId });
  expect(String(monitor.get('db-1')!.data)).toBe('{"cores":8}');
  expect(await watching.children('/clusterServers')).toHaveLength(2);
  await machine.close();
  await vi.waitFor(() => expect(monitor.counts).toEqual({ up: 1, suspect: 0, down: 1 }), long);

  expect(seen.filter((line) => line.startsWith('db-1'))).toEqual([
    'db-1 new down neverSeen',
    'db-1 down up present',
    'db-1 up down gone',
  ]);
  expect(monitor.explain(monitor.get('db-1')!)).toBe(
    'db-1 is down: its session is over, or it has left',
  );
});

test('a machine that dies is down once its session is over, and up when it is back', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 4_000 });
  const watching = await zk.witness();
  await using machine = new Machine(client, { name: 'a' });
  await using monitor = new MachineMonitor(watching);
  await Promise.all([machine.ready, monitor.ready]);
  const seen = told(monitor);

  await zk.expire(client);

  await vi.waitFor(
    () => expect(seen).toEqual(['a new up present', 'a up down gone', 'a down up present']),
    long,
  );
});

test('a restarted machine takes its name over at once from the process that died', async () => {
  await using zk = await startZk();
  const [dead, fresh, watching] = [await zk.connect(), await zk.witness(), await zk.witness()];
  await using before = new Machine(dead, { name: 'a', data: 'before' });
  await before.ready;
  zk.link.refuse();
  zk.link.cut();
  await using monitor = new MachineMonitor(watching);
  await monitor.ready;

  await using after = new Machine(fresh, { name: 'a', data: 'after' });
  await after.ready;

  await vi.waitFor(() => expect(monitor.get('a')!.sessionId).toBe(fresh.sessionId), long);
  expect(monitor.get('a')!.state).toBe('up');
});

test('while the monitor is cut off all that was up is suspect, and up again when it is back', async () => {
  await using zk = await startZk();
  const [client, watching] = [await zk.witness(), await zk.connect()];
  await using machine = new Machine(client, { name: 'a' });
  await using monitor = new MachineMonitor(watching, { expected: ['b'] });
  await Promise.all([machine.ready, monitor.ready]);
  await vi.waitFor(() => expect(monitor.get('a')?.state).toBe('up'), long);
  const seen = told(monitor);
  zk.link.refuse();
  zk.link.cut();
  await reached(watching, 'suspended');

  await vi.waitFor(() => expect(monitor.counts).toEqual({ up: 0, suspect: 1, down: 1 }), long);
  expect(monitor.isCurrent).toBe(false);
  expect(monitor.get('a')).toMatchObject({ reason: 'cutOff' });
  await zk.link.accept();
  await vi.waitFor(() => expect(monitor.counts).toEqual({ up: 1, suspect: 0, down: 1 }), long);

  expect(seen.filter((line) => line.startsWith('a'))).toEqual([
    'a new up present',
    'a up suspect cutOff',
    'a suspect up present',
  ]);
});

test('a machine that stops beating is suspect long before its session ends, and up with the next beat', async () => {
  await using zk = await startZk();
  const [client, watching] = [await zk.connect(), await zk.witness()];
  const [theirs, ours] = [new MovableClock(), new MovableClock()];
  const beatMs = 60_000;
  await using machine = new Machine(client, { name: 'a', beatMs, clock: theirs, data: 'x' });
  await using monitor = new MachineMonitor(watching, { beatMs, clock: ours });
  await Promise.all([machine.ready, monitor.ready]);
  await vi.waitFor(() => expect(monitor.get('a')?.state).toBe('up'), long);
  const version = async () => (await watching.exists('/clusterServers/a'))!.version;

  ours.advance(2 * beatMs);
  expect(monitor.get('a')!.state).toBe('up');
  ours.advance(beatMs);
  await vi.waitFor(() => {
    ours.advance(beatMs);
    expect(monitor.get('a')).toMatchObject({ state: 'suspect', reason: 'noBeat' });
  }, long);
  expect(await watching.exists('/clusterServers/a')).not.toBeNull();
  const before = await version();
  theirs.advance(beatMs);
  await vi.waitFor(async () => expect(await version()).toBeGreaterThan(before), long);
  await vi.waitFor(() => expect(monitor.get('a')!.state).toBe('up'), long);

  expect(String(monitor.get('a')!.data)).toBe('x');
});

test('a machine that no server has a link to is suspect at the second look, not at the first', async () => {
  await using zk = await startZk();
  const [client, watching] = [await zk.connect(), await zk.witness()];
  const clock = new MovableClock();
  await using machine = new Machine(client, { name: 'a' });
  await machine.ready;
  const { sessionId } = client;
  const answers: (ReadonlySet<bigint> | null)[] = [];
  let asked = 0;
  await using monitor = new MachineMonitor(watching, {
    clock,
    probeMs: 10_000,
    attached: async () => {
      asked += 1;
      return answers.shift() ?? null;
    },
  });
  await monitor.ready;
  await vi.waitFor(() => expect(monitor.get('a')?.state).toBe('up'), long);
  const probe = async (answer: ReadonlySet<bigint> | null) => {
    const before = asked;
    answers.push(answer);
    await vi.waitFor(() => {
      if (asked === before) clock.advance(10_000);
      expect(asked).toBe(before + 1);
    }, long);
    await new Promise(setImmediate); // what was answered is judged in the same turn
    return monitor.get('a')!.state;
  };

  const states = [
    await probe(new Set([sessionId!])),
    await probe(new Set()),
    await probe(null), // not known: neither here nor there
    await probe(new Set()),
    await probe(new Set([sessionId!])),
  ];

  expect(states).toEqual(['up', 'up', 'up', 'suspect', 'up']);
});

test('a server that lets the word through says which sessions have a link', async () => {
  await using server = await startTestServer({ fourLetterWords: '*' });
  const [one, two] = [await connect(server.address), await connect(server.address)];

  const before = await attachedSessions(server.address);
  const gone = two.sessionId!;
  await two.close();
  const after = await attachedSessions(server.address);

  expect(before).toEqual(new Set([one.sessionId, gone]));
  await vi.waitFor(async () =>
    expect(await attachedSessions(server.address)).toEqual(new Set([one.sessionId])),
  );
  expect(after).not.toBeNull();
  await one.close();
});

test('as soon as one server of several does not answer, nothing is known', async () => {
  await using server = await startTestServer();
  const deaf = createServer((socket) =>
    socket.resume().end('cons is not executed because it is not in the whitelist.\n'),
  );
  deaf.listen(0, '127.0.0.1');
  await vi.waitFor(() => expect(deaf.listening).toBe(true));
  const { port } = deaf.address() as AddressInfo;

  expect(await attachedSessions(`${server.address},127.0.0.1:${port}`)).toBeNull();
  expect(await attachedSessions('127.0.0.1:1')).toBeNull();

  await new Promise((done) => deaf.close(done));
});

test('session ids are read as servers print them', () => {
  const answer = [
    ' /127.0.0.1:41234[1](queued=0,recved=4,sent=4,sid=0x10000a1b2c30001,lop=PING,est=1,to=30000)',
    ' /127.0.0.1:41236[1](queued=0,recved=4,sent=4,sid=0xff00a1b2c3d40001,lop=PING)',
    ' /127.0.0.1:41238[0](queued=0,recved=1,sent=0)',
    '',
  ].join('\n');

  expect(sessionsOf(answer)).toEqual([0x10000a1b2c30001n, BigInt.asIntN(64, 0xff00a1b2c3d40001n)]);
  expect(sessionsOf('cons is not executed because it is not in the whitelist.')).toBeNull();
  expect(sessionsOf('')).toBeNull();
});

test('machines that went are forgotten, the oldest first, once there are too many', async () => {
  await using zk = await startZk();
  const [client, watching] = [await zk.connect(), await zk.witness()];
  await using monitor = new MachineMonitor(watching, { downMax: 2 });
  await monitor.ready;

  for (const name of ['a', 'b', 'c']) {
    const machine = new Machine(client, { name });
    await vi.waitFor(() => expect(monitor.get(name)?.state).toBe('up'), long);
    await machine.close();
    await vi.waitFor(() => expect(monitor.get(name)?.state).toBe('down'), long);
  }

  expect(monitor.machines.map(({ name }) => name)).toEqual(['b', 'c']);
});
