import { expect, test, vi } from 'vitest';
import { encode } from '../jute/index.ts';
import { digestId, ops, wireOf } from '../protocol/index.ts';
import { silentLogger } from '../support/index.ts';
import { RawClient, startTestServer, type TestServerOptions } from '../testing/index.ts';
import { Tree } from '../tree/index.ts';

const anyone = { scheme: 'world', id: 'anyone' };
const open = [{ perms: 31, id: anyone }];
const node = (path: string, flags = 0, acl = open) => ({ path, data: null, acl, flags });
const login = (text: string) => ({ type: 0, scheme: 'digest', auth: Buffer.from(text) });

async function start(options: TestServerOptions = {}) {
  const zk = await startTestServer(options);
  return { zk, client: await RawClient.connect(zk.port) };
}

test('an op that nobody knows is answered -6, and the link ends', async () => {
  const { zk, client } = await start();
  await using _ = zk;

  expect((await client.reply(client.sendRaw(999, Buffer.alloc(0)))).err).toBe(-6);
  await client.ended();
});

test('check alone is such an op', async () => {
  const { zk, client } = await start();
  await using _ = zk;

  expect(await client.err('check', { path: '/', version: -1 })).toBe(-6);
  await client.ended();
});

test('a request that can not be read is answered -5, in its turn, and the link lives', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  const xids = [
    client.send('create', node('/a')),
    client.sendRaw(ops.getData.code, Buffer.from([0, 0, 0, 9, 47])),
    client.sendRaw(ops.create.code, Buffer.from([255, 255, 255, 255])),
    client.sendRaw(ops.multi.code, Buffer.alloc(3)),
    client.send('exists', { path: '/a', watch: false }),
  ];

  const errs = [];
  for (const xid of xids) errs.push((await client.reply(xid)).err);

  expect(errs).toEqual([0, -5, -5, -5, 0]);
  expect(client.heard).toEqual(xids);
});

test('a write that can not be read takes no zxid; a multi does', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  const before = (await client.ping()).zxid;

  await client.reply(client.sendRaw(ops.create.code, Buffer.alloc(2)));
  expect((await client.ping()).zxid).toBe(before);
  await client.reply(client.sendRaw(ops.multi.code, Buffer.alloc(2)));
  expect((await client.ping()).zxid).toBe(before + 1n);
});

test('TTL nodes are unknown unless they are switched on', async () => {
  const { zk, client } = await start();
  await using _ = zk;

  expect(await client.err('createTTL', { ...node('/a', 5), ttl: 1_000n })).toBe(-6);
  expect((await client.ping()).err).toBe(0);
});

test('sequence numbers follow the creates of the parent, whichever of its children went', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  await client.ask('create', node('/p'));
  await client.ask('create', node('/p/plain'));
  await client.ask('delete', { path: '/p/plain', version: -1 });

  expect(await client.ask('create', node('/p/', 2))).toEqual({ path: '/p/0000000001' });
});

test('a sequence past 2^31-1 goes on with a minus, as in Apache', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  await client.ask('create', node('/p'));
  zk.engine.tree.nodes.setCversion(zk.engine.tree.find('/p'), -2_147_483_648);

  expect(await client.ask('create', node('/p/s', 2))).toEqual({ path: '/p/s-2147483648' });
});

test('the results of a failed multi: what would have been, the culprit, what was not tried', async () => {
  const { zk, client } = await start();
  await using _ = zk;

  const reply = await client.reply(
    client.send('multi', [
      { op: 'create', request: node('/a') },
      { op: 'setData', request: { path: '/none', data: null, version: -1 } },
      { op: 'create', request: node('/b') },
    ]),
  );

  expect(reply.err).toBe(0);
  expect(ops.multi.response.read).toBeTypeOf('function');
  expect(reply.body.toString('hex')).toBe(
    [
      'ffffffff00' + '00000000' + '00000000',
      'ffffffff00' + 'ffffff9b' + 'ffffff9b',
      'ffffffff00' + 'fffffffe' + 'fffffffe',
      'ffffffff01' + 'ffffffff',
    ].join(''),
  );
  expect(zk.tree()).toEqual({});
});

