/** The shell: its place in the tree, its history, its session, its watches. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runInProcess, shellInProcess } from '../cli-run.ts';
import { startZk } from '../zk.ts';

test('paths are relative to where we are', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const path of ['/a', '/a/b', '/c']) await client.create(path, path);
  await using shell = shellInProcess(zk.address);

  expect((await shell.run('pwd')).out).toBe('/\n');
  expect((await shell.run('cd a/b')).code).toBe(0);
  expect((await shell.run('get .')).out).toBe('/a/b\n');
  expect((await shell.run('get ../../c')).out).toBe('/c\n');
  expect((await shell.run('create d x')).out).toBe('Created /a/b/d\n');
  expect((await shell.run('ls ..')).out).toBe('[b]\n');
  expect((await shell.run('cd /none')).code).toBe(6);
  expect((await shell.run('cd -')).code).toBe(0);
  expect((await shell.run('pwd')).out).toBe('/\n');
  expect((await shell.run('cd ../../..')).code).toBe(0);
  expect((await shell.run('cd /a/')).code).toBe(0);
  expect((await shell.run('pwd')).out).toBe('/a\n');
  expect(await shell.shell.prompt()).toBe(`(${zk.address}) /a> `);
});

test('history numbers lines as zkCli does, and redo runs one again', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('create /n x');
  await shell.run('');
  await shell.run('# a remark');
  await shell.run('ls /');

  const history = await shell.run('history');
  const redone = await shell.run('redo 1');
  const itself = await shell.run('redo 4');
  const redoOfRedo = await shell.run('redo 3');
  const far = await shell.run('redo 99');
  const wrong = await shell.run('redo -1');

  expect(history.lines).toEqual(['0 - create /n x', '1 - ls /', '2 - history']);
  expect(redone.out).toBe('[n]\n');
  expect([itself.code, far.code, wrong.code]).toEqual([2, 2, 2]);
  expect(redoOfRedo.out).toBe('[n]\n'); // what a redo ran stands in its place
  for (let i = 0; i < 20; i++) await shell.run('pwd');
  expect((await shell.run('history')).lines).toHaveLength(11);
});

test('events of watches are printed between lines, until they are switched off', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/w', 'x');
  await using shell = shellInProcess(zk.address);
  const hears = (text: string) => vi.waitFor(() => expect(shell.printed()).toContain(text), 10_000);

  await shell.run('get -w /w');
  await client.set('/w', 'y');
  await hears('WATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:/w');
  await shell.run('ls -w /');
  await client.create('/new');
  await hears('type:NodeChildrenChanged path:/ ');
  await shell.run('stat -w /later');
  await client.create('/later');
  await hears('type:NodeCreated path:/later ');
  await shell.run('addWatch /w');
  await client.create('/w/below');
  await hears('type:NodeCreated path:/w/below');
  const removed = await shell.run('removewatches /w -a');
  const none = await shell.run('removewatches /w -a');
  expect((await shell.run('printwatches')).out).toContain('printwatches is on\n');
  await shell.run('printwatches off');
  await shell.run('get -w /w');
  await client.set('/w', 'z');
  await client.sync('/');
  await shell.run('sync /');

  expect(removed.code).toBe(0);
  expect(none.code).toBe(6);
  expect(shell.printed()).toBe('');
  expect((await shell.run('printwatches')).out).toBe('printwatches is off\n');
});

test('close ends the session and what it held; connect begins another', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using shell = shellInProcess(zk.address);
  await shell.run('create -e /e');

  expect((await shell.run('close')).code).toBe(0);
  expect(await client.exists('/e')).toBeNull();
  expect(await shell.run('ls /')).toMatchObject({ code: 7 });
  expect((await shell.run('connect')).code).toBe(0);
  expect((await shell.run('ls /')).out).toBe('[]\n');
  expect((await shell.run(`connect ${zk.directAddress}`)).code).toBe(0);
  expect((await shell.run('create -e /e2')).code).toBe(0);
  expect((await client.exists('/e2'))?.ephemeralOwner).not.toBe(0n);
  expect((await shell.run('quit')).code).toBe(0);
  expect(shell.shell.isOver).toBe(true);
});

test('connect shows a server that is named no credentials of the context, and stays read-only', async () => {
  await using zk = await startZk({ since: '3.7', what: 'whoAmI' });
  const folder = mkdtempSync(join(tmpdir(), 'drover-connect-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'drover'));
  const auth = [{ scheme: 'digest', auth: 'ann:secret' }];
  const contexts = { prod: { servers: zk.address, readOnly: true, auth } };
  const saved = { version: 1, selected: 'prod', previous: null, contexts };
  writeFileSync(join(folder, 'drover/contexts.json'), JSON.stringify(saved), { mode: 0o600 });
  await using shell = shellInProcess('', { environment: { XDG_CONFIG_HOME: folder } });

  const before = await shell.run('whoami');
  await shell.run(`connect ${zk.directAddress}`);
  const after = await shell.run('whoami');
  const write = await shell.run('create /a');

  expect(before.out).toContain('digest: ann');
  expect(after.out).not.toContain('digest');
  expect(write.err).toContain('read-only');
});

test('a shell survives the end of its session, and says so', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('ls /');
  const client = (await shell.shell.session.opened())!;

  await zk.expire(client);

  await vi.waitFor(async () => expect((await shell.run('ls /')).out).toBe('[]\n'), 15_000);
});

test('a line may go elsewhere, and --json holds for one line alone', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('create /a');
  const root = zk.directAddress.split('/')[0]!;

  expect((await shell.run('ls / --json')).records).toEqual([{ path: '/', children: ['a'] }]);
  expect((await shell.run(`ls / --server ${root}`)).out).toContain('zookeeper');
  expect((await shell.run(`ls -server ${root}/zookeeper /`)).out).toContain('quota');
  expect((await shell.run('ls /')).out).toBe('[a]\n');
});

test('what can not be reached is said with every server tried, and a code of its own', async () => {
  const said = await runInProcess('127.0.0.1:1', ['ls', '/', '--connect-timeout', '300']);

  expect(said.code).toBe(7);
  expect(said.err).toMatch(/^drover: .*127\.0\.0\.1:1.*ECONNREFUSED.*--server right\?\n$/s);
});

test('read-only refuses what writes, and lets the rest through', async () => {
  await using zk = await startZk();
  const drover = (...argv: string[]) => runInProcess(zk.address, [...argv, '--read-only']);

  expect(await drover('create', '/a')).toMatchObject({
    code: 6,
    err: 'drover: create writes, and DROVER_SERVER is read-only\n',
  });
  expect((await drover('ls', '/')).code).toBe(0);
});

test('commands that are not there are refused with the one that was meant', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);

  expect((await shell.run('lss /')).err).toBe('drover: Command not found: "lss"; is ls meant?\n');
  expect((await shell.run('serve')).code).toBe(2);
  expect((await shell.run('help ls')).out).toContain('Usage: drover ls [options] [path] [watch]');
  expect((await shell.run('help')).out).toContain('  deleteall ');
  expect((await shell.run('ls --no-such')).code).toBe(2);
});
