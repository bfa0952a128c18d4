/** What operators ask a server, by the command line, on ours and on Apache's. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { digestId, permissions } from '../../src/client/index.ts';
import { runInProcess, shellInProcess } from '../cli-run.ts';
import { startZk, type Zk } from '../zk.ts';

let dir: string;
let zk: Zk;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'drover-operators-'));
  zk = await startZk();
});

afterEach(async () => {
  await zk[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

/** A port that nobody listens on: the discard port needs root. */
const nobody = '127.0.0.1:9';

test('status shows a server with its role, version and zxid', async () => {
  const text = await runInProcess(zk.address, ['status']);
  const json = await runInProcess(zk.address, ['status', '--json']);

  expect(text.code).toBe(0);
  expect(text.lines[0]).toMatch(/^SERVER +ROLE +VERSION +ZXID +CONN/);
  expect(text.lines[1]).toMatch(/standalone +3\.\d+\.\d+ +0x[0-9a-f]+/);
  expect(json.records[0]).toMatchObject({ role: 'standalone', behind: 0 });
  expect(json.records[0].connections).toBeGreaterThan(0);
  expect(json.records.at(-1)).toEqual({ quorum: true, servers: 1 });
});

test('a server that is down is named, with what else is wrong, and the code says how bad it is', async () => {
  const [server, chroot] = [zk.address.replace(/\/.*/, ''), zk.address.replace(/^[^/]*/, '')];
  const both = `${server},${nobody}${chroot}`;

  const status = await runInProcess(both, ['status', '--json']);
  const doctor = await runInProcess(both, ['doctor', '--json']);
  const none = await runInProcess(nobody, ['status']);
  const well = await runInProcess(zk.address, ['doctor', '--json']);

  expect(status.records[1]).toMatchObject({ server: nobody, error: 'nobody listens there' });
  expect(doctor.code).toBe(2);
  expect(doctor.records.map(({ server, severity }) => [server, severity])).toContainEqual([
    nobody,
    'critical',
  ]);
  expect(none.code).toBe(1);
  // A busy machine makes a server slow, and then that is what is found.
  const found = well.records.slice(0, -1);
  expect(found.filter(({ what }) => !/takes \d|took \d|waiting/.test(what))).toEqual([]);
  expect(well.code).toBe(found.length === 0 ? 0 : 1);
});

test('a four-letter word goes to one server or to all', async () => {
  const one = await runInProcess(zk.address, ['4lw', 'srvr']);
  const all = await runInProcess(`${nobody},${zk.address}`, ['4lw', 'srvr', '--all', '--json']);
  const bad = await runInProcess(zk.address, ['4lw', 'hello']);
  const refused = await runInProcess(zk.address, ['4lw', 'srst', '--read-only']);
  const unknown = await runInProcess(zk.address, ['4lw', 'rouk']);

  expect(one.code).toBe(0);
  expect(one.out).toContain('Mode: standalone');
  expect(all.code).toBe(7);
  expect(all.records[0]).toMatchObject({ server: nobody, error: 'nobody listens there' });
  expect(all.records[1].values.Mode).toBe('standalone');
  expect([bad.code, refused.code]).toEqual([2, 6]);
  expect(unknown).toMatchObject({ code: 7, out: '' });
  expect(unknown.err).toContain('hung up without an answer; it may not know rouk');
});

test('top prints a frame and ends where nobody watches, and on a terminal leaves the screen as it was', async () => {
  const once = await runInProcess(zk.address, ['top']);
  const twice = await runInProcess(zk.address, [
    'top',
    '--json',
    '--count',
    '2',
    '--interval',
    '0.2',
  ]);
  const live = await runInProcess(zk.address, ['top', '--count', '1'], { isTty: true });

  expect(once.lines[1]).toMatch(/^SERVER/);
  expect(twice.records).toHaveLength(2);
  expect(twice.records[1].perSecond).toBeGreaterThanOrEqual(0);
  expect(live.out.startsWith('\x1b[?1049h')).toBe(true);
  expect(live.out.endsWith('\x1b[?1049l')).toBe(true);
});

test('Ctrl-C ends top, and the screen is as it was', async () => {
  const controller = new AbortController();

  const live = await runInProcess(zk.address, ['top', '--interval', '60'], {
    isTty: true,
    signal: controller.signal,
    onOut: (all) => all.includes('SERVER') && controller.abort(),
  });

  expect(live.code).toBe(0);
  expect(live.out.endsWith('\x1b[?1049l')).toBe(true);
});

test('latency measures reads and syncs without writing', async () => {
  const { code, records } = await runInProcess(zk.address, [
    'latency',
    '--count',
    '5',
    '--interval',
    '0',
    '--json',
  ]);

  expect(code).toBe(0);
  expect(records[0].read.p50Ms).toBeGreaterThan(0);
  expect(records[0].sync.maxMs).toBeGreaterThanOrEqual(records[0].sync.p50Ms);
});

