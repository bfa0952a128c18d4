import { expect, test } from 'vitest';
import { Client, type CreateMode, connect, isZkError } from '../../src/client/index.ts';
import { startZk } from '../zk.ts';

test('a node holds what was put into it, and its Stat tells of it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  const made = await client.create('/a', 'one');
  const first = await client.get('/a');
  const changed = await client.set('/a', Buffer.from('two!'));
  const second = await client.get('/a');

  expect(made.path).toBe('/a');
  expect(first.data).toEqual(Buffer.from('one'));
  expect(first.stat.toObject()).toEqual(made.stat.toObject());
  expect(first.stat).toMatchObject({ version: 0, dataLength: 3, numChildren: 0 });
  expect(first.stat.ephemeralOwner).toBe(0n);
  expect(first.stat.czxid).toBe(first.stat.mzxid);
  expect(second.data).toEqual(Buffer.from('two!'));
  expect(changed.toObject()).toEqual(second.stat.toObject());
  expect(changed.version).toBe(1);
  expect(changed.mzxid).toBeGreaterThan(changed.czxid);
  expect(client.lastZxid).toBeGreaterThanOrEqual(changed.mzxid);
});

test('no data, empty data and a mebibyte less its frame are three different things', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const large = Buffer.alloc(1_000_000, 'x');

  await client.create('/null', null);
  await client.create('/empty');
  await client.create('/large', large);

  // A server may give back empty where none was put in: Apache keeps the difference, and so do we.
  expect((await client.get('/null')).data).toBeNull();
  expect((await client.get('/empty')).data).toEqual(Buffer.alloc(0));
  expect((await client.get('/large')).data?.equals(large)).toBe(true);
  await client.set('/large', null);
  expect((await client.get('/large')).data).toBeNull();
});

test('what is too large for a frame is refused unsent, and the session goes on', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  const large = client.create('/a', Buffer.alloc(2 ** 20));
  const long = client.create(`/${'n'.repeat(2 ** 20)}`);

  await expect(large).rejects.toMatchObject({ code: 'BAD_ARGUMENTS', outcomeUnknown: false });
  await expect(long).rejects.toThrow(/it was not sent/);
  expect(await client.children('/')).toEqual([]);
  expect(zk.link.stats.connections).toBe(1);
});

test('names of all kinds come back as they went', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const names = ['__proto__', 'constructor', 'ünï-cödé', '漢字', ' ', '%2F', 'a'.repeat(10_000)];

  for (const name of names) await client.create(`/${name}`, name);

  expect((await client.children('/')).sort()).toEqual([...names].sort());
  for (const name of names) expect(String((await client.get(`/${name}`)).data)).toBe(name);
});

test.each<[CreateMode, { sequential: boolean; owner: 'session' | 'none' }]>([
  ['persistent', { sequential: false, owner: 'none' }],
  ['ephemeral', { sequential: false, owner: 'session' }],
  ['persistentSequential', { sequential: true, owner: 'none' }],
  ['ephemeralSequential', { sequential: true, owner: 'session' }],
  ['container', { sequential: false, owner: 'none' }],
  ['persistentTtl', { sequential: false, owner: 'none' }],
  ['persistentSequentialTtl', { sequential: true, owner: 'none' }],
])('mode %s makes the node that it says', async (mode, { sequential, owner }) => {
  const isNewer = mode === 'container' || mode.endsWith('Ttl');
  await using zk = await startZk(isNewer ? { since: '3.5', what: `mode ${mode}` } : {});
  const client = await zk.connect();
  const ttl = mode.endsWith('Ttl') ? { ttlMs: 60_000 } : {};

  const { path, stat } = await client.create('/n-', 'x', { mode, ...ttl });

  expect(path).toMatch(sequential ? /^\/n-\d{10}$/ : /^\/n-$/);
  expect(stat.ephemeralOwner).toBe(owner === 'session' ? client.sessionId : 0n);
  expect((await client.get(path)).data).toEqual(Buffer.from('x'));
});

