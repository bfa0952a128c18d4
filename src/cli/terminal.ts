/**
 * `drover shell`: a prompt where there is a terminal, else the lines of a script.
 *
 * The prompt is Node's own line editor: history on disk, Ctrl-R searches it, Tab completes. Lines that
 * are pasted together run one after the other. Ctrl-C stops the line that runs, or clears the one that is
 * typed; Ctrl-D leaves. Lines that hold a password (addauth, --auth) are never written to the history.
 *
 * A script goes on after a line that failed, as zkCli's does, and ends with the code of the last one;
 * it ends at once where no server can be reached, or after --stop-on-error.
 */

import { open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { clearScreenDown, createInterface, cursorTo, moveCursor } from 'node:readline';
import type { REPLServer } from 'node:repl';
import { refuseSpecialFile } from '../support/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';
import { escaped } from './output.ts';
import { explain } from './run.ts';
import { holdsSecret } from './secret-lines.ts';
import { Shell } from './shell.ts';

export async function shell(
  context: Context,
  [file]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { c: lines, stopOnError, ...defaults } = options;
  const isStopping = stopOnError === true;
  if (lines !== undefined)
    return runScript(context, lines as readonly string[], defaults, isStopping);
  if (file !== undefined) return runScript(context, linesOf(file), defaults, isStopping);
  if (!process.stdin.isTTY) {
    const input = createInterface({ input: process.stdin, terminal: false });
    return runScript(context, input, defaults, isStopping);
  }
  return new Terminal(context, defaults).run();
}

// ── a script ──────────────────────────────────────────────────────────────────────────────────────

async function* linesOf(file: string): AsyncGenerator<string> {
  const opening = refuseSpecialFile(file).then(() => open(file));
  const handle = await opening.catch((cause: NodeJS.ErrnoException) => {
    throw new CommandError('usage', `${escaped(file)} can't be read (${cause.code})`, { cause });
  });
  try {
    for await (const line of handle.readLines()) yield line;
  } finally {
    await handle.close();
  }
}

async function runScript(
  context: Context,
  lines: Iterable<string> | AsyncIterable<string>,
  defaults: OptionValues,
  isStopping: boolean,
): Promise<number> {
  const { commands, environment, output } = context;
  const { stdout, stderr } = process;
  const streams = { stdout, stderr, environment };
  const shell = new Shell({ kind: 'script', commands, environment, streams, defaults });
  let isInterrupted = false;
  const interrupt = () => {
    if (isInterrupted) process.exit(exitCodes.interrupted);
    isInterrupted = true;
    shell.interrupt();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  let code: number = exitCodes.ok;
  try {
    for await (const line of lines) {
      if (isInterrupted) return exitCodes.interrupted;
      code = await shell.execute(line);
      if (code === exitCodes.unreachable && (await shell.session.opened()) === null) {
        output.tell('the rest of the script was not run');
        return code;
      }
      if (shell.isOver || (isStopping && code !== exitCodes.ok)) return code;
    }
    return isInterrupted ? exitCodes.interrupted : code;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
    await shell.close();
  }
}

// ── a prompt ──────────────────────────────────────────────────────────────────────────────────────

const historyLinesMax = 1_000;

class Terminal {
  readonly #context: Context;
  readonly #shell: Shell;
  #repl: REPLServer | undefined;
  /** The line that runs, and those that were typed or pasted behind it. */
  #work: Promise<void> = Promise.resolve();

  constructor(context: Context, defaults: OptionValues) {
    this.#context = context;
    const { commands, environment } = context;
    const { stdout, stderr } = process;
    this.#shell = new Shell({
      kind: 'shell',
      commands,
      environment,
      streams: { stdout, stderr, environment, prefix: '' },
      defaults,
      ask: (question, signal) => this.#ask(question, signal),
      aside: (print) => this.#aside(print),
      suspend: (work) => this.#suspend(work),
    });
  }

  async run(): Promise<number> {
    const { start } = await import('node:repl');
    await this.#greet();
    const history = await this.#historyFile();
    const repl = start({
      ...{ historySize: historyLinesMax }, // as readline has it; missing in its types
      prompt: await this.#shell.prompt(),
      terminal: true,
      preview: false,
      ignoreUndefined: true,
      writer: () => '',
      eval: (line, _context, _file, done) => this.#evaluate(line, () => done(null, undefined)),
      completer: (line: string, done: (error: null, found: [string[], string]) => void) =>
        void this.#complete(line).then((found) => done(null, found)),
    });
    this.#repl = repl;
    for (const name of Object.keys(repl.commands))
      delete (repl.commands as Record<string, unknown>)[name];
    repl.removeAllListeners('SIGINT');
    repl.on('SIGINT', () => this.#interrupted());
    // The editor's own hook for what must not be kept.
    repl.on('history', (lines: string[]) => {
      for (let i = lines.length - 1; i >= 0; i--) if (holdsSecret(lines[i]!)) lines.splice(i, 1);
    });
    if (history !== null) {
      repl.setupHistory(history, (error) => {
        if (error) this.#context.output.tell(`no history: ${error.message}`);
      });
    }
    const terminate = () => repl.close();
    process.on('SIGTERM', terminate);
    await new Promise<void>((resolve) => repl.once('exit', () => resolve()));
    process.off('SIGTERM', terminate);
    this.#repl = undefined; // another prompt, for the line that runs, would open the terminal again
    this.#shell.interrupt();
    await this.#work;
    await this.#shell.close();
    return exitCodes.ok;
  }

  async #greet(): Promise<void> {
    const { output, signal } = this.#context;
    try {
      const client = await this.#shell.session.client(signal);
      output.tell(`connected to ${client.server ?? 'a server'}; help lists commands, quit leaves`);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      output.tell(`${escaped(error.message)}; connect tries again`);
    }
    await output.drained();
  }

  #evaluate(line: string, done: () => void): void {
    this.#work = this.#work.then(async () => {
      try {
        if (!this.#shell.isOver) await this.#shell.execute(line.replace(/\n$/, ''));
      } catch (error) {
        // A bug of ours ends the line and not the shell.
        explain(error, this.#context.output);
      }
      const prompt = await this.#shell.prompt();
      if (this.#shell.isOver) this.#repl?.close();
      else if (this.#repl !== undefined) {
        this.#repl.setPrompt(prompt);
        done();
      }
    });
  }

  #interrupted(): void {
    if (this.#shell.isBusy) {
      this.#shell.interrupt();
      return;
    }
    const repl = this.#repl!;
    process.stdout.write('\n');
    // What was typed is gone, as in any shell.
    Object.assign(repl, { line: '', cursor: 0 });
    repl.prompt();
  }

  #ask(question: string, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      this.#repl!.question(question, { signal }, resolve);
    });
  }

  /** What comes while somebody types stands above what they type. */
  #aside(print: () => void): void {
    const repl = this.#repl;
    if (repl === undefined || this.#shell.isBusy) {
      print();
      return;
    }
    const { stdout } = process;
    moveCursor(stdout, 0, -repl.getCursorPos().rows);
    cursorTo(stdout, 0);
    clearScreenDown(stdout);
    print();
    // Else the editor goes up as many rows as the line took before, over what was printed.
    Object.assign(repl, { prevRows: 0 });
    repl.prompt(true);
  }

  async #suspend<T>(work: () => Promise<T>): Promise<T> {
    const repl = this.#repl!;
    repl.pause();
    process.stdin.setRawMode(false);
    try {
      return await work();
    } finally {
      if (this.#repl !== undefined) {
        process.stdin.setRawMode(true);
        repl.resume();
      }
    }
  }

  async #complete(line: string): Promise<[string[], string]> {
    const { complete } = await import('./completion.ts');
    const { commands, environment } = this.#context;
    const { candidates, word } = await complete(line, {
      commands,
      cwd: this.#shell.cwd,
      client: () => this.#shell.session.opened(),
      contexts: async () => (await import('./contexts.ts')).contextNames(environment),
    });
    const values = candidates.map(({ value }) => value);
    // A command that is complete is followed by a space.
    const isCommand = values.length === 1 && line.trimStart() === word;
    return [isCommand ? [`${values[0]} `] : values, word];
  }

  /** Null where none is kept, and where its folder can't be made. */
  async #historyFile(): Promise<string | null> {
    const { environment, output } = this.#context;
    const file = historyFile(environment);
    if (file === null) return null;
    try {
      await makeFolders(dirname(file), 0o700);
      return file;
    } catch (error) {
      output.tell(`no history: ${(error as Error).message}`);
      await output.drained();
      return null;
    }
  }
}

/** DROVER_HISTORY names it; empty, there is none. */
export function historyFile(environment: Context['environment']): string | null {
  const { DROVER_HISTORY, XDG_STATE_HOME, HOME } = environment;
  if (DROVER_HISTORY !== undefined) return DROVER_HISTORY === '' ? null : DROVER_HISTORY;
  const state = XDG_STATE_HOME || join(HOME || homedir(), '.local', 'state');
  return join(state, 'drover', 'history');
}
