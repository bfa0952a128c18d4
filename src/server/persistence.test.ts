import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Writer } from '../jute/index.ts';
import { type Acl, openAcl, permissions, type TxnBody } from '../protocol/index.ts';
import {
  type FileSystem,
  parseSnapshotName,
  readSnapshot,
  realFileSystem,
  writeSnapshot,
} from '../storage/index.ts';
import { deferred, ManualClock, silentLogger } from '../support/index.ts';
import { RawClient } from '../testing/index.ts';
import { noNode, openAclId, type Tree, ttlOwner } from '../tree/index.ts';
import { Audit } from './audit.ts';
import { passwordOf } from './passwords.ts';
import { openPersistence, type Persistence } from './persistence.ts';
import { type RunningServer, startServer } from './start-server.ts';
import type { LoggedTxn } from './txn-log.ts';

let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'drover-persistence-'));
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const open = (options = {}) =>
  openPersistence({ dataDir, unsafeNoFsync: true, preallocBytes: 0, snapCount: 1e9, ...options });

/** Appends and applies, as the pipeline does. */
async function write(disk: Persistence, bodies: readonly TxnBody[], clientId = 7n): Promise<void> {
  for (const body of bodies) {
    const zxid = disk.tree.lastZxid + 1;
    const txn: LoggedTxn = { head: { clientId, cxid: zxid, zxid, timeMs: 1_000 + zxid }, body };
    await disk.log.append([txn]);
    disk.tree.apply(txn.head, body);
  }
}

/** Applies and appends: the digest that the tree then has is logged too. */
function land(disk: Persistence, body: TxnBody): Promise<void> {
  const zxid = disk.tree.lastZxid + 1;
  const head = { clientId: 7n, cxid: zxid, zxid, timeMs: 1_000 + zxid };
  disk.tree.apply(head, body);
  return disk.log.append([{ head, body, digest: disk.tree.digest!.halves }]);
}

const create = (path: string, data = 'd', acl = [...openAcl], ephemeral = false): TxnBody => ({
  type: 'create',
  txn: { path, data: Buffer.from(data), acl, ephemeral, parentCVersion: -1 },
});
const aclOf = (id: string) => [{ perms: permissions.all, id: { scheme: 'digest', id } }];
const remove = (path: string): TxnBody => ({ type: 'delete', txn: { path } });

/** All there is to know of a tree. */
function picture(tree: Tree): unknown {
  const nodes = [...tree.walk()].map((node) => ({
    path: tree.nodes.pathOf(node),
    data: tree.nodes.dataOf(node)?.toString('hex') ?? null,
    acl: tree.aclOf(node),
    stat: tree.nodes.persistedOf(node).toString('hex'),
  }));
  nodes.sort((a, b) => (a.path < b.path ? -1 : 1));
  const owners = [...tree.owners].map(([id, paths]) => [id, [...paths].sort()]);
  return { nodes, sessions: [...tree.sessions].sort(), owners, zxid: tree.lastZxid };
}

const secretPath = () => join(dataDir, 'version-2', '.drover-session-secret');

test('the passwords of sessions outlast a restart, by a secret that only its owner may read', async () => {
  const first = await open();
  const password = first.passwords.of(7n);
  await first.log.close();
  const again = await open();
  await again.log.close();

  expect(again.passwords.of(7n)).toEqual(password);
  expect(password).not.toEqual(passwordOf(7n));
  expect(statSync(secretPath()).mode & 0o777).toBe(0o600);
});

test('sessions that live in a directory when it is opened first keep the rule of Apache, and no others', async () => {
  const theirs = await open();
  await write(theirs, [{ type: 'createSession', txn: { timeOut: 5_000 } }]);
  await write(theirs, [create('/orphan', '', [...openAcl], true)], 9n);
  await theirs.log.close();
  rmSync(secretPath());

  const ours = await open();
  await write(ours, [{ type: 'createSession', txn: { timeOut: 5_000 } }], 8n);
  await ours.log.close();
  const again = await open();
  await again.log.close();

  for (const { passwords } of [ours, again]) {
    expect([7n, 8n, 9n].map((id) => passwords.isOf(id, passwordOf(id)))).toEqual([
      ...[true, false, true],
    ]);
  }
});

