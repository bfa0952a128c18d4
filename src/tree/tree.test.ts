import { expect, test } from 'vitest';
import { decode, encode, Reader, type Type, Writer } from '../jute/index.ts';
import { openAcl, Stat, StatPersisted, type TxnBody, txns } from '../protocol/index.ts';
import { persistedBytes } from './node-record.ts';
import { containerOwner } from './owners.ts';
import { noNode } from './path-index.ts';
import { Tree } from './tree.ts';
import type { RestoredNode } from './tree-restore.ts';

const acl = [...openAcl];
const session = 0x1234_5678_9abc_def0n;

/** Applies bodies one after the other, with zxids from 1 on. */
function grown(tree: Tree, bodies: TxnBody[], clientId = session): ReturnType<Tree['apply']>[] {
  return bodies.map((body) => {
    const zxid = tree.lastZxid + 1;
    return tree.apply({ clientId, cxid: 0, zxid, timeMs: 1_000 + zxid }, body);
  });
}

const create = (
  path: string,
  more: { ephemeral?: boolean; data?: string; cversion?: number } = {},
): TxnBody => ({
  type: 'create',
  txn: {
    path,
    data: Buffer.from(more.data ?? ''),
    acl,
    ephemeral: more.ephemeral ?? false,
    parentCVersion: more.cversion ?? -1,
  },
});
const remove = (path: string): TxnBody => ({ type: 'delete', txn: { path } });
const set = (path: string, data: string, version = 1): TxnBody => ({
  type: 'setData',
  txn: { path, data: Buffer.from(data), version },
});
const part = ({ type, txn }: TxnBody) => ({
  type: txns[type].code,
  data: encode(txns[type].record as Type<unknown>, txn),
});
const multi = (...bodies: TxnBody[]): TxnBody => ({
  type: 'multi',
  txn: { txns: bodies.map(part) },
});

const statOf = (tree: Tree, path: string) =>
  Stat.read(new Reader(tree.nodes.statOf(tree.find(path)))).toObject();

/** As a snapshot would have it. */
const restorable = ({ nodes }: Tree, node: number): RestoredNode => {
  const path = nodes.pathOf(node);
  return {
    path: path === '/' ? '' : path,
    data: nodes.dataOf(node),
    acl: nodes.aclOf(node),
    stat: decode(StatPersisted, nodes.persistedOf(node)),
  };
};

const told = (tree: Tree) => tree.events.map(({ type, path }) => `${type} ${path}`);

test('a fresh tree has what a fresh Apache server has', () => {
  const tree = new Tree();

  expect([...tree.walk()].map((node) => tree.nodes.pathOf(node))).toEqual([
    '/',
    '/zookeeper',
    '/zookeeper/quota',
    '/zookeeper/config',
  ]);
  expect(statOf(tree, '/').cversion).toBe(-1);
  expect(statOf(tree, '/zookeeper/config').aversion).toBe(-1);
  expect(tree.nodeCount).toBe(5);
});

test('a create sets all three zxids, and of the parent the counter and pzxid alone', () => {
  const tree = new Tree();

  grown(tree, [create('/a'), create('/a/b')]);

  expect(statOf(tree, '/a')).toMatchObject({
    czxid: 1n,
    mzxid: 1n,
    pzxid: 2n,
    cversion: 1,
    version: 0,
  });
  expect(statOf(tree, '/a/b')).toMatchObject({ czxid: 2n, mzxid: 2n, pzxid: 2n, ctime: 1_002n });
});

test('events come in the order in which they must be told', () => {
  const tree = new Tree();

  grown(tree, [create('/a')]);
  expect(told(tree)).toEqual(['created /a', 'childrenChanged /']);
  grown(tree, [set('/a', 'x')]);
  expect(told(tree)).toEqual(['dataChanged /a']);
  grown(tree, [remove('/a')]);
  expect(told(tree)).toEqual(['deleted /a', 'childrenChanged /']);
});

