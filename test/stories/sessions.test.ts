import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { Client, ConnectError, connect } from '../../src/client/index.ts';
import { Link } from '../../src/testing/index.ts';
import { freePort } from '../peers/free-port.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

function states(client: Client): string[] {
  const names: string[] = [];
  client.on('state', ({ name }) => names.push(name));
  return names;
}

test('a cut suspends the session; the next link brings it back as it was', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const { sessionId, sessionSignal } = client;
  await client.create('/mine', '', { mode: 'ephemeral' });
  const seen = states(client);

  zk.link.cut();
  await reached(client, 'suspended');
  await reached(client, 'connected');

  expect(seen).toEqual(['suspended', 'connected']);
  expect(client.sessionId).toBe(sessionId);
  expect(sessionSignal.aborted).toBe(false);
  expect((await client.exists('/mine'))!.ephemeralOwner).toBe(sessionId);
});

test('a reset by the peer is as good as a cut', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const { sessionId } = client;

  for (let i = 0; i < 5; i++) {
    zk.link.cut({ reset: true });
    await client.exists('/');
  }

  expect(client.sessionId).toBe(sessionId);
});

test('a session that the server ended is over for good, with all that it held', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await client.create('/mine', '', { mode: 'ephemeral' });
  const told = vi.fn();
  await client.exists('/x', { watch: told });
  const signal = client.sessionSignal;
  const seen = states(client);

  await zk.expire(client);
  await reached(client, 'expired');

  expect(seen.at(-1)).toBe('expired');
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: 'SESSION_EXPIRED' });
  expect(told.mock.calls).toEqual([[{ type: 'none', path: '', zxid: null }]]);
  expect(await witness.exists('/mine')).toBeNull();
  await expect(client.get('/')).rejects.toMatchObject({
    code: 'SESSION_EXPIRED',
    outcomeUnknown: false,
  });
  expect([client.sessionId, client.identity, client.server]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  await client.close();
  expect(client.state.name).toBe('expired');
});

test('with all hosts down the client ends the session itself, by its own clock', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ sessionTimeoutMs: 1_000, backoff: { maxMs: 200 } });
  const signal = client.sessionSignal;

  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  const unsent = client.set('/', 'x').catch((error) => error);
  await once(signal, 'abort');

  expect(client.state.name).toBe('expired');
  const error = await unsent;
  expect(error).toMatchObject({ code: 'SESSION_EXPIRED', outcomeUnknown: false });
  expect(error.message).toMatch(/no server answered for \d+ ms, the session timeout/);
  expect(error.cause).toBeInstanceOf(ConnectError);
});

test('down for three session timeouts and up again: without renew it stays expired, with it a new session begins', async () => {
  await using zk = await startZk();
  const options = { sessionTimeoutMs: 1_000, backoff: { firstMs: 20, maxMs: 100 } };
  const [stays, renews] = [
    await zk.connect(options),
    await zk.connect({ ...options, renew: true }),
  ];
  const before = renews.sessionId;
  const { timeoutMs } = stays.identity!;
  const began: unknown[] = [];
  renews.on('session', (session) => began.push(session));

  zk.link.refuse();
  zk.link.cut();
  await Promise.all([reached(stays, 'expired'), reached(renews, 'connecting')]);
  // Two more timeouts, measured by a client that has nobody to talk to either.
  const other = new Client(zk.link.address, options);
  await expect(other.connected({ timeoutMs: 2 * timeoutMs })).rejects.toThrow(/ECONNREFUSED/);
  await other.close();
  await zk.link.accept();
  await reached(renews, 'connected');

  expect(stays.state.name).toBe('expired');
  expect(renews.sessionId).not.toBe(before);
  expect(began).toEqual([{ sessionId: renews.sessionId, isFirst: false }]);
  expect(await renews.exists('/')).not.toBeNull();
});

test('a new session is told of, so that what the old one held can be made again', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  await client.create('/mine', '', { mode: 'ephemeral' });
  const first = client.sessionId;
  const firstSignal = client.sessionSignal;
  const remade = new Promise<boolean>((resolve) => {
    client.on('session', async ({ isFirst }) => {
      await client.create('/mine', '', { mode: 'ephemeral' });
      resolve(isFirst);
    });
  });
  const seen = states(client);

  await zk.expire(client);

  expect(await remade).toBe(false);
  expect(firstSignal.aborted).toBe(true);
  expect(client.sessionSignal.aborted).toBe(false);
  expect(client.sessionId).not.toBe(first);
  expect((await client.exists('/mine'))!.ephemeralOwner).toBe(client.sessionId);
  expect(seen.slice(seen.indexOf('expired'))).toEqual(['expired', 'connected']);
});