test('a restart is enough to change the rule of passwords, and to change it back', async () => {
  const secret = await open();
  await write(secret, [{ type: 'createSession', txn: { timeOut: 5_000 } }]);
  await secret.log.close();
  const before = secret.passwords.of(7n);

  const apache = await open({ sessionPasswords: 'apache' });
  await write(apache, [{ type: 'createSession', txn: { timeOut: 5_000 } }], 8n);
  await apache.log.close();
  const back = await open();
  await back.log.close();

  expect(apache.passwords.isOf(7n, before)).toBe(true);
  expect(apache.passwords.of(7n)).toEqual(passwordOf(7n));
  expect([7n, 8n, 9n].map((id) => back.passwords.isOf(id, passwordOf(id)))).toEqual([
    ...[true, true, false],
  ]);
});

test.each(['', '{}', 'null', '{"version":1,"secret":"00","apacheSessions":[],"check":"0"}'])(
  'a damaged secret, %j, is told and made anew, and no session gets the rule of Apache by it',
  async (text) => {
    const first = await open();
    await write(first, [{ type: 'createSession', txn: { timeOut: 5_000 } }]);
    await first.log.close();
    writeFileSync(secretPath(), text);
    const warn = vi.fn();

    const again = await open({ logger: { ...silentLogger, warn } });
    await again.log.close();
    const third = await open();
    await third.log.close();

    expect(warn.mock.calls.map(([, message]) => message)).toContainEqual(
      expect.stringContaining('the secret of the session passwords is damaged'),
    );
    expect(again.passwords.isOf(7n, passwordOf(7n))).toBe(false);
    expect(third.passwords.of(7n)).toEqual(again.passwords.of(7n));
  },
);

test('a secret that can not be written ends the start, names its file and frees the directory', async () => {
  const full: FileSystem = {
    ...realFileSystem,
    open: async (path, how) => {
      if (!path.endsWith('session-secret')) return realFileSystem.open(path, how);
      throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    },
  };

  await expect(open({ fs: full })).rejects.toMatchObject({ code: 'ENOSPC', path: secretPath() });
  const again = await open();
  await again.log.close();
});

test('a tree is the same after a restart, from the log alone', async () => {
  const secret = [{ perms: permissions.read, id: { scheme: 'digest', id: 'u:hash' } }];
  const first = await open();
  await write(first, [{ type: 'createSession', txn: { timeOut: 5_000 } }]);
  await write(first, [
    create('/a'),
    create('/a/e', 'x', [...openAcl], true),
    create('/s', 'y', secret),
  ]);
  const before = picture(first.tree);
  await first.log.close();

  const second = await open();

  expect(picture(second.tree)).toEqual(before);
  expect(second.recovered.txns).toBe(4);
  await second.log.close();
});

test('a tree is the same after a restart, from a snapshot and what came after it', async () => {
  const first = await open();
  await write(first, [create('/a'), create('/b')]);
  await first.snapshot();
  await write(first, [create('/c'), remove('/a')]);
  const before = picture(first.tree);
  await first.log.close();

  const second = await open();

  expect(picture(second.tree)).toEqual(before);
  expect(second.recovered).toMatchObject({ txns: 2, snapshot: { lastZxid: 2n } });
  await second.log.close();
});

test.each([
  ['sessions', 12_000, () => ({ type: 'createSession', txn: { timeOut: 5_000 } }) as const],
  ['ACLs', 4_000, (i: number) => create(`/n${i}`, '', aclOf(`u${i}`))],
])(
  'a snapshot holds every node, though more %s stand before them than are written at once',
  async (_, count, body) => {
    const first = await open({ digestEnabled: false }); // a digest would tell, at the next start
    await write(first, [create('/a'), create('/a/b')]);
    const txns = Array.from({ length: count }, (_, i): LoggedTxn => {
      const zxid = first.tree.lastZxid + 1 + i;
      const head = { clientId: BigInt(zxid), cxid: zxid, zxid, timeMs: 1_000 + zxid };
      return { head, body: body(i) };
    });
    await first.log.append(txns);
    for (const { head, body } of txns) first.tree.apply(head, body);
    const taken = await first.snapshot();
    const before = picture(first.tree);
    await first.log.close();

    const second = await open({ digestEnabled: false });

    expect(taken!.nodes).toBe(first.tree.nodes.count);
    expect(second.recovered.txns).toBe(0); // all of it is from the snapshot
    expect(picture(second.tree)).toEqual(before);
    await second.log.close();
  },
);