test('sequential names count up, and may consist of the number alone', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/q');

  const paths = [];
  for (let i = 0; i < 3; i++) {
    paths.push((await client.create('/q/', '', { mode: 'persistentSequential' })).path);
  }

  expect(paths).toEqual(['/q/0000000000', '/q/0000000001', '/q/0000000002']);
});

test('an ephemeral node goes with its session, and can have no children', async () => {
  await using zk = await startZk();
  const owner = await zk.connect();
  const witness = await zk.witness();
  await owner.create('/here', '', { mode: 'ephemeral' });

  await expect(owner.create('/here/child')).rejects.toMatchObject({
    code: 'NO_CHILDREN_FOR_EPHEMERALS',
  });
  await owner.close();

  expect(await witness.exists('/here')).toBeNull();
});

test('refusals say what is wrong, on which path', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  await client.create('/a/b');

  await expect(client.create('/a')).rejects.toMatchObject({ code: 'NODE_EXISTS', path: '/a' });
  await expect(client.create('/x/y')).rejects.toMatchObject({ code: 'NO_NODE', path: '/x/y' });
  await expect(client.get('/x')).rejects.toThrow('NO_NODE: no such node (getData /x)');
  await expect(client.set('/a', 'x', { version: 7 })).rejects.toMatchObject({
    code: 'BAD_VERSION',
  });
  await expect(client.delete('/a/b', { version: 7 })).rejects.toMatchObject({
    code: 'BAD_VERSION',
  });
  await expect(client.delete('/a')).rejects.toMatchObject({ code: 'NOT_EMPTY', path: '/a' });
  await expect(client.delete('/x')).rejects.toMatchObject({ code: 'NO_NODE' });
  await expect(client.children('/x')).rejects.toMatchObject({ code: 'NO_NODE' });
  await expect(client.getAcl('/x')).rejects.toMatchObject({ code: 'NO_NODE' });
  const error = await client.get('/x').catch((why) => why);
  expect(isZkError(error, 'NO_NODE') && error.outcomeUnknown).toBe(false);
  expect(error.stack).toContain('nodes.test.ts');
});

test('a version lets one of two writers win', async () => {
  await using zk = await startZk();
  const [a, b] = [await zk.connect(), await zk.connect()];
  await a.create('/counter', '0');
  const { stat } = await a.get('/counter');

  const outcomes = await Promise.allSettled([
    a.set('/counter', 'a', { version: stat.version }),
    b.set('/counter', 'b', { version: stat.version }),
  ]);

  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

test('children come with and without the Stat', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const path of ['/p', '/p/a', '/p/b']) await client.create(path);

  const names = await client.children('/p');
  const { children, stat } = await client.childrenAndStat('/p');

  expect(names.sort()).toEqual(['a', 'b']);
  expect(children.sort()).toEqual(['a', 'b']);
  expect(stat).toMatchObject({ numChildren: 2, cversion: 2 });
});

test('exists gives the Stat, or null', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a', 'x');

  expect((await client.exists('/a'))?.dataLength).toBe(1);
  expect(await client.exists('/b')).toBeNull();
});

test('after a sync, a read sees what others had written', async () => {
  await using zk = await startZk();
  const [writer, reader] = [await zk.witness(), await zk.connect()];
  await writer.create('/a', 'new');

  await reader.sync('/a');

  expect(String((await reader.get('/a')).data)).toBe('new');
  await reader.sync();
});

test('a session knows its ephemeral nodes, by prefix', async () => {
  await using zk = await startZk({ since: '3.6', what: 'getEphemerals' });
  const [client, other] = [await zk.connect(), await zk.connect()];
  await client.create('/app');
  for (const path of ['/app/a', '/app/b', '/c'])
    await client.create(path, '', { mode: 'ephemeral' });
  await other.create('/app/other', '', { mode: 'ephemeral' });

  expect((await client.getEphemerals()).sort()).toEqual(['/app/a', '/app/b', '/c']);
  expect((await client.getEphemerals('/app')).sort()).toEqual(['/app/a', '/app/b']);
  expect(await client.getEphemerals('/none')).toEqual([]);
});

