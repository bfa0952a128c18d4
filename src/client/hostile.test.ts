/** A server that means harm, or has lost its mind: whatever it sends, the client keeps its own. */

import { createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { encode, FrameSplitter, ProtocolError, Reader, Writer } from '../jute/index.ts';
import {
  ConnectResponse,
  eventTypes,
  specialXids,
  WatcherEvent,
  wireOf,
  ZkError,
} from '../protocol/index.ts';
import { ManualClock } from '../support/index.ts';
import { Client } from './client.ts';
import { ConnectError } from './dialer.ts';
import type { ClientOptions } from './options.ts';

const cleanUps: (() => unknown)[] = [];
const stray = vi.fn();

beforeEach(() => {
  stray.mockClear();
  process.on('unhandledRejection', stray);
  process.on('uncaughtExceptionMonitor', stray);
});

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', stray);
  process.off('uncaughtExceptionMonitor', stray);
  expect(stray).not.toHaveBeenCalled();
});

type Say = (bytes: Buffer) => void;
interface Script {
  /** Instead of the welcome. */
  readonly hello?: (say: Say, socket: Socket, connection: number) => void;
  readonly asked?: (say: Say, xid: number, connection: number, socket: Socket) => void;
}

async function serve({ hello, asked }: Script) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    const connection = ++connections;
    let isFirst = true;
    const say = (bytes: Buffer) => socket.write(bytes);
    const splitter = new FrameSplitter(1 << 24, (bytes, start) => {
      if (isFirst) {
        isFirst = false;
        if (hello) hello(say, socket, connection);
        else say(framed(welcome()));
      } else asked?.(say, bytes.readInt32BE(start), connection, socket);
    });
    socket.on('error', () => {});
    socket.on('data', (chunk) => splitter.push(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as { port: number };
  return { address: `127.0.0.1:${port}`, connections: () => connections };
}

function welcome(more: Partial<ConnectResponse> = {}): Buffer {
  const passwd = Buffer.alloc(16, 1);
  const good = { protocolVersion: 0, timeOut: 10_000, sessionId: 5n, passwd, readOnly: false };
  return encode(ConnectResponse, { ...good, ...more });
}

function framed(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

function reply(xid: number, err = 0, body: Buffer = Buffer.alloc(0)): Buffer {
  const header = new Writer();
  header.int(xid);
  header.long(1n);
  header.int(err);
  return framed(Buffer.concat([header.written(), body]));
}

const event = (path: string, type: number = eventTypes.created) =>
  reply(specialXids.notification, 0, encode(WatcherEvent, { type, state: 3, path }));

function client(address: string, options: ClientOptions = {}): Client {
  const made = new Client(address, {
    backoff: { firstMs: 1, maxMs: 2 },
    closeTimeoutMs: 20,
    attemptTimeoutMs: 500,
    readRetries: 0,
    ...options,
  });
  cleanUps.push(() => made.close());
  return made;
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error('it was done');
    },
    (error) => error,
  );

test.each<[string, Buffer, RegExp]>([
  ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), /a frame of 1213486160 bytes/],
  ['a negative length', Buffer.from('ffffffff', 'hex'), /a frame of -1 bytes/],
  ['an empty frame', framed(Buffer.alloc(0)), /cut short/],
  ['half an answer', framed(welcome().subarray(0, 20)), /cut short/],
  ['more than an answer', framed(Buffer.concat([welcome(), Buffer.alloc(9)])), /bytes too many/],
  [
    'a password without end',
    framed(Buffer.from('00000000000027100000000000000005 7fffffff'.replace(' ', ''), 'hex')),
    /cut short/,
  ],
])(
  'a handshake answered with %s is a try that failed, and the error says why',
  async (_, bytes, why) => {
    const server = await serve({ hello: (say) => say(bytes) });

    const error = await failure(client(server.address, { connectRoundsMax: 2 }).connected());

    expect(error).toBeInstanceOf(ConnectError);
    expect(error.message).toMatch(why);
    expect(server.connections()).toBe(2);
  },
);

