/**
 * Our server, started by a command as its users would, with its data in a folder that goes with it.
 *
 * `{port}` and `{dir}` in the command are filled in. The command takes the place of its shell, so
 * that the process that is measured is the server: `node …`, and not `npm …`, which starts another.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../test/peers/zookeeper.ts';
import { Program, root } from './programs.ts';

const startTimeoutMs = 30_000;
const stopTimeoutMs = 5_000;
const pollMs = 20;

export interface OwnServer {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

export async function startOwn(command: string): Promise<OwnServer> {
  const dir = mkdtempSync(join(tmpdir(), 'drover-bench-'));
  const port = await freePort();
  const filled = command.replaceAll('{port}', String(port)).replaceAll('{dir}', dir);
  const child = spawn('sh', ['-c', `exec ${filled}`], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    const impatience = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(impatience);
    rmSync(dir, { recursive: true, force: true });
  };
  const deadlineMs = performance.now() + startTimeoutMs;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      await stop();
      throw new Error(`no server answers on ${port} after: ${filled}`);
    }
    await delay(pollMs);
  }
  return { pid: child.pid!, port, stop };
}

async function answers(port: number): Promise<boolean> {
  try {
    const program = await Program.start('server-load', [String(port)]);
    await program.stop();
    return true;
  } catch {
    return false;
  }
}
