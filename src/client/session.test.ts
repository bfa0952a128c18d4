/** The session against a server that does as the test says, on a clock that the test moves. */

import { tracingChannel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { encode, FrameSplitter, Reader, Writer } from '../jute/index.ts';
import {
  ConnectRequest,
  ConnectResponse,
  type EventType,
  eventTypes,
  opNameOf,
  ops,
  SetSASLResponse,
  specialXids,
  WatcherEvent,
  wireOf,
  xidMax,
} from '../protocol/index.ts';
import { ArgumentError, type Clock, deferred, ManualClock } from '../support/index.ts';

import type { SaslMechanism } from './auth.ts';
import { Client } from './client.ts';
import { ConnectError } from './dialer.ts';
import type { ClientOptions } from './options.ts';

interface Asked {
  readonly xid: number;
  readonly op: string;
  /** Of a request that sets watches again. */
  readonly relativeZxid?: bigint;
}

/** One connection, from the server's side. */
class Peer {
  readonly socket: Socket;
  readonly hello: ConnectRequest;
  readonly asked: Asked[] = [];
  zxid = 1n;

  constructor(socket: Socket, hello: ConnectRequest) {
    this.socket = socket;
    this.hello = hello;
  }

  say(body: Buffer): void {
    const frame = new Writer();
    const start = frame.beginFrame();
    frame.raw(body);
    frame.endFrame(start);
    this.socket.write(Buffer.from(frame.written()));
  }

  welcome(more: Partial<ConnectResponse> = {}): void {
    const { timeOut } = this.hello;
    const passwd = Buffer.alloc(16, 7);
    const response = { protocolVersion: 0, timeOut, sessionId: 0x10n, passwd, readOnly: false };
    this.say(encode(ConnectResponse, { ...response, ...more }));
  }

  reply(xid: number, err = 0, body: Buffer = Buffer.alloc(0)): void {
    const header = new Writer();
    header.int(xid);
    header.long(this.zxid);
    header.int(err);
    this.say(Buffer.concat([header.written(), body]));
  }

  event(type: EventType, path: string): void {
    const event = { type: eventTypes[type], state: 3, path };
    this.reply(specialXids.notification, 0, encode(WatcherEvent, event));
  }

  /** Resolves with the next request of this op that was not waited for yet. */
  async until(op: string): Promise<Asked> {
    return vi.waitFor(() => {
      const at = this.asked.findIndex((one) => one.op === op);
      if (at === -1) throw new Error(`no ${op} among ${this.asked.map((one) => one.op)}`);
      return this.asked.splice(at, 1)[0]!;
    }, patience);
  }
}

const patience = { timeout: 5_000, interval: 1 };
const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

interface Script {
  /** On a whole handshake. Welcomes, unless said. */
  readonly onHello?: (peer: Peer) => void;
  readonly onAsked?: (peer: Peer, asked: Asked) => void;
  readonly onData?: (bytes: number) => void;
  /** Answers `isro`. "ro" by default. */
  readonly onIsro?: () => 'ro' | 'rw';
}

async function serve(script: Script = {}) {
  const peers: Peer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let peer: Peer | undefined;
    const splitter = new FrameSplitter(1 << 24, (bytes, start, end) => {
      const reader = new Reader(Buffer.from(bytes.subarray(start, end)));
      if (peer === undefined) {
        peer = new Peer(socket, ConnectRequest.read(reader));
        peers.push(peer);
        if (script.onHello) script.onHello(peer);
        else peer.welcome();
        return;
      }
      const header = { xid: reader.int(), op: opNameOf(reader.int()) ?? 'unknown' };
      const isSetting = header.op.startsWith('setWatches');
      const asked = isSetting ? { ...header, relativeZxid: reader.long() } : header;
      peer.asked.push(asked);
      script.onAsked?.(peer, asked);
    });
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      script.onData?.(chunk.length);
      if (chunk.toString() === 'isro') socket.end(script.onIsro?.() ?? 'ro');
      else splitter.push(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as { port: number };
  return {
    address: `127.0.0.1:${port}`,
    peers,
    /** The connection with this number, from 1, once its handshake is there. */
    peer: (number = 1) =>
      vi.waitFor(() => {
        const peer = peers[number - 1];
        if (peer === undefined) throw new Error(`no link ${number}`);
        return peer;
      }, patience),
  };
}

function client(address: string, options: ClientOptions = {}): Client {
  const made = new Client(address, { sessionTimeoutMs: 9_000, closeTimeoutMs: 100, ...options });
  cleanUps.push(() => made.close({ timeoutMs: 0 }));
  return made;
}

async function connected(address: string, clock: Clock, options: ClientOptions = {}) {
  const made = client(address, { clock, ...options });
  await made.connected();
  return made;
}

/** With a clock that stands still, closing would wait for ever. */
function letGo(server: { peers: Peer[] }): void {
  cleanUps.push(() => {
    for (const { socket } of server.peers) socket.destroy();
  });
}

function nextState(of: Client): Promise<string> {
  return new Promise((resolve) => of.once('state', (state) => resolve(state.name)));
}

test.each([
  [1_000, 25],
  [4_000, 100],
  [9_000, 350],
  [30_000, 1_400],
  [600_000, 10_000],
])(
  'with a timeout of %i ms a quiet link is pinged every %i ms, so that nearly all of the timeout is left when it is lost',
  async (sessionTimeoutMs, everyMs) => {
    const clock = new ManualClock();
    const server = await serve({
      onAsked: (peer, { op }) => op === 'ping' && peer.reply(specialXids.ping),
    });
    const it = await connected(server.address, clock, { sessionTimeoutMs });
    letGo(server);
    const peer = await server.peer();

    for (let pings = 1; pings <= 3; pings++) {
      clock.advance(everyMs - 1);
      expect(peer.asked).toEqual([]);
      clock.advance(1);
      await peer.until('ping');
      const deadlineMs = pings * everyMs + sessionTimeoutMs;
      await expect.poll(() => it.state).toMatchObject({ deadlineMs });
    }
  },
);

test('a quiet link is given up after two thirds of the timeout in silence', async () => {
  const clock = new ManualClock();
  const server = await serve();
  const it = await connected(server.address, clock);
  letGo(server);
  const peer = await server.peer();

  clock.advance(350);
  await peer.until('ping');
  clock.advance(5_649);
  expect(it.state.name).toBe('connected');
  const suspended = nextState(it);
  clock.advance(1);

  expect(await suspended).toBe('suspended');
});

/** Moves the clock from timer to timer, no further than `untilMs`, and lets the sockets work in between. */
async function passTime(clock: ManualClock, untilMs: number): Promise<void> {
  for (;;) {
    // What the sockets bring may set timers: it is all there before time goes on.
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    const dueMs = clock.nextDueMs ?? Number.POSITIVE_INFINITY;
    const stepMs = Math.min(dueMs, untilMs) - clock.nowMs();
    if (stepMs <= 0 && dueMs > untilMs) return;
    clock.advance(Math.max(0, stepMs));
  }
}

test.each([0.1, 0.3, 0.5, 0.8, 0.95, 0.99])(
  'a server that is back after %d of the timeout has the session again',
  async (share) => {
    const clock = new ManualClock();
    let isAway = false;
    const server = await serve({
      onHello: (peer) => (isAway ? peer.socket.destroy() : peer.welcome()),
      onAsked: (peer, { op }) => op === 'ping' && peer.reply(specialXids.ping),
    });
    const it = await connected(server.address, clock, { random: () => 1 - 2 ** -40 });
    letGo(server);
    const ours = it.sessionSignal;
    const suspended = nextState(it);
    isAway = true;
    (await server.peer()).socket.destroy();
    await suspended;

    await passTime(clock, 9_000 * share);
    isAway = false;
    await passTime(clock, 8_999);

    await expect.poll(() => it.state.name).toBe('connected');
    expect(it.sessionSignal).toBe(ours);
    expect(ours.aborted).toBe(false);
  },
);

test('with nobody to answer, the session is over at its deadline to the millisecond', async () => {
  const clock = new ManualClock();
  let isAway = false;
  const server = await serve({
    onHello: (peer) => (isAway ? peer.socket.destroy() : peer.welcome()),
  });
  const it = await connected(server.address, clock);
  isAway = true;
  letGo(server);
  const { signal } = { signal: it.sessionSignal };
  const [peer] = server.peers;
  const suspended = nextState(it);
  peer!.socket.destroy();
  await suspended;
  const waiting = it.get('/a');
  waiting.catch(() => {});

  await passTime(clock, 8_999.999);
  expect([it.state.name, signal.aborted]).toEqual(['suspended', false]);
  clock.advance(0.001);

  expect([it.state.name, signal.aborted]).toEqual(['expired', true]);
  await expect(waiting).rejects.toMatchObject({ code: 'SESSION_EXPIRED', outcomeUnknown: false });
  await expect(it.get('/a')).rejects.toThrow(/no server answered for 9000 ms, the session timeout/);
});

test('a pong counts from when its own ping left, not from when a later one did', async () => {
  const clock = new ManualClock();
  const server = await serve();
  const it = await connected(server.address, clock);
  letGo(server);
  const peer = await server.peer();
  const told = new Promise((resolve) => void it.addWatch('/a', 'persistent', resolve));
  peer.reply((await peer.until('addWatch')).xid, 0, Buffer.alloc(4));
  peer.event('created', '/a');
  await told;
  clock.advance(350);
  await peer.until('ping');
  clock.advance(350);
  await peer.until('ping');

  peer.reply(specialXids.ping);
  await vi.waitFor(() => expect(it.state).toMatchObject({ deadlineMs: 9_350 }), patience);
  peer.reply(specialXids.ping);

  await vi.waitFor(() => expect(it.state).toMatchObject({ deadlineMs: 9_700 }), patience);
});

test('an answer that is none to a ping does not count as one', async () => {
  const clock = new ManualClock();
  const server = await serve();
  const it = await connected(server.address, clock);
  letGo(server);
  const peer = await server.peer();
  const proof = it.addAuth('digest', 'a:b');
  const { xid } = await peer.until('auth');
  clock.advance(350);
  await peer.until('ping');

  peer.reply(xid);
  await proof;

  expect(it.state).toMatchObject({ deadlineMs: 9_000 });
});

test('after a pause longer than the timeout, the session is over before any event is told', async () => {
  const manual = new ManualClock();
  let pausedMs = 0;
  // A process that was stopped: time has gone by, and no timer has fired yet.
  const clock: Clock = {
    nowMs: () => manual.nowMs() + pausedMs,
    wallMs: () => manual.wallMs() + pausedMs,
    after: (delayMs, fire) => manual.after(delayMs, fire),
  };
  const server = await serve({
    onAsked: (peer, { xid, op }) => op === 'addWatch' && peer.reply(xid, 0, Buffer.alloc(4)),
  });
  const it = await connected(server.address, clock);
  letGo(server);
  const held = it.sessionSignal;
  const told: string[] = [];
  it.on('state', (state) => told.push(state.name));
  await it.addWatch('/a', 'persistent', ({ type }) => told.push(`${type}, over: ${held.aborted}`));
  const [peer] = server.peers;

  pausedMs = 9_000;
  peer!.event('created', '/a');
  await vi.waitFor(() => expect(told.length).toBeGreaterThan(0), patience);

  expect(held.aborted).toBe(true);
  expect(told).toEqual(['none, over: true', 'expired']);
});

test('a server that takes us in and lets us go at once is not asked again without a wait', async () => {
  const server = await serve({
    onHello: (peer) => {
      peer.welcome();
      peer.socket.end();
    },
  });
  const clock = new ManualClock();
  const it = client(server.address, { clock, backoff: { firstMs: 500, maxMs: 500 } });
  letGo(server);
  await it.connected().catch(() => {});

  for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve));

  expect(server.peers.length).toBeLessThan(4);
});

