/**
 * Runs the console of a server in a process of its own, and starts it again when it ends by itself.
 *
 * In: what the child starts with, and the answers that the server gives. Out: a running console. The child
 * has a bound on its heap. What uses it up ends the child alone; in a worker thread, one large allocation
 * would end the server too. A console that keeps ending stays off after a few tries, and says so.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { RunningConsole } from '../console/index.ts';
import { type Clock, systemClock } from '../support/index.ts';
import { type Context, consoleChildWord } from './command.ts';
import type { AskedBrokers } from './console-brokers.ts';
import type { Offered } from './console-contexts.ts';
import type { Folders } from './console-history.ts';
import type { Answers } from './console-server.ts';
import { CommandError, exitCodes } from './exit-codes.ts';

/** What the child is given: data alone. */
export interface ConsoleStart {
  readonly server: string;
  readonly port: number;
  readonly write: boolean;
  readonly environment: Context['environment'];
  readonly contexts: Offered | undefined;
  readonly brokers: AskedBrokers | undefined;
  readonly pageFolder: string | undefined;
  readonly metricsUrl: string | undefined;
  /** Where its logs are; undefined: it keeps none. */
  readonly folders: Folders | undefined;
  /** When the console was first started. */
  readonly startedMs: number;
}

export type FromChild =
  | { readonly kind: 'ready'; readonly facts: ConsoleFacts }
  | { readonly kind: 'failed'; readonly exitCode: number; readonly message: string }
  | { readonly kind: 'say'; readonly sentence: string }
  | {
      readonly kind: 'ask';
      readonly id: number;
      readonly what: keyof Answers;
      readonly given: readonly unknown[];
    };

export type ToChild =
  | { readonly kind: 'start'; readonly start: ConsoleStart }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly message: string }
  | { readonly kind: 'close' };

type ConsoleFacts = Pick<RunningConsole, 'url' | 'host' | 'port' | 'isPageBuilt'>;

export interface ProcessOptions {
  readonly start: ConsoleStart;
  readonly answers: Answers;
  readonly say: (sentence: string) => void;
  /** The heap of the child, in MB. @default 1024 */
  readonly heapMb?: number;
  /** What it runs. For tests. @default the command itself */
  readonly entry?: URL;
  readonly clock?: Clock;
  /** For tests. */
  readonly onStart?: (pid: number) => void;
}

const heapMbUsual = 1_024;
/** A console that ends by itself more often than this is not started again. */
const restartsMax = 3;
const restartsWithinMs = 10 * 60_000;
/** A child that does not end by then is killed: a page may keep it busy. */
const closeMs = 3_000;

export async function startConsoleProcess(options: ProcessOptions): Promise<RunningConsole> {
  const child = new ConsoleProcess(options);
  const facts = await child.begin(options.start.port);
  const close = () => child.close();
  return { ...facts, close, [Symbol.asyncDispose]: close };
}

class ConsoleProcess {
  readonly #options: ProcessOptions;
  readonly #clock: Clock;
  /** When it was started again. */
  #restartsMs: number[] = [];
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves once it listens. Before that nothing is started again: the error says why. */
  begin(port: number): Promise<ConsoleFacts> {
    const { start, heapMb = heapMbUsual } = this.#options;
    const isSource = import.meta.url.endsWith('.ts');
    const own = new URL(isSource ? './main.ts' : './drover.js', import.meta.url);
    const child = fork(fileURLToPath(this.#options.entry ?? own), [consoleChildWord], {
      execArgv: [`--max-old-space-size=${heapMb}`, ...(isSource ? ['--import', loader()] : [])],
      serialization: 'advanced', // session ids are bigints
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child = child;
    if (child.pid !== undefined) this.#options.onStart?.(child.pid);
    child.send({ kind: 'start', start: { ...start, port } } satisfies ToChild);
    return new Promise((resolve, reject) => {
      let facts: ConsoleFacts | undefined;
      let why: Error | undefined;
      // Of a stack, and of V8's report when the heap is used up, the line that names the error.
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        const [line] = /^.*(?:Error|ERROR|drover): .+$/m.exec(text) ?? [];
        if (line !== undefined) why ??= new Error(line);
      });
      child.on('message', (message: FromChild) => {
        if (message.kind === 'ready') {
          facts = message.facts;
          resolve(facts);
        } else if (message.kind === 'failed') why = errorOf(message);
        else if (message.kind === 'say') this.#options.say(message.sentence);
        else void this.#answer(child, message);
      });
      child.on('error', (error) => {
        why = error;
      });
      this.#exited = new Promise((done) => {
        child.on('close', (code, signal) => {
          done();
          const error = why ?? new Error(`it ended with ${signal ?? code}`);
          reject(error);
          if (facts !== undefined) this.#ended(facts.port, error);
        });
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const child = this.#child;
    if (child !== undefined) tell(child, { kind: 'close' });
    const late = this.#clock.after(closeMs, () => child?.kill('SIGKILL'));
    await this.#exited;
    late.cancel();
  }

  async #answer(child: ChildProcess, { id, what, given }: FromChild & { kind: 'ask' }) {
    const answer = this.#options.answers[what] as (...given: readonly unknown[]) => unknown;
    try {
      tell(child, { kind: 'answer', id, value: await answer(...given) });
    } catch (error) {
      tell(child, { kind: 'refusal', id, message: (error as Error).message });
    }
  }

  #ended(port: number, error: Error): void {
    if (this.#isClosing) return;
    const nowMs = this.#clock.nowMs();
    this.#restartsMs = this.#restartsMs.filter((atMs) => nowMs - atMs < restartsWithinMs);
    const what = `the console ended by itself: ${error.message}`;
    if (this.#restartsMs.length >= restartsMax) {
      this.#options.say(
        `${what}; that was too often, so it stays off until the server is restarted`,
      );
      return;
    }
    this.#restartsMs.push(nowMs);
    this.#options.say(`${what}; starting it again, the server is not affected`);
    this.begin(port).catch((failed: Error) => this.#ended(port, failed));
  }
}

/** What runs our sources in development. Found from here: the folder we were started in need not be ours. */
const loader = () => pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** A child that has just ended hears nothing more. */
function tell(child: ChildProcess, message: ToChild): void {
  if (child.connected) child.send(message, () => {});
}

function errorOf({ exitCode, message }: FromChild & { kind: 'failed' }): Error {
  const found = Object.entries(exitCodes).find(([, code]) => code === exitCode);
  const kind = found?.[0] as keyof typeof exitCodes | undefined;
  return kind === undefined ? new Error(message) : new CommandError(kind, message);
}