test('the end of a session takes its ephemeral nodes, and nothing else', () => {
  const tree = new Tree();
  grown(tree, [create('/keep'), create('/mine', { ephemeral: true })]);
  grown(tree, [create('/theirs', { ephemeral: true })], 99n);

  grown(tree, [{ type: 'closeSession', txn: { paths2Delete: ['/mine'] } }]);

  expect(tree.find('/mine')).toBe(noNode);
  expect(tree.find('/keep')).not.toBe(noNode);
  expect([...tree.ephemeralsOf(99n)]).toEqual(['/theirs']);
  expect(tree.ephemeralCount).toBe(1);
});

test('a close of before 3.6, which names no paths, takes them too', () => {
  const tree = new Tree();
  grown(tree, [create('/mine', { ephemeral: true })]);

  grown(tree, [{ type: 'closeSession', txn: { paths2Delete: [] } }]);

  expect(tree.find('/mine')).toBe(noNode);
});

test('a failed multi changes nothing but the last zxid', () => {
  const tree = new Tree();

  const [applied] = grown(tree, [
    multi(create('/a'), { type: 'error', txn: { err: -101 } }, { type: 'error', txn: { err: -2 } }),
  ]);

  expect(applied?.parts?.map(({ err }) => err)).toEqual([0, -101, -2]);
  expect(tree.find('/a')).toBe(noNode);
  expect(tree.lastZxid).toBe(1);
  expect(tree.events).toEqual([]);
});

test("a part of a multi has the Stat of its own moment, not of the multi's end", () => {
  const tree = new Tree();
  const body = create('/a');

  const [applied] = grown(tree, [multi({ ...body, type: 'create2' } as TxnBody, set('/a', 'xyz'))]);

  const lengths = applied?.parts?.map(({ stat }) => Stat.read(new Reader(stat!)).dataLength);
  expect(lengths).toEqual([0, 3]);
});

test('replaying a create that the snapshot has already leaves the counters as they are', () => {
  const tree = new Tree();
  grown(tree, [create('/a', { cversion: 1 }), create('/b', { cversion: 2 })]);
  const before = statOf(tree, '/');

  const [applied] = grown(tree, [create('/a', { cversion: 1 })]);

  expect(applied?.err).toBe(-110);
  expect(statOf(tree, '/')).toEqual(before);
});

test('the counter of creates does not wrap: past 2^31-1 it stands still', () => {
  const tree = new Tree();
  tree.nodes.setCversion(tree.find('/'), 0x7fff_ffff);

  grown(tree, [create('/a', { cversion: -0x8000_0000 })]);

  expect(tree.nodes.cversion(tree.find('/'))).toBe(0x7fff_ffff);
});

test('containers and TTL nodes are kept track of, and show no owner', () => {
  const tree = new Tree({ extendedTypes: true });
  const txn = { data: null, acl, parentCVersion: -1 };

  grown(tree, [
    { type: 'createContainer', txn: { ...txn, path: '/box' } },
    { type: 'createTTL', txn: { ...txn, path: '/brief', ttl: 500n } },
  ]);

  expect([...tree.containers]).toEqual(['/box']);
  expect([...tree.ttls]).toEqual(['/brief']);
  expect(tree.nodes.ownerOf(tree.find('/box'))).toBe(containerOwner);
  expect(statOf(tree, '/box').ephemeralOwner).toBe(0n);
  expect(statOf(tree, '/brief').ephemeralOwner).toBe(0n);
});

test('usage under a quota is counted from when it is set, without a txn of its own', () => {
  const tree = new Tree();
  grown(tree, [create('/q', { data: 'four' }), create('/q/x', { data: '12' })]);
  grown(tree, [
    create('/zookeeper/quota/q'),
    create('/zookeeper/quota/q/zookeeper_limits', { data: 'count=9,bytes=-1' }),
    create('/zookeeper/quota/q/zookeeper_stats'),
  ]);
  const usage = () =>
    tree.nodes.dataOf(tree.find('/zookeeper/quota/q/zookeeper_stats'))?.toString();
  expect(usage()).toBe('count=2,bytes=6');

  grown(tree, [create('/q/y', { data: '123' }), set('/q/x', '1'), remove('/q/y')]);
  expect(usage()).toBe('count=2,bytes=5');
  expect(statOf(tree, '/zookeeper/quota/q/zookeeper_stats').version).toBe(0);
});

