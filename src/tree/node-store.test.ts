import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Reader, ustring, vector, Writer } from '../jute/index.ts';
import { Stat } from '../protocol/index.ts';
import { type NewNode, NodeStore } from './node-store.ts';
import { noNode } from './path-index.ts';

const made = (path: string, data: Buffer | null = Buffer.from(path)): NewNode => ({
  path,
  hash: undefined,
  data,
  acl: -1,
  zxid: 7,
  timeMs: 1_700_000_000_123,
  owner: 0n,
  shownOwner: 0n,
});

function storeWithRoot() {
  const store = new NodeStore();
  return { store, root: store.add(noNode, made('/')) };
}

const statOf = (store: NodeStore, node: number) => Stat.read(new Reader(store.statOf(node)));

test('a node is found by its path, and only by all of it', () => {
  const { store, root } = storeWithRoot();
  const node = store.add(root, made('/abc'));

  expect(store.find('/abc')).toBe(node);
  expect(store.find('/ab')).toBe(noNode);
  expect(store.find('/abcd')).toBe(noNode);
  expect(store.find('/é')).toBe(noNode);
});

test('by its string and by its bytes a path leads to the same node', () => {
  const name = fc.string({
    unit: fc.oneof(fc.constantFrom('a', 'é', 'Ã', '©', '中'), fc.string()),
  });
  fc.assert(
    fc.property(fc.uniqueArray(name, { maxLength: 20 }), (names) => {
      const { store, root } = storeWithRoot();
      const paths = names.map((one) => `/${one}`).filter((path) => path !== '/');
      const nodes = paths.map((path) => store.add(root, made(path)));
      const bytes = paths.map((path) => Buffer.from(path));

      expect(paths.map((path) => store.find(path))).toEqual(nodes);
      expect(bytes.map((path) => store.findBytes(path, 0, path.length))).toEqual(nodes);
    }),
  );
});

test('a path beyond ASCII, and one beyond any scratch memory, is found', () => {
  const { store, root } = storeWithRoot();
  const long = `/${'x'.repeat(300_000)}`;
  const nodes = ['/é', '/中文', long].map((path) => store.add(root, made(path)));

  expect(['/é', '/中文', long].map((path) => store.find(path))).toEqual(nodes);
  expect(store.pathOf(nodes[2]!)).toBe(long);
});

test('what a read is answered with is data and Stat in one piece', () => {
  const { store, root } = storeWithRoot();
  const node = store.add(root, made('/a', Buffer.from('hello')));
  const writer = new Writer();

  store.writeData(writer, node);

  const reader = new Reader(writer.written());
  expect(reader.buffer()?.toString()).toBe('hello');
  expect(Stat.read(reader).toObject()).toEqual({
    czxid: 7n,
    mzxid: 7n,
    ctime: 1_700_000_000_123n,
    mtime: 1_700_000_000_123n,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner: 0n,
    dataLength: 5,
    numChildren: 0,
    pzxid: 7n,
  });
  expect(reader.remaining).toBe(0);
});

test('no data is not the same as empty data', () => {
  const { store, root } = storeWithRoot();
  const node = store.add(root, made('/a', null));
  expect(store.dataOf(node)).toBeNull();

  store.setData(node, Buffer.alloc(0));
  expect(store.dataOf(node)).toEqual(Buffer.alloc(0));

  store.setData(node, null);
  expect(store.dataOf(node)).toBeNull();
  expect(store.dataBytes(node)).toBe(0);
});

test('children come in the order of their creation, whichever goes', () => {
  const { store, root } = storeWithRoot();
  const names = ['/a', '/b', '/c', '/d'];
  const [a, , c] = names.map((path) => store.add(root, made(path)));
  const paths = () => [...store.childrenOf(root)].map((node) => store.pathOf(node));

  store.remove(a!);
  expect(paths()).toEqual(['/b', '/c', '/d']);
  store.remove(c!);
  expect(paths()).toEqual(['/b', '/d']);
  store.add(root, made('/a'));
  expect(paths()).toEqual(['/b', '/d', '/a']);
});