test('an orderly end takes a snapshot where much would have to be replayed, and only there', async () => {
  const first = await open({ snapCount: 10, random: () => 1 });
  await write(first, [create('/a'), create('/b'), create('/c'), create('/d')]);
  await first.finalSnapshot();
  await write(first, [create('/e')]);
  expect(first.lastSnapshot?.zxid).toBe(0);

  await first.finalSnapshot();
  expect(first.lastSnapshot?.zxid).toBe(5);
  const before = picture(first.tree);
  await first.log.close();
  await first.finalSnapshot(); // too late, and no harm

  const second = await open();
  expect(picture(second.tree)).toEqual(before);
  expect(second.recovered.txns).toBe(0);
  await second.log.close();
});

test('a new directory has a snapshot from the start, as Apache wants one beside its logs', async () => {
  const disk = await open();
  await disk.log.close();

  expect(readdirSync(join(dataDir, 'version-2'))).toContain('snapshot.0');
});

test('a second server on the same directory is refused', async () => {
  const first = await open();

  await expect(open()).rejects.toThrow(/in use|locked|another/i);

  await first.log.close();
});

test('a snapshot is taken by itself after about snapCount txns, and the log starts a new file', async () => {
  const disk = await open({ snapCount: 10, random: () => 0 });

  await write(
    disk,
    Array.from({ length: 6 }, (_, i) => create(`/n${i}`)),
  );
  await new Promise((resolve) => setImmediate(resolve));
  await disk.snapshot();
  await write(disk, [create('/later')]);
  await disk.log.close();

  const files = readdirSync(join(dataDir, 'version-2')).filter((name) =>
    /^(log|snapshot)/.test(name),
  );
  expect(files.filter((name) => name.startsWith('snapshot'))).toHaveLength(2);
  expect(files.filter((name) => name.startsWith('log'))).toHaveLength(2);
});

const names = ['a', 'b', 'c'];
const path = fc
  .array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 })
  .map((parts) => `/${parts.join('/')}`);
const step = fc.oneof(
  fc.record({
    kind: fc.constant('create' as const),
    type: fc.constantFrom('create' as const, 'create2' as const),
    path,
    isSecret: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('delete' as const), path }),
  fc.record({ kind: fc.constant('set' as const), path }),
  fc.record({ kind: fc.constant('acl' as const), path, isSecret: fc.boolean() }),
);
const secretAcl = [{ perms: permissions.all, id: { scheme: 'digest', id: 'u:h' } }];

/** A txn as a server would make it: only what can be done to the tree as it is. */
function possible(
  tree: Tree,
  wanted: typeof step extends fc.Arbitrary<infer S> ? S : never,
): TxnBody | null {
  const node = tree.find(wanted.path);
  const parent = tree.find(wanted.path.slice(0, wanted.path.lastIndexOf('/')) || '/');
  switch (wanted.kind) {
    case 'create':
      return node === -1 && parent !== -1
        ? {
            type: wanted.type,
            txn: {
              path: wanted.path,
              data: Buffer.from('d'),
              acl: wanted.isSecret ? secretAcl : [...openAcl],
              ephemeral: false,
              parentCVersion: tree.nodes.cversion(parent) + 1,
            },
          }
        : null;
    case 'delete':
      return node !== -1 && tree.nodes.childCount(node) === 0 ? remove(wanted.path) : null;
    case 'set':
      return node === -1
        ? null
        : {
            type: 'setData',
            txn: {
              path: wanted.path,
              data: Buffer.from('s'),
              version: tree.nodes.version(node) + 1,
            },
          };
    case 'acl':
      return node === -1
        ? null
        : {
            type: 'setACL',
            txn: {
              path: wanted.path,
              acl: wanted.isSecret ? secretAcl : [...openAcl],
              version: tree.nodes.aversion(node) + 1,
            },
          };
  }
}

