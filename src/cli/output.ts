/**
 * How a command speaks: results on standard output, as text or a JSON object a line, and everything
 * else on standard error.
 *
 * What is written leaves in batches and in its order; `drained()` waits until it has been taken, so
 * that a loop that awaits it holds little memory. A reader that goes away (`drover … | head`) ends the
 * command, and quietly.
 */

import { basename } from 'node:path';
import { inspect } from 'node:util';
import { type Clock, systemClock } from '../support/index.ts';
import type { OptionValues } from './command.ts';
import { escaped, escapedLines, jsonLine, shownBytes } from './words.ts';

export * from './words.ts';

/** The exit code of a command that looked for something, damage or a difference, and found it. */
export const foundCode = 1;

type Stream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface OutputStreams {
  readonly stdout?: Stream;
  /** Or a way to it, called when there is something to say: Node takes a millisecond to make it. */
  readonly stderr?: Stream | (() => Stream);
  readonly clock?: Clock;
  /** NO_COLOR and FORCE_COLOR are looked up here. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What stands before every sentence on standard error. */
  readonly prefix?: string;
  /** Called once when whoever reads standard output has gone. */
  readonly onGone?: () => void;
}

const batchChars = 64 * 1024;
const progressAfterMs = 1_000;
const progressEveryMs = 100;
/** A terminal may not know its size, or call it nothing at all, as one that script(1) opened does. */
const columnsUnlessKnown = 80;
const rowsUnlessKnown = 24;

export class Output {
  readonly isJson: boolean;
  /** An error of drover's own is shown with its stack trace. */
  readonly isDebug: boolean;
  /** Of data, in columns. */
  readonly shownBytes: number;
  readonly #stdout: Stream;
  readonly #errors: () => Stream;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #prefix: string;
  readonly #colours: { readonly stdout: boolean };
  readonly #failed: (error: NodeJS.ErrnoException) => void;
  #drawnMs: number | undefined;
  #batch: string[] = [];
  #batchChars = 0;
  #taken: Promise<void> = Promise.resolve();
  #isGone = false;
  #isLost = false;

  constructor(options: OptionValues, streams: OutputStreams = {}) {
    this.isJson = options.json === true;
    this.isDebug = options.debug === true;
    this.shownBytes = options.full === true ? Number.POSITIVE_INFINITY : shownBytes;
    this.#stdout = streams.stdout ?? process.stdout;
    const { stderr } = streams;
    this.#errors = typeof stderr === 'function' ? stderr : () => stderr ?? process.stderr;
    this.#clock = streams.clock ?? systemClock;
    this.#prefix = streams.prefix ?? 'drover: ';
    this.#startMs = this.#clock.nowMs();
    const { NO_COLOR, FORCE_COLOR, TERM } = streams.environment ?? process.env;
    const isWanted = this.#stdout.isTTY === true && TERM !== 'dumb';
    this.#colours = { stdout: !NO_COLOR && (isWanted || (FORCE_COLOR ?? '0') !== '0') };
    this.#failed = (error) => {
      if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') return;
      if (this.#isGone) return;
      this.#isGone = true;
      streams.onGone?.();
    };
    this.#stdout.on('error', this.#failed);
  }

  get #stderr(): Stream {
    return this.#errors();
  }

  /** Whoever read the output has closed it. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Something did not get out, as on a full disk or after the reader had gone. Known once `drained`. */
  get isLost(): boolean {
    return this.#isLost || this.#isGone;
  }

  /** A person sees it, so that bytes from outside must not reach the terminal as they are. */
  get isTty(): boolean {
    return this.#stdout.isTTY === true;
  }

  get columns(): number {
    return this.#stdout.columns || columnsUnlessKnown;
  }

  get rows(): number {
    return this.#stdout.rows || rowsUnlessKnown;
  }

  write(text: string): void {
    this.#batch.push(text);
    this.#batchChars += text.length;
    if (this.#batchChars >= batchChars) this.#flush();
  }

  /** The text must be harmless: see `escaped`. */
  line(text: string): void {
    this.write(`${text}\n`);
  }

  record(value: object): void {
    this.write(jsonLine(value));
  }

  /** As they are, behind all that was written before. */
  bytes(bytes: Uint8Array): void {
    this.#flush();
    if (this.#isGone) return;
    this.#clearProgress();
    this.#send(bytes);
  }

  /** In colour where standard output shows colours and nobody said no to them. */
  paint(style: keyof typeof inspect.colors, text: string): string {
    const codes = this.#colours.stdout ? inspect.colors[style] : undefined;
    return codes === undefined ? text : `\x1b[${codes[0]}m${text}\x1b[${codes[1]}m`;
  }

  /** Resolves once all that was written has been taken, or nobody is there to take it. */
  drained(): Promise<void> {
    this.#flush();
    return this.#taken;
  }

  /** As `drained`, without sending on what is not yet worth sending: for loops that write small pieces. */
  paced(): Promise<void> {
    if (this.isTty) this.#flush();
    return this.#taken;
  }

  /** A sentence for the person at the terminal; made harmless, since it may quote others. */
  tell(sentence: string): void {
    this.#clearProgress();
    this.#stderr.write(`${this.#prefix}${escapedLines(sentence)}\n`);
  }

  /** As `tell`, for what is no sentence of ours: an error under --json, a table of help. */
  remark(text: string): void {
    this.#clearProgress();
    this.#stderr.write(escapedLines(text));
  }

  /** How far a file has been read. */
  progress(path: string, position: number, size: number): void {
    const percent = size === 0 ? 100 : Math.floor((100 * position) / size);
    this.status(() => `${escaped(basename(path))} ${percent}%`);
  }

  /** How far the work is: shown where somebody watches and it takes long, and wiped away again. */
  status(text: string | (() => string)): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#startMs < progressAfterMs || !this.#stderr.isTTY) return;
    if (nowMs - (this.#drawnMs ?? Number.NEGATIVE_INFINITY) < progressEveryMs) return;
    this.#drawnMs = nowMs;
    const shown = typeof text === 'string' ? text : text();
    this.#stderr.write(`\r${shown.slice(0, this.columns - 1)}\x1b[K`);
  }

  async end(): Promise<void> {
    this.#clearProgress();
    await this.drained();
    this.#stdout.off('error', this.#failed);
  }

  #flush(): void {
    if (this.#batch.length === 0) return;
    const text = this.#batch.join('');
    this.#batch = [];
    this.#batchChars = 0;
    if (this.#isGone) return;
    this.#clearProgress();
    this.#send(text);
  }

  #send(what: string | Uint8Array): void {
    // Called in the order of the writes, and after an error too.
    this.#taken = new Promise((taken) => {
      this.#stdout.write(what, (error) => {
        if (error) this.#isLost = true;
        taken();
      });
    });
  }

  #clearProgress(): void {
    if (this.#drawnMs === undefined) return;
    this.#drawnMs = undefined;
    this.#stderr.write('\r\x1b[K');
  }
}
