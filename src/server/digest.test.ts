/** The tree's digest: foretold when a txn is prepared, kept as it is applied, held against what files say. */

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decode } from '../jute/index.ts';
import {
  createModes,
  nodeDigest,
  openAcl,
  StatPersisted,
  TreeDigest,
  type TxnBody,
} from '../protocol/index.ts';
import { adler32, dumpLog } from '../storage/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { Tree, type TxnHead } from '../tree/index.ts';
import { Auth } from './auth.ts';
import { limitsOf } from './limits.ts';
import { prepareMulti } from './multi.ts';
import { type Changes, noChanges, Outlook } from './outlook.ts';
import { openPersistence } from './persistence.ts';
import { Prepare } from './prepare.ts';
import { startServer } from './start-server.ts';

let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'drover-digest-'));
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const folder = () => join(dataDir, 'version-2');
const open = (options = {}) =>
  openPersistence({ dataDir, unsafeNoFsync: true, preallocBytes: 0, snapCount: 1e9, ...options });

/** By walking all nodes, from the records that a snapshot would have. */
function recomputed(tree: Tree): bigint {
  const sum = new TreeDigest();
  for (const node of tree.walk()) {
    const stat = decode(StatPersisted, tree.nodes.persistedOf(node));
    sum.add(nodeDigest(tree.nodes.pathOf(node), tree.nodes.dataOf(node), stat));
  }
  return sum.value;
}

// ── what is foretold ─────────────────────────────────────────────────────────────────────────────

const path = fc.oneof(
  fc.constantFrom('/', '/zookeeper', '/zookeeper/own'),
  fc
    .array(fc.constantFrom('a', 'b', 'ü'), { minLength: 1, maxLength: 3 })
    .map((names) => `/${names.join('/')}`),
);
const data = fc.option(fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)));
const mode = fc.constantFrom(...Object.values(createModes));
const session = fc.constantFrom(5n, 6n);
const large = fc.constant(Buffer.alloc(5_000, 7)); // a parent that is not read through for each child
const single = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('create' as const), path, data, mode }) },
  fc.record({ kind: fc.constant('delete' as const), path }),
  fc.record({ kind: fc.constant('setData' as const), path, data: fc.oneof(data, large) }),
  fc.record({ kind: fc.constant('check' as const), path }),
);
const request = fc.oneof(
  { weight: 8, arbitrary: single },
  fc.record({ kind: fc.constant('setACL' as const), path }),
  fc.record({ kind: fc.constant('close' as const) }),
  fc.record({
    kind: fc.constant('multi' as const),
    parts: fc.array(single, { minLength: 1, maxLength: 5 }),
  }),
);
type Single = typeof single extends fc.Arbitrary<infer S> ? S : never;
type Wanted = typeof request extends fc.Arbitrary<infer R> ? R : never;

const acl = [...openAcl];
const opOf = ({ mode: { container, ttl } }: Extract<Single, { kind: 'create' }>) =>
  container ? 'createContainer' : ttl ? 'createTTL' : 'create2';

function part(wanted: Single) {
  const { kind, path: at } = wanted;
  if (kind !== 'create') {
    const rest = kind === 'setData' ? { data: wanted.data } : {};
    return { op: kind, request: { path: at, version: -1, ...rest } };
  }
  const made = { path: at, data: wanted.data, acl, flags: wanted.mode.flags };
  const op = opOf(wanted);
  return { op, request: op === 'createTTL' ? { ...made, ttl: 1_000n } : made };
}

