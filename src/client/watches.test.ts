import { expect, test } from 'vitest';
import { encode } from '../jute/index.ts';
import { frameBytesMax, SetWatches2, setWatchesBytesMax } from '../protocol/index.ts';
import { type Listener, resetBytes, Watches, type WatchKind } from './watches.ts';

const kinds: WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];

/** One listener of each kind on /a/b and on its parent, each with a name to tell it by. */
function everyKind() {
  const watches = new Watches();
  const names = new Map<Listener, string>();
  for (const path of ['/a', '/a/b']) {
    for (const kind of kinds) {
      const listener = () => {};
      names.set(listener, `${kind} ${path}`);
      watches.add(kind, path, listener);
    }
  }
  const told = (found: ReadonlySet<Listener>) => [...found].map((one) => names.get(one)).sort();
  return { watches, told };
}

test.each([
  ['created', ['data /a/b', 'exist /a/b', 'persistent /a/b', 'recursive /a', 'recursive /a/b']],
  ['dataChanged', ['data /a/b', 'exist /a/b', 'persistent /a/b', 'recursive /a', 'recursive /a/b']],
  [
    'deleted',
    ['child /a/b', 'data /a/b', 'exist /a/b', 'persistent /a/b', 'recursive /a', 'recursive /a/b'],
  ],
  ['childrenChanged', ['child /a/b', 'persistent /a/b']],
  ['none', []],
] as const)('of %s hear the watches that are for it, and no others', (type, heard) => {
  const { watches, told } = everyKind();

  expect(told(watches.take(type, '/a/b'))).toEqual(heard);
});

test('one-shot watches are told once; those that stay are told again', () => {
  const { watches, told } = everyKind();
  watches.take('deleted', '/a/b');

  expect(told(watches.take('created', '/a/b'))).toEqual([
    'persistent /a/b',
    'recursive /a',
    'recursive /a/b',
  ]);
  expect(kinds.map((kind) => watches.has(kind, '/a/b'))).toEqual([false, false, false, true, true]);
});

test('a recursive watch hears of what is below it, the root of all included, and not of siblings', () => {
  const watches = new Watches();
  const [root, a] = [() => {}, () => {}];
  watches.add('recursive', '/', root);
  watches.add('recursive', '/a', a);

  expect(watches.take('created', '/a/b/c')).toEqual(new Set([a, root]));
  expect(watches.take('created', '/ab')).toEqual(new Set([root]));
  expect(watches.take('created', '/')).toEqual(new Set([root]));
});

test('an event whose path is none ends nowhere, and does not go round for ever', () => {
  const watches = new Watches();
  watches.add('recursive', '/a', () => {});

  for (const path of ['', 'abc', 'a/b']) expect(watches.take('created', path).size).toBe(0);
});

test('a listener that hears by several watches is told once', () => {
  const watches = new Watches();
  const listener = () => {};
  for (const kind of kinds) watches.add(kind, '/a', listener);

  expect(watches.take('deleted', '/a')).toEqual(new Set([listener]));
});

test('one listener can go and leave the others', () => {
  const watches = new Watches();
  const [one, other] = [() => {}, () => {}];
  watches.add('data', '/a', one);
  watches.add('data', '/a', other);

  expect(watches.remove('data', '/a', one)).toEqual([one]);
  expect(watches.remove('data', '/a', one)).toEqual([]);
  expect(watches.has('data', '/a')).toBe(true);
  expect(watches.remove('data', '/a')).toEqual([other]);
  expect(watches.size).toBe(0);
});

test('names that are special to JavaScript are watched like any other', () => {
  const watches = new Watches();
  const listener = () => {};
  watches.add('data', '/__proto__', listener);

  expect(watches.take('dataChanged', '/__proto__')).toEqual(new Set([listener]));
  expect(watches.listeners('data', '/constructor').size).toBe(0);
});

test('at the end every listener is told once, and none is left', () => {
  const { watches } = everyKind();

  expect(watches.takeAll().size).toBe(10);
  expect(watches.size).toBe(0);
  expect([...watches.requests(1n, frameBytesMax)]).toEqual([]);
});

test('100,000 watches are set again in requests that a server takes, each of them once', () => {
  const watches = new Watches();
  const listener = () => {};
  for (let i = 0; i < 100_000; i++) watches.add(kinds[i % 5]!, `/a/node-ü-${i}`, listener);

  const requests = [...watches.requests(42n, frameBytesMax)];

  const sizes = requests.map((request) => encode(SetWatches2, request).length);
  expect(Math.max(...sizes)).toBeLessThan(setWatchesBytesMax + 1_024);
  expect(Math.max(...sizes)).toBeLessThan(frameBytesMax);
  expect(requests.every(({ relativeZxid }) => relativeZxid === 42n)).toBe(true);
  const all = requests.flatMap((request) => [
    ...request.dataWatches.map((path) => `data ${path}`),
    ...request.existWatches.map((path) => `exist ${path}`),
    ...request.childWatches.map((path) => `child ${path}`),
    ...request.persistentWatches.map((path) => `persistent ${path}`),
    ...request.persistentRecursiveWatches.map((path) => `recursive ${path}`),
  ]);
  expect(new Set(all).size).toBe(100_000);
  expect(all).toHaveLength(100_000);
  expect(all).toContain('exist /a/node-ü-6');
});

test.for([200, 4_000, 60_000])(
  'where servers take %i bytes, no request that sets watches again is longer',
  (requestBytesMax) => {
    const watches = new Watches();
    for (let i = 0; i < 2_000; i++) watches.add(kinds[i % 5]!, `/a/node-ü-${i}`, () => {});
    const longest = `/${'x'.repeat(requestBytesMax - resetBytes('/'))}`;
    watches.add('recursive', longest, () => {});

    const requests = [...watches.requests(42n, requestBytesMax)];

    const headerBytes = 8;
    const sizes = requests.map((request) => headerBytes + encode(SetWatches2, request).length);
    expect(Math.max(...sizes)).toBe(requestBytesMax);
    expect(requests.at(-1)?.persistentRecursiveWatches).toEqual([longest]);
  },
);

test('a path longer than a request should be goes in one of its own', () => {
  const watches = new Watches();
  const long = `/${'x'.repeat(setWatchesBytesMax)}`;
  for (const path of ['/a', long, '/b']) watches.add('data', path, () => {});

  expect([...watches.requests(0n, frameBytesMax)].map(({ dataWatches }) => dataWatches)).toEqual([
    ['/a'],
    [long],
    ['/b'],
  ]);
});
