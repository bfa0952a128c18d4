import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';

/** A program that logs, and then says on standard output whether it kept little of it in memory. */
function logging(lines: number, stderr: number | 'pipe', more = ''): ChildProcess {
  const program = `
    import { openLog } from ${JSON.stringify(import.meta.resolve('./pino-log.ts'))};
    const logger = openLog('warn');
    const before = process.memoryUsage().rss;
    for (let i = 0; i < ${lines}; i += 1) logger.warn({ name: 'x'.repeat(10_000) }, 'line ' + i);
    setTimeout(() => {
      console.log(process.memoryUsage().rss - before < 150_000_000);
      ${more}
    }, 10);
  `;
  const node = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', program];
  return spawn(process.execPath, node, { stdio: ['ignore', 'pipe', stderr] });
}

test.runIf(existsSync('/dev/full'))(
  'a log on a full disk ends nobody, and keeps little',
  async () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const child = logging(20_000, full);
    const said = text(child.stdout!);

    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await said).toBe('true\n');
  },
);

test('a log that nobody reads holds up nobody, and keeps little', async () => {
  const child = logging(20_000, 'pipe');
  onTestFinished(() => void child.kill('SIGKILL'));

  expect(String(await once(child.stdout!, 'data'))).toBe('true\n');
});

test.runIf(existsSync('/proc/self/fd'))(
  'a log that nobody reads does not keep the process from its end',
  async () => {
    const child = logging(1_000, 'pipe', 'process.exit(7);');

    expect(await once(child, 'exit')).toEqual([7, null]);
  },
);

test('what was lost is told once the rest is taken', async () => {
  const child = logging(1_000, 'pipe', 'setInterval(() => {}, 1_000);');
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout!, 'data');

  let said = '';
  for await (const chunk of child.stderr!) {
    said += chunk;
    if (said.includes('are lost')) break;
  }

  const lines = said.match(/line \d+/g)!.length;
  const lost = Number(/"lines":(\d+)/.exec(said)![1]);
  expect(lines).toBeGreaterThan(50);
  expect(lines + lost).toBe(1_000);
});

test('what was logged right before the end is there', async () => {
  const child = logging(50, 'pipe');
  const [said] = await Promise.all([text(child.stderr!), once(child, 'exit')]);

  expect(said.match(/line \d+/g)).toEqual(Array.from({ length: 50 }, (_, i) => `line ${i}`));
});