test('a server that answered once, and then takes us in and lets us go, is asked ever more seldom', async () => {
  const clock = new ManualClock();
  const atMs: number[] = [];
  const server = await serve({
    onHello: (peer) => {
      atMs.push(clock.nowMs());
      peer.welcome();
      if (atMs.length > 1) peer.socket.end();
    },
    onAsked: (peer, { xid, op }) => op === 'exists' && peer.reply(xid, wireOf('NO_NODE')),
  });
  const it = await connected(server.address, clock, { random: () => 1 - 2 ** -40 });
  letGo(server);
  await it.exists('/a');
  (await server.peer()).socket.end();

  await passTime(clock, 4_000);

  // The session is as much alive as before, and no other client is blamed.
  expect(['suspended', 'connected']).toContain(it.state.name);
  const waitsMs = atMs.slice(2).map((ms, i) => ms - atMs[i + 1]!);
  expect(waitsMs.length).toBeLessThan(9);
  expect(waitsMs.at(-1)).toBeGreaterThan(300);
});

/**
 * A server at which another client takes the session back from ours again and again. Ours is the first
 * connection; connections that begin a session after it are witnesses, which `onWitness` may close.
 */
async function serveTakeovers(
  onWitness: (peer: Peer) => void = () => {},
  onProbe: (peer: Peer) => void = (peer) => peer.socket.end(),
  welcomesWitness = true,
) {
  const witnesses: Peer[] = [];
  const probes: Peer[] = [];
  let isDisputed = false;
  let hasWatch = false;
  const isOpen = () => witnesses.some(({ socket }) => !socket.destroyed);
  const server = await serve({
    onHello: (peer) => {
      const isWitness = isDisputed && peer.hello.sessionId === 0n;
      if (isWitness) witnesses.push(peer);
      if (isWitness && !welcomesWitness) return;
      peer.welcome(isWitness ? { sessionId: 0x99n, timeOut: 4_000 } : {});
      if (isWitness) return;
      if (isOpen()) probes.push(peer);
      else if (isDisputed && !hasWatch) peer.socket.end();
    },
    onAsked: (peer, { op, xid }) => {
      if (op === 'closeSession') peer.reply(xid);
      if (op === 'exists') {
        hasWatch = true;
        peer.reply(xid, wireOf('NO_NODE'));
      }
      if (op === 'setWatches') {
        peer.reply(xid);
        if (isDisputed && !probes.includes(peer)) peer.socket.end();
      }
      if (op !== 'ping') return;
      if (probes.includes(peer)) peer.zxid = 50n; // something has happened meanwhile
      peer.reply(specialXids.ping);
      if (peer === witnesses.at(-1)) onWitness(peer);
      else if (probes.includes(peer)) onProbe(peer);
    },
  });
  letGo(server);
  const begin = async (of: Client) => {
    const suspended = nextState(of);
    isDisputed = true;
    (await server.peer()).socket.end();
    await suspended;
  };
  return { ...server, witnesses, probes, begin };
}

