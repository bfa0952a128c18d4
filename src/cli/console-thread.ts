/**
 * Runs the console of a server in a worker thread, and starts it again when it ends by itself.
 *
 * In: what the worker starts with, and the answers that the server's thread gives. Out: a running console.
 * The worker has a bound on its heap: what uses it up ends the worker, and never the server. A console that
 * keeps ending stays off after a few tries, and says so.
 */

import { Worker } from 'node:worker_threads';
import type { RunningConsole } from '../console/index.ts';
import { type Clock, systemClock } from '../support/index.ts';
import { type Context, consoleWorkerWord } from './command.ts';
import type { Offered } from './console-contexts.ts';
import type { Folders } from './console-history.ts';
import type { Answers } from './console-server.ts';
import { CommandError, exitCodes } from './exit-codes.ts';

/** What the worker is given: data alone. */
export interface ConsoleStart {
  readonly server: string;
  readonly port: number;
  readonly write: boolean;
  readonly environment: Context['environment'];
  readonly contexts: Offered | undefined;
  readonly pageFolder: string | undefined;
  readonly metricsUrl: string | undefined;
  /** Where its logs are; undefined: it keeps none. */
  readonly folders: Folders | undefined;
  /** When the console was first started. */
  readonly startedMs: number;
}

export type FromWorker =
  | { readonly kind: 'ready'; readonly facts: ConsoleFacts }
  | { readonly kind: 'failed'; readonly exitCode: number; readonly message: string }
  | { readonly kind: 'say'; readonly sentence: string }
  | {
      readonly kind: 'ask';
      readonly id: number;
      readonly what: keyof Answers;
      readonly given: readonly unknown[];
    };

export type ToWorker =
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly message: string }
  | { readonly kind: 'close' };

type ConsoleFacts = Pick<RunningConsole, 'url' | 'host' | 'port' | 'isPageBuilt'>;

export interface ThreadOptions {
  readonly start: ConsoleStart;
  readonly answers: Answers;
  readonly say: (sentence: string) => void;
  /** The heap of the worker, in MB. @default 1024 */
  readonly heapMb?: number;
  /** What it runs, when it runs from source: for tests. */
  readonly entry?: URL;
  readonly clock?: Clock;
}

const heapMbUsual = 1_024;
/** A console that ends by itself more often than this is not started again. */
const restartsMax = 3;
const restartsWithinMs = 10 * 60_000;
/** A worker that does not end by then is ended: a page may keep its thread busy. */
const closeMs = 3_000;

export async function startConsoleThread(options: ThreadOptions): Promise<RunningConsole> {
  const thread = new ConsoleThread(options);
  const facts = await thread.begin(options.start.port);
  const close = () => thread.close();
  return { ...facts, close, [Symbol.asyncDispose]: close };
}

class ConsoleThread {
  readonly #options: ThreadOptions;
  readonly #clock: Clock;
  /** When it was started again. */
  #restartsMs: number[] = [];
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves once it listens. Before that nothing is started again: the error says why. */
  begin(port: number): Promise<ConsoleFacts> {
    const { start, heapMb = heapMbUsual } = this.#options;
    const isSource = import.meta.url.endsWith('.ts');
    const { entry = new URL('./main.ts', import.meta.url) } = this.#options;
    const file = isSource ? '../../scripts/source-worker.mjs' : './drover.js';
    const worker = new Worker(new URL(file, import.meta.url), {
      argv: [consoleWorkerWord, ...(isSource ? [entry.href] : [])],
      workerData: { ...start, port },
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    });
    this.#worker = worker;
    return new Promise((resolve, reject) => {
      let facts: ConsoleFacts | undefined;
      let why: Error | undefined;
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'ready') {
          facts = message.facts;
          resolve(facts);
        } else if (message.kind === 'failed') why = errorOf(message);
        else if (message.kind === 'say') this.#options.say(message.sentence);
        else void this.#answer(worker, message);
      });
      worker.on('error', (error) => {
        why = error;
      });
      this.#exited = new Promise((done) => {
        worker.on('exit', (code) => {
          done();
          const error = why ?? new Error(`it ended with ${code}`);
          reject(error);
          if (facts !== undefined) this.#ended(facts.port, error);
        });
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const worker = this.#worker;
    worker?.postMessage({ kind: 'close' } satisfies ToWorker);
    const late = this.#clock.after(closeMs, () => void worker?.terminate());
    await this.#exited;
    late.cancel();
  }

  async #answer(worker: Worker, { id, what, given }: FromWorker & { kind: 'ask' }): Promise<void> {
    const answer = this.#options.answers[what] as (...given: readonly unknown[]) => unknown;
    let message: ToWorker;
    try {
      message = { kind: 'answer', id, value: await answer(...given) };
    } catch (error) {
      message = { kind: 'refusal', id, message: (error as Error).message };
    }
    worker.postMessage(message);
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

function errorOf({ exitCode, message }: FromWorker & { kind: 'failed' }): Error {
  const found = Object.entries(exitCodes).find(([, code]) => code === exitCode);
  const kind = found?.[0] as keyof typeof exitCodes | undefined;
  return kind === undefined ? new Error(message) : new CommandError(kind, message);
}
