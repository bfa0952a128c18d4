import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestId } from '../protocol/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { anyKind, type Watcher, watchKinds } from './watch-table.ts';
import { Watches } from './watches.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, acl = open) => ({ path, data: null, acl, flags: 0 });
const set = (path: string) => ({ path, data: null, version: -1 });
const gone = (path: string) => ({ path, version: -1 });
const persistent = 0;
const recursive = 1;

async function start(fixture: Record<string, string> = {}) {
  const zk = await startTestServer();
  await zk.load(fixture);
  const writer = await RawClient.connect(zk.port);
  const watcher = await RawClient.connect(zk.port);
  return { zk, writer, watcher };
}

test('a one-shot watch fires once', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('getData', { path: '/a', watch: true });

  await writer.ask('setData', set('/a'));
  await writer.ask('setData', set('/a'));

  expect(await watcher.events()).toEqual(['dataChanged /a']);
});

test('exists waits for a node that is not there; getData and getChildren do not', async () => {
  const { zk, writer, watcher } = await start();
  await using _ = zk;
  expect(await watcher.err('exists', { path: '/e', watch: true })).toBe(-101);
  expect(await watcher.err('getData', { path: '/d', watch: true })).toBe(-101);
  expect(await watcher.err('getChildren', { path: '/c', watch: true })).toBe(-101);

  for (const path of ['/e', '/d', '/c']) await writer.ask('create', node(path));

  expect(await watcher.events()).toEqual(['created /e']);
});

test('who watches data and children of a node hears of its end once', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('getData', { path: '/a', watch: true });
  await watcher.ask('getChildren', { path: '/a', watch: true });
  await watcher.ask('getChildren', { path: '/', watch: true });

  await writer.ask('delete', gone('/a'));

  expect(await watcher.events()).toEqual(['deleted /a', 'childrenChanged /']);
});

test('a writer hears its own event before its own reply', async () => {
  const { zk, writer } = await start({ '/a': '' });
  await using _ = zk;
  await writer.ask('getData', { path: '/a', watch: true });
  writer.heard.length = 0;

  const xid = writer.send('setData', set('/a'));
  await writer.reply(xid);

  expect(writer.heard).toEqual(['dataChanged /a', xid]);
});

test('a persistent watch stays, and hears of children too', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('addWatch', { path: '/a', mode: persistent });

  await writer.ask('create', node('/a/b'));
  await writer.ask('setData', set('/a'));
  await writer.ask('setData', set('/a/b'));
  await writer.ask('delete', gone('/a/b'));
  await writer.ask('delete', gone('/a'));

  expect(await watcher.events()).toEqual([
    'childrenChanged /a',
    'dataChanged /a',
    'childrenChanged /a',
    'deleted /a',
  ]);
});

test('a recursive watch hears of everything below, and never of children changed', async () => {
  const { zk, writer, watcher } = await start({ '/a': '', '/ab': '' });
  await using _ = zk;
  await watcher.ask('addWatch', { path: '/a', mode: recursive });

  await writer.ask('create', node('/a/b'));
  await writer.ask('create', node('/a/b/c'));
  await writer.ask('setData', set('/a/b/c'));
  await writer.ask('setData', set('/ab'));
  await writer.ask('delete', gone('/a/b/c'));

  expect(await watcher.events()).toEqual([
    'created /a/b',
    'created /a/b/c',
    'dataChanged /a/b/c',
    'deleted /a/b/c',
  ]);
});

test('beside a recursive watch, others still hear of nothing but their own node', async () => {
  const { zk, writer, watcher } = await start({ '/a/b': '' });
  await using _ = zk;
  await writer.ask('addWatch', { path: '/', mode: recursive });
  await watcher.ask('addWatch', { path: '/a', mode: persistent });
  await watcher.ask('getData', { path: '/a', watch: true });

  await writer.ask('setData', set('/a/b'));

  expect(await watcher.events()).toEqual([]);
  expect(await writer.events()).toEqual(['dataChanged /a/b']);
});

test('one-shot, persistent and recursive on one path are one event, and removable each alone', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('getData', { path: '/a', watch: true });
  await watcher.ask('addWatch', { path: '/a', mode: persistent });
  await watcher.ask('addWatch', { path: '/a', mode: recursive });

  await writer.ask('setData', set('/a'));
  expect(await watcher.events()).toEqual(['dataChanged /a']);

  expect(await watcher.err('removeWatches', { path: '/a', type: 2 })).toBe(-121);
  expect(await watcher.err('removeWatches', { path: '/a', type: 5 })).toBe(0);
  expect(await watcher.err('checkWatches', { path: '/a', type: 4 })).toBe(0);
  await writer.ask('setData', set('/a'));
  expect(await watcher.events()).toEqual(['dataChanged /a']);
  expect(await watcher.err('removeWatches', { path: '/a', type: 3 })).toBe(0);
  await writer.ask('setData', set('/a'));
  expect(await watcher.events()).toEqual([]);
});