test('the first session is told of too, to whoever listens from the start', async () => {
  await using zk = await startZk();
  await using client = new Client(zk.address);

  const [session] = await once(client, 'session');

  expect(session).toEqual({ sessionId: client.sessionId, isFirst: true });
});

test('another client takes a session over by its identity, and the first one loses it', async () => {
  await using zk = await startZk();
  const first = await zk.connect();
  await first.create('/mine', '', { mode: 'ephemeral' });
  const identity = first.identity!;
  zk.link.refuse();
  zk.link.cut();
  await reached(first, 'suspended');

  await using second = await connect(zk.directAddress, { identity });

  expect(second.sessionId).toBe(identity.sessionId);
  expect(await ephemeralsOf(second)).toEqual(['/mine']);
});

test('a second client with the same identity ends the first, which is told why', async () => {
  await using zk = await startZk();
  const first = await zk.connect();
  await first.create('/mine', '', { mode: 'ephemeral' });
  const { sessionSignal } = first;
  const ended = reached(first, 'expired');

  await using second = await connect(zk.directAddress, { identity: first.identity! });
  await ended;

  expect(sessionSignal.aborted).toBe(true);
  await expect(first.get('/mine')).rejects.toThrow(/another client took the session over/);
  await expect(first.get('/mine')).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  const { stat } = await second.get('/mine');
  expect(stat.ephemeralOwner).toBe(second.sessionId);
  expect(second.sessionId).toBeDefined();
  expect(await first.close()).toEqual({ sessionEnded: false });
});

test.each(['as soon as it is connected', 'after its first answer'] as const)(
  'a network that cuts all connections of a client 30 times, each %s, ends no session',
  async (when) => {
    await using zk = await startZk();
    const client = await zk.connect({ backoff: { firstMs: 1, maxMs: 20 } });
    const { sessionId, sessionSignal } = client;
    await client.create('/mine', '', { mode: 'ephemeral' });

    for (let cut = 1; cut <= 30; cut++) {
      await reached(client, 'connected');
      if (when === 'after its first answer') {
        const { toClient } = zk.link.stats.frames;
        client.exists('/').catch(() => {});
        await zk.link.until(({ frames }) => frames.toClient > toClient);
      }
      zk.link.cut({ reset: cut % 2 === 0 });
      await reached(client, 'suspended');
    }

    await expect(client.exists('/mine')).resolves.toMatchObject({ ephemeralOwner: sessionId });
    // It was in doubt: one of its connections was a witness.
    expect(zk.link.stats.connections).toBeGreaterThan(31);
    expect(client.sessionId).toBe(sessionId);
    expect(sessionSignal.aborted).toBe(false);
  },
);

test('an identity that no server knows is an expired session, at once', async () => {
  await using zk = await startZk();
  const identity = { sessionId: 0x123456n, password: Buffer.alloc(16, 1), timeoutMs: 5_000 };

  const taken = connect(zk.address, { identity });

  await expect(taken).rejects.toThrow(/says that the session is over/);
});

test.each([
  'before it has a server',
  'while it shakes hands',
  'while a request is out',
  'while it has no link',
  'after it was closed',
] as const)('closing %s settles all, once, and twice is no harm', async (when) => {
  await using zk = await startZk();
  if (when === 'before it has a server') zk.link.refuse();
  if (when === 'while it shakes hands') zk.link.pause('toClient');
  const client = new Client(zk.address, { closeTimeoutMs: 200 });
  const waiting: Promise<unknown>[] = [];
  const outcome = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      (error) => error.code,
    );
  if (when === 'while it shakes hands') {
    await zk.link.until(({ frames }) => frames.toServer === 1);
  } else if (when !== 'before it has a server') {
    await client.connected();
  }
  if (when === 'while a request is out') {
    zk.link.pause('toClient');
    waiting.push(outcome(client.get('/')), outcome(client.set('/', 'x')));
    await zk.link.until(({ frames }) => frames.toServer >= 3);
  }
  if (when === 'while it has no link') {
    zk.link.refuse();
    zk.link.cut();
    await reached(client, 'suspended');
  }
  if (when === 'after it was closed') await client.close();
  const held = client.sessionSignal;
  if (when !== 'after it was closed') waiting.push(outcome(client.exists('/waits')));

  await Promise.all([client.close(), client.close()]);
  await client.close();

  const settled = await Promise.all(waiting);
  expect(settled.every((code) => code === 'SESSION_EXPIRED')).toBe(true);
  expect(client.state.name).toBe('closed');
  expect(held.aborted).toBe(true);
  await expect(client.get('/')).rejects.toThrow('the client was closed');
  zk.link.heal();
  await zk.link.accept();
});

