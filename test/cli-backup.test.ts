/** `drover backup` and `drover restore` of whole data directories, above all by a running server's admin server. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../src/client/index.ts';
import { startAdminServer, startServer } from '../src/server/index.ts';
import { type SnapshotNode, writeSnapshot } from '../src/storage/index.ts';
import { runInProcess } from './cli-run.ts';

let dir: string;
let folder: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-backup-'));
  folder = join(dir, 'backup');
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const environment = { DROVER_ADMIN_AUTH: 'digest super:test' };

/** An admin server that sends a file, or the first bytes of it. */
async function sending(bytes: Buffer, zxid: string, sent = bytes.length): Promise<Server> {
  const server = createServer((request, response) => {
    response.writeHead(200, { last_zxid: zxid, 'content-length': bytes.length });
    if (sent === bytes.length) response.end(bytes);
    else response.write(bytes.subarray(0, sent), () => request.socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function backup(server: Server, ...more: string[]) {
  const { port } = server.address() as AddressInfo;
  return runInProcess('', ['backup', folder, '--admin', `127.0.0.1:${port}`, ...more]);
}

const stat = (zxid: bigint): SnapshotNode['stat'] => ({
  ...{ czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: 0n, mtime: 0n },
  ...{ version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n },
});
const root: SnapshotNode = { path: '', data: null, acl: -1, stat: stat(0n) };

/** A snapshot that was begun at zxid 5 and reaches up to 9, as a server that writes meanwhile makes it. */
async function reachingBeyond({ tellsSo = true } = {}): Promise<Buffer> {
  const nodes: SnapshotNode[] = [
    root,
    { path: '/kept', data: Buffer.from('before'), acl: -1, stat: stat(3n) },
    { path: '/late', data: Buffer.from('meanwhile'), acl: -1, stat: stat(9n) },
  ];
  const digest = tellsSo ? () => ({ zxid: 9n, version: 2, value: 1n }) : null;
  const content = { zxid: 5n, sessions: new Map(), acls: new Map(), nodes, digest };
  const { path } = await writeSnapshot({ ...content, lastZxid: () => 9n }, { folder: dir });
  return readFileSync(path);
}

test('a snapshot that the server wrote into meanwhile is refused, and that is why', async () => {
  const admin = await sending(await reachingBeyond(), '0x5');

  const saved = await backup(admin);
  admin.close();

  expect(saved.code).toBe(4);
  expect(saved.err).toContain('not of one moment: the server wrote up to zxid 0x9');
  expect(existsSync(folder)).toBe(false);
});

test('it is so too where its nodes alone tell, as of a server that keeps no digest', async () => {
  const admin = await sending(await reachingBeyond({ tellsSo: false }), '0x5');

  const saved = await backup(admin);
  admin.close();

  expect(saved.code).toBe(4);
  expect(saved.err).toContain('not of one moment: the server wrote up to zxid 0x9');
});

test('with --fuzzy it is taken as it is, and a server starts from it', async () => {
  const admin = await sending(await reachingBeyond(), '0x5');

  const saved = await backup(admin, '--fuzzy', '--json');
  admin.close();
  const names = readdirSync(join(folder, 'version-2'));
  await using server = await startServer({ port: 0, dataDir: folder });
  await using client = await connect(server.address);
  const [kept, late] = await Promise.all([client.get('/kept'), client.get('/late')]);

  expect([saved.code, saved.records]).toMatchObject([0, [{ zxid: '0x9' }]]);
  expect(names).toEqual(['snapshot.9']);
  expect([kept.data, late.data].map(String)).toEqual(['before', 'meanwhile']);
  expect(late.stat.mzxid).toBe(9n);
});

test('a server whose snapshots are compressed is backed up', async () => {
  const options = { port: 0, dataDir: join(dir, 'data'), snapshotCompression: 'gzip' as const };
  await using server = await startServer(options);
  const admin = await startAdminServer(server.facts, { port: 0, snapshotEnabled: true });
  await using client = await connect(server.address);
  await client.create('/kept', 'x');

  const words = ['backup', folder, '--admin', `127.0.0.1:${admin.port}`];
  const saved = await runInProcess('', words, { environment });
  await admin.close();
  await using copy = await startServer({ port: 0, dataDir: folder });
  await using there = await connect(copy.address);

  expect([saved.code, saved.err]).toEqual([0, expect.stringContaining('up to zxid')]);
  expect(String((await there.get('/kept')).data)).toBe('x');
});

test('the copy of a directory that a server writes to holds all that was acknowledged, every time', async () => {
  const data = join(dir, 'live');
  // Small logs and snapshots, and a purge: files come and go under the copy.
  const autopurge = { retain: 3, intervalMs: 20 };
  await using server = await startServer({
    ...{ port: 0, dataDir: data, snapCount: 40, autopurge, preallocBytes: 0 },
  });
  await using zk = await connect(server.address);
  let acknowledged = 0;
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; !isOver; i++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, k) => zk.create(`/n${i}-${k}`, 'x'.repeat(200))),
      );
      acknowledged += 10;
    }
  })();

  for (let copies = 0; copies < 5; copies++) {
    const before = acknowledged;
    const place = `${folder}${copies}`;
    const saved = await runInProcess('', ['backup', place, '--data', data]);
    expect([saved.code, saved.err]).toEqual([0, expect.stringContaining('up to zxid')]);

    await using copy = await startServer({ port: 0, dataDir: place });
    await using there = await connect(copy.address);
    expect((await there.children('/')).length).toBeGreaterThanOrEqual(before);
  }
  isOver = true;
  await writing;
});

