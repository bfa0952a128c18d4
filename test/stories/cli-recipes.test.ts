/** Recipes for shell scripts, on ours and on Apache's: programs that run while something is held. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Lock, Queue, Semaphore, ServiceDiscovery } from '../../src/recipes/index.ts';
import { runInProcess } from '../cli-run.ts';
import { startZk, type Zk } from '../zk.ts';

let dir: string;
let zk: Zk;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'drover-recipes-'));
  zk = await startZk();
});

afterEach(async () => {
  await zk[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

const file = (name: string) => join(dir, name);
const text = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const environment = { PATH: process.env.PATH ?? '' };
const run = (...argv: string[]) => runInProcess(zk.address, argv, { environment });
const sh = (script: string) => ['--', 'sh', '-c', script];

test('a command runs while the lock is held, with its token, and its exit code is ours', async () => {
  const client = await zk.connect();

  const first = await run('lock', '/l', ...sh(`echo $DROVER_FENCING_TOKEN > ${file('a')}; exit 7`));
  const second = await run('lock', '/l', ...sh(`echo $DROVER_FENCING_TOKEN > ${file('b')}`));

  expect([first.code, second.code]).toEqual([7, 0]);
  expect(BigInt(text('b').trim())).toBeGreaterThan(BigInt(text('a').trim()));
  expect(await new Lock(client, '/l').holder()).toBeNull();
});

test('a lock that somebody holds is waited for, for so long, or not at all', async () => {
  const client = await zk.connect();
  await using _ = await new Lock(client, '/l').acquire();

  const tried = await run('lock', '/l', '--try', ...sh('true'));
  const late = await run('lock', '/l', '--timeout', '0.2', ...sh('true'));

  expect([tried.code, late.code]).toEqual([6, 6]);
  expect(late.err).toContain('held by');
  const { data, sessionId } = (await new Lock(client, '/l').holder())!;
  expect(tried.err).toContain(`/l is held by ${data} (session 0x${sessionId.toString(16)})`);
});

test('who finds no lease left is told who has them', async () => {
  const client = await zk.connect();
  await using _ = (await new Semaphore(client, '/s', { limit: 1 }).tryAcquire())!;

  const tried = await run('semaphore', '/s', '--limit', '1', '--try', ...sh('true'));

  const session = client.sessionId!.toString(16);
  expect(tried.code).toBe(6);
  expect(tried.err).toContain(`(session 0x${session})`);
  expect(tried.err).toContain('/s has too few leases left, held by ');
});

test('a command is ended, with all it started, when its lock is lost', async () => {
  const client = await zk.connect();
  const script = `trap '' TERM; sh -c 'echo $$ > ${file('inner')}; exec sleep 1000' & echo $$ > ${file('outer')}; wait; wait; sleep 1000`;

  const running = run('lock', '/l', '--kill-after', '0.2', ...sh(script));
  await expect
    .poll(() => text('inner') !== '' && text('outer') !== '', { timeout: 10_000 })
    .toBe(true);
  const [inner, outer] = [Number(text('inner')), Number(text('outer'))];
  const wasAlive = alive(inner) && alive(outer);
  const [node] = await client.children('/l');
  await client.delete(`/l/${node}`);
  const { code, err } = await running;

  expect(wasAlive).toBe(true);
  expect(code).toBe(8);
  expect(err).toContain('no longer certainly ours');
  await expect.poll(() => alive(inner) || alive(outer), { timeout: 10_000 }).toBe(false);
});

test('Ctrl-C ends the command, and gives the lock back', async () => {
  const client = await zk.connect();
  const controller = new AbortController();

  const running = runInProcess(
    zk.address,
    ['lock', '/l', ...sh(`echo $$ > ${file('pid')}; exec sleep 1000`)],
    { environment, signal: controller.signal },
  );
  await expect.poll(() => text('pid'), { timeout: 10_000 }).not.toBe('');
  controller.abort();

  expect((await running).code).toBe(130);
  expect(alive(Number(text('pid')))).toBe(false);
  expect(await new Lock(client, '/l').holder()).toBeNull();
});

test('a command that is not there is told of, and the lock is given back', async () => {
  const client = await zk.connect();

  const { code, err } = await run('lock', '/l', '--', file('nothing'));

  expect(code).toBe(2);
  expect(err).toContain("can't be run");
  expect(await new Lock(client, '/l').holder()).toBeNull();
});

test('a command that nobody named, or that can not be a file, is told of, and nothing stays held', async () => {
  const client = await zk.connect();
  await run('queue', 'put', '/q', 'item');

  const unset = await Promise.all([
    run('lock', '/l', '--', ''),
    run('elect', '/e', '--', ''),
    run('queue', 'take', '/q', '--', ''),
  ]);
  const noFile = await run('lock', '/l', '--', join(process.execPath, 'x'));

  for (const said of unset) {
    expect(said).toMatchObject({ code: 2, err: expect.stringContaining('what is to be run?') });
  }
  expect(noFile).toMatchObject({ code: 2, err: expect.stringContaining("can't be run (ENOTDIR)") });
  expect(await new Lock(client, '/l').holder()).toBeNull();
  expect((await run('queue', 'size', '/q')).out).toBe('1 waiting, 0 taken\n');
});

test('a number or an address that is empty, a variable that nobody set, is refused', async () => {
  const said = await Promise.all([
    run('lock', '/l', '--timeout', '', ...sh('true')),
    run('lock', '/l', '--kill-after', ' ', ...sh('true')),
    run('register', '/s', 'web', '--address', '', ...sh('true')),
    run('tree', '/', '--depth', ''),
    run('setAcl', '-v', '', '/', 'world:anyone:cdrwa'),
  ]);

  expect(said.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
});

test('a command runs under one of so many leases', async () => {
  const tooMany = await run('semaphore', '/s', '--limit', '2', '--count', '3', ...sh('true'));
  const { code } = await run('semaphore', '/s', '--limit', '2', '--count', '2', ...sh('exit 3'));

  expect([tooMany.code, code]).toEqual([2, 3]);
});

test('a command runs once it is elected, and again after it was deposed', async () => {
  const client = await zk.connect();

  const running = run(
    'elect',
    '/e',
    '--kill-after',
    '0.2',
    ...sh(
      `echo $DROVER_EPOCH >> ${file('epochs')}; if [ "$(wc -l < ${file('epochs')})" = 1 ]; then exec sleep 1000; else exit 5; fi`,
    ),
  );
  await expect.poll(() => text('epochs'), { timeout: 10_000 }).not.toBe('');
  const nodes = await client.children('/e');
  for (const node of nodes) await client.delete(`/e/${node}`);
  const { code } = await running;

  const [first, second] = text('epochs').trim().split('\n').map(BigInt);
  expect(code).toBe(5);
  expect(second).toBeGreaterThan(first!);
});

test('Ctrl-C ends the command of who was elected, and nothing is said to be lost', async () => {
  const stop = new AbortController();
  const running = runInProcess(
    zk.address,
    ['elect', '/e', ...sh(`echo $$ > ${file('pid')}; exec sleep 1000`)],
    { environment, signal: stop.signal },
  );
  await expect.poll(() => text('pid'), { timeout: 10_000 }).not.toBe('');

  stop.abort();
  const { code, err } = await running;

  expect(code).toBe(130);
  expect(err).toMatch(/^drover: elected, epoch \d+\n$/);
  expect(alive(Number(text('pid')))).toBe(false);
});

test('a service is known while its command runs', async () => {
  const client = await zk.connect();
  const discovery = new ServiceDiscovery(client, '/services');
  const script = `while [ ! -f ${file('stop')} ]; do sleep 0.05; done; exit 4`;

  const running = run(
    'register',
    '/services',
    'web',
    '--address',
    '10.0.0.1',
    '--port',
    '8080',
    ...sh(script),
  );
  await expect
    .poll(() => discovery.instances('web').catch(() => []), { timeout: 10_000 })
    .toHaveLength(1);
  const [instance] = await discovery.instances('web');
  await run('lock', '/other', ...sh(`touch ${file('stop')}`));
  const { code } = await running;

  expect(instance).toMatchObject({ name: 'web', address: '10.0.0.1', port: 8080 });
  expect(code).toBe(4);
  expect(await discovery.instances('web').catch(() => [])).toEqual([]);
  await discovery.close();
});

test('a closed barrier is waited at until it is open', async () => {
  await run('barrier', 'close', '/b');
  const late = await run('barrier', 'wait', '/b', '--timeout', '0.1');
  const waiting = run('barrier', 'wait', '/b');
  const opened = await run('barrier', 'open', '/b');

  expect(late.code).toBe(6);
  expect(opened.code).toBe(0);
  expect((await waiting).code).toBe(0);
});

test('scripts that join a barrier go on together', async () => {
  const all = await Promise.all([1, 2, 3].map(() => run('barrier', 'join', '/b', '--size', '3')));

  expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
});

test('an item is done when its command ends well, and back when it does not', async () => {
  const client = await zk.connect();
  await using queue = new Queue(client, '/q');

  await run('queue', 'put', '/q', 'one', 'two');
  const failed = await run('queue', 'take', '/q', ...sh(`cat > ${file('a')}; exit 9`));
  const after = await queue.size();
  const good = await run('queue', 'take', '/q', ...sh(`cat > ${file('b')}`));
  const printed = await run('queue', 'take', '/q');
  const empty = await run('queue', 'take', '/q', '--try');

  expect([failed.code, good.code, printed.code, empty.code]).toEqual([9, 0, 0, 6]);
  expect(after).toEqual({ waiting: 2, claimed: 0 });
  expect([text('a'), text('b'), printed.out]).toEqual(['one', 'one', 'two']);
});

test('an item is kept by the command that works on it alone', async () => {
  await run('queue', 'put', '/q', 'work');

  const held = await run('queue', 'take', '/q', '--hold');
  const done = await run('queue', 'done', 'an-id');
  const returned = await run('queue', 'return', 'an-id');

  expect([held, done, returned].map(({ code }) => code)).toEqual([2, 2, 2]);
  expect(done.err).toContain('drover queue put PATH');
  expect((await run('queue', 'size', '/q')).out).toBe('1 waiting, 0 taken\n');
});

test('values are set together, read bare, and watched', async () => {
  const client = await zk.connect();
  const set = await run('config', 'set', '/conf', 'port=8080', 'name=web', 'tags=["a"]');
  const one = await run('config', 'get', '/conf', 'port');
  const all = await run('config', 'get', '/conf');
  const missing = await run('config', 'get', '/conf', 'nothing');
  const controller = new AbortController();
  const seen: string[] = [];
  const watching = runInProcess(zk.address, ['config', 'watch', '/conf', 'port', '--json'], {
    environment,
    signal: controller.signal,
    onOut: (out) => {
      seen.splice(0, seen.length, ...out.trim().split('\n'));
    },
  });
  await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(1);
  await client.set('/conf/port', '9090');
  await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(2);
  controller.abort();

  expect(set.code).toBe(0);
  expect(one.out).toBe('8080\n');
  expect(all.lines).toEqual(['name=web', 'port=8080', 'tags=["a"]']);
  expect(missing.code).toBe(6);
  expect(JSON.parse(seen[1]!).value).toBe(9090);
  expect((await watching).code).toBe(130);
});
