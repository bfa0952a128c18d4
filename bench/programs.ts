/**
 * Starts the programs of a bench, each in a process of its own under plain node, and talks to them.
 *
 * They are TypeScript, and Node 20 runs none: they are compiled first, into a folder that git ignores.
 * A program ends when it is told to or when its bench is gone.
 */

import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Result, Said, Task } from './programs/messages.ts';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const store = fileURLToPath(new URL('../.peers/bench/', import.meta.url));

const startTimeoutMs = 30_000;
/** Beyond the time that the task itself takes: with a slow server preparing takes a while. */
const answerTimeoutMs = 120_000;

export type ProgramName = 'client-load' | 'fast-server' | 'server-load';

export function compilePrograms(): void {
  const { status, stdout } = spawnSync(
    process.execPath,
    [`${root}node_modules/typescript/bin/tsc`, '-p', `${root}bench/tsconfig.json`],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`the programs of the bench do not compile:\n${stdout}`);
}

export class Program {
  readonly ready: Readonly<Record<string, string | number>>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ready: Program['ready']) {
    this.#child = child;
    this.ready = ready;
  }

  /** Rejects with what the program says is wrong. */
  static async start(name: ProgramName, args: readonly string[]): Promise<Program> {
    const child = fork(`${store}js/bench/programs/${name}.js`, args, {
      execArgv: [],
      // The native client logs to stderr; what is wrong with a program comes over the channel.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    try {
      const said = await heard(child, startTimeoutMs);
      if (!('ready' in said)) throw new Error('it answered before it was asked');
      return new Program(child, said.ready);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async run(task: Task): Promise<Result | null> {
    let taskMs = 0;
    if (task.name === 'load') taskMs = (task.warmSeconds + task.seconds) * 1e3;
    else if (task.name === 'fill') taskMs = task.count;
    this.#child.send(task);
    const said = await heard(this.#child, taskMs + answerTimeoutMs);
    return 'result' in said ? said.result : null;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

function heard(child: ChildProcess, timeoutMs: number): Promise<Said> {
  return new Promise((resolve, reject) => {
    const settle = (work: () => void) => {
      clearTimeout(timer);
      child.off('message', said).off('exit', ended);
      work();
    };
    const said = (message: unknown) =>
      settle(() => {
        const { failed } = message as { failed?: string };
        if (failed === undefined) resolve(message as Said);
        else reject(new Error(failed));
      });
    const ended = () => settle(() => reject(new Error('it ended without a word')));
    const late = () => settle(() => reject(new Error(`no word from it in ${timeoutMs} ms`)));
    const timer = setTimeout(late, timeoutMs);
    child.on('message', said).on('exit', ended);
  });
}
