/** Copies, mirrors, backups and restores by the command line, on ours and on Apache's. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { backupTree } from '../../src/cli/backup.ts';
import { TreeFileWriter } from '../../src/cli/tree-file.ts';
import { type Client, openAcl } from '../../src/client/index.ts';
import { runInProcess } from '../cli-run.ts';
import { isBefore, startZk, type Zk } from '../zk.ts';

let dir: string;
let zk: Zk;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'drover-copy-'));
  zk = await startZk();
});

afterEach(async () => {
  // Whoever tidies up behind a story may delete what anybody may.
  const client = await zk.connect({ auth: [ann] });
  for await (const { path } of client.walk('/')) await client.setAcl(path, openAcl);
  await zk[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

const ann = { scheme: 'digest', auth: 'ann:secret' };
const asAnn = ['--auth', 'digest:ann:secret'];
const creator = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
/** Anybody may read it, and only Ann may change who may: she can't make children either. */
const guarded = [
  { perms: 1, id: { scheme: 'world', id: 'anyone' } },
  { perms: 16, id: { scheme: 'digest', id: 'ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=' } },
];
const readable = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }];

/** Data of all kinds, ACLs that bar children, a container, a session's node, names that files can't have. */
async function fill(client: Client): Promise<void> {
  await client.create('/from', 'top');
  await client.create('/from/text', 'hello\nworld');
  await client.create('/from/bytes', Buffer.from([0xff, 0, 1, 0xfe]));
  await client.create('/from/empty', '');
  await client.create('/from/none', null);
  await client.create('/from/.dot %41', 'dotted');
  await client.create('/from/zürich', '日本');
  await client.create('/from/mine', 'm', { acl: creator });
  await client.create('/from/mine/below', 'b');
  await client.setAcl('/from/mine', [
    ...readable,
    { perms: 31, id: { scheme: 'digest', id: 'ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=' } },
  ]);
  await client.create('/from/read-only', 'r');
  await client.create('/from/read-only/below', 'b');
  await client.setAcl('/from/read-only', guarded);
  const mode = isBefore(zk.version, '3.5') ? 'persistent' : 'container';
  await client.create('/from/container', '', { mode });
  await client.create('/from/container/child', 'c');
  await client.create('/from/here', '', { mode: 'ephemeral' });
}

async function picture(client: Client, root: string): Promise<Record<string, unknown>> {
  const nodes: Record<string, unknown> = {};
  for await (const { path } of client.walk(root)) {
    const [{ data, stat }, { acl }] = await Promise.all([client.get(path), client.getAcl(path)]);
    const owner = stat.ephemeralOwner;
    if (owner !== 0n && owner !== -(1n << 63n)) continue;
    nodes[path.slice(root.length) || '/'] = { data: data?.toString('hex') ?? '', owner, acl };
  }
  return nodes;
}

test('a subtree is copied with data, ACLs and kinds, and a second copy finds nothing to do', async () => {
  const client = await zk.connect({ auth: [ann] });
  await fill(client);

  const first = await runInProcess(zk.address, ['cp', '/from', '/to/deep', '--json', ...asAnn]);
  const again = await runInProcess(zk.address, ['cp', '/from', '/to/deep', '--json', ...asAnn]);

  expect(first).toMatchObject({ code: 0, err: '' });
  expect(first.records.at(-1).counts).toMatchObject({ create: 13, ephemeral: 1, same: 0 });
  expect(again.records.at(-1).counts).toMatchObject({ create: 0, change: 0, acl: 0, same: 13 });
  expect(await picture(client, '/to/deep')).toEqual(await picture(client, '/from'));
});

test.each([
  ['json', 'tree.json'],
  ['json', 'tree.json.gz'],
  ['file', 'tree'],
])('a subtree goes out to %s://%s and comes back as it was', async (scheme, name) => {
  const client = await zk.connect({ auth: [ann] });
  await fill(client);
  const place = `${scheme}://${join(dir, name)}`;

  const out = await runInProcess(zk.address, ['cp', '/from', place, ...asAnn]);
  const twice = await runInProcess(zk.address, ['cp', '/from', place, ...asAnn]);
  const back = await runInProcess(zk.address, ['cp', place, '/back', ...asAnn]);

  expect([out.code, twice.code, back.code]).toEqual([0, 6, 0]);
  expect(await picture(client, '/back')).toEqual(await picture(client, '/from'));
});

test('a file that was cut short or changed is refused before anything is written', async () => {
  const client = await zk.connect();
  await client.create('/from', 'top');
  await client.create('/from/a', 'value');
  const file = join(dir, 'tree.json');
  await runInProcess(zk.address, ['cp', '/from', `json://${file}`]);
  const text = readFileSync(file, 'utf8');

  const codes: number[] = [];
  for (const bad of [
    text.slice(0, -3),
    text.slice(0, text.length / 2),
    text.replace('value', 'other'),
  ]) {
    writeFileSync(file, bad);
    codes.push((await runInProcess(zk.address, ['cp', `json://${file}`, '/bad'])).code);
  }

  expect(codes).toEqual([4, 4, 4]);
  expect(await client.exists('/bad')).toBeNull();
});

