/**
 * Lines that a browser sends, run by the same table as everybody's, with less allowed.
 *
 * What may run is a list, and all else is refused: commands that talk to ZooKeeper alone. None that reads
 * or writes files here, runs a program, waits without end or goes to another server: whoever can open the
 * page may not do that to the machine it runs on. Output is caught, up to a limit, and each line has a
 * budget of nodes, bytes, matching and time (line-budget.ts).
 */

import { Writable } from 'node:stream';
import type { CommandView, ShellLine, ShellView } from '../console/index.ts';
import {
  type Command,
  type CommandTable,
  findCommand,
  type ShellControl,
  type Target,
} from './command.ts';
import { CommandError } from './exit-codes.ts';
import { consoleLineLimits, type LineLimits, usedUp } from './line-budget.ts';
import { longOf, nameOf, parse } from './parse.ts';
import { runCommand } from './run.ts';
import { CliSession } from './session.ts';
import { connectionOptions } from './target.ts';
import { tokens } from './tokens.ts';
import { escaped } from './words.ts';

/** By name; for some only these first arguments. */
const allowed: Readonly<Record<string, readonly string[] | true>> = {
  ...all('ls', 'ls2', 'get', 'stat', 'sync', 'getEphemerals', 'getAllChildrenNumber'),
  ...all('tree', 'find', 'grep', 'du', 'getAcl', 'listquota', 'whoami', 'whois'),
  ...all('create', 'set', 'delete', 'deleteall', 'txn', 'setAcl', 'setquota', 'delquota'),
  ...all('status', 'doctor', '4lw', 'help', 'version', 'pwd'),
  kafka: ['brokers', 'topics', 'topic', 'controller', 'groups', 'group', 'owners', 'doctor'],
};

function all(...names: string[]): Record<string, true> {
  return Object.fromEntries(names.map((name) => [name, true] as const));
}

export function consoleCommands(table: CommandTable): CommandView[] {
  return Object.keys(allowed).flatMap((name) => {
    const command = table[name];
    if (command === undefined) return [];
    const { usage, about, group, writes = false, options } = command;
    return [{ name, usage, about, group, writes, options: options.filter(isHarmless).map(shown) }];
  });
}

function shown({ flags, about }: { flags: string; about: string }) {
  return { flags, about };
}

function isHarmless({ value }: { readonly value?: unknown }): boolean {
  return value !== 'file';
}

type Ran = ShellView & { readonly writes: boolean };

export class ConsoleShell {
  readonly #commands: CommandTable;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #limits: LineLimits;
  readonly #sessions: { readonly viewer: CliSession; readonly editor: CliSession };

  constructor(
    commands: CommandTable,
    target: Target,
    environment: Readonly<Record<string, string | undefined>>,
    limits: LineLimits = consoleLineLimits,
  ) {
    this.#commands = commands;
    this.#limits = limits;
    // Nothing of ours: a line must not see what else this process was started with.
    this.#environment = { NO_COLOR: '1', TERM: environment.TERM };
    const session = (readOnly: boolean) =>
      new CliSession(async () => ({ ...target, readOnly }), { renew: true });
    this.#sessions = { viewer: session(true), editor: session(target.readOnly) };
  }

  async run(asked: ShellLine): Promise<Ran> {
    const out = new Caught(asked.outputBytesMax);
    const err = new Caught(asked.outputBytesMax);
    const [name = '', ...rest] = tokens(asked.line);
    const command = findCommand(this.#commands, name);
    const said = (code: number): Ran => ({
      code,
      out: out.text,
      err: err.text,
      isCut: out.isCut || err.isCut,
      writes: command?.writes === true && !asked.readOnly,
    });
    try {
      checkAllowed(command, name, rest);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      err.write(`drover: ${error.message}\n`);
      return { ...said(error.exitCode), writes: false };
    }
    const tooMuch = new AbortController();
    out.onCut = () => tooMuch.abort();
    const tooLate = new AbortController();
    const { timeMs } = this.#limits;
    const timer = setTimeout(() => tooLate.abort(usedUp(`${timeMs / 1_000} s`)), timeMs);
    const code = await runCommand(
      command!,
      rest,
      {
        commands: this.#commands,
        kind: 'console',
        limits: this.#limits,
        environment: this.#environment,
        streams: { stdout: out, stderr: err, environment: this.#environment },
        shell: placeOnly(asked.cwd),
        defaults: { json: asked.json },
        session: this.#sessions[asked.readOnly ? 'viewer' : 'editor'],
        input: async () => null,
      },
      AbortSignal.any([asked.signal, tooMuch.signal, tooLate.signal]),
    ).finally(() => clearTimeout(timer));
    return said(code);
  }

  async close(): Promise<void> {
    await Promise.all([this.#sessions.viewer.close(), this.#sessions.editor.close()]);
  }
}

function checkAllowed(command: Command | undefined, name: string, rest: readonly string[]): void {
  if (command === undefined) {
    throw new CommandError('usage', `there is no command ${escaped(name)}; help lists them`);
  }
  const actions = Object.hasOwn(allowed, nameOf(command)) ? allowed[nameOf(command)] : undefined;
  if (actions === undefined) {
    throw new CommandError(
      'refused',
      `${nameOf(command)} is not for the console; run drover ${nameOf(command)}`,
    );
  }
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(command, rest, { out() {}, err() {} });
  } catch {
    return; // the run says what is wrong with it, or shows the help
  }
  const [action = ''] = parsed.args;
  if (actions !== true && !actions.includes(action)) {
    throw new CommandError('refused', `here it is ${nameOf(command)} ${actions.join('|')}`);
  }
  const files = command.options.filter((option) => !isHarmless(option));
  for (const { flags } of [...connectionOptions, ...files]) {
    const key = camel(longOf(flags) ?? '');
    const value = parsed.options[key];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    throw new CommandError('refused', `--${key} is not for the console`);
  }
}

function camel(flag: string): string {
  return flag.replace(/^--/, '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Relative paths work; nothing else of a shell is there. */
function placeOnly(cwd: string): ShellControl {
  const refuse = async (): Promise<never> => {
    throw new CommandError('usage', 'that means something in drover shell alone');
  };
  return {
    cwd,
    previousCwd: cwd,
    printWatches: false,
    lines: [],
    run: refuse,
    reconnect: refuse,
    disconnect: refuse,
    quit() {},
    suspend: refuse,
  };
}

/** What is written, up to a limit; the rest is dropped, and said to be. */
class Caught extends Writable {
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  isCut = false;
  onCut: (() => void) | undefined;

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  override _write(chunk: Buffer, _: unknown, done: () => void): void {
    const room = this.#bytesMax - this.#bytes;
    if (chunk.length > room && !this.isCut) {
      this.isCut = true;
      this.onCut?.();
    }
    const taken = chunk.subarray(0, Math.max(0, room));
    this.#chunks.push(taken);
    this.#bytes += taken.length;
    done();
  }
}