test('a bench is bounded, and takes away what it made, also when it is interrupted', async () => {
  const client = await zk.connect();
  const controller = new AbortController();
  const short = ['bench', '--seconds', '0.2', '--sessions', '2', '--in-flight', '4', '--json'];

  const done = await runInProcess(zk.address, short);
  const interrupted = runInProcess(zk.address, ['bench', '--seconds', '60', '--sessions', '1'], {
    signal: controller.signal,
  });
  await expect.poll(() => client.children('/')).toHaveLength(1);
  controller.abort();

  expect(done.records.map(({ kind }) => kind)).toEqual(['get', 'set', 'create']);
  expect(done.records.every(({ perSecond }) => perSecond > 0)).toBe(true);
  expect((await interrupted).code).toBe(130);
  expect(await client.children('/')).toEqual([]);
});

test('contexts are kept, selected and gone back to, and a read-only one refuses writes', async () => {
  const environment = { XDG_CONFIG_HOME: dir, DROVER_SERVER: '' };
  const run = (...argv: string[]) => runInProcess('', argv, { environment });

  await run('context', 'add', 'prod', zk.directAddress, '--read-only');
  await run('context', 'add', 'test', nobody);
  const listed = await run('context', 'list', '--json');
  const written = await run('create', '/x', '', '--context', 'prod');
  await run('context', 'use', 'test');
  await run('context', 'use', '-');
  const copied = await run('cp', '/', 'zk://prod/other', '--context', 'prod');
  const unknown = await run('ls', '/', '--context', 'nowhere');
  const removed = await run('context', 'remove', 'prod');
  const after = await run('context', 'list', '--json');

  expect(listed.records).toMatchObject([
    { name: 'prod', readOnly: true, selected: true },
    { name: 'test', servers: nobody, selected: false },
  ]);
  expect([written.code, copied.code, unknown.code, removed.code]).toEqual([6, 6, 2, 0]);
  expect(after.records).toMatchObject([{ name: 'test', selected: false }]);
});

test('a line is completed where it goes, and with no credentials that it would not show', async () => {
  const environment = { XDG_CONFIG_HOME: dir };
  const client = await zk.connect();
  await client.create('/there/open', '', { parents: true });
  await client.create('/secret');
  await client.create('/secret/inside');
  const anyone = { scheme: 'world', id: 'anyone' };
  const own = [{ perms: permissions.all, id: digestId('ann:canary') }];
  await client.setAcl('/secret', [...own, { perms: permissions.admin, id: anyone }]);
  const run = (...argv: string[]) => runInProcess('', argv, { environment });
  const stored = ['--store-auth', 'digest:ann:canary'];
  await run('context', 'add', 'mine', zk.directAddress, '--select', ...stored);
  await run('context', 'add', 'there', `${zk.directAddress}/there`);

  const mine = await run('complete', '--', 'ls /secret/');
  const there = await run('complete', '--', '--context there ls /');
  const named = await run('complete', '--', `--server ${zk.directAddress} ls /secret/`);
  await client.setAcl('/secret', [{ perms: permissions.all, id: anyone }]);

  expect(mine.out).toBe('/secret/inside\t\n');
  expect(there.out).toBe('/open\t\n');
  expect(named.out).toBe('');
});

test('a line that names a context goes there, whatever servers its shell or a variable names', async () => {
  const environment = { XDG_CONFIG_HOME: dir };
  const client = await zk.connect();
  await client.create('/there');
  const run = (...argv: string[]) => runInProcess(nobody, argv, { environment });
  await run('context', 'add', 'test', `${zk.directAddress}/there`);
  await using shell = shellInProcess('', { environment, server: nobody });

  const alone = await run('create', '/alone', '--context', 'test');
  const line = await shell.run('create /line --context test');

  expect([alone.err, line.err]).toEqual(['', '']);
  expect((await client.children('/there')).sort()).toEqual(['alone', 'line']);
});

test('a password is stored only where it was asked for, is never shown, and others may not read it', async () => {
  const environment = { XDG_CONFIG_HOME: dir };
  const run = (...argv: string[]) => runInProcess(zk.address, argv, { environment });
  const file = join(dir, 'drover', 'contexts.json');

  await run('context', 'add', 'plain', zk.address);
  const without = readFileSync(file, 'utf8');
  const added = await run(
    'context',
    'add',
    'secret',
    zk.address,
    '--store-auth',
    'digest:ann:canary',
  );
  const listed = await run('context', 'list');
  const json = await run('context', 'list', '--json');
  const { mode } = statSync(file);
  chmodSync(file, 0o644);
  const refused = await run('context', 'list');

  expect(without).not.toContain('auth');
  expect(readFileSync(file, 'utf8')).toContain('canary');
  expect(mode & 0o777).toBe(0o600);
  for (const { out, err } of [added, listed, json, refused])
    expect(out + err).not.toContain('canary');
  expect(refused.code).toBe(2);
});

test('what is wrong with a word is said once, and with what helps', async () => {
  const run = (...argv: string[]) => runInProcess(zk.address, argv);

  const path = await run('get', '/a\u0001b');
  const find = await run('find', '/', '(', '-E');
  const grep = await run('grep', '(', '/');
  const key = await run('config', 'get', '/', 'a/b');

  expect(path.err).toContain('"/a\\u0001b"');
  expect(find.err).toMatch(
    /^drover: cannot use the pattern \(: a \( has no \); without -E it is plain text\n$/,
  );
  expect(grep.err).toContain('grep -F takes it as text');
  expect(key.err).toBe('drover: a/b: a key is the name of a node, without a slash\n');
  expect([path.code, find.code, grep.code, key.code]).toEqual([2, 2, 2, 2]);
});