test('a conflict stops a copy before it begins, or is skipped, or overwritten', async () => {
  const client = await zk.connect();
  await client.create('/from', 'top');
  await client.create('/from/a', 'new');
  await client.create('/from/b', 'b');
  await client.create('/to', 'top');
  await client.create('/to/a', 'old');
  const data = async (path: string) => (await client.get(path)).data?.toString();

  const refused = await runInProcess(zk.address, ['cp', '/from', '/to']);
  const untouched = await client.exists('/to/b');
  const skipped = await runInProcess(zk.address, ['cp', '/from', '/to', '--on-conflict', 'skip']);
  const kept = await data('/to/a');
  const declined = await runInProcess(
    zk.address,
    ['cp', '/from', '/to', '--on-conflict', 'overwrite'],
    { ask: async () => 'n' },
  );
  const keptStill = await data('/to/a');
  const overwritten = await runInProcess(zk.address, [
    'cp',
    '/from',
    '/to',
    '--on-conflict',
    'overwrite',
    '--yes',
  ]);

  expect([refused.code, skipped.code, declined.code, overwritten.code]).toEqual([6, 0, 9, 0]);
  expect(refused.err).toContain('/to/a is there and differs');
  expect(untouched).toBeNull();
  expect([kept, keptStill, await data('/to/a'), await data('/to/b')]).toEqual([
    'old',
    'old',
    'new',
    'b',
  ]);
});

test('a mirror deletes what is not in the source, but not what a session holds; a dry run only says so', async () => {
  const client = await zk.connect();
  await client.create('/from', 'top');
  await client.create('/from/a', 'a');
  await client.create('/to', 'top');
  await client.create('/to/gone');
  await client.create('/to/gone/below');
  await client.create('/to/live');
  await client.create('/to/live/session', '', { mode: 'ephemeral' });

  const dry = await runInProcess(zk.address, ['mirror', '/from', '/to', '--dry-run']);
  const before = (await client.children('/to')).sort();
  const done = await runInProcess(zk.address, ['mirror', '/from', '/to', '--yes', '--json']);

  expect(dry.lines).toEqual(['+ /to/a  a', '- /to/gone/below', '- /to/gone']);
  expect(before).toEqual(['gone', 'live']);
  expect(done.records.at(-1).counts).toMatchObject({ create: 1, delete: 2 });
  expect((await client.children('/to')).sort()).toEqual(['a', 'live']);
});

test('nothing is written to a read-only target, and everything may be read from it', async () => {
  const client = await zk.connect();
  await client.create('/from', 'x');

  const refused = await runInProcess(zk.address, ['cp', '/from', '/to', '--read-only']);
  const out = await runInProcess(zk.address, [
    'cp',
    '/from',
    `json://${join(dir, 'x.json')}`,
    '--read-only',
  ]);

  expect([refused.code, out.code]).toEqual([6, 0]);
  expect(await client.exists('/to')).toBeNull();
});

test('an ACL that the server hides is refused instead of copied wrong', async () => {
  const client = await zk.connect({ auth: [ann] });
  await fill(client);

  const hidden = await runInProcess(zk.address, ['cp', '/from', `json://${join(dir, 'x.json')}`]);
  const without = await runInProcess(zk.address, ['cp', '/from', '/to', '--no-acl']);

  expect(hidden.code).toBe(6);
  expect(hidden.err).toContain('/from/mine');
  expect(without.code).toBe(0);
});

test('a folder that is not a tree of ours is never replaced', async () => {
  const client = await zk.connect();
  await client.create('/from', 'x');
  writeFileSync(join(dir, 'precious'), 'mine');

  const { code, err } = await runInProcess(zk.address, ['mirror', '/from', `file://${dir}`]);

  expect(code).toBe(4);
  expect(err).toContain('is not replaced');
  expect(readFileSync(join(dir, 'precious'), 'utf8')).toBe('mine');
});

test('a backup is of one moment, notes ephemeral nodes, and is restored as it was', async () => {
  const client = await zk.connect({ auth: [ann] });
  await fill(client);
  const file = join(dir, 'backup.json.gz');

  const saved = await runInProcess(zk.address, ['backup', file, '/from', '--json', ...asAnn]);
  const restored = await runInProcess(zk.address, [
    'restore',
    file,
    '/restored',
    '--json',
    ...asAnn,
  ]);
  const again = await runInProcess(zk.address, ['restore', file, '/restored', '--json', ...asAnn]);

  expect(saved.records).toMatchObject([{ nodes: 14, ephemerals: 1, rounds: 1 }]);
  expect(saved.records[0].zxid).toMatch(/^0x/);
  expect(restored.records.at(-1).counts).toMatchObject({ create: 13, ephemeral: 1 });
  expect(again.records.at(-1).counts).toMatchObject({ create: 0, same: 13 });
  expect(await picture(client, '/restored')).toEqual(await picture(client, '/from'));
});