test('a snapshot taken while the tree changes, and the log behind it, give the tree as it is', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40 }),
      fc.array(step, { minLength: 1, maxLength: 40 }),
      fc.array(fc.nat(6), { minLength: 1, maxLength: 60 }),
      async (before, during, gaps) => {
        rmSync(dataDir, { recursive: true, force: true });
        const disk = await open();
        const run = async (wanted: (typeof before)[number]) => {
          const body = possible(disk.tree, wanted);
          if (body !== null) await land(disk, body);
        };
        for (const wanted of before) await run(wanted);

        // The walk is the snapshot's own, stopped after some nodes for some txns to land.
        const walk = disk.tree.walk.bind(disk.tree);
        const waiting = [...during];
        disk.tree.walk = () => {
          const steps = walk();
          const next = steps.next.bind(steps);
          let at = -1;
          steps.next = () => {
            for (let i = at < 0 ? 0 : gaps[at % gaps.length]!; i > 0 && waiting.length > 0; i--) {
              const body = possible(disk.tree, waiting.shift()!);
              if (body !== null) void land(disk, body);
            }
            at += 1;
            return next();
          };
          return steps;
        };
        await disk.snapshot();
        disk.tree.walk = walk;
        for (const wanted of waiting) await run(wanted);
        const expected = picture(disk.tree);
        await disk.log.close();

        const again = await open();
        const found = picture(again.tree);
        const { notices, digests } = again;
        await again.log.close();

        expect(found).toEqual(expected);
        expect(notices).toEqual([]);
        expect(digests.mismatches).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});

const taken = (disk: Persistence) => disk.lastSnapshot!.zxid;

test('a large tree is not written anew for every 100,000 txns, unless that is asked for', async () => {
  const run = async (disk: Persistence, from: number, to: number, txn: (i: number) => TxnBody) => {
    for (let at = from; at < to; at += 1_000) {
      const batch: LoggedTxn[] = [];
      for (let i = at; i < at + 1_000; i++) {
        const zxid = disk.tree.lastZxid + 1;
        const head = { clientId: 7n, cxid: 0, zxid, timeMs: 1 };
        const body = txn(i);
        disk.tree.apply(head, body);
        batch.push({ head, body });
      }
      await disk.log.append(batch);
    }
    await new Promise(setImmediate);
  };
  const grow = (disk: Persistence, from: number, to: number) =>
    run(disk, from, to, (i) => create(`/n${i}`, ''));
  const clock = new ManualClock();
  const unsaid = { snapCount: undefined, random: () => 0, digestEnabled: false, clock };
  const disk = await open({ ...unsaid, replayedBytesMax: 100_000_000 });
  const first = taken(disk);
  await grow(disk, 0, 50_000);
  expect(taken(disk)).toBe(first); // one was written a moment ago
  clock.advance(10_000);
  await grow(disk, 50_000, 51_000);
  await expect.poll(() => taken(disk)).toBe(51_000); // half of 100,000
  clock.advance(10_000);
  await grow(disk, 51_000, 153_000);
  expect(taken(disk)).toBe(51_000);
  await grow(disk, 153_000, 154_000);
  await expect.poll(() => taken(disk)).toBe(154_000); // 103,000 txns, and the server's own nodes
  const set = (version: number): TxnBody => ({
    type: 'setData',
    txn: { path: '/n1', data: null, version },
  });
  const large: TxnBody = {
    type: 'setData',
    txn: { path: '/n2', data: Buffer.alloc(10_000), version: 1 },
  };
  await run(disk, 0, 1_000, () => large); // takes as long to replay as 18,000 small ones
  await run(disk, 0, 156_000, set);
  expect(taken(disk)).toBe(154_000); // a moment ago
  await run(disk, 156_000, 157_000, set);
  await expect.poll(() => taken(disk)).toBe(312_000); // and yet: there is much to be replayed
  await disk.log.close();
});

const sets = (count: number) =>
  Array.from(
    { length: count },
    (_, i): TxnBody => ({
      type: 'setData',
      txn: { path: '/a', data: Buffer.alloc(100_000), version: i + 1 },
    }),
  );