test('who waits no longer for a server that takes links and says nothing is told which it is', async () => {
  const server = await serve({ hello: () => {} });

  const error = await failure(
    client(server.address, { attemptTimeoutMs: 60_000 }).connected({ timeoutMs: 50 }),
  );

  expect(error).toBeInstanceOf(ConnectError);
  expect(error.message).toMatch(
    new RegExp(`^no server took us in: ${server.address} has not answered for \\d+ ms$`),
  );
});

test('a handshake that is never answered, or byte by byte, is given up in time', async () => {
  const server = await serve({
    hello: (say, socket) => {
      const drip = setInterval(() => say(Buffer.alloc(1)), 10);
      socket.on('close', () => clearInterval(drip));
    },
  });

  const error = await failure(
    client(server.address, { connectRoundsMax: 1, attemptTimeoutMs: 100 }).connected(),
  );

  expect(error.message).toMatch(/did not answer the handshake within 100 ms|cut short/);
});

test('what is said behind the welcome, before anything was asked, does no harm', async () => {
  const server = await serve({
    hello: (say, _, connection) =>
      say(
        connection === 1
          ? Buffer.concat([framed(welcome()), reply(1), reply(2)])
          : framed(welcome()),
      ),
    asked: (say, xid) => say(reply(xid, -101)),
  });
  const it = client(server.address);

  expect(await it.exists('/a')).toBeNull();
});

test.each<[string, (xid: number) => Buffer, RegExp]>([
  [
    'the wrong xid',
    (xid) => reply(xid + 1),
    /a reply with xid 3, out of turn: 2 \(setData\) is next/,
  ],
  ['an xid of 0', () => reply(0), /a reply with xid 0, which no request has/],
  ['a special xid that there is none of', () => reply(-77), /xid -77, which no request has/],
  ['a header cut short', () => framed(Buffer.alloc(9)), /cut short/],
  ['a Stat cut short', (xid) => reply(xid, 0, Buffer.alloc(67)), /cut short/],
  ['a Stat and more', (xid) => reply(xid, 0, Buffer.alloc(69)), /bytes too many/],
  ['a frame larger than any', () => Buffer.from('7fffffff', 'hex'), /a frame of 2147483647 bytes/],
  ['an event of no type', () => event('/a', 99), /no event has type 99/],
  ['an event with a path that is none', () => event('abc'), /an event whose path is none/],
  ['an event cut short', () => reply(-1, 0, Buffer.alloc(3)), /cut short/],
  [
    'an event with a path without end',
    () => reply(-1, 0, Buffer.from('00000001000000037fffffff', 'hex')),
    /cut short/,
  ],
])('%s drops the link, and the call says so', async (_, bytes, why) => {
  const server = await serve({
    asked: (say, xid, connection) => {
      if (connection > 1) say(reply(xid, xid > 0 ? -101 : 0));
      else if (xid === 1) say(reply(xid, 0, Buffer.alloc(4)));
      else say(bytes(xid));
    },
  });
  const it = client(server.address);
  await it.addWatch('/x', 'persistentRecursive', () => {});

  const error = await failure(it.set('/a', 'x'));

  expect(error).toMatchObject({ code: 'CONNECTION_LOSS', outcomeUnknown: true });
  expect(error.cause).toBeInstanceOf(ProtocolError);
  expect(error.cause.message).toMatch(why);
  expect(await it.exists('/a')).toBeNull();
  expect(server.connections()).toBe(2);
});

test('a list that claims to be longer than its frame is refused before memory is taken', async () => {
  const claims = Buffer.from('7fffffff', 'hex');
  const server = await serve({ asked: (say, xid) => say(reply(xid, 0, claims)) });
  const it = client(server.address);
  const before = process.memoryUsage().rss;

  const error = await failure(it.children('/a'));

  expect(error.cause.message).toMatch(/a vector of 2147483647 items in 0 bytes/);
  expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
});