test('what is foretold, what is kept and what a walk adds up to are one', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(
      fc.array(fc.tuple(request, session, fc.nat(4)), { minLength: 1, maxLength: 60 }),
      fc.nat(2 ** 42),
      (steps, firstZxid) => {
        const tree = new Tree({ digest: true, extendedTypes: true });
        const outlook = new Outlook(tree);
        const options = { enforceQuota: false, reconfigEnabled: false, limits: limitsOf() };
        const prepare = new Prepare(tree, outlook, new Auth({}), options);
        const prepared = (wanted: Wanted, sessionId: bigint, changes: Changes) => {
          const asker = { sessionId, sessionClosing: false, ids: [] };
          switch (wanted.kind) {
            case 'multi':
              return prepareMulti(
                prepare,
                outlook,
                wanted.parts.map(part) as never,
                asker,
                changes,
              );
            case 'close':
              return prepare.closeSession(sessionId, changes);
            case 'setACL':
              return prepare.setACL({ path: wanted.path, acl, version: -1 }, asker, changes);
            case 'create':
              return prepare.create(opOf(wanted), part(wanted).request as never, asker, changes);
            default:
              return prepare[wanted.kind](part(wanted).request as never, asker, changes);
          }
        };
        const underWay: { head: TxnHead; body: TxnBody; changes: Changes; digest: bigint }[] = [];
        const land = () => {
          const { head, body, changes, digest } = underWay.shift()!;
          tree.apply(head, body, changes.first); // with what the outlook has found, as the server does
          outlook.settle(changes);
          seen.set(body.type, (seen.get(body.type) ?? 0) + 1);
          expect(tree.digest!.value).toBe(digest);
          expect(recomputed(tree)).toBe(digest);
        };

        for (const [i, [wanted, sessionId, depth]] of steps.entries()) {
          const zxid = firstZxid + i + 1;
          const head = { clientId: sessionId, cxid: i, zxid, timeMs: 1_700_000_000_000 + i };
          const changes = noChanges();
          outlook.begin(head);
          const body = prepared(wanted, sessionId, changes);
          if (typeof body === 'number') continue;
          const { high, low } = outlook.digest!;
          const digest = BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low >>> 0));
          underWay.push({ head, body, changes, digest });
          while (underWay.length > depth) land();
        }
        while (underWay.length > 0) land();
      },
    ),
    { numRuns: 400 },
  );
  const kinds = 'check closeSession create2 createContainer createTTL delete multi setACL setData';
  expect([...seen.keys()].sort().join(' ')).toBe(kinds);
});

test('a counter of children at its end stays where it is, in the tree and in what is foretold', () => {
  const tree = new Tree({ digest: true });
  const outlook = new Outlook(tree);
  const options = { enforceQuota: false, reconfigEnabled: false, limits: limitsOf() };
  const prepare = new Prepare(tree, outlook, new Auth({}), options);
  const root = tree.nodes.persistedOf(tree.find('/'));
  root.writeInt32BE(2 ** 31 - 2, 36);
  tree.beginRestore().node({ path: '', data: null, acl: -1, stat: decode(StatPersisted, root) });

  for (const zxid of [1, 2, 3]) {
    const head = { clientId: 5n, cxid: 0, zxid, timeMs: zxid };
    const changes = noChanges();
    outlook.begin(head);
    const made = { path: `/${zxid}`, data: null, acl, flags: 0 };
    const asker = { sessionId: 5n, sessionClosing: false, ids: [] };
    const body = prepare.create('create', made, asker, changes) as TxnBody;
    const foretold = outlook.digest!;
    tree.apply(head, body);
    outlook.settle(changes);

    expect(tree.digest!.halves).toEqual(foretold);
    expect(tree.digest!.value).toBe(recomputed(tree));
  }
});

// ── a server that keeps one ──────────────────────────────────────────────────────────────────────

const node = (at: string, text = 'x') => ({ path: at, data: Buffer.from(text), acl, flags: 0 });

/** As a flipped bit would: past the one that keeps the digest. */
function corrupt(tree: Tree, at: string): void {
  tree.nodes.setData(tree.find(at), Buffer.from('flipped'));
}

async function writeSome(port: number): Promise<void> {
  const client = await RawClient.connect(port);
  await client.ask('create', node('/a'));
  await client.ask('create', node('/a/b'));
  await client.err('create', node('/a')); // an error takes a zxid too, and has no digest
  await client.ask('setData', { path: '/a', data: Buffer.from('y'), version: -1 });
  await client.ask('setData', { path: '/', data: Buffer.from('root'), version: -1 });
  await client.ask('create', node('/kept'));
  await client.ask('create2', { ...node('/e'), flags: 1 });
  await client.ask('delete', { path: '/a/b', version: -1 });
  await client.ask('closeSession', {});
}