test('what a server would refuse for the sake of a node is not called whole, and no backup is made of it', async () => {
  const files = join(dir, 'kept', 'version-2');
  mkdirSync(files, { recursive: true });
  const late = { path: '/late', data: null, acl: -1, stat: stat(9n) };
  const content = { zxid: 5n, sessions: new Map(), acls: new Map(), nodes: [root, late] };
  await writeSnapshot({ ...content, digest: null }, { folder: files });
  const data = join(dir, 'kept');

  const serving = startServer({ port: 0, dataDir: data });
  const missing = 'MISSING_TXNS: transactions are missing: a node in the snapshot tells of it';
  await expect(serving).rejects.toThrow(missing);
  const verified = await runInProcess('', ['log', 'verify', data]);
  const saved = await runInProcess('', ['backup', folder, '--data', data]);

  expect([verified.code, verified.err]).toEqual([1, expect.stringContaining(missing)]);
  expect([saved.code, saved.err]).toEqual([4, expect.stringContaining(missing)]);
  expect(existsSync(folder)).toBe(false);
});

const canMount = spawnSync('unshare', ['-rm', 'true']).status === 0;

test.skipIf(!canMount)('a backup is brought back from where nothing can be written', async () => {
  const files = join(dir, 'kept', 'version-2');
  mkdirSync(files, { recursive: true });
  const content = { zxid: 9n, sessions: new Map(), acls: new Map(), nodes: [root] };
  await writeSnapshot(content, { folder: files });
  const main = join(import.meta.dirname, '../src/cli/main.ts');
  const words = ['--import', import.meta.resolve('tsx'), main];
  const mount = 'mount --bind kept kept && mount -o remount,ro,bind kept && exec "$@"';

  const restored = spawnSync(
    'unshare',
    [
      ...['-rm', 'sh', '-c', mount, 'sh', process.execPath, ...words],
      ...['restore', 'kept', '--data', 'new'],
    ],
    { cwd: dir, env: { PATH: process.env.PATH!, HOME: dir }, encoding: 'utf8' },
  );

  expect([restored.status, restored.stderr]).toEqual([0, expect.stringContaining('1 files')]);
  expect(readdirSync(join(dir, 'new', 'version-2'))).toEqual(['snapshot.9']);
});

test('a snapshot that ends early is told of, and leaves nothing', async () => {
  const bytes = await reachingBeyond();
  const cut = await sending(bytes, '0x5', 100);
  const short = await sending(bytes.subarray(0, 100), '0x5');

  const ended = await backup(cut);
  const damaged = await backup(short);
  cut.close();
  short.close();

  expect([ended.code, damaged.code]).toEqual([7, 4]);
  expect(ended.err).toContain('did not send all of it');
  expect(damaged.err).toContain('no whole snapshot');
  expect(readdirSync(dir)).toEqual(['snapshot.5']);
});
