import { describe, expect, test } from 'vitest';
import type { ConnectRequest } from '../protocol/index.ts';
import { ManualClock } from '../support/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { passwordOf } from './passwords.ts';
import { startServer } from './start-server.ts';

test('the answer has the read-only byte if and only if the request had it', async () => {
  await using zk = await startTestServer();
  const now = await RawClient.dial(zk.port);
  const old = await RawClient.dial(zk.port);

  expect(await now.shakeHands()).toBe(37);
  expect(await old.shakeHands({ readOnly: undefined })).toBe(36);
  expect((await old.ping()).err).toBe(0);
});

test('the timeout is bounded by 2 and 20 ticks', async () => {
  await using zk = await startTestServer({ tickTimeMs: 1_000 });

  const timeouts = await Promise.all(
    [0, 5_000, 1_000_000].map(
      async (timeOut) => (await RawClient.connect(zk.port, { timeOut })).timeOut,
    ),
  );

  expect(timeouts).toEqual([2_000, 5_000, 20_000]);
});

test('a session has a password, and takes a zxid', async () => {
  await using zk = await startTestServer();

  const client = await RawClient.connect(zk.port);

  expect(client.passwd).toHaveLength(16);
  expect((await client.ping()).zxid).toBe(1n);
});

test('a session moves to the link that asks for it, and the old link ends', async () => {
  await using zk = await startTestServer();
  const first = await RawClient.connect(zk.port);
  await first.ask('create', { path: '/e', data: null, acl: open, flags: 1 });

  const second = await RawClient.connect(zk.port, {
    sessionId: first.sessionId,
    passwd: first.passwd,
  });
  await first.ended();

  expect(second.sessionId).toBe(first.sessionId);
  expect((await second.ask('getEphemerals', { prefixPath: '/' })).ephemerals).toEqual(['/e']);
});

test('a reader of an ephemeral node can not take over the session that owns it', async () => {
  await using zk = await startTestServer();
  const owner = await RawClient.connect(zk.port);
  await owner.ask('create', { path: '/e', data: null, acl: open, flags: 1 });
  const reader = await RawClient.connect(zk.port);
  const { stat } = await reader.ask('exists', { path: '/e', watch: false });
  const sessionId = stat.ephemeralOwner;

  const thief = await RawClient.connect(zk.port, { sessionId, passwd: passwordOf(sessionId) });

  expect(thief.sessionId).toBe(0n);
  const back = await RawClient.connect(zk.port, { sessionId, passwd: owner.passwd });
  expect(back.sessionId).toBe(sessionId);
});

test('with the rule of Apache a session has the password that follows from its id', async () => {
  await using zk = await startTestServer({ sessionPasswords: 'apache' });
  const { sessionId, passwd } = await RawClient.connect(zk.port);

  expect(passwd).toEqual(passwordOf(sessionId));
});

test('a wrong password gets no session, and costs the owner its link but not its session', async () => {
  await using zk = await startTestServer();
  const owner = await RawClient.connect(zk.port);
  const { sessionId, passwd } = owner;

  const thief = await RawClient.connect(zk.port, { sessionId, passwd: Buffer.alloc(16, 1) });
  await thief.ended();
  await owner.ended();
  const back = await RawClient.connect(zk.port, { sessionId, passwd });

  expect([thief.sessionId, thief.timeOut, thief.passwd]).toEqual([0n, 0, Buffer.alloc(16)]);
  expect(back.sessionId).toBe(sessionId);
});

test('an unknown session is refused with a full answer', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.dial(zk.port);

  expect(await client.shakeHands({ sessionId: 42n })).toBe(37);
  await client.ended();

  expect(client.sessionId).toBe(0n);
});

test('who has seen a later zxid is not answered at all', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.dial(zk.port);

  expect(await client.shakeHands({ lastZxidSeen: 1_000n })).toBe(0);
});

