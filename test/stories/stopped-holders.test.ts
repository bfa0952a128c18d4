/** What a process knows of all that it holds, when it was stopped for longer than its sessions live. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { kinds } from '../held-kinds.ts';
import type { Untold, Verdict } from '../held-process.ts';
import { startZk, type Zk } from '../zk.ts';

const sessionTimeoutMs = 4_000;

/** Stops the process (SIGSTOP) until the server has ended all its sessions. Returns what it prints then. */
async function stopped(zk: Zk, mode: string): Promise<unknown> {
  const witness = await zk.witness();
  await witness.create('/held');
  const program = fileURLToPath(new URL('../held-process.ts', import.meta.url));
  const args = ['--import', 'tsx', program, zk.directAddress, String(sessionTimeoutMs), mode];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'close');
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('ready');
    child.kill('SIGSTOP');
    await vi.waitFor(async () => expect(await witness.children('/held')).toEqual([]), 30_000);
    child.kill('SIGCONT');
    return JSON.parse((await lines.next()).value!);
  } finally {
    child.kill('SIGKILL');
    await exit;
  }
}

test.each(['synchronous', 'asynchronous'])(
  'in %s work every kept signal, and all else that says whether it is held, is right after a stop',
  { timeout: 120_000 },
  async (mode) => {
    await using zk = await startZk();

    const verdicts = (await stopped(zk, mode)) as Record<string, Verdict>;

    const right: Verdict = { effects: 0, stillHeld: [] };
    expect(verdicts).toEqual(Object.fromEntries(Object.keys(kinds).map((name) => [name, right])));
  },
);

test('what nobody asks is told within two turns of the event loop', {
  timeout: 120_000,
}, async () => {
  await using zk = await startZk();

  const told = (await stopped(zk, 'untold')) as Record<string, Untold>;

  expect(Object.keys(told)).toEqual(Object.keys(kinds));
  const turns = Object.values(told).flatMap(({ event, combined }) => [event.turns, combined.turns]);
  expect(Math.max(...turns)).toBeLessThanOrEqual(2);
});
