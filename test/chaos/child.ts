/** Servers as child processes: built once, started and killed as often as a test likes. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ServerOptions } from '../../src/server/index.ts';

const readyMaxMs = 60_000;

/** What can be said in JSON. */
export type ChildOptions = Pick<
  ServerOptions,
  | 'dataDir'
  | 'tickTimeMs'
  | 'port'
  | 'minSessionTimeoutMs'
  | 'maxSessionTimeoutMs'
  | 'snapCount'
  | 'preallocBytes'
  | 'snapshotCompression'
  | 'autopurge'
  | 'limits'
>;

export class Build implements Disposable {
  readonly folder: string;
  readonly program: string;

  /** Compiles the server as it stands, so that starting one costs Node's own start and little more. */
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'drover-chaos-build-'));
    const require = createRequire(import.meta.url);
    const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc');
    const config = join(import.meta.dirname, 'tsconfig.json');
    const args = [tsc, '-p', config, '--outDir', this.folder];
    try {
      execFileSync(process.execPath, args, { encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      // It emits all the same where types are wrong; `npm run check` is who tells of those.
      if ((error as { status?: number }).status === null) throw error;
    }
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    this.program = join(this.folder, 'test/chaos/server.js');
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Child {
  readonly process: ChildProcess;
  /** Its port once it is ready; null if it ended before. */
  readonly ready: Promise<number | null>;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  errors = '';

  constructor(build: Build, options: ChildOptions) {
    const child = spawn(process.execPath, [build.program, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process = child;
    this.ended = new Promise((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (this.errors.length < 10_000) this.errors += chunk;
    });
    const impatience = setTimeout(() => child.kill('SIGKILL'), readyMaxMs);
    this.ready = new Promise((resolve) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk;
        const port = /^ready (\d+)\n/.exec(text)?.[1];
        if (port !== undefined) resolve(Number(port));
      });
      void this.ended.then(() => resolve(null));
    });
    void this.ready.then(() => clearTimeout(impatience));
  }

  /** Ready, or an error with what it said. */
  async port(): Promise<number> {
    const port = await this.ready;
    if (port === null) throw new Error(`the server did not start: ${this.errors}`);
    return port;
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.process.kill(signal);
    await this.ended;
  }
}

export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `drover-chaos-${name}-`));
}