test('an ACL is kept without duplicates, with `auth` as who asked', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  const auth = { perms: 31, id: { scheme: 'auth', id: '' } };
  expect(await client.err('create', node('/a', 0, [auth]))).toBe(-114);

  await client.ask('auth', login('u:p'), -4);
  await client.ask('create', node('/a', 0, [auth, auth]));

  expect((await client.ask('getACL', { path: '/a' })).acl).toEqual([
    { perms: 31, id: digestId('u:p') },
  ]);
});

test('an empty id in an ACL may come as null, as kazoo writes it', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  await client.ask('auth', login('u:p'), -4);
  const creator = node('/a', 0, [{ perms: 31, id: { scheme: 'auth', id: '' } }]);
  const body = encode(ops.create.request, creator);
  // Behind the scheme stand the id's length, 0, and the flags.
  body.writeInt32BE(-1, body.length - 8);

  expect((await client.reply(client.sendRaw(ops.create.code, body))).err).toBe(0);
  expect((await client.ask('getACL', { path: '/a' })).acl[0]!.id).toEqual(digestId('u:p'));
});

test('who may only read sees no hashes in an ACL', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  const acl = [
    { perms: 31, id: digestId('u:p') },
    { perms: 1, id: anyone },
  ];
  await client.ask('auth', login('u:p'), -4);
  await client.ask('create', node('/a', 0, acl));
  const other = await RawClient.connect(zk.port);

  expect((await other.ask('getACL', { path: '/a' })).acl[0]!.id.id).toBe('u:x');
  expect((await client.ask('getACL', { path: '/a' })).acl[0]!.id).toEqual(digestId('u:p'));
});

test('the super user passes every ACL, and nobody is super unless a digest says who', async () => {
  const superDigest = digestId('super:test').id;
  const { zk, client } = await start({ superDigest });
  await using _ = zk;
  await client.ask('create', node('/a', 0, [{ perms: 31, id: digestId('other:one') }]));
  expect(await client.err('getData', { path: '/a', watch: false })).toBe(-102);

  await client.ask('auth', login('super:test'), -4);

  expect(await client.err('getData', { path: '/a', watch: false })).toBe(0);
});

test('credentials of a scheme that is not there are refused, and the link ends', async () => {
  const { zk, client } = await start();
  await using _ = zk;

  const reply = await client.reply(
    client.send('auth', { type: 0, scheme: 'nope', auth: null }, -4),
  );

  expect([reply.err, reply.zxid]).toEqual([-115, 0n]);
  await client.ended();
});

test('deletes need the right on the parent', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  await client.ask('create', node('/p', 0, [{ perms: 31 & ~8, id: anyone }]));
  await client.ask('create', node('/p/c', 0, [{ perms: 1, id: anyone }]));

  expect(await client.err('delete', { path: '/p/c', version: -1 })).toBe(-102);
});

test('a hard quota stops what goes beyond it, where it is enforced', async () => {
  const { zk, client } = await start({ enforceQuota: true });
  await using _ = zk;
  await zk.load({
    '/q': '',
    '/zookeeper/quota/q/zookeeper_limits': 'count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=2',
    '/zookeeper/quota/q/zookeeper_stats': '',
  });

  expect(await client.err('create', { ...node('/q/a'), data: Buffer.alloc(5) })).toBe(-125);
  expect(await client.err('create', { ...node('/q/a'), data: Buffer.alloc(4) })).toBe(0);
  expect(await client.err('create', node('/q/b'))).toBe(-125);
});