const digestsIn = async () => {
  const logged: [string, boolean][] = [];
  for (const name of readdirSync(folder()).filter((file) => file.startsWith('log.'))) {
    await dumpLog(join(folder(), name), ({ body, digest }) =>
      logged.push([body.type, digest !== null]),
    );
  }
  return logged;
};

test('every txn but an error is logged with its digest, and a restart compares them all', async () => {
  const server = await startServer({ port: 0, dataDir });
  await writeSome(server.port);
  const before = server.engine.tree.digest!.value;
  await server.close();

  const logged = await digestsIn();
  const again = await open();

  expect(logged.map(([type, has]) => has || type)).toEqual(
    logged.map(([type]) => (type === 'error' ? 'error' : true)),
  );
  expect(again.digests).toEqual({ compared: 9, mismatches: 0 });
  expect(again.tree.digest!.value).toBe(before);
  expect(recomputed(again.tree)).toBe(before);
  await again.log.close();
});

test('a snapshot has its digest, and it is compared before a txn is', async () => {
  const server = await startServer({ port: 0, dataDir });
  await writeSome(server.port);
  await server.persistence!.snapshot();
  await server.close();

  const again = await open();

  expect(again.recovered.snapshot!.digest).toMatchObject({ zxid: 10n, version: 2 });
  expect(again.digests).toEqual({ compared: 1, mismatches: 0 });
  await again.log.close();
});

test('with digests off none is kept and none is written', async () => {
  const server = await startServer({ port: 0, dataDir, digestEnabled: false });
  await writeSome(server.port);
  await server.persistence!.snapshot();
  await server.close();

  const again = await open({ digestEnabled: false });

  expect((await digestsIn()).some(([, has]) => has)).toBe(false);
  expect(again.recovered.snapshot!.digest).toBeNull();
  expect(again.tree.digest).toBeUndefined();
  await again.log.close();
});

test('in memory there is none unless it is asked for', async () => {
  await using plain = await startTestServer();
  await using asked = await startTestServer({ digestEnabled: true });
  await writeSome(asked.port);

  expect(plain.engine.tree.digest).toBeUndefined();
  expect(asked.engine.tree.digest!.value).toBe(recomputed(asked.engine.tree));
});

test('a node whose memory went bad is found by the next child, and nobody hears of that', async () => {
  const server = await startServer({ port: 0, dataDir });
  const client = await RawClient.connect(server.port);
  await client.ask('create', node('/a', 'as it was'));
  await client.ask('create', node('/a/before'));
  corrupt(server.engine.tree, '/a');

  const xid = client.send('create', node('/a/b'));
  const failure = await server.failed;

  expect(failure.message).toContain('txn 0x4 made another tree than was foretold');
  await client.ended();
  expect(client.heard).not.toContain(xid);
  const again = await open(); // from disk all is well, the last txn included
  expect(again.digests).toEqual({ compared: 4, mismatches: 0 });
  expect(again.tree.nodes.dataOf(again.tree.find('/a'))!.toString()).toBe('as it was');
  expect(again.tree.find('/a/b')).not.toBe(-1);
  await again.log.close();
});

test('a node whose memory went bad gets into no snapshot, and the server stops', async () => {
  const server = await startServer({ port: 0, dataDir });
  const client = await RawClient.connect(server.port);
  await client.ask('create', node('/a', 'as it was'));
  corrupt(server.engine.tree, '/a');

  await expect(server.persistence!.snapshot()).rejects.toThrow(/BROKEN_MEMORY.*\/a/);
  client.send('create', node('/elsewhere'));

  expect((await server.failed).message).toContain('BROKEN_MEMORY');
  const again = await open();
  expect(again.digests.mismatches).toBe(0);
  expect(again.tree.nodes.dataOf(again.tree.find('/a'))!.toString()).toBe('as it was');
  await again.log.close();
});

// ── files that say otherwise ─────────────────────────────────────────────────────────────────────

