/** `drover serve` as a person starts it: a process of its own, with data on disk, gone after the test. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface DroverServer {
  /** As clients write it: `127.0.0.1:<port>`. */
  readonly address: string;
  readonly pid: number;
  [Symbol.asyncDispose](): Promise<void>;
}

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

export async function startDroverServe(
  settings: Record<string, string> = {},
): Promise<DroverServer> {
  const dir = mkdtempSync(join(tmpdir(), 'drover-serve-'));
  const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const args = ['serve', '-p', '0', '--json', '--data', join(dir, 'data'), ...sets];
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main, ...args], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  let said = '';
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-4_000);
  });
  const ended = once(child, 'exit');
  const address = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const { address } = JSON.parse(line) as { address?: string };
      if (address !== undefined) resolve(address);
    });
    ended.then(() => reject(new Error(`drover serve ended: ${said}`)), reject);
  });
  return {
    address,
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      process.off('exit', kill);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