test('a soft quota is told in the log, now and then, and refuses nothing', async () => {
  const lines: object[] = [];
  const warn = (fields: object) => lines.push(fields);
  const logger = { ...silentLogger, warn };
  const { zk, client } = await start({ enforceQuota: true, logger });
  await using _ = zk;
  await zk.load({
    '/q': '',
    '/zookeeper/quota/q/zookeeper_limits': 'count=2,bytes=4',
    '/zookeeper/quota/q/zookeeper_stats': '',
  });

  expect(await client.err('create', { ...node('/q/a'), data: Buffer.alloc(4) })).toBe(0);
  expect(lines).toEqual([]);
  expect(await client.err('setData', { path: '/q/a', data: Buffer.alloc(5), version: -1 })).toBe(0);
  expect(await client.err('create', node('/q/b'))).toBe(0);
  zk.clock.advance(10_000);
  expect(await client.err('create', node('/q/c'))).toBe(0);

  expect(lines).toEqual([
    { path: '/q', bytes: '5', limit: '4', hard: false },
    { path: '/q', count: '4', limit: '2', hard: false },
  ]);
});

test('an empty container goes once it had a child; a node whose time is over goes too', async () => {
  const { zk, client } = await start({ extendedTypesEnabled: true, maxSessionTimeoutMs: 1e9 });
  await using _ = zk;
  const lasting = await RawClient.connect(zk.port, { timeOut: 1_000_000 });
  await lasting.ask('createContainer', node('/used', 4));
  await lasting.ask('createContainer', node('/unused', 4));
  await lasting.ask('createTTL', { ...node('/brief', 5), ttl: 30_000n });
  await lasting.ask('createTTL', { ...node('/long', 5), ttl: 300_000n });
  await lasting.ask('create', node('/used/x'));
  await lasting.ask('delete', { path: '/used/x', version: -1 });
  client.close();

  zk.clock.advance(60_001);
  await lasting.ask('sync', { path: '/' });

  expect(Object.keys(zk.tree()).sort()).toEqual(['/long', '/unused']);
});

test('the server itself takes such nodes away where nobody may delete any', async () => {
  const { zk, client } = await start({ extendedTypesEnabled: true, maxSessionTimeoutMs: 1e9 });
  await using _ = zk;
  const lasting = await RawClient.connect(zk.port, { timeOut: 1_000_000 });
  const sealed = [{ perms: 1, id: anyone }];
  await lasting.ask('create', node('/sealed'));
  await lasting.ask('createContainer', node('/sealed/used', 4));
  await lasting.ask('create', node('/sealed/used/x'));
  await lasting.ask('delete', { path: '/sealed/used/x', version: -1 });
  await lasting.ask('createTTL', { ...node('/sealed/brief', 5, sealed), ttl: 30_000n });
  await lasting.ask('create', node('/sealed/stays'));
  await lasting.ask('setACL', { path: '/sealed', acl: sealed, version: -1 });
  client.close();

  expect(await lasting.err('deleteContainer', { path: '/sealed/stays' })).toBe(-102);
  expect(await lasting.err('deleteContainer', { path: '/sealed/brief' })).toBe(-102);
  zk.clock.advance(60_001);
  await lasting.ask('sync', { path: '/' });

  expect(Object.keys(zk.tree()).sort()).toEqual(['/sealed', '/sealed/stays']);
});

test('how many nodes are below another is counted once for each state of the tree', async () => {
  const { zk, client } = await start();
  await using _ = zk;
  const walk = vi.spyOn(zk.engine.tree, 'countBelow');
  const parts = Array.from({ length: 1_000 }, (_, i) => ({
    op: 'create' as const,
    request: node(`/a/${i}`),
  }));
  await client.ask('create', node('/a'));
  await client.ask('multi', parts);
  const count = async (path: string) =>
    (await client.ask('getAllChildrenNumber', { path })).totalNumber;

  expect([await count('/a'), await count('/a'), await count('/')]).toEqual([1_000, 1_000, 1_004]);
  expect(walk).toHaveBeenCalledTimes(2);
  await client.ask('delete', { path: '/a/0', version: -1 });
  expect([await count('/a'), await count('/a/1'), await count('/')]).toEqual([999, 0, 1_003]);
});