test('of its ephemeral nodes a chroot shows those within it, and none of a neighbour', async () => {
  await using zk = await startZk({ since: '3.6', what: 'getEphemerals' });
  const client = await zk.connect();
  for (const path of ['/app', '/apple']) await client.create(path);
  for (const path of ['/app/a', '/apple/b']) await client.create(path, '', { mode: 'ephemeral' });
  await using within = await connect(`${zk.address}/app`, { identity: client.identity! });

  expect(await within.getEphemerals()).toEqual(['/a']);
});

test('descendants are counted at any depth', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const path of ['/a', '/a/b', '/a/b/c', '/a/d']) await client.create(path);

  expect(await client.countDescendants('/a')).toBe(3);
  expect(await client.countDescendants('/a/d')).toBe(0);
});

test('whoAmI says who the server takes us for', async () => {
  await using zk = await startZk({ since: '3.7', what: 'whoAmI' });
  const client = await zk.connect({ auth: [{ scheme: 'digest', auth: 'me:secret' }] });

  const who = await client.whoAmI();

  expect(who).toContainEqual({ authScheme: 'digest', user: 'me' });
  expect(who).toContainEqual(expect.objectContaining({ authScheme: 'ip' }));
});

test('the configuration is there to read, outside of the chroot; one server can not be reconfigured', async () => {
  await using zk = await startZk({ since: '3.5', what: '/zookeeper/config' });
  const client = await zk.connect();

  const config = await client.getConfig();

  expect(config.stat.version).toBeGreaterThanOrEqual(-1);
  await expect(client.reconfig({ leaving: ['3'] })).rejects.toMatchObject({
    code: expect.stringMatching(/UNIMPLEMENTED|RECONFIG_DISABLED|NO_AUTH/),
    path: '/zookeeper/config',
  });
});

test('a chroot is all that its client sees, and is kept out of what it is told', async () => {
  await using zk = await startZk({ since: '3.6', what: 'getEphemerals' });
  const outside = await zk.connect();
  await outside.create('/app');
  await using inside = new Client(`${zk.directAddress}/app`);

  await inside.create('/a');
  const sequential = await inside.create('/a/s-', '', { mode: 'ephemeralSequential' });
  const [made] = await inside.multi([{ op: 'create', path: '/m' }]);
  const told = new Promise((resolve) => inside.exists('/gone', { watch: resolve }));
  await inside.create('/gone');

  expect(inside.chroot).toMatch(/\/app$/);
  expect(sequential.path).toBe('/a/s-0000000000');
  expect(made.path).toBe('/m');
  expect((await inside.children('/')).sort()).toEqual(['a', 'gone', 'm']);
  expect(await inside.getEphemerals()).toEqual(['/a/s-0000000000']);
  expect(await told).toMatchObject({ type: 'created', path: '/gone' });
  expect((await outside.children('/app/a')).length).toBe(1);
  await expect(inside.get('/none')).rejects.toMatchObject({ path: '/none' });
  expect(await inside.countDescendants('/')).toBe(4);
});

test('below a chroot, what is appended to / is a name below it, as without one', async () => {
  await using zk = await startZk();
  const outside = await zk.connect();
  await outside.create('/app');
  await using inside = new Client(`${zk.directAddress}/app`);

  const plain = await inside.create('/', '', { mode: 'persistentSequential' });
  const [part] = await inside.multi([{ op: 'create', path: '/', mode: 'ephemeralSequential' }]);
  const there = await outside.create('/app/', '', { mode: 'persistentSequential' });

  expect([plain.path, part.path]).toEqual(['/0000000000', '/0000000001']);
  expect(there.path).toBe('/app/0000000002');
  expect(await inside.children('/')).toHaveLength(3);
  expect(await outside.children('/')).not.toContain('app0000000000');
});

test('a chroot that is not there fails each call with NO_NODE, and create with parents makes it', async () => {
  await using zk = await startZk();
  await using client = new Client(`${zk.directAddress}/new/app`);
  const outside = await zk.connect();

  await expect(client.create('/a')).rejects.toMatchObject({ code: 'NO_NODE', path: '/a' });
  await outside.create('/new/app', '', { parents: true });

  expect((await client.create('/a')).path).toBe('/a');
});
