import { expect, test } from 'vitest';
import { MultiError, ZkError } from '../../src/client/index.ts';
import { startZk } from '../zk.ts';

/** They answer a create2 in a multi as a create, without a Stat; 3.7.2 does not. */
const answersAsCreate = /^3\.([56]\.|8\.0)/;

test('all of a multi happens, in one transaction, and each op has its result', async () => {
  await using zk = await startZk({ since: '3.5', what: 'containers and TTLs' });
  const client = await zk.connect();
  await client.create('/old');
  await client.create('/data', 'x');

  const [made, sequential, ephemeral, ttl, container, set, checked, gone] = await client.multi([
    { op: 'create', path: '/a', data: '1' },
    { op: 'create', path: '/a/s-', mode: 'persistentSequential' },
    { op: 'create', path: '/e', mode: 'ephemeral' },
    { op: 'create', path: '/t', mode: 'persistentTtl', ttlMs: 60_000 },
    { op: 'create', path: '/c', mode: 'container' },
    { op: 'set', path: '/data', data: 'y', version: 0 },
    { op: 'check', path: '/data', version: 1 },
    { op: 'delete', path: '/old' },
  ]);

  expect(made.path).toBe('/a');
  expect(sequential.path).toBe('/a/s-0000000000');
  expect([ephemeral.path, ttl.path, container.path]).toEqual(['/e', '/t', '/c']);
  expect(set.version).toBe(1);
  expect([checked, gone]).toEqual([undefined, undefined]);
  const zxids = await Promise.all(
    ['/a', '/e', '/t', '/c'].map(async (path) => (await client.exists(path))!.czxid),
  );
  expect(new Set([...zxids, set.mzxid]).size).toBe(1);
  expect(made.stat?.czxid).toBe(answersAsCreate.test(zk.version) ? undefined : set.mzxid);
});

test('a multi that fails changes nothing, and says which op was at fault and why', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/there');

  const error = await client
    .multi([
      { op: 'create', path: '/a' },
      { op: 'create', path: '/there' },
      { op: 'delete', path: '/never-tried' },
    ])
    .catch((why) => why);

  expect(error).toBeInstanceOf(MultiError);
  expect(error).toBeInstanceOf(ZkError);
  expect(error).toMatchObject({
    code: 'NODE_EXISTS',
    index: 1,
    path: '/there',
    op: 'create',
    outcomeUnknown: false,
  });
  expect(error.message).toContain('op 2 of 3 failed, so none took place');
  expect(error.stack).toContain('multi.test.ts');
  expect(await client.exists('/a')).toBeNull();
});

test.each([
  ['a check', [{ op: 'check', path: '/a', version: 9 }], 'BAD_VERSION'],
  ['a check of what is not there', [{ op: 'check', path: '/x' }], 'NO_NODE'],
  ['a set', [{ op: 'set', path: '/a', data: '', version: 9 }], 'BAD_VERSION'],
  ['a delete', [{ op: 'delete', path: '/' }], 'BAD_ARGUMENTS'],
] as const)('%s that fails is the first op and the only one', async (what, ops, code) => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');

  const error = await client.multi(ops).catch((why) => why);

  // Below a chroot, / is a node like any other, which here has children.
  const expected = what === 'a delete' ? 'NOT_EMPTY' : code;
  expect(error).toMatchObject({ name: 'MultiError', code: expected, index: 0 });
});

test('an empty multi is done at once', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(await client.multi([])).toEqual([]);
});

test('several reads go in one request, each with a result of its own', async () => {
  await using zk = await startZk({ since: '3.6', what: 'multiRead' });
  const client = await zk.connect();
  await client.create('/a', 'x');
  await client.create('/a/b');
  const { frames } = zk.link.stats;

  const [data, children, missing] = await client.multiRead([
    { op: 'get', path: '/a' },
    { op: 'children', path: '/a' },
    { op: 'get', path: '/none' },
  ]);

  expect(data).toMatchObject({ data: Buffer.from('x'), stat: { numChildren: 1 } });
  expect(children).toEqual(['b']);
  expect(missing).toBeInstanceOf(ZkError);
  expect(missing).toMatchObject({ code: 'NO_NODE', path: '/none', op: 'get' });
  expect(zk.link.stats.frames.toServer).toBe(frames.toServer + 1);
});
