import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { encode } from '../jute/index.ts';
import { ops, wireOf } from '../protocol/index.ts';
import { deferred } from '../support/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { Tree } from '../tree/index.ts';
import { Auth } from './auth.ts';
import { framed, greeting, NoWire } from './fixtures.ts';
import { type Limits, limitsOf } from './limits.ts';
import { prepareMulti } from './multi.ts';
import { noChanges, Outlook } from './outlook.ts';
import { Prepare } from './prepare.ts';
import { startServer } from './start-server.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, flags = 0) => ({ path, data: null, acl: open, flags });

class PausedWire extends NoWire {
  isPaused = false;
  override pause(): void {
    this.isPaused = true;
  }
  override resume(): void {
    this.isPaused = false;
  }
}

test('zero is no limit', () => {
  expect(limitsOf({ multiOpsMax: 0 }).multiOpsMax).toBe(Infinity);
});

test('a limit that is undefined is the default, and what is no limit or no number is refused', () => {
  const { watchesMax, frameBytesMax } = limitsOf({ watchesMax: undefined });

  expect({ watchesMax, frameBytesMax }).toEqual({ watchesMax: 10_000_000, frameBytesMax: 1048575 });
  for (const value of [Number.NaN, -1, null, '5']) {
    expect(() => limitsOf({ frameBytesMax: value as number })).toThrow(
      `the limit frameBytesMax has to be a number, 0 for none, and is ${value}`,
    );
  }
  expect(() => limitsOf({ watches: 5 } as object)).toThrow('there is no limit watches');
});

test.each(['tickTimeMs', 'minSessionTimeoutMs', 'maxSessionTimeoutMs', 'reapIntervalMs'] as const)(
  'a server is not started with a %s that is no number above 0',
  async (name) => {
    const refused = async (value: unknown, why: string) => {
      const start = startServer({ port: 0, inMemory: true, [name]: value });
      await expect(start).rejects.toThrow(`${name}${why}`);
    };

    for (const value of [0, -1])
      await refused(value, ` has to be a number above 0, and is ${value}`);
    await refused(Number.NaN, ': must be a number, got NaN');
    await refused('5', ': must be a number, got "5"');
  },
);

test('a server whose limits are refused leaves its directory to the next', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-limits-'));
  const limits = { watches: 5 } as object;

  await expect(startServer({ dataDir, port: 0, limits })).rejects.toThrow('no limit watches');
  const server = await startServer({ dataDir, port: 0 });

  await server.close();
  rmSync(dataDir, { recursive: true });
});

test('where nobody sets a limit, nobody is let past what the tables hold', () => {
  const limits = limitsOf({ sessionsMax: 0, watchesMax: 0, distinctAclsMax: 20_000_000 });
  for (const name of ['sessionsMax', 'watchesMax', 'distinctAclsMax'] as const) {
    expect(limits[name]).toBe(16_000_000);
  }
});

test('links of one address are counted, and let in again when others went', async () => {
  await using zk = await startTestServer({ limits: { connectionsPerAddressMax: 2 } });
  const first = await RawClient.connect(zk.port);
  await RawClient.connect(zk.port);

  const third = await RawClient.dial(zk.port);
  await third.ended();
  first.close();
  await first.ended();
  while (zk.engine.connections.size > 1) await new Promise(setImmediate);

  expect((await RawClient.connect(zk.port)).sessionId).not.toBe(0n);
});

test('when the tree has no room left, nothing that grows it is taken, and all else is', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  await client.ask('create', { ...node('/a'), data: Buffer.from('12') });
  await client.ask('create', node('/b'));
  vi.spyOn(zk.engine.tree.nodes, 'hasRoom', 'get').mockReturnValue(false);
  const set = (data: string) => ({ path: '/a', data: Buffer.from(data), version: -1 });

  expect(await client.err('create', node('/c'))).toBe(wireOf('QUOTA_EXCEEDED'));
  expect(await client.err('setData', set('123'))).toBe(wireOf('QUOTA_EXCEEDED'));
  expect(await client.err('setData', set('1'))).toBe(0);
  expect(await client.err('delete', { path: '/b', version: -1 })).toBe(0);
});