test('a client whose session another takes again and again ends, says why, and leaves nothing behind', async () => {
  const clock = new ManualClock();
  const server = await serveTakeovers();
  const it = await connected(server.address, clock, {
    auth: [{ scheme: 'digest', auth: 'a:b' }],
    readRetries: 100,
  });
  const held = it.sessionSignal;
  await server.begin(it);
  const waiting = it.get('/a');
  waiting.catch(() => {});
  const added = it.addAuth('digest', 'c:d');
  added.catch(() => {});

  await passTime(clock, 8_000);

  expect([it.state.name, held.aborted]).toEqual(['expired', true]);
  await expect(waiting).rejects.toMatchObject({ code: 'SESSION_EXPIRED', outcomeUnknown: false });
  await expect(it.set('/a', '')).rejects.toThrow(
    'another client took the session over by its identity',
  );
  // No request of ours was the reason for a close that counted.
  expect(server.probes).toHaveLength(20);
  expect(server.probes.flatMap(({ asked }) => asked.map(({ op }) => op))).toEqual(
    server.probes.map(() => 'ping'),
  );
  const [witness] = server.witnesses;
  expect(server.witnesses).toHaveLength(1);
  await witness!.until('closeSession');
  await vi.waitFor(() => expect(witness!.socket.destroyed).toBe(true), patience);
  expect(clock.pending).toBe(0);
});

test('a client that came by an identity bears more', async () => {
  const clock = new ManualClock();
  const server = await serveTakeovers();
  const identity = { sessionId: 0x10n, password: Buffer.alloc(16, 7), timeoutMs: 9_000 };
  const it = await connected(server.address, clock, { identity });
  await server.begin(it);

  await vi.waitFor(async () => {
    await passTime(clock, clock.nowMs() + 200);
    expect(it.state.name).toBe('expired');
  }, 10_000);

  expect(server.probes).toHaveLength(60);
});

test.each([
  'is closed at once',
  'is closed with the connection of the session',
  'falls silent',
  'is closed at the tenth proof',
] as const)('quick closes end no session when the witness %s', async (what) => {
  const clock = new ManualClock();
  const server = await serveTakeovers(
    (peer) => what === 'is closed at once' && peer.socket.end(),
    (peer) => {
      const witness = server.witnesses.at(-1)!;
      const isLate = what !== 'is closed at the tenth proof' || server.probes.length % 10 === 0;
      if (what === 'falls silent') witness.socket.pause();
      else if (isLate) witness.socket.destroy();
      peer.socket.end();
    },
  );
  const it = await connected(server.address, clock);
  const ours = it.sessionSignal;
  await server.begin(it);

  for (let second = 1; second <= 100; second++) {
    await passTime(clock, clock.nowMs() + 1_000);
    expect(ours.aborted).toBe(false);
  }

  // At most one for each half minute.
  expect(server.witnesses.length).toBeGreaterThan(1);
  expect(server.witnesses.length).toBeLessThanOrEqual(4);
});