test.each([
  { asked: 20_000, next: 2_000, livesMs: 2_000 },
  { asked: 2_000, next: 20_000, livesMs: 20_000 },
  { asked: 5_000, next: -1, livesMs: 2_000 },
  { asked: 5_000, next: 0x7fff_ffff, livesMs: 20_000 },
])('a reconnect negotiates the timeout anew: $asked ms, then $next', async (timeouts) => {
  const { asked, next, livesMs } = timeouts;
  await using zk = await startTestServer({ tickTimeMs: 1_000 });
  const first = await RawClient.connect(zk.port, { timeOut: asked });
  const { sessionId, passwd } = first;

  const second = await RawClient.connect(zk.port, { sessionId, passwd, timeOut: next });
  zk.clock.advance(livesMs - 1);
  const isAlive = zk.engine.sessions.get(sessionId) !== undefined;
  zk.clock.advance(1_001);
  await second.ended();

  expect([first.timeOut, second.timeOut]).toEqual([asked, livesMs]);
  expect(isAlive).toBe(true);
  expect(zk.engine.sessions.get(sessionId)).toBeUndefined();
});

/** What a handshake may hold, and what comes of it: for a new session, and for one that is there. */
// biome-ignore format: a table is read down its columns
const handshakes: [string, (own: { passwd: Buffer }) => Partial<ConnectRequest>, string, string][] = [
  ['nothing odd',                    () => ({}),                                       'welcome', 'welcome'],
  ['a protocol of another version',  () => ({ protocolVersion: 7 }),                   'welcome', 'welcome'],
  ['a protocol of a version below 0', () => ({ protocolVersion: -1 }),                 'welcome', 'welcome'],
  ['the last zxid',                  () => ({ lastZxidSeen: 3n }),                     'welcome', 'welcome'],
  ['a zxid below 0',                 () => ({ lastZxidSeen: -1n }),                    'welcome', 'welcome'],
  ['a zxid that is still to come',   () => ({ lastZxidSeen: 1_000n }),                 'closed',  'closed'],
  ['the last of all zxids',          () => ({ lastZxidSeen: 2n ** 63n - 1n }),         'closed',  'closed'],
  ['a password with another bit',    ({ passwd }) => ({ passwd: flipped(passwd) }),    'welcome', 'refused'],
  ['a password that is cut short',   ({ passwd }) => ({ passwd: passwd.subarray(1) }), 'welcome', 'refused'],
  ['a password with a byte more',    ({ passwd }) => ({ passwd: Buffer.concat([passwd, Buffer.alloc(1)]) }), 'welcome', 'refused'],
  ['an empty password',              () => ({ passwd: Buffer.alloc(0) }),              'welcome', 'refused'],
  ['no password',                    () => ({ passwd: null }),                         'welcome', 'refused'],
  ['a client that may only read',    () => ({ readOnly: true }),                       'welcome', 'welcome'],
  ['a client from before 3.4',       () => ({ readOnly: undefined }),                  'welcome', 'welcome'],
];
const flipped = (bytes: Buffer) =>
  Buffer.from(bytes.map((byte, at) => (at === 15 ? byte ^ 1 : byte)));

describe.each(handshakes)('a handshake with %s', (_, odd, forNew, forOld) => {
  const outcome = (client: RawClient, length: number): string => {
    if (length === 0) return 'closed';
    return client.sessionId === 0n ? 'refused' : 'welcome';
  };

  test(`for a new session: ${forNew}`, async () => {
    await using zk = await startTestServer();
    const owner = await RawClient.connect(zk.port);
    const client = await RawClient.dial(zk.port);
    await owner.ask('sync', { path: '/' });
    await owner.ask('create', { path: '/a', data: null, acl: open, flags: 0 });
    await owner.ask('create', { path: '/b', data: null, acl: open, flags: 0 });

    const length = await client.shakeHands(odd({ passwd: owner.passwd! }));

    expect(outcome(client, length)).toBe(forNew);
    expect(zk.engine.sessions.size).toBe(forNew === 'welcome' ? 2 : 1);
    expect((await owner.ping()).err).toBe(0);
    if (forNew !== 'welcome') return;
    expect(client.sessionId).not.toBe(owner.sessionId);
    expect(client.passwd).toHaveLength(16);
    expect(client.passwd).not.toEqual(owner.passwd);
  });

  test(`for a session that is there: ${forOld}`, async () => {
    await using zk = await startTestServer();
    const owner = await RawClient.connect(zk.port, { timeOut: 10_000 });
    const { sessionId, passwd } = owner;
    await owner.ask('create', { path: '/a', data: null, acl: open, flags: 1 });
    await owner.ask('create', { path: '/b', data: null, acl: open, flags: 1 });
    const client = await RawClient.dial(zk.port);

    const asked = { sessionId, passwd, timeOut: 20_000, ...odd({ passwd: passwd! }) };
    const length = await client.shakeHands(asked);

    expect(outcome(client, length)).toBe(forOld);
    const session = zk.engine.sessions.get(sessionId)!;
    // Whoever is turned away has changed nothing of it.
    expect(session.timeoutMs).toBe(forOld === 'welcome' ? 20_000 : 10_000);
    expect(zk.engine.tree.ephemeralsOf(sessionId).size).toBe(2);
    if (forOld === 'welcome') {
      expect([client.sessionId, client.passwd, client.timeOut]).toEqual([
        sessionId,
        passwd,
        20_000,
      ]);
      expect((await client.ask('getEphemerals', { prefixPath: '' })).ephemerals).toHaveLength(2);
    } else if (forOld === 'refused') {
      expect([client.sessionId, client.passwd, client.timeOut]).toEqual([0n, Buffer.alloc(16), 0]);
    } else {
      expect((await owner.ping()).err).toBe(0);
    }
  });
});