test('no more sessions than allowed', async () => {
  await using zk = await startTestServer({ limits: { sessionsMax: 1 } });
  await RawClient.connect(zk.port);

  expect((await RawClient.connect(zk.port)).sessionId).toBe(0n);
});

test('the ephemeral nodes of a session fit into the txn that ends it', async () => {
  await using zk = await startTestServer({ limits: { ephemeralPathBytesMax: 1_000 } });
  const client = await RawClient.connect(zk.port);
  const path = (i: number) => `/${String(i).padStart(199, '0')}`;
  const xids = Array.from({ length: 6 }, (_, i) => client.send('create', node(path(i), 1)));

  const errs = [];
  for (const xid of xids) errs.push((await client.reply(xid)).err);

  expect(errs).toEqual([0, 0, 0, 0, -125, -125]);
  expect(await client.err('create', node('/short'))).toBe(0);
});

test.each([
  ['ephemeralsPerSessionMax', node('/b', 1)],
  ['childrenPerNodeMax', node('/b', 1)],
  ['pathBytesMax', node('/longer')],
  ['pathDepthMax', node('/a/b')],
  ['aclEntriesMax', { ...node('/b'), acl: [1, 2, 3].map((perms) => ({ ...open[0]!, perms })) }],
] as const)('beyond %s a create is refused', async (name, request) => {
  const at = {
    ephemeralsPerSessionMax: 1,
    childrenPerNodeMax: 2,
    pathBytesMax: 6,
    pathDepthMax: 1,
  };
  await using zk = await startTestServer({ limits: { [name]: { ...at, aclEntriesMax: 2 }[name] } });
  const client = await RawClient.connect(zk.port);
  await client.ask('create', node('/a', name === 'pathDepthMax' ? 0 : 1));

  expect(await client.err('create', { ...request, acl: [...request.acl] })).toBe(-125);
});

test('the text of a quota is short: each change below it has it read and written anew', async () => {
  await using zk = await startTestServer();
  await zk.load({ '/zookeeper/quota/q': '' });
  const client = await RawClient.connect(zk.port);
  const text = (bytes: number) => Buffer.from(`count=9,bytes=9;${'x'.repeat(bytes - 18)}=1`);
  const make = (name: string, bytes: number) =>
    client.err('create', { ...node(`/zookeeper/quota/q/${name}`), data: text(bytes) });

  for (const name of ['zookeeper_limits', 'zookeeper_stats']) {
    const path = `/zookeeper/quota/q/${name}`;
    expect(await make(name, 4097)).toBe(-125);
    expect(await make(name, 4096)).toBe(0);
    expect(await client.err('setData', { path, data: text(4097), version: -1 })).toBe(-125);
  }
  expect(await make('anything', 4097)).toBe(0);
});

test('watches are counted for each link and for all', async () => {
  await using zk = await startTestServer({ limits: { watchesPerConnectionMax: 2, watchesMax: 3 } });
  const [a, b] = [await RawClient.connect(zk.port), await RawClient.connect(zk.port)];
  const watch = (client: RawClient, path: string) => client.err('exists', { path, watch: true });

  expect([await watch(a, '/1'), await watch(a, '/2'), await watch(a, '/3')]).toEqual([
    -101, -101, -125,
  ]);
  expect([await watch(b, '/1'), await watch(b, '/2')]).toEqual([-101, -125]);
});