test('few large txns come to a snapshot too, by the size of the log, those before a restart included', async () => {
  const bySize = { random: () => 0, snapLogBytes: 1_000_000 };
  const first = await open(bySize);
  await write(first, [create('/a'), ...sets(3)]);
  expect(taken(first)).toBe(0);
  await first.log.close();

  const second = await open(bySize);
  await write(second, sets(1));
  expect(taken(second)).toBe(0);
  await write(second, sets(1)); // half of a million, which is where it begins

  await expect.poll(() => taken(second)).toBe(6);
  await second.log.close();

  const third = await open({ ...bySize, snapLogBytes: 0 });
  await write(third, sets(12));
  await new Promise(setImmediate);
  expect(taken(third)).toBe(6);
  await third.log.close();
});

/** Files whose writes wait from the second on, once told to. */
function stuckFiles() {
  const stuck = { isOn: false, begun: deferred<void>(), go: deferred<void>() };
  const fs: FileSystem = Object.create(realFileSystem);
  fs.open = async (path, how) => {
    const file = await realFileSystem.open(path, how);
    if (how !== 'create' || !path.includes('snapshot.')) return file;
    const slow = Object.create(file);
    let writes = 0;
    slow.write = async (bytes: Uint8Array, position: number) => {
      await file.write(bytes, position);
      writes += 1;
      if (!stuck.isOn || writes < 2) return;
      stuck.begun.resolve();
      await stuck.go.promise;
    };
    for (const name of ['sync', 'close', 'truncate'] as const) slow[name] = file[name].bind(file);
    return slow;
  };
  return { fs, stuck };
}

test.each(['the last', 'a running'])(
  'an orderly end gives up on %s snapshot when it takes too long, and loses nothing',
  async (which) => {
    const clock = new ManualClock();
    const { fs, stuck } = stuckFiles();
    const large = 'x'.repeat(400_000);
    const snapCount = which === 'the last' ? 10 : 1e9;
    const first = await open({ clock, fs, snapCount, random: () => 1 });
    await write(
      first,
      Array.from({ length: 8 }, (_, i) => create(`/${i}`, large)),
    );
    const before = picture(first.tree);
    stuck.isOn = true;
    const underWay = which === 'the last' ? undefined : first.snapshot().catch(String);

    const ended = first.finalSnapshot();
    await stuck.begun.promise;
    clock.advance(6_000);
    stuck.go.resolve();
    await ended;

    expect(await underWay).toEqual(underWay && expect.stringContaining('more than 6000 ms'));
    await first.log.close();
    const names = readdirSync(join(dataDir, 'version-2'));
    expect(names.filter((name) => name.includes('snapshot'))).toEqual(['snapshot.0']);
    const second = await open();
    expect(picture(second.tree)).toEqual(before);
    await second.log.close();
  },
);

test('an orderly end takes a snapshot where few large txns would have to be replayed, too', async () => {
  const disk = await open({ random: () => 1, snapLogBytes: 1_000_000 });
  await write(disk, [create('/a'), ...sets(4)]);
  await disk.finalSnapshot();
  expect(taken(disk)).toBe(0);

  await write(disk, sets(1));
  await disk.finalSnapshot();

  expect(taken(disk)).toBe(6);
  await disk.log.close();
});

test('a snapshot that would take the room that the log needs is not begun', async () => {
  let roomBytes = 100_000;
  const disk = await open({ snapshotRoomBytes: async () => roomBytes });
  await write(disk, [create('/a'), ...sets(1)]);
  const before = readdirSync(join(dataDir, 'version-2'));

  await expect(disk.snapshot()).rejects.toThrow('no room for about 10');
  expect(readdirSync(join(dataDir, 'version-2'))).toEqual(before);
  await write(disk, [create('/b')]);
  roomBytes = 110_000;
  await disk.snapshot();

  const { path, bytes } = (await disk.snapshot())!;
  expect(basename(path)).toBe('snapshot.3');
  expect(bytes).toBeLessThan(roomBytes);
  await disk.log.close();
});

test('a log that is closed while old files are purged does not purge again', async () => {
  const clock = new ManualClock();
  const disk = await open({ clock, autopurge: { retain: 3, intervalMs: 1_000 } });

  await disk.log.close();

  expect(clock.pending).toBe(0);
});

