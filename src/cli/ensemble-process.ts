/**
 * A server that runs on after us, and is found again: a Java program, detached, with a pid file.
 *
 *   zookeeper.pid    {"pid":4711,"mark":"5f0c…"}
 *
 * A number alone says nothing once the process is gone: the next one may be anybody's. So each JVM is
 * started with `-Ddrover.mark=<random>` and a process is ours only while its command line has that
 * mark. Nothing else is ever signalled.
 */

import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

interface PidFile {
  readonly pid: number;
  readonly mark: string;
}

const pollMs = 50;
/** As long as a server needs to let go of its files. */
const stopTimeoutMs = 10_000;
const killTimeoutMs = 10_000;

export class ServerProcess {
  readonly #folder: string;

  /** `folder` has the pid file and what the server prints: `zookeeper.pid` and `zookeeper.out`. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  get outputPath(): string {
    return join(this.#folder, 'zookeeper.out');
  }

  get #pidPath(): string {
    return join(this.#folder, 'zookeeper.pid');
  }

  /** Its process id while it runs. */
  async pid(): Promise<number | undefined> {
    const file = await this.#read();
    return file !== undefined && (await isOurs(file)) ? file.pid : undefined;
  }

  async start(java: string, args: readonly string[]): Promise<number> {
    const mark = randomBytes(16).toString('hex');
    const output = openSync(this.outputPath, 'a', 0o600);
    try {
      const child = spawn(java, [`-Ddrover.mark=${mark}`, ...args], {
        stdio: ['ignore', output, output],
        detached: true, // neither a Ctrl-C nor the end of our terminal is meant for it
        cwd: this.#folder,
      });
      await once(child, 'spawn');
      const pid = child.pid!;
      try {
        const temporary = `${this.#pidPath}.new`;
        await writeFile(temporary, JSON.stringify({ pid, mark } satisfies PidFile), {
          mode: 0o600,
        });
        await rename(temporary, this.#pidPath);
      } catch (error) {
        child.kill('SIGKILL'); // who can't be found again must not run on
        throw error;
      }
      child.unref();
      return pid;
    } finally {
      closeSync(output);
    }
  }

  /** Lets it shut down by itself, if it does so in time. False: there was none. */
  async stop(): Promise<boolean> {
    const file = await this.#running();
    if (file === undefined) return false;
    signal(file.pid, 'SIGTERM');
    if (!(await hasEnded(file, stopTimeoutMs))) return this.kill();
    await rm(this.#pidPath, { force: true });
    return true;
  }

  /** Ends it outright, as a power cut would. False: there was none. */
  async kill(): Promise<boolean> {
    const file = await this.#running();
    if (file === undefined) return false;
    signal(file.pid, 'SIGKILL');
    if (!(await hasEnded(file, killTimeoutMs))) {
      throw new Error(`process ${file.pid} does not end, although it was killed`);
    }
    await rm(this.#pidPath, { force: true });
    return true;
  }

  /** The last of what it printed. */
  async output(bytesMax = 4_000): Promise<string> {
    const bytes = await readFile(this.outputPath).catch(() => Buffer.alloc(0));
    return bytes.subarray(-bytesMax).toString();
  }

  async #running(): Promise<PidFile | undefined> {
    const file = await this.#read();
    if (file === undefined) return undefined;
    if (await isOurs(file)) return file;
    await rm(this.#pidPath, { force: true });
    return undefined;
  }

  async #read(): Promise<PidFile | undefined> {
    const text = await readFile(this.#pidPath, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    try {
      const { pid, mark } = JSON.parse(text) as PidFile;
      const isRight = Number.isInteger(pid) && pid > 1 && /^[0-9a-f]{32}$/.test(mark);
      if (isRight) return { pid, mark };
    } catch {
      // as below
    }
    throw new Error(`${this.#pidPath} is no pid file of drover's; look at it, and remove it`);
  }
}

async function hasEnded(file: PidFile, timeoutMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs;
  while (await isOurs(file)) {
    if (performance.now() > deadlineMs) return false;
    await delay(pollMs);
  }
  return true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function isOurs({ pid, mark }: PidFile): Promise<boolean> {
  return (await commandLine(pid)).includes(`-Ddrover.mark=${mark}`);
}

/** Empty when there is no such process, or it has ended and only waits to be looked at. */
async function commandLine(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  }
  try {
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', `${pid}`]);
    return stdout;
  } catch {
    return '';
  }
}