test('the longest list that fits into a frame is taken as it is', async () => {
  const count = 200_000;
  const names = Buffer.alloc(4 + count * 4);
  names.writeInt32BE(count);
  const server = await serve({ asked: (say, xid) => say(reply(xid, 0, names)) });

  const children = await client(server.address).children('/a');

  expect(children).toHaveLength(count);
});

test('a multi with fewer or more results than ops is no answer to it', async () => {
  const end = Buffer.from('ffffffff01ffffffff', 'hex');
  const extra = Buffer.from('ffffffff00ffffff9bffffff9b', 'hex');
  const server = await serve({
    asked: (say, xid) => say(reply(xid, 0, xid % 2 ? end : Buffer.concat([extra, extra, end]))),
  });
  const it = client(server.address);
  const ops = [{ op: 'check', path: '/a' }] as const;

  await expect(it.multi(ops)).rejects.toThrow('0 results for a multi of 1 ops');
  await expect(it.multi(ops)).rejects.toThrow('2 results for a multi of 1 ops');
  await expect(it.multiRead([{ op: 'get', path: '/a' }])).rejects.toThrow(ProtocolError);
});

test('a result of another op than was asked for is no answer to it', async () => {
  const end = Buffer.from('ffffffff01ffffffff', 'hex');
  const deleted = Buffer.from('000000020000000000', 'hex');
  const noChildren = Buffer.from('00000008000000000000000000', 'hex');
  const server = await serve({
    // The first request looks for /zookeeper/config, as the client's first create does.
    asked: (say, xid) =>
      say(
        xid === 1
          ? reply(xid, wireOf('NO_NODE'))
          : reply(xid, 0, Buffer.concat([xid === 2 ? deleted : noChildren, end])),
      ),
  });
  const it = client(server.address);

  const made = it.multi([{ op: 'create', path: '/a' }]);
  await expect(made).rejects.toThrow('a result of delete, where create was asked for');
  const read = it.multiRead([{ op: 'get', path: '/a' }]);
  await expect(read).rejects.toThrow('a result of getChildren, where get was asked for');
});

test('a multi that names no culprit has failed all the same', async () => {
  const end = Buffer.from('ffffffff01ffffffff', 'hex');
  const fine = Buffer.from('ffffffff000000000000000000', 'hex');
  const untried = Buffer.from('ffffffff00fffffffefffffffe', 'hex');
  const server = await serve({
    asked: (say, xid) =>
      say(reply(xid, 0, Buffer.concat([fine, xid === 1 ? untried : fine, untried, end]))),
  });
  const it = client(server.address);
  const ops = ['/a', '/b', '/c'].map((path) => ({ op: 'delete', path }) as const);

  const first = await failure(it.multi(ops));
  const second = await failure(it.multi(ops));

  expect(first).toMatchObject({ code: 'RUNTIME_INCONSISTENCY', index: 1, path: '/b' });
  expect(second).toMatchObject({ code: 'RUNTIME_INCONSISTENCY', index: 2, path: '/c' });
});

test('of one name with many addresses all have their turn before the session is in danger', async () => {
  const clock = new ManualClock();
  let hellos = 0;
  const server = await serve({
    hello: (say) => {
      hellos += 1;
      if (hellos === 3) say(framed(welcome({ timeOut: 6_000 })));
    },
    asked: (_, __, ___, socket) => socket.destroy(), // it says goodbye
  });
  const lookup = async () => Array.from({ length: 3 }, () => ({ address: '127.0.0.1' }));
  const made = new Client(server.address.replace('127.0.0.1', 'all.test'), {
    sessionTimeoutMs: 6_000,
    clock,
    lookup,
  });
  cleanUps.push(() => made.close({ timeoutMs: 0 }));

  for (const count of [1, 2]) {
    await vi.waitFor(() => expect(hellos).toBe(count));
    clock.advance(1_500);
  }

  await made.connected();
  expect(clock.nowMs()).toBe(3_000);
});