test('setACL is no event', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('addWatch', { path: '/', mode: recursive });

  await writer.ask('setACL', { path: '/a', acl: open, version: -1 });

  expect(await watcher.events()).toEqual([]);
});

test('who may not read a node does not hear of it, and its watch is spent', async () => {
  const { zk, writer, watcher } = await start();
  await using _ = zk;
  const secret = [{ perms: 31, id: digestId('u:p') }];
  const auth = { type: 0, scheme: 'digest', auth: Buffer.from('u:p') };
  await writer.ask('auth', auth, -4);
  await watcher.err('exists', { path: '/a', watch: true });
  await watcher.ask('addWatch', { path: '/', mode: recursive });

  await writer.ask('create', node('/a', secret));
  await writer.ask('setData', set('/a'));
  expect(await watcher.events()).toEqual([]);

  await watcher.ask('auth', auth, -4);
  await writer.ask('setData', set('/a'));
  expect(await watcher.events()).toEqual(['dataChanged /a']);
  expect(await watcher.err('checkWatches', { path: '/a', type: 2 })).toBe(-121);
});

test('the header of an event has the zxid of its txn', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('getData', { path: '/a', watch: true });

  const { zxid } = await writer.reply(writer.send('setData', set('/a')));
  await watcher.events();

  expect(watcher.eventZxids).toEqual([zxid]);
});

test('setWatches tells at once what was missed, without a zxid, and sets the rest again', async () => {
  const { zk, writer, watcher } = await start({ '/same': '', '/set': '', '/kids': '' });
  await using _ = zk;
  const relativeZxid = (await watcher.ping()).zxid;
  await writer.ask('setData', set('/set'));
  await writer.ask('create', node('/kids/x'));
  await writer.ask('create', node('/new'));
  watcher.heard.length = 0;

  const xid = watcher.send(
    'setWatches',
    {
      relativeZxid,
      dataWatches: ['/same', '/set', '/none'],
      existWatches: ['/new', '/later'],
      childWatches: ['/same', '/kids', '/none'],
    },
    -8,
  );
  await watcher.reply(xid);

  expect(watcher.heard).toEqual([
    'dataChanged /set',
    'deleted /none',
    'created /new',
    'childrenChanged /kids',
    'deleted /none',
    -8,
  ]);
  expect(watcher.eventZxids).toEqual([-1n, -1n, -1n, -1n, -1n]);
  await watcher.events();
  for (const path of ['/later', '/same/x']) await writer.ask('create', node(path));
  await writer.ask('setData', set('/same'));
  expect(await watcher.events()).toEqual([
    'created /later',
    'childrenChanged /same',
    'dataChanged /same',
  ]);
});

test.each(['setWatches', 'setWatches2'] as const)(
  '%s tells nothing of a node that the connection may not read, and sets no watch on it',
  async (op) => {
    const { zk, writer, watcher } = await start();
    await using _ = zk;
    const secret = [{ perms: 31, id: digestId('u:p') }];
    const auth = { type: 0, scheme: 'digest', auth: Buffer.from('u:p') };
    await writer.ask('auth', auth, -4);
    await writer.ask('create', node('/secret', secret));
    await writer.ask('create', node('/secret/child', secret));
    await writer.ask('setData', set('/secret'));
    const now = (await writer.ping()).zxid;
    const setAgain = (relativeZxid: bigint) =>
      watcher.err(
        op,
        {
          relativeZxid,
          dataWatches: ['/secret', '/none'],
          existWatches: ['/secret', '/later'],
          childWatches: ['/secret'],
          persistentWatches: [],
          persistentRecursiveWatches: [],
        },
        -8,
      );

    for (let zxid = 0n; zxid <= now + 1n; zxid += 1n) {
      expect(await setAgain(zxid)).toBe(0);
      expect(await watcher.events()).toEqual(['deleted /none']);
      for (const type of [1, 2, 3]) {
        expect(await watcher.err('checkWatches', { path: '/secret', type })).toBe(-121);
      }
    }
    await writer.ask('setData', set('/secret'));
    await writer.ask('create', node('/later'));
    expect(await watcher.events()).toEqual(['created /later']);

    await watcher.ask('auth', auth, -4);
    await setAgain(0n);
    expect(await watcher.events()).toEqual([
      'dataChanged /secret',
      'deleted /none',
      'created /secret',
      'created /later',
      'childrenChanged /secret',
    ]);
  },
);