test('a connection that lasts ends the dispute, and what waited leaves', async () => {
  const clock = new ManualClock();
  const server = await serveTakeovers(
    () => {},
    () => {},
  );
  const it = await connected(server.address, clock, {
    auth: [{ scheme: 'digest', auth: 'a:b' }],
    readRetries: 100,
  });
  await it.exists('/b', { watch: () => {} });
  await server.begin(it);
  it.get('/a').catch(() => {});
  await vi.waitFor(async () => {
    await passTime(clock, clock.nowMs() + 10);
    expect(server.probes).toHaveLength(1);
  }, 10_000);
  const [probe] = server.probes;
  it.addAuth('digest', 'c:d').catch(() => {});

  await passTime(clock, clock.nowMs() + 1_400);
  expect(new Set(probe!.asked.map(({ op }) => op))).toEqual(new Set(['ping']));
  await passTime(clock, clock.nowMs() + 100);

  const asked = probe!.asked.filter(({ op }) => op !== 'ping');
  expect(asked.map(({ op }) => op)).toEqual(['auth', 'setWatches', 'auth', 'getData']);
  // What the pong has seen was not told to any watch.
  expect(asked[1]!.relativeZxid).toBe(1n);
  await server.witnesses[0]!.until('closeSession');
  expect(it.state.name).toBe('connected');
});

test('closing while a witness connects leaves nothing of it', async () => {
  const clock = new ManualClock();
  const server = await serveTakeovers(undefined, undefined, false);
  const it = await connected(server.address, clock);
  await server.begin(it);
  await vi.waitFor(async () => {
    await passTime(clock, clock.nowMs() + 10);
    expect(server.witnesses).toHaveLength(1);
  }, 10_000);

  await it.close({ timeoutMs: 0 });

  const [witness] = server.witnesses;
  await vi.waitFor(() => expect(witness!.socket.destroyed).toBe(true), patience);
  expect(clock.pending).toBe(0);
});

test('closing in a dispute closes the witness too, and says goodbye at once', async () => {
  const clock = new ManualClock();
  const server = await serveTakeovers(
    () => {},
    () => {},
  );
  const it = await connected(server.address, clock);
  await server.begin(it);
  await vi.waitFor(async () => {
    await passTime(clock, clock.nowMs() + 10);
    expect(server.probes).toHaveLength(1);
  }, 10_000);

  expect(await it.close()).toEqual({ sessionEnded: true });

  await server.witnesses[0]!.until('closeSession');
  const sockets = [...server.witnesses, ...server.probes].map(({ socket }) => socket);
  await vi.waitFor(() => expect(sockets.every(({ destroyed }) => destroyed)).toBe(true), patience);
  expect(clock.pending).toBe(0);
});

test('once a server has answered, the tries of an earlier outage count no more', async () => {
  const clock = new ManualClock();
  const server = await serveWithOutages({
    onAsked: (peer, { xid, op }) => op === 'exists' && peer.reply(xid, wireOf('NO_NODE')),
  });
  const it = await connected(server.address, clock, { connectRoundsMax: 3 });
  letGo(server);

  for (let outage = 1; outage <= 5; outage++) {
    await it.exists('/a');
    const suspended = nextState(it);
    server.goAway();
    await suspended;
    await passTime(clock, clock.nowMs() + 10);
    server.comeBack();
    await passTime(clock, clock.nowMs() + 2_500);
    await expect.poll(() => it.state.name).toBe('connected');
  }
});

test('a call that its caller gives up while it waits to be sent again is said not to have been sent', async () => {
  const clock = new ManualClock();
  const server = await serveWithOutages();
  const it = await connected(server.address, clock);
  letGo(server);
  const outcome = it.exists('/a', { timeoutMs: 300 }).catch((error) => error);
  await (await server.peer()).until('exists');
  const suspended = nextState(it);
  server.goAway();
  await suspended;
  expect(it.load).toMatchObject({ inFlight: 0, waiting: 1 });

  clock.advance(300);

  expect((await outcome).message).toContain('it was not sent');
  expect(it.load).toMatchObject({ inFlight: 0, waiting: 0 });
});

test('with renew, whoever looks and so finds the session over sees the next one, and not an end', async () => {
  const manual = new ManualClock();
  let pausedMs = 0;
  const clock: Clock = {
    nowMs: () => manual.nowMs() + pausedMs,
    wallMs: () => manual.wallMs(),
    after: (delayMs, fire) => manual.after(delayMs, fire),
  };
  const server = await serve();
  const it = await connected(server.address, clock, { renew: true });
  const { sessionSignal } = it;

  pausedMs = 1_000_000;

  expect(it.state.name).toBe('connecting');
  expect([sessionSignal.aborted, it.sessionSignal.aborted]).toEqual([true, false]);
});

test('a new session that is refused is a try that failed, and not the end of a session there was none of', async () => {
  const server = await serve({ onHello: (peer) => peer.welcome({ timeOut: 0, sessionId: 0n }) });
  const it = client(server.address, { connectRoundsMax: 2, backoff: { firstMs: 1 }, renew: true });

  const error = await it.connected().catch((why) => why);

  expect(error).toBeInstanceOf(ConnectError);
  expect(error.message).toMatch(/in 2 rounds: 127.0.0.1:\d+ refused a new session/);
  expect(it.state.name).toBe('closed');
  expect(server.peers).toHaveLength(2);
});

test('what is asked in one tick leaves in one write', async () => {
  const chunks: number[] = [];
  const server = await serve({
    onData: (bytes) => chunks.push(bytes),
    onAsked: (peer, { xid }) => peer.reply(xid, xid > 0 ? -101 : 0),
  });
  const it = client(server.address);
  await it.connected();
  chunks.length = 0;

  const all = Array.from({ length: 100 }, (_, i) => it.exists(`/${i}`));
  expect(await Promise.all(all)).toEqual(all.map(() => null));

  expect(chunks).toHaveLength(1);
});