test('`await using` closes, and the server knows at once', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  {
    await using client = await connect(zk.address);
    await client.create('/mine', '', { mode: 'ephemeral' });
  }

  expect(await witness.exists('/mine')).toBeNull();
});

test('a server is found among hosts that are down, deaf or do not exist', async () => {
  await using zk = await startZk();
  await using deaf = await Link.to({ host: '127.0.0.1', port: zk.link.port });
  deaf.blackhole();
  const down = await freePort();
  const [address, chroot] = [zk.link.address, zk.address.slice(zk.link.address.length)];
  const servers = `127.0.0.1:${down},${deaf.address},nowhere.invalid:2181,${address}${chroot}`;
  const lookup = async () => Promise.reject(new Error('getaddrinfo ENOTFOUND nowhere.invalid'));

  await using client = await connect(servers, { attemptTimeoutMs: 200, lookup });

  expect(client.server).toBe(address);
  expect(client.localAddress).toMatch(/^127\.0\.0\.1:\d+$/);
});

test('when no host takes us in, the error names each and why', async () => {
  await using zk = await startZk();
  await using deaf = await Link.to({ host: '127.0.0.1', port: zk.link.port });
  deaf.blackhole();
  const down = await freePort();
  const options = { attemptTimeoutMs: 100, connectRoundsMax: 1 };

  const error = await connect(`127.0.0.1:${down},${deaf.address}`, options).catch((why) => why);

  expect(error).toBeInstanceOf(ConnectError);
  expect(error.message).toContain(`127.0.0.1:${down} connect ECONNREFUSED`);
  expect(error.message).toContain(`${deaf.address} did not answer the handshake within 100 ms`);
  expect(error.attempts).toHaveLength(2);
});

test('waiting to connect can be bounded and called off, and leaves nothing behind', async () => {
  await using zk = await startZk();
  zk.link.refuse();
  const abort = new AbortController();
  setImmediate(() => abort.abort(new Error('enough')));

  await expect(connect(zk.address, { signal: abort.signal })).rejects.toThrow('enough');
  await expect(connect(zk.address, { connectTimeoutMs: 100 })).rejects.toThrow(/ECONNREFUSED/);
  await expect(
    connect(zk.address, { signal: AbortSignal.abort(new Error('never')) }),
  ).rejects.toThrow('never');
  await zk.link.accept();
});

test('calls wait while there is no link, and go on with the next', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  const all = Promise.all([client.create('/a', '1'), client.get('/a'), client.set('/a', '2')]);
  expect(client.load.waiting).toBe(3);
  await zk.link.accept();
  const [, read, set] = await all;

  expect([String(read.data), set.version]).toEqual(['1', 1]);
});

test('a server that falls silent is left, and the session goes on elsewhere', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ sessionTimeoutMs: 1_500 });
  const { sessionId } = client;
  zk.link.blackhole();

  await reached(client, 'suspended');
  zk.link.heal();
  await reached(client, 'connected');

  expect(client.sessionId).toBe(sessionId);
});

test('an idle session is kept alive for longer than its timeout', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ sessionTimeoutMs: 3_000 });
  const { timeoutMs } = client.identity!;
  const seen = states(client);
  const pings = Math.ceil((2 * timeoutMs) / (timeoutMs / 3));

  const { frames } = zk.link.stats;
  await zk.link.until((now) => now.frames.toServer >= frames.toServer + pings);

  expect(seen).toEqual([]);
  expect(client.state.name).toBe('connected');
  await vi.waitFor(async () => expect(await client.exists('/')).not.toBeNull());
});

test('while it closes nobody is told that it is connected', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  const closing = client.close();
  expect(client.state.name).toBe('connected');
  await expect(client.connected()).rejects.toThrow('the client was closed');
  await closing;
});