test('events without end keep neither memory nor the caller', async () => {
  const many = Buffer.concat(Array.from({ length: 1_000 }, (_, i) => event(`/a/${i}`)));
  let isOver = false;
  cleanUps.push(() => {
    isOver = true;
  });
  const server = await serve({
    asked: (say, xid, _, socket) => {
      say(reply(xid, 0, xid === 1 ? Buffer.alloc(4) : Buffer.alloc(68)));
      const pour = () => {
        if (isOver || socket.destroyed) return;
        if (socket.write(many)) setImmediate(pour);
        else socket.once('drain', pour);
      };
      if (xid === 1) pour();
    },
  });
  const it = client(server.address);
  let heard = 0;
  await it.connected();
  await it.addWatch('/a', 'persistentRecursive', () => {
    heard += 1;
  });
  const before = process.memoryUsage().heapUsed;

  for (let i = 0; i < 3; i++) await it.set('/a', 'x');
  await vi.waitFor(() => expect(heard).toBeGreaterThan(20_000), { timeout: 15_000, interval: 5 });

  expect(process.memoryUsage().heapUsed - before).toBeLessThan(200e6);
  expect(it.state.name).toBe('connected');
});

test('a server that lies about the session is believed for as long as it says, and no crash comes of it', async () => {
  for (const more of [
    { timeOut: -5 },
    { timeOut: 1 },
    { timeOut: 0x7fffffff },
    { sessionId: -1n },
    { sessionId: 0n },
    { passwd: null },
    { passwd: Buffer.alloc(100_000) },
    { protocolVersion: 77 },
  ]) {
    const server = await serve({
      hello: (say) => say(framed(welcome(more))),
      asked: (say, xid) => say(reply(xid, xid > 0 ? -101 : 0)),
    });
    const it = client(server.address, { connectRoundsMax: 2 });

    const outcome = await it.exists('/a').catch((error) => error);

    if (outcome !== null) expect(outcome).toBeInstanceOf(ZkError);
    await it.close();
  }
});

test('whatever bytes come, each call is settled and the client lives or ends with a reason', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((it) => Buffer.from(it)),
    fc.uint8Array({ maxLength: 120 }).map((it) => framed(Buffer.from(it))),
    // A true reply with some of its bytes changed.
    fc
      .tuple(fc.integer({ min: -9, max: 9 }), fc.uint8Array({ minLength: 60, maxLength: 90 }))
      .map(([xid, body]) => reply(xid, 0, Buffer.from(body))),
    fc.constantFrom(event('/a'), event('/'), reply(-2), reply(-4, -115), reply(-8), reply(1, -112)),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(bytes, { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (answers, fromHello) => {
        let turn = 0;
        const server = await serve({
          ...(fromHello
            ? {
                hello: (say: Say) =>
                  say(answers[turn++ % (answers.length + 1)] ?? framed(welcome())),
              }
            : {}),
          asked: (say) => say(answers[turn++ % answers.length]!),
        });
        const it = client(server.address, {
          connectRoundsMax: 3,
          attemptTimeoutMs: 30,
          requestTimeoutMs: 60,
        });
        const calls = [
          it.exists('/a'),
          it.get('/a'),
          it.set('/a', 'x'),
          it.children('/'),
          it.multi([{ op: 'check', path: '/a' }]),
        ];

        const outcomes = await Promise.allSettled(calls);
        await it.close();

        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(Error);
        }
        expect(['closed', 'authFailed', 'expired']).toContain(it.state.name);
        for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
      },
    ),
    { numRuns: 60, seed: 20_26 },
  );
}, 60_000);

test('a reader at the end of its wits is still a ProtocolError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const read = () => ConnectResponse.read(new Reader(Buffer.from(bytes)));
      try {
        read();
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }),
  );
});
