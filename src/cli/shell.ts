/**
 * A shell without its terminal: lines in, exit codes out, one session and one place in the tree that all
 * lines share. A person at a prompt, a script on standard input and tests drive the same one.
 *
 * Lines run one after the other. History is numbered from 0, as zkCli numbers it.
 */

import type { WatchEvent } from '../client/index.ts';
import {
  type CommandTable,
  findCommand,
  type OptionValues,
  type ShellControl,
  type Target,
} from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { journalFile } from './journal-file.ts';
import { escaped, Output, type OutputStreams } from './output.ts';
import { refuseName, runCommand, type Surface } from './run.ts';
import { CliSession } from './session.ts';
import { targetOf } from './target.ts';
import { tokens } from './tokens.ts';
import { isChange, printEvent } from './watch-events.ts';

export interface ShellOptions {
  readonly commands: CommandTable;
  readonly kind: 'shell' | 'script';
  readonly environment: Surface['environment'];
  readonly streams: OutputStreams;
  /** The connection options and --json that `drover shell` was given. */
  readonly defaults: OptionValues;
  readonly ask?: Surface['ask'];
  readonly input?: Surface['input'];
  /** Called around what is printed while a prompt may stand there. */
  readonly aside?: (print: () => void) => void;
  readonly suspend?: ShellControl['suspend'];
}

/** Lines that `history` and `redo` can reach. Their numbers go on. */
const linesMax = 10_000;

export class Shell implements ShellControl {
  cwd = '/';
  previousCwd = '/';
  printWatches = true;
  readonly lines: string[] = [];
  readonly session: CliSession;
  readonly #options: ShellOptions;
  readonly #surface: Surface;
  #isOver = false;
  #current: AbortController | undefined;

  constructor(options: ShellOptions) {
    this.#options = options;
    const { commands, environment, defaults, kind, streams } = options;
    this.session = new CliSession(() => targetOf(defaults, environment), {
      renew: true,
      onChange: (sentence) => this.#print((output) => output.tell(sentence)),
      areWritesNoted: journalFile(environment) !== null,
    });
    this.#surface = {
      commands,
      kind,
      environment,
      streams,
      defaults,
      shell: this,
      session: this.session,
      ask: options.ask,
      input: options.input ?? (async () => null),
      onEvent: (event) => this.#heard(event),
    };
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  /** Stops the line that runs now. */
  interrupt(): void {
    this.#current?.abort();
  }

  /** Runs a line of its own; empty lines and comments are nothing. */
  async execute(line: string): Promise<number> {
    if (line.trim() === '' || line.trimStart().startsWith('#')) return exitCodes.ok;
    this.lines.push(line);
    if (this.lines.length > linesMax) delete this.lines[this.lines.length - linesMax - 1];
    const controller = new AbortController();
    this.#current = controller;
    try {
      return await this.run(line);
    } finally {
      this.#current = undefined;
    }
  }

  /** As `execute`, within the line that runs now: for `redo`. */
  async run(line: string): Promise<number> {
    const [name = '', ...rest] = tokens(line);
    const { commands } = this.#options;
    const command = findCommand(commands, name);
    if (command === undefined) return refuseName(name, [], rest, this.#surface);
    const signal = this.#current?.signal ?? new AbortController().signal;
    return runCommand(command, rest, this.#surface, signal);
  }

  async reconnect(servers?: string): Promise<void> {
    const target = servers === undefined ? undefined : await this.#targetAt(servers);
    await this.session.reconnect(this.#current?.signal ?? new AbortController().signal, target);
  }

  /** As with --server: a place that is named is shown no context's credentials. Read-only stays so. */
  async #targetAt(servers: string): Promise<Target> {
    const { defaults, environment } = this.#options;
    const { context: _, ...rest } = defaults;
    const target = await targetOf({ ...rest, server: servers }, environment);
    const before = await this.session.target().catch(() => null);
    const readOnly = target.readOnly || before?.readOnly === true;
    return { ...target, origin: 'connect', readOnly };
  }

  disconnect(): Promise<void> {
    return this.session.disconnect();
  }

  quit(): void {
    this.#isOver = true;
  }

  suspend<T>(work: () => Promise<T>): Promise<T> {
    return this.#options.suspend === undefined ? work() : this.#options.suspend(work);
  }

  /** `(prod, read-only) /kafka> `, and what the session is in where it is not connected. */
  async prompt(): Promise<string> {
    const client = await this.session.opened();
    const target = await this.session.target().catch(() => null);
    const name = /^context (.*)$/.exec(target?.origin ?? '')?.[1] ?? target?.servers ?? '?';
    const state = client === null ? 'not connected' : client.state.name;
    const said = [name];
    if (target?.readOnly) said.push('read-only');
    if (state !== 'connected') said.push(state);
    return `(${said.join(', ')}) ${escaped(this.cwd)}> `;
  }

  async close(): Promise<void> {
    await this.session.close();
  }

  #heard(event: WatchEvent): void {
    if (this.printWatches && isChange(event)) this.#print((output) => printEvent(output, event));
  }

  #print(work: (output: Output) => void): void {
    const print = () => {
      const output = new Output(this.#options.defaults, this.#surface.streams);
      work(output);
      void output.end();
    };
    if (this.#options.aside === undefined) print();
    else this.#options.aside(print);
  }
}