test("another session's id with one's own password is refused, and both sessions stay", async () => {
  await using zk = await startTestServer();
  const [ann, bob] = [await RawClient.connect(zk.port), await RawClient.connect(zk.port)];

  const thief = await RawClient.connect(zk.port, {
    sessionId: ann.sessionId,
    passwd: bob.passwd,
  });

  expect(thief.sessionId).toBe(0n);
  expect((await bob.ping()).err).toBe(0);
  const { sessionId, passwd } = ann;
  expect((await RawClient.connect(zk.port, { sessionId, passwd })).sessionId).toBe(sessionId);
});

test.each([-1n, 1n, 2n ** 63n - 1n, -(2n ** 63n)])(
  'a session of id %s, which nobody has, is refused and not made',
  async (sessionId) => {
    await using zk = await startTestServer();

    const client = await RawClient.connect(zk.port, { sessionId });

    expect(client.sessionId).toBe(0n);
    expect(zk.engine.sessions.size).toBe(0);
  },
);

test('requests sent with the handshake, in one piece, are answered after it', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.dial(zk.port);

  const shaken = client.shakeHands();
  const made = client.send('create', { path: '/a', data: null, acl: open, flags: 0 });
  const read = client.send('exists', { path: '/a', watch: false });
  await shaken;

  expect((await client.reply(read)).err).toBe(0);
  expect(client.heard).toEqual([made, read]);
});

test('four letters are answered, even one by one, and then the link ends', async () => {
  await using zk = await startTestServer({
    fourLetterWord: (word) => (word === 'stat' ? 'x' : undefined),
  });
  const link = await RawClient.dial(zk.port);

  for (const letter of 'ruok') {
    link.write(Buffer.from(letter));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }

  await link.ended();
  expect(link.text).toBe('imok');
});

test('a length that can not be ends the link without an answer', async () => {
  await using zk = await startTestServer();
  for (const length of [-1, 0x7fff_ffff, 0x100000]) {
    const client = await RawClient.connect(zk.port);
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(length);

    client.write(bytes);

    await client.ended();
  }
});

test('a link that asks for nothing is closed', async () => {
  await using zk = await startTestServer({ limits: { handshakeTimeoutMs: 5_000 } });
  const silent = await RawClient.dial(zk.port);
  const dribbling = await RawClient.dial(zk.port);
  const asked = await RawClient.connect(zk.port);
  dribbling.write(Buffer.from([0, 0]));
  await asked.ping();

  zk.clock.advance(5_001);

  await silent.ended();
  await dribbling.ended();
  expect((await asked.ping()).err).toBe(0);
});

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

test.each(['srvr', 'nothing'])(
  'a link that said %s and went leaves no timer behind',
  async (said) => {
    const clock = new ManualClock();
    await using server = await startServer({ port: 0, inMemory: true, clock });
    const before = clock.pending;
    const link = await RawClient.dial(server.port);
    while (server.engine.connections.size === 0) await new Promise(setImmediate);

    if (said === 'srvr') link.write(Buffer.from(said));
    else link.close();
    while (server.engine.connections.size > 0) await new Promise(setImmediate);

    expect(clock.pending).toBe(before);
  },
);
