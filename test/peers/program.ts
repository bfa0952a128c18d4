/**
 * Runs a peer's program to its end, with everything that it starts in a group of its own, so that nothing
 * of it outlives us, however it or we end.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Ended {
  /** Null: it did not start, or was ended, as for want of time. */
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

const outputCharsMax = 4_000_000;
const errorCharsMax = 200_000;

export async function runProgram(
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  timeoutMs: number,
  cwd?: string,
): Promise<Ended> {
  const child = spawn(command, args, {
    env: { ...process.env, ...environment },
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Apart from one another: what a server prints may come in the middle of a line.
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output = (output + chunk).slice(-outputCharsMax);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk).slice(-errorCharsMax);
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It is gone already.
    }
  };
  const impatience = setTimeout(end, Math.max(1, timeoutMs));
  process.once('exit', end);
  const closed = once(child, 'close');
  closed.catch(() => {}); // one that did not start says so by `exit`, too
  try {
    const [status] = await once(child, 'exit');
    end(); // what it left behind may hold its output open
    await closed;
    return { status: status as number | null, output, errors };
  } catch (error) {
    return { status: null, output, errors: errors + String(error) };
  } finally {
    clearTimeout(impatience);
    process.off('exit', end);
    end();
  }
}
