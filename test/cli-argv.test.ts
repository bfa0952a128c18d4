/** `drover COMMAND` as a process: where it goes, what it prints into pipes, how it ends. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { connect } from '../src/client/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';

// A process takes long to start where several tests share two cores.
vi.setConfig({ testTimeout: 60_000 });

const root = resolve(import.meta.dirname, '..');
const tsx = import.meta.resolve('tsx');
let folder: string;
let server: TestServer;
let address: string;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  server = await startTestServer();
  address = `127.0.0.1:${server.port}`;
  const client = await connect(address);
  await client.create('/chroot');
  await client.create('/chroot/inside', Buffer.from([0, 255, 10, 27]));
  await client.close();
});

afterAll(() => server.close());

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-argv-'));
});

afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  rmSync(folder, { recursive: true, force: true });
});

interface How {
  readonly env?: Record<string, string>;
  readonly input?: string | Buffer;
  readonly stdout?: number;
}

function start(args: readonly string[], { env = {}, stdout }: How = {}): ChildProcess {
  const main = join(root, 'src/cli/main.ts');
  const child = spawn(process.execPath, ['--import', tsx, main, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH!, HOME: folder, ...env },
    stdio: ['pipe', stdout ?? 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}

async function drover(args: readonly string[], how: How = {}) {
  const child = start(args, how);
  const out: Buffer[] = [];
  let err = '';
  child.stdout?.on('data', (chunk) => out.push(chunk));
  child.stderr!.on('data', (chunk) => {
    err += chunk;
  });
  child.stdin!.end(how.input ?? '');
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, bytes: Buffer.concat(out), out: Buffer.concat(out).toString('utf8'), err };
}

test('the server is named before or behind the command, in zkCli’s way, by a variable, with a chroot', async () => {
  const inside = `${address}/chroot`;
  const all = await Promise.all([
    drover(['--server', inside, 'ls', '/']),
    drover(['ls', '/', '--server', inside]),
    drover(['ls', '--server', inside]),
    drover(['-server', inside, '-timeout', '20000', '-r', 'ls', '/']),
    drover([`--server=${inside}`, 'ls', '/']),
    drover(['ls', '/'], { env: { DROVER_SERVER: inside } }),
    drover(['--server', inside, 'ls', '/'], { env: { DROVER_SERVER: '127.0.0.1:1' } }),
  ]);

  for (const said of all) expect(said).toMatchObject({ code: 0, out: 'inside\n', err: '' });
});

test('bytes go through pipes as they are, in both directions', async () => {
  const bytes = Buffer.from([0, 255, 10, 27]);

  const got = await drover(['get', '/chroot/inside', '--server', address]);
  const put = await drover(['create', '/put', '--file', '-', '--server', address], {
    input: bytes,
  });
  const back = await drover(['get', '/put', '--server', address]);

  expect(got.bytes).toEqual(bytes);
  expect(put.code).toBe(0);
  expect(back.bytes).toEqual(bytes);
});

test('a script on standard input, in a file and in -c goes on after a failure and ends with the last code', async () => {
  const env = { DROVER_SERVER: address };
  writeFileSync(join(folder, 'script'), 'create /s1 x\nget /none\n# done\nget /s1\n');

  const piped = await drover(['shell'], { env, input: 'ls /chroot\ncd /chroot\npwd\nget /none\n' });
  const file = await drover(['shell', 'script'], { env });
  const stopped = await drover(['shell', 'script', '--stop-on-error'], { env });
  const lines = await drover(['shell', '-c', 'cd /chroot', '-c', 'ls'], { env });
  const quit = await drover(['shell'], { env, input: 'quit\nls /\n' });
  const named = await drover(['-server', address], { input: 'ls /chroot\n' });

  expect(piped).toMatchObject({ code: 6, out: '[inside]\n/chroot\n' });
  expect(file).toMatchObject({ code: 0, out: 'Created /s1\nx\n' });
  expect(stopped).toMatchObject({ code: 6, out: '' });
  expect(lines).toMatchObject({ code: 0, out: '[inside]\n' });
  expect(quit).toMatchObject({ code: 0, out: '' });
  expect(named).toMatchObject({ code: 0, out: '[inside]\n' });
});

test('a script whose server is not there ends at once', async () => {
  const said = await drover(['shell', '--server', '127.0.0.1:1', '--connect-timeout', '200'], {
    input: 'ls /\nls /\nls /\n',
  });

  expect(said.code).toBe(7);
  expect(said.err.match(/ECONNREFUSED/g)).toHaveLength(1);
  expect(said.err).toContain('the rest of the script was not run\n');
});

test('no command is help, a wrong one is a sentence, and help is on standard output', async () => {
  const [none, wrong, help, one, option, version, excess] = await Promise.all([
    drover([]),
    drover(['lss', '/']),
    drover(['--help']),
    drover(['ls', '--help']),
    drover(['ls', '--no-such']),
    drover(['--version']),
    drover(['stat']),
  ]);

  expect(none).toMatchObject({ code: 0, err: '' });
  expect(none.out).toContain('Whole subtrees:\n');
  expect(wrong).toMatchObject({
    code: 2,
    out: '',
    err: 'drover: Command not found: "lss"; is ls meant?\n',
  });
  expect(help.out).toBe(none.out);
  expect(one.out).toContain('--server <hosts>');
  expect(option.code).toBe(2);
  expect(option.err).toMatch(/^drover: unknown option '--no-such'\n.*drover help ls/s);
  expect(version.out).toMatch(/^drover \d/);
  expect(excess).toMatchObject({ code: 2, out: '' });
});

test('an option before the command that no command has is what is refused, not the word behind it', async () => {
  const [misspelt, alien, known] = await Promise.all([
    drover(['--serve', 'zk:2181', 'ls', '/']),
    drover(['--wherever', 'zk:2181', 'ls', '/']),
    drover(['--size', 'lss']),
  ]);

  expect(misspelt).toMatchObject({
    code: 2,
    out: '',
    err: "drover: unknown option '--serve'; is --server meant?\n",
  });
  expect(alien.err).toBe("drover: unknown option '--wherever'; help lists them all\n");
  expect(known.err).toBe('drover: Command not found: "lss"; is ls meant?\n');
});

test('what is wrong with the words themselves is an object too, with --json', async () => {
  const all = await Promise.all([
    drover(['--json', 'lss', '/']),
    drover(['ls', '--json', '--no-such']),
    drover(['get', '--json']),
    drover(['shell', '--json'], { input: 'lss\nls --no-such\n' }),
  ]);

  const errors = all
    .flatMap(({ err }) => err.trimEnd().split('\n'))
    .map((line) => JSON.parse(line));
  expect(all.map(({ code, out }) => [code, out])).toEqual(all.map(() => [2, '']));
  expect(errors.map(({ error }) => error)).toEqual([
    { code: 'USAGE', message: 'Command not found: "lss"; is ls meant?' },
    { code: 'USAGE', message: "unknown option '--no-such'; it is drover ls [path] [watch]" },
    { code: 'USAGE', message: "missing required argument 'path'; it is drover get <path> [watch]" },
    { code: 'USAGE', message: 'Command not found: "lss"; is ls meant?' },
    { code: 'USAGE', message: "unknown option '--no-such'; it is drover ls [path] [watch]" },
  ]);
});

test.runIf(existsSync('/dev/full'))('a full disk is said in one sentence', async () => {
  const full = openSync('/dev/full', 'w');
  const all = await Promise.all([
    drover([], { stdout: full }),
    drover(['ls', '/', '--server', address], { stdout: full }),
    drover(['get', '/chroot/inside', '--server', address], { stdout: full }),
  ]);

  for (const said of all) {
    expect(said).toMatchObject({
      code: 10,
      err: "drover: standard output can't be written (ENOSPC)\n",
    });
  }
});

test.runIf(existsSync('/dev/full'))(
  'an item that could not be printed is back in its queue',
  async () => {
    const full = openSync('/dev/full', 'w');
    await drover(['queue', 'put', '/items', 'one', '--server', address]);

    const onDisk = await drover(['queue', 'take', '/items', '--server', address], { stdout: full });
    const { out } = await drover(['queue', 'take', '/items', '--try', '--server', address]);

    expect(onDisk.code).toBe(10);
    expect(out).toBe('one');
  },
);

test('a reader that goes away ends it quietly, however long it would have gone on', async () => {
  const client = await connect(address);
  const child = start(['watch', '-r', '/chroot', '--server', address, '--json']);
  let err = '';
  child.stderr!.on('data', (chunk) => {
    err += chunk;
  });
  await vi.waitFor(() => expect(err).toContain('watching'), 30_000);
  child.stdout!.destroy();
  const ended = once(child, 'close');
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  await vi.waitFor(async () => {
    await client.set('/chroot', String(Math.random()));
    expect(isOver).toBe(true);
  }, 30_000);
  const [code] = await ended;
  await client.close();

  expect(code).toBe(0);
  expect(err).toBe('drover: watching /chroot and all below it; Ctrl-C stops\n');
});

test('Ctrl-C ends what waits, and the session with it', async () => {
  const client = await connect(address);
  const child = start(['stat', '-w', '/never', '--server', address]);
  let err = '';
  child.stderr!.on('data', (chunk) => {
    err += chunk;
  });
  await vi.waitFor(() => expect(err).toContain('waiting for it'), 30_000);

  child.kill('SIGINT');
  const [code] = await once(child, 'close');

  expect(code).toBe(130);
  expect(err).toMatch(/interrupted\n$/);
  await client.close();
});

test('who loses the terminal gives back what is held at once', async () => {
  const client = await connect(address);
  const contenders = () => client.children('/held').catch(() => []);
  const child = start(['lock', '/held', '--server', address, '--', 'cat']);
  await vi.waitFor(async () => expect(await contenders()).toHaveLength(1), 30_000);

  child.kill('SIGHUP');
  const [code] = await once(child, 'close');

  expect(code).toBe(130);
  expect(await contenders()).toEqual([]);
  await client.close();
});

test('a command with a session of its own ends when it is refused for its options', async () => {
  mkdirSync(join(folder, 'orders'));
  writeFileSync(join(folder, 'orders/0.ndjson'), '{"timestamp":1793491200000}\n');
  const env = { DROVER_SERVER: address };

  const all = await Promise.all([
    drover(['register', '/services', 'web', '--port', 'x', '--', 'true'], { env }),
    drover(['elect', '/leader', '--kill-after', 'x', '--', 'true'], { env }),
    drover(
      `align run --group g --input orders=orders --period 1m --quarantine no-such`.split(' '),
      { env },
    ),
  ]);

  expect(all.map(({ code }) => code)).toEqual([2, 2, 2]);
  expect(all[0]!.err).toMatch(/^drover: --port/);
  expect(all[1]!.err).toMatch(/^drover: --kill-after/);
  expect(all[2]!.err).toMatch(/^drover: quarantine/);
});

test.runIf(existsSync('/proc/self'))('a folder that can not be is said at once', async () => {
  mkdirSync(join(folder, 'orders'));
  writeFileSync(join(folder, 'orders/0.ndjson'), '{"timestamp":1793491200000}\n');
  const env = { DROVER_SERVER: address };
  const run = `align run --group h --input orders=orders --period 1m --out /proc/x/y`;

  const [copied, aligned, written] = await Promise.all([
    drover(['cp', '/chroot', 'file:///proc/x/y'], { env }),
    drover(run.split(' '), { env }),
    drover(['create', '/noted'], { env: { ...env, DROVER_JOURNAL: '/proc/x/journal' } }),
  ]);

  expect(copied.err).toContain('ENOENT');
  expect(aligned.err).toBe('drover: --out: /proc/x/y cannot be made (ENOENT)\n');
  expect(written).toMatchObject({ code: 0, out: '/noted\n' });
  expect(written.err).toContain("/proc/x/journal can't be written");
});

test('no secret is printed, whatever goes wrong', async () => {
  writeFileSync(join(folder, 'auth'), 'digest:ann:canary-file\n');
  const env = { DROVER_AUTH: 'digest:ann:canary-variable' };
  const all = await Promise.all([
    drover(['whoami', '--server', address, '--auth', 'digest:ann:canary-flag'], { env }),
    drover(['whoami', '--server', address, '--auth-file', 'auth']),
    drover(['ls', '/none', '--server', address, '--auth', 'canary-without-scheme'], { env }),
    drover(['ls', '/none', '--server', '127.0.0.1:1', '--connect-timeout', '100'], { env }),
    drover(['ls', '/', '--server', address, '--sasl-user', 'ann'], {
      env: { DROVER_SASL_PASSWORD: 'canary-sasl' },
    }),
    drover(['ls', '/', '--server', address, '--sasl-user', 'ann']),
  ]);

  for (const { out, err } of all) expect(out + err).not.toContain('canary');
  expect(all[0]!.out).toContain('digest: ann');
  expect(all[1]!.out).toContain('digest: ann');
  expect(all[2]!.code).toBe(2);
  expect(all[5]!.err).toContain('DROVER_SASL_PASSWORD');
});

test('completion scripts are valid, and what they ask is answered', async () => {
  const env = { DROVER_SERVER: address };
  const [bash, zsh, fish, tcsh, paths, commands, elsewhere] = await Promise.all([
    drover(['completion', 'bash']),
    drover(['completion', 'zsh']),
    drover(['completion', 'fish']),
    drover(['completion', 'tcsh']),
    drover(['complete', '--', 'get /chr/ins'], { env }),
    drover(['complete', '--', 'getA']),
    drover(['complete', '--', `--server ${address}/chroot ls /`], {
      env: { DROVER_SERVER: '127.0.0.1:1' },
    }),
  ]);

  expect(paths).toMatchObject({ code: 0, out: '/chroot/inside\t\n', err: '' });
  expect(commands.out).toMatch(/^getAcl\t.*\ngetAllChildrenNumber\t.*\n$/);
  expect(elsewhere.out).toBe('/inside\t\n');
  expect([bash.code, zsh.code, fish.code, tcsh.code]).toEqual([0, 0, 0, 2]);
  writeFileSync(join(folder, 'bash'), `${bash.out}\n`);
  const check = spawn(
    'bash',
    [
      '-c',
      `source ./bash; drover() { printf '%s\\n' "$@" >> asked; printf '/a b\\tabout\\n/*\\t\\n'; }
     COMP_LINE='drover get $(touch evil) /x' COMP_POINT=27; _drover; printf '<%s>' "\${COMPREPLY[@]}"; cat asked`,
    ],
    { cwd: folder },
  );
  let said = '';
  check.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await once(check, 'close');
  expect(said).toBe('</a b></*>complete\n--\nget $(touch evil) /x\n');
  expect(existsSync(join(folder, 'evil'))).toBe(false);
});
