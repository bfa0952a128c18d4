/**
 * A Java program as a child process, which never outlives this one.
 *
 * In: what follows `java` on the command line. Out: a process id, a promise of its end, its output in a file.
 * A normal exit of this process kills it by a handler. A killed process runs no handlers, so a shell of
 * one line stands by: its standard input ends when we are gone, and then it kills the program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';

const stopTimeoutMs = 5_000;

const running = new Set<Jvm>();
process.on('exit', () => {
  for (const jvm of running) jvm.signal('SIGKILL');
});

export class Jvm {
  readonly pid: number;
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid!;
    const guard = standBy(this.pid);
    running.add(this);
    this.exited = once(child, 'exit').then(() => {
      running.delete(this);
      guard?.kill('SIGKILL');
    });
  }

  /** `outputPath` is appended to. */
  static async start(args: string[], outputPath: string): Promise<Jvm> {
    const output = openSync(outputPath, 'a');
    try {
      const child = spawn('java', args, { stdio: ['ignore', output, output] });
      await once(child, 'spawn');
      return new Jvm(child);
    } finally {
      closeSync(output);
    }
  }

  get isRunning(): boolean {
    return running.has(this);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited;
  }

  /** Lets the program shut down by itself, if it does so in time. */
  async stop(): Promise<void> {
    const impatience = setTimeout(() => this.signal('SIGKILL'), stopTimeoutMs);
    this.signal('SIGTERM');
    await this.exited;
    clearTimeout(impatience);
  }
}

function standBy(pid: number): ChildProcess | undefined {
  if (process.platform === 'win32') return undefined;
  const script = 'read -r _; kill -9 "$1"';
  const guard = spawn('sh', ['-c', script, 'sh', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // an interrupt from the terminal must not take it away before us
  });
  guard.on('error', () => {}); // no shell: the exit handler still does its part
  guard.unref();
  return guard;
}
