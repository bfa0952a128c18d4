import { expect, test } from 'vitest';
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