test('clients see twice the creates less the children there are', () => {
  const { store, root } = storeWithRoot();
  store.setCversion(root, 1);
  const a = store.add(root, made('/a'));
  expect(statOf(store, root).cversion).toBe(1);

  store.setCversion(root, 2);
  store.add(root, made('/b'));
  expect(statOf(store, root).cversion).toBe(2);

  store.remove(a);
  expect(statOf(store, root).cversion).toBe(3);
  expect(store.cversion(root)).toBe(2);
});

test('the counter that clients see wraps as a Java int does', () => {
  const { store, root } = storeWithRoot();

  store.setCversion(root, 0x7fff_ffff);

  expect(statOf(store, root).cversion).toBe(-2);
});

test('a Stat goes into a snapshot and comes back the same', () => {
  const { store, root } = storeWithRoot();
  const node = store.add(root, { ...made('/a'), owner: -5n, shownOwner: -5n });
  store.setCversion(node, 9);
  store.setModified(node, 0x1_0000_0005, 5, 3);

  const persisted = store.persistedOf(node);
  const copy = storeWithRoot();
  const twin = copy.store.add(copy.root, { ...made('/a'), owner: -5n, shownOwner: -5n });
  copy.store.restoreStat(twin, persisted);

  expect(copy.store.statOf(twin)).toEqual(store.statOf(node));
  expect(copy.store.persistedOf(twin)).toEqual(persisted);
  expect(copy.store.mzxid(twin)).toBe(0x1_0000_0005);
});

test('under any makes, sets and removes it holds what a plain map holds', () => {
  const step = fc.record({
    kind: fc.constantFrom('make', 'set', 'remove'),
    name: fc.nat(40),
    bytes: fc.oneof(fc.nat(300), fc.constantFrom(1_000, 5_000, 70_000, 70_001, 200_000)),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { store, root } = storeWithRoot();
      const model = new Map<string, Buffer>();
      for (const [i, { kind, name, bytes }] of steps.entries()) {
        const path = `/n${name}`;
        const data = Buffer.alloc(bytes, i);
        const node = store.find(path);
        expect(node !== noNode).toBe(model.has(path));
        if (kind === 'make' && node === noNode) store.add(root, made(path, data));
        else if (kind === 'set' && node !== noNode) store.setData(node, data);
        else if (kind === 'remove' && node !== noNode) store.remove(node);
        else continue;
        if (kind === 'remove') model.delete(path);
        else model.set(path, data);
      }
      expect(store.count).toBe(model.size + 1);
      expect(store.childCount(root)).toBe(model.size);
      for (const [path, data] of model) {
        const node = store.find(path);
        expect(store.dataOf(node)?.equals(data)).toBe(true);
        expect(statOf(store, node)).toMatchObject({
          czxid: 7n,
          dataLength: data.length,
          pzxid: 7n,
        });
        expect(store.pathOf(node)).toBe(path);
      }
    }),
    { numRuns: 200 },
  );
});

test('large data grows byte by byte without losing its Stat', () => {
  const { store, root } = storeWithRoot();
  const node = store.add(root, made('/big', Buffer.alloc(70_000)));

  for (let bytes = 70_001; bytes < 70_040; bytes++) {
    store.setData(node, Buffer.alloc(bytes, 1));
    expect(statOf(store, node)).toMatchObject({ czxid: 7n, dataLength: bytes, pzxid: 7n });
  }
});

test('memory given back is used again', () => {
  const { store, root } = storeWithRoot();
  const round = () => {
    const nodes = Array.from({ length: 5_000 }, (_, i) => store.add(root, made(`/${i}`)));
    for (const node of nodes) store.remove(node);
  };
  round();
  const after = store.slabBytes;

  for (let i = 0; i < 5; i++) round();

  expect(store.slabBytes).toBe(after);
});

test('the names of many children, short and long, are all there', () => {
  const { store, root } = storeWithRoot();
  const parent = store.add(root, made('/dir'));
  const names = Array.from({ length: 3_000 }, (_, i) => `${i}-${'x'.repeat(i % 150)}`);
  names.push('y'.repeat(40_000), 'é', 'z');
  for (const name of names) store.add(parent, made(`/dir/${name}`));
  const writer = new Writer();

  store.writeChildren(writer, parent);

  const reader = new Reader(writer.written());
  expect(vector(ustring).read(reader)).toEqual(names);
  expect(reader.remaining).toBe(0);
});
