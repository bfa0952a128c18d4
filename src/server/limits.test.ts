import { expect, test } from 'vitest';
import { RawClient, startTestServer } from '../testing/index.ts';
import { limitsOf } from './limits.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, flags = 0) => ({ path, data: null, acl: open, flags });

test('zero is no limit', () => {
  expect(limitsOf({ multiOpsMax: 0 }).multiOpsMax).toBe(Infinity);
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

test('watches are counted for each link and for all', async () => {
  await using zk = await startTestServer({ limits: { watchesPerConnectionMax: 2, watchesMax: 3 } });
  const [a, b] = [await RawClient.connect(zk.port), await RawClient.connect(zk.port)];
  const watch = (client: RawClient, path: string) => client.err('exists', { path, watch: true });

  expect([await watch(a, '/1'), await watch(a, '/2'), await watch(a, '/3')]).toEqual([
    -101, -101, -125,
  ]);
  expect([await watch(b, '/1'), await watch(b, '/2')]).toEqual([-101, -125]);
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

test('a multi of too many parts is refused whole', async () => {
  await using zk = await startTestServer({ limits: { multiOpsMax: 2 } });
  const client = await RawClient.connect(zk.port);
  const part = (path: string) => ({ op: 'create' as const, request: node(path) });

  expect(await client.err('multi', [part('/a'), part('/b'), part('/c')])).toBe(-125);
  expect(await client.err('multi', [part('/a'), part('/b')])).toBe(0);
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
