import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { runChild } from './child.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-child-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const never = new AbortController().signal;
const base = { held: never, signal: never, environment: process.env, graceMs: 100 };
const pidOf = (name: string) => {
  const file = join(dir, name);
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
};
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('how a program ends is said as a shell says it', async () => {
  expect(await runChild(['sh', '-c', 'exit 3'], base)).toEqual({ code: 3, stopped: undefined });
  expect(await runChild(['sh', '-c', 'kill -9 $$'], base)).toEqual({
    code: 137,
    stopped: undefined,
  });
});

test('a program is not begun under something that is lost already', async () => {
  const lost = AbortSignal.abort();
  const file = join(dir, 'ran');

  const { stopped } = await runChild(['touch', file], { ...base, held: lost });

  expect(stopped).toBe('inDoubt');
  expect(existsSync(file)).toBe(false);
});

test('one that does not heed SIGTERM is killed when the grace is over', async () => {
  const held = new AbortController();
  const script = `trap '' TERM; echo $$ > ${join(dir, 'pid')}; while :; do sleep 0.05; done`;

  const ended = runChild(['sh', '-c', script], { ...base, held: held.signal });
  await expect.poll(() => pidOf('pid'), { timeout: 10_000 }).toBeGreaterThan(0);
  held.abort();

  expect(await ended).toEqual({ code: 137, stopped: 'inDoubt' });
});

test('Ctrl-Z does not stop us under a program that would go on', async () => {
  const script = `import { runChild } from ${JSON.stringify(join(import.meta.dirname, 'child.ts'))};
    const never = new AbortController().signal;
    const script = 'echo begun; read line; exit 5';
    const given = { held: never, signal: never, environment: process.env, graceMs: 100 };
    const { code } = await runChild(['sh', '-c', script], given);
    process.exit(code + process.listenerCount('SIGTSTP'));`;
  const parent = spawn(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void parent.kill('SIGKILL'));
  await once(parent.stdout, 'data');

  parent.kill('SIGTSTP');
  const ended = once(parent, 'exit');
  parent.stdin.end('go on\n');

  expect(await ended).toEqual([5, null]);
});

test('nothing of it outlives us, also when we are killed', async () => {
  const script = `import { writeFileSync } from 'node:fs';
    import { runChild } from ${JSON.stringify(new URL('./child.ts', import.meta.url).href)};
    const never = new AbortController().signal;
    const ended = runChild(['sh', '-c', 'echo $$ > ${join(dir, 'pid')}; exec sleep 1000'], { held: never, signal: never, environment: process.env, graceMs: 100 });
    writeFileSync('${join(dir, 'started')}', '1');
    await ended;`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const us = spawn(process.execPath, args, {
    stdio: 'ignore',
    cwd: new URL('../..', import.meta.url),
  });

  // Both, since a busy machine may run the program before our own next line.
  await expect
    .poll(() => Math.min(pidOf('pid'), pidOf('started')), { timeout: 15_000 })
    .toBeGreaterThan(0);
  const wasAlive = alive(pidOf('pid'));
  us.kill('SIGKILL');

  expect(wasAlive).toBe(true);
  await expect.poll(() => alive(pidOf('pid')), { timeout: 10_000 }).toBe(false);
});