test('on the wire, xids go from 2^31-1 to 1', async () => {
  const xids: number[] = [];
  const server = await serve({
    onAsked: (peer, { xid }) => {
      xids.push(xid);
      peer.reply(xid, -101);
    },
  });
  const it = client(server.address, { firstXid: xidMax - 1 });
  await it.connected();

  for (let i = 0; i < 4; i++) expect(await it.exists('/a')).toBeNull();

  expect(xids).toEqual([xidMax - 1, xidMax, 1, 2]);
});

test('what is asked before there is a server waits, and goes in order once there is one', async () => {
  const server = await serve({ onAsked: (peer, { xid }) => peer.reply(xid, xid > 0 ? -101 : 0) });
  const it = client(server.address);

  const all = [it.exists('/a'), it.exists('/b'), it.delete('/c').catch((error) => error.code)];

  expect(it.load).toMatchObject({ inFlight: 0, waiting: 3 });
  expect(await Promise.all(all)).toEqual([null, null, 'NO_NODE']);
  expect(server.peers[0]!.asked.map(({ op }) => op)).toEqual(['exists', 'exists', 'delete']);
});

test('after a reconnect the client shows who it is and what it has seen', async () => {
  const server = await serve({ onAsked: (peer, { xid }) => peer.reply(xid, xid > 0 ? -101 : 0) });
  const it = client(server.address, { auth: [{ scheme: 'digest', auth: 'a:b' }] });
  await it.connected();
  const first = await server.peer();
  first.zxid = 0x1_0000_0002n;
  await it.exists('/a');
  expect(it.lastZxid).toBe(0x1_0000_0002n);

  first.socket.destroy();
  const second = await server.peer(2);
  await second.until('auth');

  expect(first.hello).toMatchObject({ sessionId: 0n, lastZxidSeen: 0n });
  expect(second.hello).toMatchObject({
    sessionId: 0x10n,
    passwd: Buffer.alloc(16, 7),
    lastZxidSeen: 0x1_0000_0002n,
  });
});

test('each handshake is taken at its word: timeout and password are those of the last answer', async () => {
  const clock = new ManualClock();
  const answers = [
    { timeOut: 9_000, passwd: Buffer.alloc(16, 7) },
    { timeOut: 3_000, passwd: Buffer.alloc(16, 8) },
    { timeOut: 12_000, passwd: Buffer.alloc(16, 9) },
    { timeOut: 0, sessionId: 0n, passwd: Buffer.alloc(16) },
  ];
  const server = await serve({
    onHello: (peer) => peer.welcome(answers[server.peers.length - 1]),
    onAsked: (peer, { xid, op }) => op === 'ping' && peer.reply(xid),
  });
  const it = await connected(server.address, clock, { sessionTimeoutMs: 9_000 });
  letGo(server);
  /** Loses the connection, and waits for the next one. */
  const reconnect = async () => {
    const number = server.peers.length;
    const suspended = nextState(it);
    server.peers.at(-1)!.socket.destroy();
    await suspended;
    const settled = nextState(it);
    while (server.peers.length === number) {
      clock.advance(1);
      await new Promise(setImmediate);
    }
    return settled;
  };
  const known = [it.identity!.timeoutMs];

  for (let times = 0; times < 2; times++) {
    expect(await reconnect()).toBe('connected');
    known.push(it.identity!.timeoutMs);
    const { timeoutMs } = it.identity!;
    const peer = server.peers.at(-1)!;
    clock.advance(timeoutMs / 3 - 2);
    expect(peer.asked.filter(({ op }) => op === 'ping')).toEqual([]);
    clock.advance(2);
    await peer.until('ping');
    await new Promise(setImmediate);
  }
  const last = await reconnect();

  expect(known).toEqual([9_000, 3_000, 12_000]);
  expect(last).toBe('expired');
  expect(server.peers.map(({ hello }) => [hello.timeOut, hello.sessionId, hello.passwd])).toEqual([
    [9_000, 0n, Buffer.alloc(16)],
    [9_000, 0x10n, Buffer.alloc(16, 7)],
    [9_000, 0x10n, Buffer.alloc(16, 8)],
    [9_000, 0x10n, Buffer.alloc(16, 9)],
  ]);
});

test.each([true, false, undefined])(
  'a client says whether it may only read, and takes the answer %s for what the server may',
  async (answered) => {
    const server = await serve({
      onHello: (peer) => peer.welcome({ protocolVersion: 7, readOnly: answered }),
    });
    const readOnly = answered === true;
    const it = client(server.address, { readOnly });

    await it.connected();

    const [{ hello }] = server.peers as [Peer];
    expect([hello.protocolVersion, hello.readOnly]).toEqual([0, readOnly]);
    expect(it.state).toMatchObject({ name: 'connected', readOnly });
  },
);

test('a server that hands out another session in place of ours has ended ours', async () => {
  const ids = [0x10n, 0x20n, 0x30n];
  const server = await serve({ onHello: (peer) => peer.welcome({ sessionId: ids.shift()! }) });
  const it = client(server.address, { renew: true });
  const sessions: unknown[] = [];
  it.on('session', (session) => sessions.push(session));
  await it.connected();
  const first = it.sessionSignal;
  const changed = vi.fn();
  const peer = await server.peer();
  const read = it.exists('/a', { watch: changed });
  peer.reply((await peer.until('exists')).xid, -101);
  await read;

  peer.socket.destroy();
  await vi.waitFor(() => expect(it.sessionId).toBe(0x30n), patience);

  expect(first.aborted).toBe(true);
  expect(changed).toHaveBeenCalledWith({ type: 'none', path: '', zxid: null });
  expect(server.peers.map(({ hello }) => hello.sessionId)).toEqual([0n, 0x10n, 0n]);
  expect(sessions).toEqual([
    { sessionId: 0x10n, isFirst: true },
    { sessionId: 0x30n, isFirst: false },
  ]);
});