test('watches go with their link', async () => {
  const { zk, writer, watcher } = await start({ '/a': '' });
  await using _ = zk;
  await watcher.ask('addWatch', { path: '/a', mode: persistent });
  await watcher.ask('addWatch', { path: '/a', mode: recursive });
  expect(zk.engine.watches.count).toBe(2);

  zk.drop(watcher.sessionId);
  await watcher.ended();

  expect(zk.engine.watches.count).toBe(0);
  expect(await writer.err('setData', set('/a'))).toBe(0);
});

test('whatever is set, spent and removed, the table tells of just those who still watch', () => {
  const names = ['/', '/a', '/a/b', '/a/b/c/d', '/a/b/c/e', '/a/bc', '/c'];
  const watchers = [1n, 2n, 3n].map(
    (watcherId): Watcher => ({ watcherId, mayRead: () => true, deliver: () => {} }),
  );
  const watcher = fc.constantFrom(...watchers);
  const path = fc.constantFrom(...names);
  const kind = fc.constantFrom(...Object.values(watchKinds));
  const step = fc.oneof(
    fc.record({ what: fc.constant('add'), watcher, path, kind }),
    fc.record({ what: fc.constant('add'), watcher, path, kind }),
    fc.record({ what: fc.constant('trigger'), watcher, path, kind }),
    fc.record({ what: fc.constant('remove'), watcher, path, kind }),
    fc.record({ what: fc.constant('removeAll'), watcher, path, kind }),
  );
  const isAbove = (above: string, path: string) => above === '/' || path.startsWith(`${above}/`);

  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const table = new Watches().data;
      const entries = watchers.flatMap((owner) => names.map((at) => ({ owner, at, kinds: 0 })));
      for (const { what, watcher, path, kind } of steps) {
        const own = entries.find(({ owner, at }) => owner === watcher && at === path)!;
        if (what === 'add') {
          table.add(path, watcher, kind);
          own.kinds |= kind;
        } else if (what === 'remove') {
          expect(table.remove(path, watcher, kind)).toBe((own.kinds & kind) !== 0);
          own.kinds &= ~kind;
        } else if (what === 'removeAll') {
          table.removeAll(watcher);
          for (const entry of entries) if (entry.owner === watcher) entry.kinds = 0;
        } else {
          const told = entries.filter(
            ({ at, kinds }) =>
              (at === path && kinds !== 0) ||
              ((kinds & watchKinds.recursive) !== 0 && at !== path && isAbove(at, path)),
          );
          const owners = new Set(told.map(({ owner }) => owner));
          expect(table.trigger(path)).toHaveLength(owners.size);
          for (const entry of entries) if (entry.at === path) entry.kinds &= ~watchKinds.oneShot;
        }
        const left = entries.filter(({ kinds }) => kinds !== 0);
        expect(table.count).toBe(left.length);
        expect(table.pathCount).toBe(new Set(left.map(({ at }) => at)).size);
        expect(new Set(table.watchers())).toEqual(new Set(left.map(({ owner }) => owner)));
        for (const { owner, at, kinds } of entries) {
          expect(table.has(at, owner, anyKind)).toBe(kinds !== 0);
        }
        for (const owner of watchers) {
          const paths = left.filter((entry) => entry.owner === owner).map(({ at }) => at);
          expect(table.countOf(owner)).toBe(paths.length);
          expect([...table.pathsOf(owner)].sort()).toEqual(paths.sort());
        }
        for (const [at, here] of table.paths()) {
          const owners = new Set(left.filter((entry) => entry.at === at).map(({ owner }) => owner));
          expect(here).toHaveLength(owners.size);
          expect(new Set(here)).toEqual(owners);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('many on one path come and go in any order', () => {
  const { oneShot, persistent } = watchKinds;
  const watchers = Array.from(
    { length: 12 },
    (_, i): Watcher => ({ watcherId: BigInt(i), mayRead: () => true, deliver: () => {} }),
  );
  const one = fc.nat(watchers.length - 1);
  const step = fc.oneof(
    fc.record({ what: fc.constantFrom('add', 'stay', 'remove', 'remove'), one }),
    fc.record({ what: fc.constantFrom('add', 'stay', 'remove', 'trigger'), one }),
  );

  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
      const table = new Watches().data;
      const kept = new Map<Watcher, number>();
      for (const { what, one } of steps) {
        const watcher = watchers[one]!;
        if (what === 'remove') {
          table.remove('/a', watcher, anyKind);
          kept.delete(watcher);
        } else if (what === 'trigger') {
          expect(new Set(table.trigger('/a'))).toEqual(new Set(kept.keys()));
          for (const [of, kind] of kept) if (kind === oneShot) kept.delete(of);
        } else {
          const kind = what === 'stay' ? persistent : oneShot;
          if (kept.has(watcher)) continue;
          table.add('/a', watcher, kind);
          kept.set(watcher, kind);
        }
        const [[, here] = ['', []]] = [...table.paths()];
        expect(here).toHaveLength(kept.size);
        expect(new Set(here)).toEqual(new Set(kept.keys()));
      }
    }),
    { numRuns: 200 },
  );
});

test('little is kept of watches that are spent', () => {
  const table = new Watches().data;
  const watcher: Watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  for (let i = 0; i < 50; i++) table.add(`/kept${i}`, watcher, watchKinds.persistent);

  let most = 0;
  for (let i = 0; i < 10_000; i++) {
    table.add(`/n${i}`, watcher, watchKinds.oneShot);
    expect(table.trigger(`/n${i}`)).toEqual([watcher]);
    most = Math.max(most, table.emptyCount);
  }

  expect(most).toBeGreaterThan(50);
  expect(most).toBeLessThan(200);
  expect(table.countOf(watcher)).toBe(50);
  expect(table.pathsOf(watcher)).toHaveLength(50);
  table.removeAll(watcher);
  expect([table.count, table.pathCount, table.emptyCount]).toEqual([0, 0, 0]);
});

test('recursive watches above a path are found at once, however deep it is', {
  timeout: 2_000,
}, () => {
  const table = new Watches().data;
  const [root, above, beside, gone]: Watcher[] = [1n, 2n, 3n, 4n].map((watcherId) => ({
    ...{ watcherId, mayRead: () => true, deliver: () => {} },
  }));
  const deep = '/a'.repeat(10_000);
  table.add('/', root!, watchKinds.recursive);
  table.add('/a/a', above!, watchKinds.recursive);
  table.add('/a/b', beside!, watchKinds.recursive);
  table.add('/a/a/a', gone!, watchKinds.recursive);
  table.remove('/a/a/a', gone!, anyKind);

  expect(table.trigger('/')).toEqual([root]);
  expect(table.trigger('/a')).toEqual([root]);
  expect(table.trigger('/a/a')).toEqual([above, root]);
  for (let i = 0; i < 100; i++) expect(table.trigger(deep)).toEqual([above, root]);
  table.removeAll(root!);
  table.removeAll(above!);
  expect(table.trigger(deep)).toEqual([]);
});

test('a recursive watch on a text that no node can have as its path hears of nothing', () => {
  const table = new Watches().data;
  const watcher: Watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  const odd = ['', 'a', 'xa', '//', '/a/', '//a', '/a//b'];
  for (const path of odd) table.add(path, watcher, watchKinds.recursive);

  for (const path of ['/', '/a', '/a/b', '/b']) expect(table.trigger(path)).toEqual([]);
  for (const path of odd) expect(table.remove(path, watcher, anyKind)).toBe(true);
  expect([table.count, table.bytes]).toEqual([0, 0]);
});

/** Characters of all texts that were looked up in any `Map` while `run` ran. */
function charactersLookedUp(run: () => void): number {
  const { get } = Map.prototype;
  let characters = 0;
  Map.prototype.get = function (this: Map<unknown, unknown>, key: unknown) {
    if (typeof key === 'string') characters += key.length;
    return get.call(this, key);
  };
  try {
    run();
  } finally {
    Map.prototype.get = get;
  }
  return characters;
}

test('to find recursive watches takes as long as a path is, however many there are above it', () => {
  const table = new Watches().data;
  const watcher: Watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  const deep = '/a'.repeat(1_000);
  for (let end = 2; end <= deep.length; end += 2) {
    table.add(deep.slice(0, end), watcher, watchKinds.recursive);
  }

  const characters = charactersLookedUp(() => {
    expect(table.trigger(`${deep}/b`)).toEqual([watcher]);
  });

  expect(characters).toBeLessThan(2 * deep.length + 100); // 1,000,000 if each path above were looked up
});

test('nothing is kept of a link that is gone', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const watches = new Watches();
  const come = (): WeakRef<Watcher> => {
    const watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
    watches.addPersistent('/a', watcher, false);
    watches.data.add('/b', watcher, watchKinds.oneShot);
    watches.data.trigger('/b');
    watches.removeAll(watcher);
    return new WeakRef(watcher);
  };

  const gone = come();
  await new Promise((resolve) => setImmediate(resolve)); // a WeakRef holds on until its turn is over
  collect();

  expect(gone.deref()).toBeUndefined();
});
