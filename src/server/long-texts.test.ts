/**
 * V8 hashes a string of more than 16,383 characters by its length alone. A table whose keys are long texts of
 * clients is searched from end to end for each of them.
 */

import { expect, onTestFinished, test } from 'vitest';
import { wireOf } from '../protocol/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';

const hashedCharsMax = 16_383;

/** Every string that becomes the key of a `Map`, or is put into a `Set`, and is too long to be hashed. */
function longKeys(): string[] {
  const long: string[] = [];
  const note = (key: unknown) => {
    if (typeof key === 'string' && key.length > hashedCharsMax) long.push(key.slice(0, 20));
  };
  const { set } = Map.prototype;
  const { add } = Set.prototype;
  Map.prototype.set = function (this: Map<unknown, unknown>, key: unknown, value: unknown) {
    note(key);
    return set.call(this, key, value);
  };
  Set.prototype.add = function (this: Set<unknown>, key: unknown) {
    note(key);
    return add.call(this, key);
  };
  onTestFinished(() => {
    Map.prototype.set = set;
    Set.prototype.add = add;
  });
  return long;
}

const long = 'x'.repeat(20_000);
const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, flags = 0) => ({ path, data: null, acl: open, flags });

test('no table of the server has a long text of a client as its key', async () => {
  await using zk = await startTestServer({ extendedTypesEnabled: true, enforceQuota: true });
  const client = await RawClient.connect(zk.port);
  const noWatches = { relativeZxid: 0n, dataWatches: [], existWatches: [], childWatches: [] };
  const ttl = { ...node(`/ttl${long}`, 5), ttl: 1_000_000n };
  const closed = [{ perms: 31, id: { scheme: 'digest', id: `ann:${long}` } }];
  const quota = `/zookeeper/quota/q${long}`;
  const limits = { ...node(`${quota}/zookeeper_limits`), data: Buffer.from('count=1,bytes=-1;') };
  const login = { type: 0, scheme: 'digest', auth: Buffer.from(`${long}:x`) };
  const keys = longKeys();

  const errs = [
    await client.err('create', node(`/a${long}`)),
    await client.err('createContainer', node(`/container${long}`, 4)),
    await client.err('createTTL', ttl),
    await client.err('create', { ...node('/closed'), acl: closed }),
    await client.err('create', node(`/q${long}`)),
    await client.err('create', node(quota)),
    await client.err('create', limits),
    await client.err('setData', {
      ...limits,
      data: Buffer.from('count=1,bytes=-1,countHardLimit=1;'),
      version: -1,
    }),
    await client.err('exists', { path: `/none${long}`, watch: true }),
    await client.err('getData', { path: `/a${long}`, watch: true }),
    await client.err('getChildren', { path: `/a${long}`, watch: true }),
    await client.err('addWatch', { path: `/a${long}`, mode: 0 }),
    await client.err('addWatch', { path: `/a${long}/${long}`, mode: 1 }),
    await client.err('setWatches', { ...noWatches, existWatches: [`/other${long}`] }),
    await client.err('setData', { path: `/a${long}`, data: Buffer.from('1'), version: -1 }),
    await client.err('create', node(`/a${long}/b`)),
    await client.err('removeWatches', { path: `/a${long}`, type: 3 }),
    await client.err('auth', login, -4),
  ];

  expect(errs.filter((err) => err !== 0)).toEqual([wireOf('NO_NODE')]);
  expect(keys).toEqual([]);
});
