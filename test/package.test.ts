/**
 * The package as its users get it: built, installed under node_modules, loaded by `import` and by
 * `require`; and the README's first program, letter by letter.
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer } from '../src/testing/index.ts';

const root = resolve(import.meta.dirname, '..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.keys(exports).filter((entry) => entry !== './package.json');
let home: string;

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root });
  home = mkdtempSync(join(tmpdir(), 'drover-package-'));
  writeFileSync(join(home, 'package.json'), '{}'); // whatever stands above it is not asked
  mkdirSync(join(home, 'node_modules'));
  symlinkSync(root, join(home, 'node_modules', 'drover'));
}, 120_000);

afterAll(() => rmSync(home, { recursive: true, force: true }));

function node(file: string, text: string, env: Record<string, string> = {}) {
  writeFileSync(join(home, file), text);
  const options = { cwd: home, encoding: 'utf8', env: { ...process.env, ...env } } as const;
  // Links are not followed: as far as Node can see, the package is installed here.
  const flags = ['--preserve-symlinks', '--preserve-symlinks-main'];
  return spawnSync(process.execPath, [...flags, file], options);
}

test.each(entries)('%s loads by import and by require, and says nothing', (entry) => {
  const name = `drover${entry.slice(1)}`;

  const esm = node('a.mjs', `import * as m from '${name}'; console.log(Object.keys(m).length > 0)`);
  const cjs = node('b.cjs', `console.log(Object.keys(require('${name}')).length > 0)`);

  expect(esm).toMatchObject({ stdout: 'true\n', stderr: '', status: 0 });
  expect(cjs).toMatchObject({ stdout: 'true\n', stderr: '', status: 0 });
});

test("the README's first program prints what the README says", async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const program = /```js\n([\s\S]*?)```/.exec(readme)![1]!;
  const printed = /It prints:\n\n```\n([\s\S]*?)```/.exec(readme)![1]!;
  await using server = await startTestServer();
  const moved = program.replace('127.0.0.1:2181', `127.0.0.1:${server.port}`);

  const result = await runAsync(moved);

  expect(result).toEqual({ stdout: printed, stderr: '', status: 0 });
  expect(program.split('\n').length).toBeLessThan(21);
});

test("the README's lock and leader do what they say", async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const program = /## A lock, and a leader\n\n```js\n([\s\S]*?)```/.exec(readme)![1]!;
  await using server = await startTestServer();
  const stubs = `
    ${program.match(/^import .*/gm)!.join('\n')}
    const chargeCards = async ({ fence, signal }) => console.log(typeof fence, signal.aborted);
    const schedule = async ({ epoch, signal }) => {
      console.log(typeof epoch, signal.aborted);
      process.exit(0);
    };`;

  const moved = program.replace('127.0.0.1:2181', `127.0.0.1:${server.port}`);

  const result = await runAsync(stubs + moved.replace(/^import .*\n/gm, ''));

  expect(result).toEqual({ stdout: 'bigint false\nbigint false\n', stderr: '', status: 0 });
});

test('the command line is put together and runs', async () => {
  await using server = await startTestServer();
  const bin = join(root, 'dist/bin/drover.js');

  const result = await run([bin, 'ls', '/', '--server', `127.0.0.1:${server.port}`]);

  expect(result).toEqual({ stdout: 'zookeeper\n', stderr: '', status: 0 });
});

test('a quick command loads no more than it needs', async () => {
  await using server = await startTestServer();
  const witness = join(home, 'witness.cjs');
  writeFileSync(
    witness,
    `process.on('exit', () => {
      const builtin = process.moduleLoadList.map((name) => name.replace(/^NativeModule /, ''));
      const files = Object.keys(require.cache);
      require('node:fs').writeFileSync('loaded.json', JSON.stringify({ builtin, files }));
    });`,
  );
  const bin = join(root, 'dist/bin/drover.js');
  const args = ['ls', '/', '--server', `127.0.0.1:${server.port}`];

  const loadedBy = async (...command: string[]) => {
    const result = await run(['-r', witness, ...command]);
    return { result, ...JSON.parse(readFileSync(join(home, 'loaded.json'), 'utf8')) };
  };

  const { result, builtin, files } = await loadedBy(bin, ...args);

  expect(result).toEqual({ stdout: 'zookeeper\n', stderr: '', status: 0 });
  // What Node loads for a program of nothing is its own matter, and another in each version.
  const nothing = join(home, 'nothing.cjs');
  writeFileSync(nothing, '');
  const own = new Set((await loadedBy(nothing)).builtin);
  for (const name of ['tls', 'crypto', 'dns/promises', 'internal/modules/esm/translators']) {
    expect(builtin.filter((one: string) => !own.has(one))).not.toContain(name);
  }
  const names = files
    .map((file: string) => basename(file))
    .filter((name: string) => name !== 'witness.cjs');
  expect(names).toHaveLength(3); // drover.js, core.js and what joins modules
});

test('without what V8 compiled of it at the build, or with it broken, the command runs all the same', async () => {
  await using server = await startTestServer();
  const copy = installed('caches');
  const caches = ['core', 'server'].map((name) =>
    join(copy, `${name}-${process.versions.v8}.cache`),
  );
  const bin = join(copy, 'drover.js');
  const ls = [bin, 'ls', '/', '--server', `127.0.0.1:${server.port}`];

  for (const cache of caches) writeFileSync(cache, readFileSync(cache).subarray(0, 1_000));
  const broken = await run(ls);
  const servedBroken = await servedOnce(bin);
  for (const cache of caches) rmSync(cache);
  const without = await run(ls);
  const servedWithout = await servedOnce(bin);

  expect(broken).toEqual({ stdout: 'zookeeper\n', stderr: '', status: 0 });
  expect(without).toEqual(broken);
  expect([servedBroken, servedWithout]).toEqual(['imok', 'imok']);
});

test.each(['core', 'server'])('what V8 compiled of %s.js is taken, and not made again', (name) => {
  const bin = join(root, 'dist/bin');
  const program = `
    const { readFileSync } = require('node:fs');
    const { Script } = require('node:vm');
    const source = require('node:module').wrap(readFileSync(${JSON.stringify(join(bin, `${name}.js`))}, 'latin1'));
    const cachedData = readFileSync(${JSON.stringify(bin)} + '/${name}-' + process.versions.v8 + '.cache');
    console.log(new Script(source, { cachedData }).cachedDataRejected);`;

  expect(node('cache.cjs', program)).toMatchObject({ stdout: 'false\n', stderr: '', status: 0 });
});

test('a server whose log is gone before it was loaded says so and goes on', async () => {
  const copy = installed('no-log');
  for (const name of readdirSync(copy)) if (/^pino-log/.test(name)) rmSync(join(copy, name));

  await using serving = await served(join(copy, 'drover.js'));
  await serving.says(/nothing is logged until the next start/);

  expect(await ask(serving.port, 'ruok')).toBe('imok');
});

test('what is not needed by all is loaded by those who need it', async () => {
  await using server = await startTestServer();
  const bin = join(root, 'dist/bin/drover.js');

  const help = await run([bin, 'ls', '--help']);
  const columns = await run([bin, 'status', '--server', `127.0.0.1:${server.port}`]);
  const wrong = await run([bin, 'ls', '--nonsense']);
  const fuzzy = await run([bin, 'complete', '--', 'dlq']);

  expect(help).toMatchObject({ stderr: '', status: 0 });
  expect(help.stdout).toMatch(/^Usage: drover ls/);
  expect(help.stdout).toContain('host:port,…[/chroot]');
  expect(wrong).toMatchObject({ stdout: '', status: 2 });
  expect(columns.stdout).toMatch(/^SERVER +ROLE/);
  expect(fuzzy).toMatchObject({
    stdout: expect.stringMatching(/^delquota\t/),
    stderr: '',
    status: 0,
  });
});

test('every part of the command loads', () => {
  const parts = readdirSync(join(root, 'dist/bin')).filter((name) => /-.*\.js$/.test(name));
  const program = `
    process.argv = [process.argv[0], 'drover', 'version'];
    for (const part of ${JSON.stringify(parts)}) require(${JSON.stringify(join(root, 'dist/bin/'))} + part);`;

  const result = node('parts.cjs', program);

  expect(result).toMatchObject({ stderr: '', status: 0 });
  expect(result.stdout).toMatch(/^drover \d/);
  expect(parts.length).toBeGreaterThan(20);
});

test('a server goes on where its own program is taken away, as by an update', async () => {
  const copy = installed('going');
  await using serving = await served(join(copy, 'drover.js'));

  rmSync(resolve(copy, '../..'), { recursive: true });
  const said = await Promise.all(
    ['srvr', 'ruok', 'conf', 'srvr'].map((word) => ask(serving.port, word)),
  );

  expect(said[0]).toMatch(/^Zookeeper version: 3\.9\.5-drover-\d/);
  expect(said[1]).toBe('imok');
  expect(serving.child.exitCode).toBeNull();
  expect(await serving.stop()).toBe(0);
});

/** A copy of the command, with what it needs; its folder. */
function installed(name: string): string {
  const copy = join(home, name);
  cpSync(join(root, 'dist/bin'), join(copy, 'dist/bin'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return join(copy, 'dist/bin');
}

/** A server in memory, as built. */
async function served(bin: string) {
  const args = [bin, 'serve', '--in-memory', '--port', '0', '--words', '*', '--json'];
  const child = spawn(process.execPath, args);
  const ended = once(child, 'close');
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  const [line] = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), ended]);
  if (typeof line !== 'string') throw new Error(`ended early: ${err}`);
  const stop = async () => {
    child.kill('SIGTERM');
    return (await ended)[0];
  };
  return {
    child,
    port: Number(/"address":"[^"]*:(\d+)"/.exec(line)?.[1]),
    async says(pattern: RegExp) {
      while (!pattern.test(err)) await once(child.stderr, 'data');
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}

async function servedOnce(bin: string): Promise<string> {
  await using serving = await served(bin);
  return await ask(serving.port, 'ruok');
}

async function ask(port: number, word: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(word);
  let said = '';
  for await (const chunk of socket) said += chunk;
  return said;
}

/** The server stands in this process, so the program must not block it. */
function runAsync(text: string) {
  writeFileSync(join(home, 'first.mjs'), text);
  return run(['--preserve-symlinks', '--preserve-symlinks-main', 'first.mjs']);
}

async function run(args: readonly string[]) {
  const child = spawn(process.execPath, args, { cwd: home });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const status = await new Promise((done) => child.on('close', done));
  return { stdout, stderr, status };
}