test('a log that is closed does not wait until all that might be purged was read', async () => {
  const first = await open();
  for (const path of ['/a', '/b', '/c']) {
    await write(first, [create(path)]);
    await first.snapshot();
  }
  await first.log.close();
  const opened: string[] = [];
  const isPurging = deferred();
  const mayRead = deferred();
  const fs: FileSystem = {
    ...realFileSystem,
    async open(path, how) {
      opened.push(basename(path));
      if (opened.filter((name) => name === 'snapshot.3').length === 2) {
        isPurging.resolve();
        await mayRead.promise;
      }
      return realFileSystem.open(path, how);
    },
  };
  const error = vi.fn();
  const logger = { ...silentLogger, error };
  const disk = await open({ fs, logger, autopurge: { retain: 3, intervalMs: 1_000 } });
  await isPurging.promise;
  const before = opened.length;

  const closed = disk.log.close();
  mayRead.resolve();
  await closed;

  expect(opened.slice(before)).toEqual([]);
  expect(error).not.toHaveBeenCalled();
});

test('an ephemeral node whose session is in no file goes when a session would have expired', async () => {
  const disk = await open();
  await write(disk, [create('/orphan', '', [...openAcl], true)], 0x1_0000n);
  await write(disk, [create('/ttl', '', [...openAcl], true)], ttlOwner(1_000n));
  await disk.log.close();
  const clock = new ManualClock();
  await using server = await startServer({ port: 0, dataDir, unsafeNoFsync: true, clock });
  const { tree } = server.engine;
  expect(tree.find('/orphan')).not.toBe(noNode);

  clock.advance(39_000);
  await new Promise(setImmediate);
  expect(tree.find('/orphan')).not.toBe(noNode);
  while (tree.find('/orphan') !== noNode) {
    clock.advance(2_000);
    await new Promise(setImmediate);
  }

  expect(tree.find('/ttl')).not.toBe(noNode); // no session's: it has a time to live, which is switched off here
});

test.each(['expires', 'is closed'])(
  'a session that has more ephemeral nodes than one txn can name %s all the same',
  async (end) => {
    const disk = await open();
    await write(disk, [{ type: 'createSession', txn: { timeOut: 20_000 } }]);
    const paths = Array.from({ length: 12 }, (_, i) => `/${'x'.repeat(200_000)}${i}`);
    await write(
      disk,
      paths.map((path) => create(path, '', [...openAcl], true)),
    );
    await disk.log.close();
    const lines: string[] = [];
    const audit = new Audit(
      (line) => lines.push(line),
      () => server.engine.auth,
    );
    const server: RunningServer = await startServer({
      ...{ port: 0, dataDir, unsafeNoFsync: true },
      limits: end === 'expires' ? { multiOpsMax: 1 } : {}, // whatever others may do in one
      onCommitted: (call, applied) => audit.committed(call, applied),
    });
    const session = server.engine.sessions.get(7n)!;

    if (end === 'expires') {
      server.engine.expire(session);
    } else {
      const { id: sessionId } = session;
      const passwd = server.engine.sessions.passwords.of(sessionId);
      const client = await RawClient.connect(server.port, { sessionId, passwd });
      await client.ask('closeSession', {});
    }
    while (server.engine.isServing && server.engine.sessions.size > 0) {
      await new Promise(setImmediate);
    }

    expect(server.engine.isServing).toBe(true);
    const gone = lines.filter((line) => line.startsWith('session=0x7\t'));
    expect(gone).toHaveLength(paths.length);
    await server.close();
    const again = await open();
    expect(again.tree.ephemeralCount).toBe(0);
    expect(again.tree.find(paths[0]!)).toBe(noNode);
    expect(again.digests.mismatches).toBe(0);
    await again.log.close();
  },
);

test('a server in memory keeps nothing, also where a folder is named', async () => {
  await using server = await startServer({ port: 0, dataDir, inMemory: true });

  expect(server.persistence).toBeUndefined();
  expect(readdirSync(dataDir)).toEqual([]);
});