test('watches are weighed by what they cost, for each link and for all', async () => {
  const limits = { watchBytesPerConnectionMax: 600, watchBytesMax: 900 }; // two watches, and three
  await using zk = await startTestServer({ limits });
  const [a, b] = [await RawClient.connect(zk.port), await RawClient.connect(zk.port)];
  const path = (name: string) => `/${name.padStart(99, '0')}`;
  const watch = (client: RawClient, name: string) =>
    client.err('exists', { path: path(name), watch: true });
  const again = (dataWatches: string[]) => ({
    ...{ relativeZxid: 0n, dataWatches: [], childWatches: [], existWatches: dataWatches },
    ...{ persistentWatches: [], persistentRecursiveWatches: [] },
  });

  expect([await watch(a, '1'), await watch(a, '2'), await watch(a, '3')]).toEqual([
    -101, -101, -125,
  ]);
  expect([await watch(b, '1'), await watch(b, '2')]).toEqual([-101, -125]);
  expect(await b.err('addWatch', { path: path('3'), mode: 1 })).toBe(-125);
  expect(await b.err('setWatches2', again([path('3'), path('4')]))).toBe(-125);

  // What is spent is kept for who watches again, and makes room for who does not.
  await b.ask('create', node(path('1')));
  await b.ask('create', node(path('2')));
  expect([await watch(a, '3'), await watch(a, '4'), await watch(a, '5')]).toEqual([
    -101, -101, -125,
  ]);
  expect(await b.err('exists', { path: '/x', watch: true })).toBe(-101);
  a.close();
  while (zk.engine.connections.size > 1) await new Promise(setImmediate);
  expect(zk.engine.watches.bytes).toBe(202);
});

test('many watches with short paths use up the memory for watches as long paths do', async () => {
  const limits = { watchBytesPerConnectionMax: 200_000 };
  await using zk = await startTestServer({ limits });
  const client = await RawClient.connect(zk.port);
  const watches = (count: number) => ({
    ...{ relativeZxid: 2n ** 40n, dataWatches: [], childWatches: [] },
    existWatches: Array.from({ length: count }, (_, i) => `/${i}`),
  });

  expect(await client.err('setWatches', watches(1_000))).toBe(-125);
  expect(await client.err('setWatches', watches(950))).toBe(0);
});

test('by default watches take no more than a quarter of the heap', () => {
  const { watchBytesMax } = limitsOf();

  expect(watchBytesMax).toBe(Math.floor(getHeapStatistics().heap_size_limit / 4));
});

test('a client that asks without end and reads nothing is not read either', async () => {
  await using zk = await startTestServer({ limits: { outputBytesSoftMax: 256 * 1024 } });
  await zk.load({ '/big': 'x'.repeat(500_000) });
  const greedy = await RawClient.connect(zk.port);
  greedy.pause();
  for (let i = 0; i < 20_000; i++) greedy.send('getData', { path: '/big', watch: false });
  await new Promise((resolve) => setTimeout(resolve, 200));

  const [connection] = [...zk.engine.connections];
  // One chunk of requests was taken in: none of them is answered past the limit.
  expect(connection!.packetsSent).toBeLessThan(50);
  expect(connection!.packetsReceived).toBeLessThan(19_000);
  expect((await (await RawClient.connect(zk.port)).ping()).err).toBe(0);
});

test('a client that closes its session and takes none of its replies is not waited for', async () => {
  await using zk = await startTestServer();
  await zk.load({ '/big': 'x'.repeat(1_000_000) });
  const client = await RawClient.connect(zk.port);
  client.pause();
  const get = encode(ops.getData.request, { path: '/big', watch: false });
  const ask = (code: number, body: Buffer) => {
    const head = Buffer.alloc(8);
    head.writeInt32BE(code, 4);
    return framed(head, body);
  };
  const asked = Array.from({ length: 20 }, () => ask(ops.getData.code, get));

  client.write(Buffer.concat([...asked, ask(ops.closeSession.code, Buffer.alloc(0))]));
  while (zk.engine.sessions.size > 0) await new Promise(setImmediate);
  const [connection] = [...zk.engine.connections];
  expect(connection!.wire.queuedBytes).toBeGreaterThan(10_000_000);
  zk.clock.advance(29_000);
  expect(connection!.state).toBe('closing');
  zk.clock.advance(1_000);

  expect(connection!.state).toBe('closed');
  expect(zk.engine.connections.size).toBe(0);
});