test('one server can not be reconfigured', async () => {
  const asked = { joiningServers: null, leavingServers: null, newMembers: 'x', curConfigId: -1n };
  const { zk, client } = await start();
  await using _ = zk;
  const { zk: enabled, client: other } = await start({ reconfigEnabled: true });
  await using __ = enabled;

  expect(await client.err('reconfig', asked)).toBe(-123);
  expect(await other.err('reconfig', asked)).toBe(-6);
});

test('usage of a quota that nobody could read is refused, as Apache could not replay it', async () => {
  await using server = await startTestServer();
  const client = await RawClient.connect(server.port);
  await server.load({ '/zookeeper/quota/q/zookeeper_stats': 'count=1,bytes=2' });
  const path = '/zookeeper/quota/q/zookeeper_stats';

  const garbage = { path, data: Buffer.from('garbage'), version: -1 };
  const none = { path, data: null, version: -1 };
  const large = { path, data: Buffer.from('count=9223372036854775808'), version: -1 };
  const fine = { path, data: Buffer.from('count=3,bytes=4'), version: -1 };

  expect((await client.reply(client.send('setData', garbage))).err).toBe(wireOf('BAD_ARGUMENTS'));
  expect((await client.reply(client.send('setData', none))).err).toBe(wireOf('BAD_ARGUMENTS'));
  expect((await client.reply(client.send('setData', large))).err).toBe(wireOf('BAD_ARGUMENTS'));
  expect((await client.reply(client.send('setData', fine))).err).toBe(0);
});

test.each([
  '/zookeeper/zookeeper_limits',
  '/zookeeper/quota/zookeeper_limits',
  '/zookeeper/quota/ /zookeeper_limits',
  '/zookeeper/five5/zookeeper_limits',
])('limits of nothing, %j, are refused, as Apache could not replay them', async (path) => {
  const tree = new Tree();
  const head = { clientId: 0n, cxid: 0, zxid: 1, timeMs: 0 };
  const made = { data: null, acl: open, ephemeral: false, parentCVersion: -1 };
  const above = path.slice(0, path.lastIndexOf('/'));
  tree.apply(head, { type: 'create', txn: { path: above, ...made } });
  const { zk, client } = await start({ tree });
  await using _ = zk;

  expect(await client.err('create', node(path))).toBe(wireOf('BAD_ARGUMENTS'));
  tree.apply({ ...head, zxid: 2 }, { type: 'create', txn: { path, ...made } }); // by Apache
  expect(await client.err('delete', { path, version: -1 })).toBe(wireOf('BAD_ARGUMENTS'));
  expect(await client.err('create', node(`${above}/zookeeper_limit`))).toBe(0);
  expect(await client.err('create', node('/zookeeper_limits'))).toBe(0);
});

test('sums of a quota that no long holds turn over, as in Java', async () => {
  const { zk, client } = await start({ enforceQuota: true });
  await using _ = zk;
  await zk.load({
    '/q': null,
    '/zookeeper/quota/q/zookeeper_limits': 'count=-1,bytes=-1=;countHardLimit=9',
    '/zookeeper/quota/q/zookeeper_stats': '',
  });
  const data = Buffer.from('count=9223372036854775807,bytes=0');
  const path = '/zookeeper/quota/q/zookeeper_stats';

  expect(await client.err('setData', { path, data, version: -1 })).toBe(0);
  expect(await client.err('create', node('/q/a'))).toBe(0);
});

test('a prefix of ephemeral nodes that is mostly blanks is read at once', {
  timeout: 2_000,
}, async () => {
  const { zk, client } = await start();
  await using _ = zk;
  await client.ask('create', node('/e', 1));
  const below = async (prefixPath: string) =>
    (await client.ask('getEphemerals', { prefixPath })).ephemerals;

  expect(await below(' \t/ ')).toEqual(['/e']);
  expect(await below(' '.repeat(200_000))).toEqual(['/e']);
  expect(await below(`/${' '.repeat(200_000)}x`)).toEqual([]);
});
