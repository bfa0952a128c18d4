/**
 * The package as its users get it: built, installed under node_modules, loaded by `import` and by
 * `require`; and the README's first program, letter by letter.
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer } from '../src/testing/index.ts';

const root = resolve(import.meta.dirname, '..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.keys(exports).filter((entry) => entry !== './package.json');
let home: string;

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root });
  home = mkdtempSync(join(tmpdir(), 'drover-package-'));
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