test('the ids of a link are no longer than a frame, all together', async () => {
  await using zk = await startTestServer({ limits: { frameBytesMax: 1_000 } });
  const client = await RawClient.connect(zk.port);
  const login = (name: string) =>
    client.err('auth', { type: 0, scheme: 'digest', auth: Buffer.from(`${name.repeat(400)}:x`) });

  expect([await login('a'), await login('b'), await login('b')]).toEqual([0, 0, 0]);
  expect(await login('c')).toBe(-115);
  await client.ended();
});

test('a link has so many ids, its address among them; one that it has may be shown again', async () => {
  await using zk = await startTestServer({ limits: { authIdsMax: 3 } });
  const client = await RawClient.connect(zk.port);
  const login = (text: string) =>
    client.err('auth', { type: 0, scheme: 'digest', auth: Buffer.from(text) }, -4);

  expect([await login('a:x'), await login('b:x'), await login('a:x')]).toEqual([0, 0, 0]);
  expect(await login('c:x')).toBe(-115);
  await client.ended();
});

test('a multi that reads more than may wait for a client is refused, and its link lives', async () => {
  await using zk = await startTestServer({ limits: { outputBytesMax: 2_000_000 } });
  await zk.load({ '/big': 'x'.repeat(500_000) });
  const client = await RawClient.connect(zk.port);
  const part = { op: 'getData' as const, request: { path: '/big', watch: false } };
  const read = (parts: number) =>
    client.err(
      'multiRead',
      Array.from({ length: parts }, () => part),
    );

  expect(await read(3)).toBe(0);
  expect(await read(50_000)).toBe(-125);
  expect(await read(3)).toBe(0);
});

test('a multi of too many parts is refused whole', async () => {
  await using zk = await startTestServer({ limits: { multiOpsMax: 2 } });
  const client = await RawClient.connect(zk.port);
  const part = (path: string) => ({ op: 'create' as const, request: node(path) });

  expect(await client.err('multi', [part('/a'), part('/b'), part('/c')])).toBe(-125);
  expect(await client.err('multi', [part('/a'), part('/b')])).toBe(0);
});

test('of a multi that no txn can hold, no more is prepared than shows it', () => {
  const tree = new Tree();
  const outlook = new Outlook(tree);
  const limits = limitsOf({ txnBytesMax: 1_000 });
  const options = { enforceQuota: false, reconfigEnabled: false, limits };
  const prepare = new Prepare(tree, outlook, new Auth(), options);
  const create = vi.spyOn(prepare, 'create');
  const ids = [{ scheme: 'digest', id: `ann:${'x'.repeat(300)}` }];
  const acl = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
  const parts = Array.from({ length: 10_000 }, (_, i) => ({
    op: 'create' as const,
    request: { ...node(`/${i}`), acl },
  }));
  outlook.begin({ clientId: 1n, cxid: 1, zxid: 1, timeMs: 0 });

  const asker = { sessionId: 1n, sessionClosing: false, ids };
  expect(prepareMulti(prepare, outlook, parts, asker, noChanges())).toBe(-125);
  expect(create).toHaveBeenCalledTimes(3);
  expect(outlook.get('/0')).toBeUndefined();
});