test('answers of a server without a quorum do not say that the session is alive, and reads go on', async () => {
  const clock = new ManualClock();
  const server = await serve({
    onHello: (peer) => {
      const isReadOnly = peers++ === 1;
      peer.welcome({
        sessionId: peer.hello.sessionId || sessionIds.shift()!,
        readOnly: isReadOnly,
      });
    },
    onAsked: (peer, { xid, op }) => {
      if (op === 'ping') peer.reply(specialXids.ping);
      if (op === 'exists') peer.reply(xid, wireOf('NO_NODE'));
    },
  });
  let peers = 0;
  const sessionIds = [0x10n, 0x20n];
  const it = await connected(server.address, clock, { readOnly: true });
  letGo(server);
  await it.exists('/a');
  const began: unknown[] = [];
  it.on('session', (session) => began.push(session));
  const ours = it.sessionSignal;
  (await server.peer()).socket.destroy();
  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: true });

  for (let time = 0; time < 8_000; time += 1_000) {
    clock.advance(1_000);
    await it.exists('/a');
  }
  clock.advance(999);
  expect(ours.aborted).toBe(false);
  clock.advance(1);
  expect(ours.aborted).toBe(true);
  expect(ours.reason).toMatchObject({ code: 'SESSION_EXPIRED', message: /with a quorum/ });
  expect(it.sessionSignal).toBe(ours);
  for (let time = 0; time < 20_000; time += 1_000) {
    clock.advance(1_000);
    expect(await it.exists('/a')).toBeNull();
  }

  (await server.peer(2)).socket.destroy();
  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: false });
  expect((await server.peer(3)).hello.sessionId).toBe(0n);
  expect(began).toEqual([{ sessionId: 0x20n, isFirst: false }]);
  expect(it.sessionSignal.aborted).toBe(false);
  clock.advance(9_000);
  expect(it.state.name).toBe('expired');
  expect(it.sessionSignal.aborted).toBe(true);
});

test('a read-only server is left for one with a quorum in the last moments of the session too', async () => {
  const clock = new ManualClock();
  const askedMs: number[] = [];
  const server = await serve({
    onHello: (peer) => peer.welcome({ readOnly: server.peers.length === 2 }),
    onAsked: (peer, { op, xid }) => {
      if (op === 'ping') peer.reply(specialXids.ping);
      if (op === 'exists') peer.reply(xid, wireOf('NO_NODE'));
    },
    onIsro: () => {
      askedMs.push(clock.nowMs());
      return clock.nowMs() >= 8_500 ? 'rw' : 'ro';
    },
  });
  const it = await connected(server.address, clock, { readOnly: true });
  letGo(server);
  await it.exists('/a');
  const ours = it.sessionSignal;
  (await server.peer()).socket.destroy();
  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: true });

  await passTime(clock, 8_999);

  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: false });
  expect(it.sessionSignal).toBe(ours);
  expect(ours.aborted).toBe(false);
  const waitsMs = askedMs.map((ms, i) => ms - (askedMs[i - 1] ?? 0));
  expect(Math.max(...waitsMs)).toBeLessThan(901);
});

test('a session that is back with a quorum in time goes on, with the same signal', async () => {
  const clock = new ManualClock();
  let peers = 0;
  const server = await serve({
    onHello: (peer) => peer.welcome({ readOnly: peers++ === 1 }),
    onAsked: (peer, { xid, op }) => {
      if (op === 'exists') peer.reply(xid, wireOf('NO_NODE'));
    },
  });
  const it = await connected(server.address, clock, { readOnly: true });
  letGo(server);
  await it.exists('/a');
  const ours = it.sessionSignal;
  (await server.peer()).socket.destroy();
  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: true });

  clock.advance(5_000);
  await it.exists('/a');
  (await server.peer(2)).socket.destroy();
  await expect.poll(() => it.state).toMatchObject({ name: 'connected', readOnly: false });
  clock.advance(5_000); // beyond the deadline of the first link's last answer

  expect((await server.peer(3)).hello.sessionId).toBe(0x10n);
  expect(it.sessionSignal).toBe(ours);
  expect(ours.aborted).toBe(false);
});

test.each([
  [false, /an answer: its data is probably older .*zxid 0x77/],
  [true, /an answer: it has lost its quorum.*; or its data is probably older .*zxid 0x77/],
])(
  'with readOnly %s, who closes instead of answering a known session is said to',
  async (readOnly, why) => {
    const server = await serve({
      onHello: (peer) => (peer.hello.sessionId === 0n ? peer.welcome() : peer.socket.destroy()),
      onAsked: (peer, { xid }) => peer.reply(xid, xid > 0 ? -101 : 0),
    });
    const it = client(server.address, { connectRoundsMax: 2, backoff: { firstMs: 1 }, readOnly });
    await it.connected();
    const first = await server.peer();
    first.zxid = 0x77n;
    await it.exists('/a');

    first.socket.destroy();
    await vi.waitFor(() => expect(it.state.name).toBe('closed'), patience);

    await expect(it.get('/a')).rejects.toThrow(why);
  },
);

test('closing is bounded, also when the server takes no more bytes, and leaves no socket behind', async () => {
  const sockets = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const before = sockets();
  const server = await serve();
  const it = client(server.address, { closeTimeoutMs: 50 });
  await it.connected();
  const peer = await server.peer();
  peer.socket.pause();
  const writes = Array.from({ length: 40 }, () =>
    it.set('/a', Buffer.alloc(1_000_000)).catch((error) => error),
  );

  await it.close();
  const outcomes = await Promise.all(writes);

  expect(outcomes.map(({ code, outcomeUnknown }) => [code, outcomeUnknown])).toEqual(
    outcomes.map(() => ['SESSION_EXPIRED', true]),
  );
  await vi.waitFor(() => expect(sockets()).toBe(before + 1), patience); // the server's own end
});