test('what changes while a backup is taken is read again until it is of one moment', async () => {
  const client = await zk.connect();
  await client.create('/t');
  for (const name of ['a', 'b', 'c', 'd']) await client.create(`/t/${name}`, 'old');
  const file = join(dir, 'backup.json.gz');
  let isFirst = true;

  const result = await backupTree(client, {
    root: '/t',
    file,
    signal: new AbortController().signal,
    onRead: async () => {
      if (!isFirst) return;
      isFirst = false;
      await client.set('/t/a', 'new');
      await client.delete('/t/b');
      await client.create('/t/e', 'added');
      await client.setAcl('/t/c', [
        ...readable,
        { perms: 16, id: { scheme: 'world', id: 'anyone' } },
      ]);
    },
  });
  const nodes = JSON.parse(gunzipSync(readFileSync(file)).toString()).slice(1, -1);

  expect(result).toMatchObject({ nodes: 5, rounds: 2 });
  expect(result.zxid).not.toBeNull();
  expect(
    nodes.map(({ path, data }: { path: string; data: { text: string } | null }) => [
      path,
      data?.text,
    ]),
  ).toEqual([
    ['/', ''],
    ['/a', 'new'],
    ['/c', 'old'],
    ['/d', 'old'],
    ['/e', 'added'],
  ]);
  expect(nodes[2].acl).toEqual([
    { scheme: 'world', id: 'anyone', perms: 'r' },
    { scheme: 'world', id: 'anyone', perms: 'a' },
  ]);
});

test('a tree that never stands still gives a backup that says so', async () => {
  const client = await zk.connect();
  await client.create('/t', '0');
  const file = join(dir, 'backup.json');
  const walk = client.walk.bind(client);
  // Somebody writes between every two looks.
  client.walk = (path, options) => {
    void client.set('/t', String(Math.random()));
    return walk(path, options);
  };

  const { zxid, rounds } = await backupTree(client, {
    root: '/t',
    file,
    signal: new AbortController().signal,
    roundsMax: 3,
  });

  expect(zxid).toBeNull();
  expect(rounds).toBe(3);
  expect(JSON.parse(readFileSync(file, 'utf8'))[0].zxid).toBeNull();
});

test('a backup of a whole server goes back below a path too, without its quotas', async () => {
  const file = join(dir, 'all.json');
  const writer = await TreeFileWriter.open(file, { kind: 'backup', root: '/' });
  for (const path of ['/', '/a', '/zookeeper/quota/a', '/zookeeper/quota/a/zookeeper_limits']) {
    await writer.node({ path, data: null, mode: 'persistent' });
  }
  await writer.commit();

  const restored = await runInProcess(zk.address, ['restore', file, '/below']);
  const again = await runInProcess(zk.address, ['restore', file]);
  const folder = await runInProcess(zk.address, ['cp', `json://${file}`, `file://${dir}/tree`]);
  const client = await zk.connect();

  expect([restored.code, again.code, folder.code]).toEqual([0, 0, 0]);
  expect(restored.err).toContain('2 nodes of quotas were left out');
  expect(await client.children('/below')).toEqual(['a']);
});

test('somebody’s node that is called as the server’s own is copied', async () => {
  const client = await zk.connect();
  for (const path of ['/from', '/from/zookeeper', '/from/zookeeper/quota']) {
    await client.create(path);
  }
  await client.create('/from/zookeeper/quota/a');

  const copied = await runInProcess(zk.address, ['cp', '/from', '/to']);

  expect(copied.code).toBe(0);
  expect(await client.children('/to/zookeeper/quota')).toEqual(['a']);
});

test('a file that can not be written is no refusal of the server', async () => {
  const file = join(dir, 'none', 'tree.json');

  const backup = await runInProcess(zk.address, ['backup', file]);
  const copy = await runInProcess(zk.address, ['cp', '/', `json://${file}`]);

  expect([backup.code, copy.code]).toEqual([4, 4]);
  for (const { err } of [backup, copy]) expect(err).toMatch(/^drover: ENOENT: .*tree\.json/);
});

test('a backup whose disk was full for a moment is none', async () => {
  const client = await zk.connect();
  await client.create('/from', 'x'.repeat(900_000));
  const file = join(dir, 'backup.json.gz');
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  const words = ['--import', import.meta.resolve('tsx'), main, 'backup', file, '/from'];

  // What is compressed is short enough, what it is made of is not.
  const limited = spawn(
    'sh',
    ['-c', 'ulimit -f 800; exec "$@"', 'sh', process.execPath, ...words],
    {
      env: { PATH: process.env.PATH!, HOME: dir, DROVER_SERVER: zk.directAddress },
      stdio: 'ignore',
    },
  );
  const [code] = await once(limited, 'exit');

  expect(code).toBe(4);
  expect(readdirSync(dir).filter((name) => name.startsWith('backup'))).toEqual([]);
});