/** Changes bytes of the txn and makes its checksum right again, as a wrong writer would. */
async function tamper(zxid: bigint, change: (txn: Buffer) => void): Promise<number> {
  const name = readdirSync(folder()).find((file) => file.startsWith('log.'))!;
  const file = join(folder(), name);
  let at = -1;
  await dumpLog(file, (txn) => {
    if (txn.zxid === zxid) at = txn.offset;
  });
  const bytes = readFileSync(file);
  const length = bytes.readUInt32BE(at + 8);
  const txn = bytes.subarray(at + 12, at + 12 + length);
  change(txn);
  bytes.writeUInt32BE(adler32(txn, 0, length), at + 4);
  writeFileSync(file, bytes);
  return at;
}

const otherDigest = (txn: Buffer) => txn.writeUInt8(txn.at(-1)! ^ 1, txn.length - 1);
/** Behind the path: the number of a session may have an x in it, too. */
const otherData = (txn: Buffer) => txn.write('z', txn.indexOf('x', txn.indexOf('/kept')));

async function written(): Promise<void> {
  const server = await startServer({ port: 0, dataDir, preallocBytes: 0 });
  await writeSome(server.port);
  await server.close();
}

test('a txn that does another thing than its writer did is refused, by file, offset and zxid', async () => {
  await written();
  const offset = await tamper(7n, otherData); // /kept, which nobody touches again

  await expect(open()).rejects.toMatchObject({
    code: 'WRONG_DIGEST',
    file: join(folder(), 'log.1'),
    offset,
    zxids: { from: 7n, to: 7n },
  });
  await expect(startServer({ port: 0, dataDir })).rejects.toThrow(/log\.1, offset \d+, zxid 0x7/);
});

test('who salvages keeps all of it, is told, and starts without a word the next time', async () => {
  await written();
  await tamper(7n, otherData);

  const salvaged = await open({ salvage: true });
  await salvaged.log.close();
  const again = await open();

  expect(salvaged.digests).toEqual({ compared: 9, mismatches: 4 });
  expect(salvaged.notices).toMatchObject([{ kind: 'salvaged', zxids: { from: 7n, to: 7n } }]);
  expect(salvaged.tree.lastZxid).toBe(10);
  expect(again.notices).toEqual([]);
  expect(again.tree.digest!.value).toBe(salvaged.tree.digest!.value);
  await again.log.close();
});

test('with digests off it starts as well: nobody looks', async () => {
  await written();
  await tamper(7n, otherData);

  const disk = await open({ digestEnabled: false });

  expect(disk.digests).toEqual({ compared: 0, mismatches: 0 });
  await disk.log.close();
});

test('a digest that is wrong by itself is told and no more: a later one proves the tree', async () => {
  await written();
  const offset = await tamper(3n, otherDigest);

  const disk = await open();

  expect(disk.digests).toEqual({ compared: 9, mismatches: 1 });
  expect(disk.notices).toMatchObject([{ kind: 'wrongDigest', zxids: { from: 3n, to: 3n } }]);
  expect(disk.notices[0]!.message).toContain(`offset ${offset}`);
  await disk.log.close();
});

// ── what Apache wrote ────────────────────────────────────────────────────────────────────────────

describe.each(['apache-3.9', 'apache-3.9-gzip', 'apache-3.9-snappy', 'debian-3.8'])(
  '%s',
  (name) => {
    const golden = join(import.meta.dirname, '../../test/golden/files', name, 'version-2');

    test('its snapshot and logs replay with every digest equal', async () => {
      cpSync(golden, folder(), { recursive: true });

      const disk = await open({ extendedTypesEnabled: true });

      expect(disk.digests.compared).toBeGreaterThan(0);
      expect(disk.digests.mismatches).toBe(0);
      expect(recomputed(disk.tree)).toBe(disk.tree.digest!.value);
      await disk.log.close();
    });

    test('so do its logs alone, from the first txn', async () => {
      const logs = readdirSync(golden).filter((file) => file.startsWith('log.'));
      if (!logs.includes('log.1')) return;
      for (const file of logs) cpSync(join(golden, file), join(folder(), file));

      const disk = await open({ extendedTypesEnabled: true });

      expect(disk.digests.compared).toBeGreaterThan(60);
      expect(disk.digests.mismatches).toBe(0);
      await disk.log.close();
    });
  },
);