/** The server's side of an outage: connections are refused while it is away. */
async function serveWithOutages(script: Script = {}) {
  let isAway = false;
  const onHello = (peer: Peer) => (script.onHello ?? ((one: Peer) => one.welcome()))(peer);
  const server = await serve({
    ...script,
    onHello: (peer) => (isAway ? peer.socket.destroy() : onHello(peer)),
  });
  return {
    ...server,
    goAway() {
      isAway = true;
      for (const { socket } of server.peers) socket.destroy();
    },
    comeBack() {
      isAway = false;
    },
  };
}

const answerGoodbye: Script['onAsked'] = (peer, { xid, op }) => {
  if (op === 'closeSession') peer.reply(xid);
};

async function suspendedBy(server: Awaited<ReturnType<typeof serveWithOutages>>, clock: Clock) {
  const it = await connected(server.address, clock);
  letGo(server);
  const suspended = nextState(it);
  server.goAway();
  expect(await suspended).toBe('suspended');
  return it;
}

test('a client that is closed without a link tries to reach a server, and ends its session there', async () => {
  const clock = new ManualClock();
  const server = await serveWithOutages({ onAsked: answerGoodbye });
  const it = await suspendedBy(server, clock);

  const closed = it.close({ timeoutMs: 5_000 });
  await passTime(clock, 2_000);
  expect(it.state.name).toBe('suspended');
  await expect(it.get('/a')).rejects.toThrow('the client was closed');
  server.comeBack();
  await passTime(clock, 4_000);

  expect(await closed).toEqual({ sessionEnded: true });
  expect(it.state.name).toBe('closed');
  expect(server.peers.at(-1)!.hello.sessionId).toBe(0x10n);
  expect(server.peers.at(-1)!.asked.map(({ op }) => op)).toEqual(['closeSession']);
  expect(clock.pending).toBe(0);
});

test.each([
  [3_000, 3_000, 'closed'],
  [60_000, 9_000, 'expired'],
  [0, 0, 'closed'],
])(
  'closing without a link for up to %i ms gives up after %i ms, and says that the session was not ended',
  async (timeoutMs, tookMs, state) => {
    const clock = new ManualClock();
    const server = await serveWithOutages();
    const it = await suspendedBy(server, clock);
    let isClosed = false;

    const closed = it.close({ timeoutMs }).finally(() => {
      isClosed = true;
    });
    await passTime(clock, tookMs - 1);
    expect(isClosed).toBe(tookMs === 0);
    await passTime(clock, tookMs);

    expect(await closed).toEqual({ sessionEnded: false });
    expect(it.state.name).toBe(state);
    expect(clock.pending).toBe(0);
  },
);

test('a client that does not wait for an answer says goodbye all the same', async () => {
  const server = await serve();
  const it = client(server.address);
  await it.connected();

  expect(await it.close({ timeoutMs: 0 })).toEqual({ sessionEnded: false });

  await (await server.peer()).until('closeSession');
});

test('a goodbye whose answer is lost is asked about on the next link', async () => {
  const server = await serve({
    onHello: (peer) =>
      peer.hello.sessionId === 0n ? peer.welcome() : peer.welcome({ timeOut: 0, sessionId: 0n }),
    onAsked: (peer, { op }) => op === 'closeSession' && peer.socket.destroy(),
  });
  const it = client(server.address, { backoff: { firstMs: 1 } });
  await it.connected();

  expect(await it.close({ timeoutMs: 5_000 })).toEqual({ sessionEnded: true });

  expect(server.peers).toHaveLength(2);
});

test('a client without a session has none to end, unless a server may have begun one unheard', async () => {
  const none = new Client('zk.test', { lookup: () => new Promise(() => {}) });
  expect(await none.close()).toEqual({ sessionEnded: true });

  const server = await serve({ onHello: () => {} });
  const unheard = client(server.address);
  await server.peer();
  expect(await unheard.close()).toEqual({ sessionEnded: false });
});

test('closing again says the same, also of a session that was over before', async () => {
  const server = await serve({ onAsked: answerGoodbye });
  const it = client(server.address);
  await it.connected();
  expect(await Promise.all([it.close(), it.close()])).toEqual([
    { sessionEnded: true },
    { sessionEnded: true },
  ]);
  expect(await it.close()).toEqual({ sessionEnded: true });

  const clock = new ManualClock();
  const away = await serveWithOutages();
  const expired = await suspendedBy(away, clock);
  clock.advance(9_000);
  expect(expired.state.name).toBe('expired');
  expect(await expired.close()).toEqual({ sessionEnded: false });
});

test('a time to close in that is none is refused', async () => {
  const server = await serve({ onAsked: answerGoodbye });
  const it = client(server.address);

  await expect(it.close({ timeoutMs: -1 })).rejects.toThrow(ArgumentError);
  await expect(it.close({ timeoutMs: '5' as never })).rejects.toThrow(ArgumentError);
});

test('a client that is closed as soon as it is made does not wait for its names to be resolved', async () => {
  const it = new Client('zk.test', { lookup: () => new Promise(() => {}) });

  await it.close();

  expect(it.state.name).toBe('closed');
});

/** A mechanism that is content with whatever the server says. */
const contented = { start: async () => Buffer.from('me'), step: async () => null };

function answerSasl(peer: Peer, { xid, op }: Asked): void {
  if (op === 'sasl') peer.reply(xid, 0, encode(SetSASLResponse, { token: Buffer.from('you') }));
}