test('usage of the root is all there is when it is set, and no more counted from then on', () => {
  const tree = new Tree();
  grown(tree, [create('/q', { data: 'four' }), create('/zookeeper/quota/zookeeper_stats')]);
  grown(tree, [create('/q/x', { data: '12' })]);

  const usage = tree.nodes.dataOf(tree.find('/zookeeper/quota/zookeeper_stats'))?.toString();

  expect(usage).toBe('count=6,bytes=4');
});

test('ACLs that no node has any more are forgotten', () => {
  const tree = new Tree();
  const before = tree.acls.size;
  const own = [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }];
  const body = create('/a');

  grown(tree, [{ ...body, txn: { ...body.txn, acl: own } } as TxnBody]);
  expect(tree.acls.size).toBe(before + 1);
  grown(tree, [{ type: 'setACL', txn: { path: '/a', acl, version: 1 } }]);
  expect(tree.acls.size).toBe(before);
});

test('a snapshot, walked and restored, is the same tree', () => {
  const tree = new Tree();
  grown(tree, [
    create('/a', { data: 'x' }),
    create('/a/b', { ephemeral: true }),
    create('/a/c'),
    remove('/a/c'),
    set('/a', 'yy', 1),
  ]);

  const copy = new Tree();
  const restored = copy.beginRestore();
  for (const [id, entry] of tree.acls.entries()) copy.acls.restore(id, entry);
  for (const node of tree.walk()) restored.node(restorable(tree, node));
  restored.done(tree.lastZxid);

  for (const path of ['/', '/a', '/a/b', '/zookeeper/config']) {
    expect(statOf(copy, path)).toEqual(statOf(tree, path));
  }
  expect([...copy.ephemeralsOf(session)]).toEqual(['/a/b']);
  expect(copy.approximateDataSize).toBe(tree.approximateDataSize);
  expect(copy.lastZxid).toBe(5);
});

test('nodes restored from the bytes of a snapshot are those restored one by one; what is unlike most is declined', () => {
  const tree = new Tree({ digest: true, extendedTypes: true });
  const deep = Array.from({ length: 30 }, (_, i) => `/a/${'d/'.repeat(i)}d`);
  grown(tree, [
    create('/a', { data: 'x' }),
    ...deep.map((path) => create(path, { data: path.repeat(5) })),
    create('/b'),
    set('/a', 'yy', 1),
    create('/a/gone'),
    remove('/a/gone'),
    create('/a/e', { ephemeral: true }),
    create('/a/\u00e4'),
    create('/zoo'),
    create('/zookeepers'),
  ]);

  const [byNode, byBytes] = [0, 1].map(() => new Tree({ digest: true, extendedTypes: true }));
  const declined: string[] = [];
  const restores = [byNode!, byBytes!].map((copy) => {
    const restored = copy.beginRestore();
    for (const [id, entry] of tree.acls.entries()) copy.acls.restore(id, entry);
    for (const node of tree.walk()) {
      const { nodes } = tree;
      const path = nodes.pathOf(node);
      const writer = new Writer();
      writer.raw(Buffer.from('before')); // a node stands anywhere
      nodes.writeSnapshot(writer, node, nodes.aclOf(node));
      const pathBytes = path === '/' ? 0 : Buffer.byteLength(path);
      const [dataAt, statAt] = [6 + 4 + pathBytes, writer.length - persistedBytes];
      const parts = { pathAt: 6, dataAt, aclAt: statAt - 8, statAt };
      const isTaken = copy === byBytes && restored.encoded(writer.written(), parts);
      if (isTaken) continue;
      if (copy === byBytes) declined.push(path);
      restored.node(restorable(tree, node));
    }
    restored.done(tree.lastZxid);
    return restored;
  });

  expect(declined).toEqual([
    ...['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'],
    ...['/a/e', '/a/\u00e4', '/zookeepers'],
  ]);
  for (const node of byNode!.walk()) {
    const path = byNode!.nodes.pathOf(node);
    expect(statOf(byBytes!, path), path).toEqual(statOf(tree, path));
    const twin = byBytes!.nodes.find(path);
    expect(byBytes!.nodes.dataOf(twin), path).toEqual(tree.nodes.dataOf(tree.find(path)));
    expect(byBytes!.nodes.aclOf(twin), path).toBe(byNode!.nodes.aclOf(node));
    expect(byBytes!.isIntact(twin), path).toBe(true);
  }
  expect(byBytes!.digest!.value).toBe(byNode!.digest!.value);
  expect(byBytes!.approximateDataSize).toBe(tree.approximateDataSize);
  expect(byBytes!.nodeCount).toBe(tree.nodeCount);
  const orphan = Buffer.from(`00000005${Buffer.from('/no/x').toString('hex')}ffffffff`, 'hex');
  const bytes = Buffer.concat([orphan, Buffer.alloc(8 + persistedBytes)]);
  const parts = { pathAt: 0, dataAt: 9, aclAt: 13, statAt: 21 };
  expect(restores[1]!.encoded(bytes, parts)).toBe(false);
});