describe('a write that the log could not hold is refused, and the server goes on', () => {
  const auth = { scheme: 'auth', id: '' };
  const login = (name: string) => ({ type: 0, scheme: 'digest', auth: Buffer.from(`${name}:x`) });
  const large = { ...node('/large'), data: Buffer.alloc(2_100_000) };

  async function start(limits: Partial<Limits> = {}) {
    const dataDir = mkdtempSync(join(tmpdir(), 'drover-limits-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const zk = await startServer({ port: 0, dataDir, limits });
    return { zk, client: await RawClient.connect(zk.port) };
  }

  test('for an ACL that becomes every id of its link', async () => {
    const { zk, client } = await start();
    await using _ = zk;
    await client.ask('auth', login('x'.repeat(900_000)));
    const acl = [1, 2, 31].map((perms) => ({ perms, id: auth }));

    expect(await client.err('create', { ...node('/a'), acl })).toBe(-125);
    expect(await client.err('create', node('/a'))).toBe(0);
    expect(await client.err('setACL', { path: '/a', acl, version: -1 })).toBe(-125);
    expect(await client.err('multi', [{ op: 'create', request: { ...node('/b'), acl } }])).toBe(0);
    expect(await client.err('exists', { path: '/b', watch: false })).toBe(-101);
  });

  test('for an ACL whose bytes are no text', async () => {
    const { zk, client } = await start();
    await using _ = zk;
    const name = 'x'.repeat(800_000);
    const acl = [{ perms: 31, id: { scheme: 'digest', id: `${name}:y` } }];
    const request = encode(ops.create.request, { ...node('/a'), acl });
    request.fill(0xff, request.indexOf('xxx'), request.indexOf(':y'));

    expect((await client.reply(client.sendRaw(ops.create.code, request))).err).toBe(-125);
    expect(await client.err('create', node('/a'))).toBe(0);
  });

  test('for data, where frames may be larger than a txn', async () => {
    const { zk, client } = await start({ frameBytesMax: 4_000_000, txnBytesMax: 0 });
    await using _ = zk;

    expect(await client.err('create', large)).toBe(-125);
    expect(await client.err('setData', { ...large, path: '/', version: -1 })).toBe(-125);
    expect(await client.err('create', { ...large, data: large.data.subarray(10_000) })).toBe(0);
  });
});

test('a writer that runs ahead of the log is read no further', async () => {
  const waiting: (() => void)[] = [];
  let isOpen = true;
  const log = {
    append: () => (isOpen ? Promise.resolve() : new Promise<void>((go) => waiting.push(go))),
    close: async () => {},
  };
  await using zk = await startTestServer({ log, limits: { requestsInFlightMax: 10 } });
  const client = await RawClient.connect(zk.port);
  isOpen = false;
  const sent = Array.from({ length: 5_000 }, (_, i) => client.send('create', node(`/${i}`)));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const [connection] = [...zk.engine.connections];
  expect(connection!.inFlight).toBeLessThan(4_000);

  isOpen = true;
  for (const go of waiting) go();
  expect((await client.reply(sent.at(-1)!)).err).toBe(0);
});

test('a link whose session is not on disk yet is read no further than any other', async () => {
  const isOnDisk = deferred<void>();
  const log = { append: () => isOnDisk.promise, close: async () => {} };
  const limits = { requestsInFlightMax: 10, requestBytesInFlightMax: 10_000 };
  await using zk = await startTestServer({ log, limits });
  const dial = () => {
    const wire = new PausedWire();
    const connection = zk.engine.accept(wire);
    connection.receive(greeting);
    return { wire, connection };
  };
  const [many, large, few] = [dial(), dial(), dial()];
  const ping = framed(Buffer.from([0, 0, 0, 1, 0, 0, 0, ops.ping.code]));

  for (let i = 0; i < 11; i++) many.connection.receive(ping);
  large.connection.receive(framed(Buffer.alloc(10_001)));
  few.connection.receive(ping);
  const paused = [many, large, few].map(({ wire }) => wire.isPaused);
  isOnDisk.resolve();
  while (zk.engine.lastZxid < 3) await new Promise(setImmediate);

  expect(paused).toEqual([true, true, false]);
  expect(many.wire.isPaused).toBe(false);
  expect(many.connection.packetsSent).toBe(12);
});