describe('logs with a folder of their own', () => {
  const synced = { unsafeNoFsync: false };

  test('are missed by a server that looks for them in the wrong place', async () => {
    const [logs, others] = [join(dataDir, 'logs'), join(dataDir, 'others')];
    const first = await open({ ...synced, dataLogDir: logs });
    await write(first, [create('/a')]);
    await first.log.close();

    for (const dataLogDir of [undefined, others]) {
      await expect(open({ ...synced, dataLogDir })).rejects.toMatchObject({
        code: 'MISSING_TXNS',
        message: expect.stringMatching(/no log is in .*version-2: is that where they are\?/),
      });
    }
    const again = await open({ ...synced, dataLogDir: logs });
    expect(picture(again.tree)).toEqual(picture(first.tree));
    await again.log.close();
  });

  test('are given up by who salvages without them, once', async () => {
    const first = await open({ ...synced, dataLogDir: join(dataDir, 'logs') });
    await write(first, [create('/a')]);
    await first.log.close();

    const salvaged = await open({ ...synced, salvage: true });
    await salvaged.log.close();
    const again = await open(synced);

    expect(salvaged.notices).toMatchObject([{ kind: 'salvaged' }]);
    expect(again.notices).toEqual([]);
    await again.log.close();
  });

  test('are written also where the mark beside the snapshots can not be', async () => {
    const fs: FileSystem = {
      ...realFileSystem,
      open: async (path, how) => {
        if (path.startsWith(join(dataDir, 'version-2', '.drover-mark'))) throw new Error('full');
        return realFileSystem.open(path, how);
      },
    };
    const dataLogDir = join(dataDir, 'logs');
    const first = await open({ ...synced, dataLogDir, fs });

    await write(first, [create('/a')]);
    await first.log.close();

    const again = await open({ ...synced, dataLogDir });
    expect(picture(again.tree)).toEqual(picture(first.tree));
    await again.log.close();
  });
});

describe('a snapshot with nodes of txns that are in no log', () => {
  /** As it was when the log behind it was lost: written from zxid 1 on, while /b and /b/c came. */
  async function writeFuzzy({ knows }: { knows: 'its end' | 'nothing' }): Promise<void> {
    const disk = await open();
    await write(disk, [create('/a')]);
    await disk.log.close();
    const folder = join(dataDir, 'version-2');
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    for (const [i, path] of ['/b', '/b/c'].entries()) {
      disk.tree.apply({ clientId: 7n, cxid: 0, zxid: 2 + i, timeMs: 1 }, create(path));
    }
    const { nodes } = disk.tree;
    const walk = disk.tree.walk();
    const writeSome = (writer: Writer) => {
      const node = walk.next();
      if (node !== noNode) nodes.writeSnapshot(writer, node, openAclId);
      return node === noNode ? 0 : 1;
    };
    const content = { zxid: 1n, sessions: new Map(), acls: new Map(), nodes: { writeSome } };
    const { path } = await writeSnapshot({ ...content, lastZxid: () => 3n }, { folder });
    // Before 3.9 the last zxid, a long and its seal, was not told.
    if (knows === 'nothing') truncateSync(path, statSync(path).size - 8 - 13);
  }

  test.each(['its end', 'nothing'] as const)(
    'is refused, and who salvages keeps them for good; of its end it tells: %s',
    async (knows) => {
      await writeFuzzy({ knows });

      await expect(open()).rejects.toMatchObject({ code: 'MISSING_TXNS' });
      const salvaged = await open({ salvage: true });
      const served = picture(salvaged.tree);
      await write(salvaged, [create('/b/c/d')]);
      const before = picture(salvaged.tree);
      await salvaged.snapshot();
      await salvaged.log.close();
      const again = await open();

      expect((served as { nodes: unknown[] }).nodes).toHaveLength(4 + 3);
      expect(salvaged.tree.lastZxid).toBe(4); // none of theirs is given out again
      expect(picture(again.tree)).toEqual(before);
      await again.log.close();
    },
  );

  test('is refused also where the log deletes the node that tells', async () => {
    const disk = await open();
    await write(disk, [create('/a')]);
    const head = { zxid: 1n, sessions: new Map(), acls: new Map(), digest: null };
    await write(disk, [remove('/a')]);
    await disk.log.close();
    const folder = join(dataDir, 'version-2');
    const at = (zxid: bigint) => ({
      ...{ czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: 0n, mtime: 0n },
      ...{ version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n },
    });
    const nodes = [
      { path: '', data: null, acl: -1, stat: at(0n) },
      { path: '/a', data: null, acl: -1, stat: at(3n) }, // made anew, by a txn that is lost
    ];
    await writeSnapshot({ ...head, nodes }, { folder });

    await expect(open()).rejects.toMatchObject({
      code: 'MISSING_TXNS',
      zxids: { from: 3n, to: 3n },
    });
  });
});

