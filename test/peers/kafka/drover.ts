/**
 * `drover serve` with data on disk that can be killed and started again on the same port.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../zookeeper-server.ts';

const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));

export class Drover {
  readonly port: number;
  readonly address: string;
  readonly #dir = temporaryFolder();
  readonly #kill = () => this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;

  private constructor(port: number) {
    this.port = port;
    this.address = `127.0.0.1:${port}`;
    process.on('exit', this.#kill);
  }

  static async serve(): Promise<Drover> {
    const server = new Drover(await freePort());
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const data = join(this.#dir, 'data');
    const args = ['serve', '-p', String(this.port), '--json', '--data', data];
    const child = spawn(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), main, ...args, '--set', 'maxClientCnxns=0'],
      { cwd: this.#dir, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    this.#child = child;
    let said = '';
    child.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4_000);
    });
    const ended = once(child, 'exit');
    await new Promise<void>((resolve, reject) => {
      createInterface(child.stdout).on('line', (line) => {
        if ((JSON.parse(line) as { address?: string }).address !== undefined) resolve();
      });
      ended.then(() => reject(new Error(`drover serve ended: ${said}`)), reject);
    });
  }

  /** As kill -9 does. */
  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    process.off('exit', this.#kill);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