test('a tree that changes while it is walked gives every node that was there all along, once', () => {
  const tree = new Tree();
  const names = Array.from({ length: 50 }, (_, i) => `/d/n${i}`);
  grown(tree, [create('/d'), ...names.map((name) => create(name))]);

  const seen: string[] = [];
  let step = 0;
  for (const node of tree.walk()) {
    seen.push(tree.nodes.pathOf(node));
    step += 1;
    if (step % 5 === 0) grown(tree, [remove(`/d/n${49 - step / 5}`), create(`/d/m${step}`)]);
  }

  expect(new Set(seen).size).toBe(seen.length);
  for (const name of names) if (tree.find(name) !== noNode) expect(seen).toContain(name);
});

test('a walk tells of nothing that was made after its parent was told, whatever number it has', () => {
  const tree = new Tree();
  grown(tree, [create('/a'), create('/a/x'), create('/a/y'), create('/b')]);
  const walk = tree.walk();
  const told: string[] = [];
  while (told.at(-1) !== '/a') told.push(tree.nodes.pathOf(walk.next()));
  const numbers = ['/a', '/a/x', '/a/y'].map((path) => tree.find(path));

  // All three numbers go to others: one to a sibling, one to a parent, one to its child.
  grown(tree, [remove('/a/x'), remove('/a/y'), remove('/a'), create('/c'), create('/c/x')]);
  grown(tree, [create('/b/y')]);
  const now = ['/c', '/c/x', '/b/y'].map((path) => tree.find(path));
  for (const node of walk) told.push(tree.nodes.pathOf(node));

  expect(now.sort()).toEqual(numbers.sort());
  // /b was told after /b/y was made.
  const ours = told.filter((path) => !path.startsWith('/zookeeper'));
  expect(ours).toEqual(['/', '/a', '/b', '/b/y']);
});

test('a node is removed with all that a fuzzy snapshot has below it, however deep that is', () => {
  const tree = new Tree({ digest: true });
  const empty = new Tree({ digest: true });
  const depth = 9_999;
  let path = '';
  for (let i = 0; i < depth; i++) {
    path += '/d';
    grown(tree, [create(path)]);
  }

  const { err } = tree.apply({ clientId: 1n, cxid: 0, zxid: depth + 1, timeMs: 1 }, remove('/d'));

  expect(err).toBe(0);
  expect(tree.nodes.count).toBe(empty.nodes.count);
});

test('names of object properties are names like any other', () => {
  const tree = new Tree();

  grown(tree, [create('/__proto__'), create('/constructor'), create('/__proto__/toString')]);

  expect(tree.countBelow(tree.find('/__proto__'))).toBe(1);
});