describe('ACLs that were given while a snapshot was written', () => {
  const by = (name: string) => [{ perms: 31, id: { scheme: 'digest', id: `${name}:hash` } }];
  const setAcl = (path: string, acl: Acl[]): TxnBody => ({
    type: 'setACL',
    txn: { path, acl, version: 1 },
  });
  const aclAt = ({ tree }: Persistence, path: string) => tree.aclOf(tree.find(path));

  /** As Apache writes it: with nodes as they are, and of the ACLs those of before alone. */
  async function writeAsApache(disk: Persistence, zxid: bigint, acls: Map<number, Acl[]>) {
    const { nodes } = disk.tree;
    const walk = disk.tree.walk();
    const writeSome = (writer: Writer) => {
      const node = walk.next();
      if (node === noNode) return 0;
      nodes.writeSnapshot(writer, node, nodes.aclOf(node));
      return 1;
    };
    const folder = join(dataDir, 'version-2');
    await writeSnapshot({ zxid, sessions: new Map(), acls, nodes: { writeSome } }, { folder });
  }

  test('are those of the log, though the snapshot lists none of them', async () => {
    const first = await open();
    await write(first, [create('/p'), create('/again'), create('/gone', '', by('gone'))]);
    await write(first, [remove('/gone')]); // its number is not given again
    const listed = new Map(first.tree.acls.entries()) as Map<number, Acl[]>;
    await write(first, [
      create('/p/child'),
      remove('/again'),
      create('/again', '', by('ann')),
      create('/bob', '', by('bob')),
      create('/ann', '', by('ann')),
      setAcl('/p', by('eve')),
    ]);
    await writeAsApache(first, 4n, listed);
    await first.log.close();

    const second = await open();

    const [ann, bob, eve] = ['ann', 'bob', 'eve'].map(by);
    const acls = ['/again', '/ann', '/bob', '/p'].map((path) => aclAt(second, path));
    expect(acls).toEqual([ann, ann, bob, eve]);
    expect(second.notices).toEqual([]);
    await second.log.close();
  });

  test('and that no file has any more, belong to nobody: now, and in the next snapshot', async () => {
    const first = await open();
    await write(first, [create('/a', '', by('ann')), create('/open')]);
    await first.log.close();
    rmSync(join(dataDir, 'version-2', 'log.1'));
    await writeAsApache(first, 2n, new Map());

    const second = await open();
    expect(second.notices).toMatchObject([{ kind: 'lostAcls' }]);
    expect(aclAt(second, '/a')).toEqual([{ ...openAcl[0], perms: 0 }]);
    expect(aclAt(second, '/open')).toBe(openAcl);
    await second.snapshot();
    await second.log.close();

    const third = await open();
    expect(third.notices).toEqual([]);
    expect(aclAt(third, '/a')).toEqual([{ ...openAcl[0], perms: 0 }]);
    await third.log.close();
  });

  test('stand in our own as what belongs to nobody, for who has the file and not the log', async () => {
    const first = await open();
    await write(first, [create('/a', '', by('ann'))]);
    const writing = first.snapshot();
    first.tree.apply({ clientId: 7n, cxid: 2, zxid: 2, timeMs: 2 }, setAcl('/a', by('bob')));
    const { path } = (await writing)!;
    await first.log.close();

    const acls = new Map<number, Acl[]>();
    let acl = openAclId;
    await readSnapshot(realFileSystem, parseSnapshotName(dirname(path), basename(path))!, {
      session() {},
      acl: (id, list) => void acls.set(id, list),
      node(node) {
        if (node.path === '/a') acl = node.acl;
      },
    });

    expect(acls.get(acl)).toEqual([{ ...openAcl[0], perms: 0 }]);
  });
});