test.each([false, true])(
  'a session that may be over before it is told of is none, and the next is asked for (renew: %s)',
  async (renew) => {
    const clock = new ManualClock();
    const ids = [1n, 2n];
    const server = await serve({
      onHello: (peer) => {
        if (server.peers.length === 1) clock.advance(4_000);
        peer.welcome({ timeOut: 4_000, sessionId: ids.shift()! });
      },
    });
    const it = client(server.address, { clock, sessionTimeoutMs: 30_000, renew });
    letGo(server);
    const states: string[] = [];
    const sessions: object[] = [];
    it.on('state', ({ name }) => states.push(name));
    it.on('session', (session) => sessions.push(session));
    const waits = it.connected();

    await server.peer();
    await vi.waitFor(() => expect(clock.nextDueMs! - clock.nowMs()).toBeLessThan(100), patience);
    clock.advance(100);

    await waits;
    expect(states).toEqual(['connected']);
    expect(sessions).toEqual([{ sessionId: 2n, isFirst: true }]);
  },
);

test('a SASL mechanism that comes to no end is given up in time, on every step', async () => {
  const never = new Promise<never>(() => {});
  const mechanisms: SaslMechanism[] = [
    () => never,
    () => ({ ...contented, start: () => never }),
    () => ({ ...contented, step: () => never }),
    () => contented,
  ];
  const server = await serve({ onAsked: answerSasl });
  const sasl: SaslMechanism = (endpoint) => mechanisms.shift()!(endpoint);
  const it = client(server.address, { sasl, attemptTimeoutMs: 20, backoff: { firstMs: 1 } });

  await it.connected();

  expect(server.peers.length).toBe(4);
});

test('a client that is closed during its SASL negotiation closes, and leaves no link behind', async () => {
  for (const isDoneLater of [false, true]) {
    const asked = deferred();
    const done = deferred<null>();
    const step = () => {
      asked.resolve();
      return done.promise;
    };
    const server = await serve({ onAsked: answerSasl });
    const it = client(server.address, { sasl: () => ({ ...contented, step }) });
    await asked.promise;
    const peer = await server.peer();
    const over = new Promise((resolve) => peer.socket.once('close', resolve));

    const closed = it.close();
    if (isDoneLater) done.resolve(null);
    await closed;
    await over;

    expect(peer.asked.map(({ op }) => op)).toEqual(['sasl']);
  }
});

test('many may wait for the same client without a warning', async () => {
  const warned = vi.fn();
  process.on('warning', warned);
  cleanUps.push(() => process.off('warning', warned));
  const server = await serve();
  const it = client(server.address);

  await Promise.all(Array.from({ length: 50 }, () => it.connected()));
  await new Promise((resolve) => setImmediate(resolve));

  expect(warned).not.toHaveBeenCalled();
  expect(it.listenerCount('state')).toBe(0);
});

test('a call can be called off before it is sent and after, and leaves no timer and no listener', async () => {
  const clock = new ManualClock();
  const server = await serve({ onHello: () => {} });
  const it = client(server.address, { clock });
  letGo(server);
  const peer = await server.peer();
  const timers = clock.pending;
  const abort = new AbortController();
  const early = new AbortController();
  const unsent = it.get('/unsent', { signal: early.signal, timeoutMs: 5_000 });
  early.abort(new Error('enough'));
  await expect(unsent).rejects.toThrow('enough');
  expect(getEventListeners(early.signal, 'abort')).toEqual([]);
  expect(clock.pending).toBe(timers);
  await expect(it.get('/a', { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow(
    'never',
  );

  peer.welcome();
  await it.connected();
  const sent = it.set('/sent', 'x', { signal: abort.signal });
  expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
  await peer.until('setData');
  abort.abort(new Error('enough'));

  await expect(sent).rejects.toThrow('enough');
  expect(peer.asked).toEqual([]);
});

test('a deadline says whether the call had left', async () => {
  const clock = new ManualClock();
  const server = await serve({ onHello: () => {} });
  const it = client(server.address, { clock, requestTimeoutMs: 700, attemptTimeoutMs: 60_000 });
  letGo(server);
  const peer = await server.peer();
  const unsent = it.set('/a', 'x').catch((error) => error);
  clock.advance(700);
  expect(await unsent).toMatchObject({ code: 'OPERATION_TIMEOUT', outcomeUnknown: false });
  expect((await unsent).message).toContain('700 ms are over; it was not sent');

  peer.welcome();
  await it.connected();
  const [write, read] = [it.set('/a', 'x', { timeoutMs: 300 }), it.get('/a', { timeoutMs: 300 })];
  await peer.until('getData');
  const outcomes = Promise.allSettled([write, read]);
  clock.advance(300);

  expect(await outcomes).toMatchObject([
    { reason: { code: 'OPERATION_TIMEOUT', outcomeUnknown: true } },
    { reason: { code: 'OPERATION_TIMEOUT', outcomeUnknown: false } },
  ]);
});

test('requests and connects can be traced, and carry no secret', async () => {
  const seen: object[] = [];
  const note = (context: object) => seen.push(context);
  const channels = [tracingChannel('drover:request'), tracingChannel('drover:connect')];
  const listeners = { start: note, end() {}, asyncStart() {}, asyncEnd() {}, error() {} };
  for (const channel of channels) channel.subscribe(listeners as never);
  cleanUps.push(() => {
    for (const channel of channels) channel.unsubscribe(listeners as never);
  });
  const server = await serve({ onAsked: (peer, { xid }) => peer.reply(xid, xid > 0 ? -101 : 0) });
  const it = client(server.address, { auth: [{ scheme: 'digest', auth: 'me:secret' }] });

  await it.exists('/a');

  expect(seen).toMatchObject([{}, { op: 'exists', path: '/a' }]);
  expect(
    JSON.stringify(seen, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
  ).not.toContain('secret');
});

test('the log tells of states and lost links, not of a close that was asked for', async () => {
  const lines: string[] = [];
  const line = (level: string) => (_: object, message: string) => lines.push(`${level} ${message}`);
  const logger = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  };
  const server = await serve({ onAsked: (peer, { xid }) => peer.reply(xid) });
  const it = client(server.address, { logger });
  await it.connected();

  await it.close();

  expect(lines).toEqual(['info session state', 'info session state']);
  expect(ops.closeSession.code).toBe(-11);
});
