/**
 * How a command speaks: results on standard output, as aligned columns or a JSON object a line, and
 * everything else on standard error.
 *
 * Whatever is printed may come from strangers, so control, bidi and invisible characters are always
 * escaped. Memory stays bounded: files are read through `files`, which reads on only once what was
 * printed has been taken, and which can change nothing on disk. A reader that goes away
 * (`drover … | head`) ends the command, and quietly.
 */

import { isUtf8 } from 'node:buffer';
import { basename } from 'node:path';
import { type Acl, permsText } from '../protocol/index.ts';
import { type FileSystem, realFileSystem, type StoredFile } from '../storage/index.ts';
import { type Clock, systemClock } from '../support/index.ts';
import type { OptionValues } from './commands.ts';
import { CommandError, exitCodes } from './exit-codes.ts';

/** The exit code of a command that looked for something, damage or a difference, and found it. */
export const foundCode = 1;

// ── words ─────────────────────────────────────────────────────────────────────────────────────────

/** Control, format (bidi, zero width), line and paragraph separators, halves of a pair. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const control = /\p{Cc}/u;
const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** On one line, and harmless to a terminal. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replace(unprintable, (c) => shortEscapes[c] ?? unitsOf(c));
}

function unitsOf(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** A zxid, a session, a digest. */
export function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

const dateMaxMs = 8.64e15;

export function timeText(ms: number): string {
  return Math.abs(ms) <= dateMaxMs ? new Date(ms).toISOString() : `${ms} ms`;
}

/** `world:anyone:cdrwa`, as zkCli takes it. */
export function aclText(acl: readonly Acl[]): string {
  return acl.map(({ perms, id }) => escaped(`${id.scheme}:${id.id}:${permsText(perms)}`)).join(',');
}

/** What is shown of data unless all of it is asked for. */
export const shownBytes = 80;

/** Text where it is text, else hex; `-` for null and `""` for nothing. */
export function dataText(data: Buffer | null, bytesMax = shownBytes): string {
  if (data === null) return '-';
  if (data.length === 0) return '""';
  let end = Math.min(bytesMax, data.length);
  const rest = () => (end < data.length ? `… (${data.length} bytes)` : '');
  if (isUtf8(data)) {
    while (end < data.length && (data[end]! & 0xc0) === 0x80) end -= 1; // not within a character
    const text = data.toString('utf8', 0, end);
    if (!control.test(text.replace(/[\n\r\t]/g, ''))) return `${escaped(text)}${rest()}`;
  }
  return `0x${data.toString('hex', 0, end)}${rest()}`;
}

/** Data in JSON, always whole: as text if it is UTF-8, so that no byte changes on the way. */
export function dataJson(data: Buffer | null): { text: string } | { hex: string } | null {
  if (data === null) return null;
  return isUtf8(data) ? { text: data.toString('utf8') } : { hex: data.toString('hex') };
}

export function aclJson(acl: readonly Acl[]): object[] {
  return acl.map(({ perms, id: { scheme, id } }) => ({ scheme, id, perms: permsText(perms) }));
}

/** One line. Longs are written as hex; what a terminal could trip over is escaped, as JSON allows. */
export function jsonLine(value: object): string {
  const text = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? hex(each) : each));
  return `${text.replace(unprintable, unitsOf)}\n`;
}

// ── the streams ───────────────────────────────────────────────────────────────────────────────────

interface OutputStreams {
  readonly stdout?: NodeJS.WritableStream;
  readonly stderr?: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly clock?: Clock;
}

const batchChars = 64 * 1024;
const progressAfterMs = 1_000;
const progressEveryMs = 100;

export class Output {
  readonly isJson: boolean;
  /** Of data, in columns. */
  readonly shownBytes: number;
  readonly files: FileSystem;
  readonly #stdout: NodeJS.WritableStream;
  readonly #stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly #clock: Clock;
  readonly #startMs: number;
  #drawnMs: number | undefined;
  #batch: string[] = [];
  #batchChars = 0;
  #taken: Promise<void> = Promise.resolve();
  #isGone = false;

  constructor(options: OptionValues, streams: OutputStreams = {}) {
    this.isJson = options.json === true;
    this.shownBytes = options.full === true ? Number.POSITIVE_INFINITY : shownBytes;
    this.#stdout = streams.stdout ?? process.stdout;
    this.#stderr = streams.stderr ?? process.stderr;
    this.#clock = streams.clock ?? systemClock;
    this.#startMs = this.#clock.nowMs();
    this.files = readOnlyFiles(this);
    this.#stdout.on('error', (error: NodeJS.ErrnoException) => {
      this.#isGone ||= error.code === 'EPIPE';
    });
  }

  /** Whoever read the output has closed it. */
  get isGone(): boolean {
    return this.#isGone;
  }

  write(text: string): void {
    this.#batch.push(text);
    this.#batchChars += text.length;
    if (this.#batchChars >= batchChars) this.#flush();
  }

  record(value: object): void {
    this.write(jsonLine(value));
  }

  /** Resolves once all that was written has been taken, or nobody is there to take it. */
  drained(): Promise<void> {
    this.#flush();
    return this.#taken;
  }

  /** A sentence for the person at the terminal. */
  tell(sentence: string): void {
    this.#clearProgress();
    this.#stderr.write(`drover: ${sentence}\n`);
  }

  /** Called before each read; shows how far it is, where somebody watches and it takes long. */
  progress(path: string, position: number, size: number): void {
    const nowMs = this.#clock.nowMs();
    if (!this.#stderr.isTTY || nowMs - this.#startMs < progressAfterMs) return;
    if (nowMs - (this.#drawnMs ?? Number.NEGATIVE_INFINITY) < progressEveryMs) return;
    this.#drawnMs = nowMs;
    const percent = size === 0 ? 100 : Math.floor((100 * position) / size);
    this.#stderr.write(`\r${escaped(basename(path))} ${percent}%\x1b[K`);
  }

  end(): Promise<void> {
    this.#clearProgress();
    return this.drained();
  }

  #flush(): void {
    if (this.#batch.length === 0) return;
    const text = this.#batch.join('');
    this.#batch = [];
    this.#batchChars = 0;
    if (this.#isGone) return;
    this.#clearProgress();
    // Called in the order of the writes, and after an error too.
    this.#taken = new Promise((taken) => this.#stdout.write(text, () => taken()));
  }

  #clearProgress(): void {
    if (this.#drawnMs === undefined) return;
    this.#drawnMs = undefined;
    this.#stderr.write('\r\x1b[K');
  }
}

/** The real files, for looking at alone, and no faster than the output is taken. */
function readOnlyFiles(output: Output): FileSystem {
  const refuse = (): never => {
    throw new Error('files are only looked at');
  };
  return {
    list: (folder) => realFileSystem.list(folder),
    status: (path) => realFileSystem.status(path),
    async open(path, how) {
      if (how !== 'read') refuse();
      const file = await realFileSystem.open(path, 'read');
      const size = await file.size();
      const paced: StoredFile = {
        async read(target, position) {
          await output.drained();
          if (output.isGone) throw new Error('nobody reads the output any more');
          output.progress(path, position, size);
          return file.read(target, position);
        },
        size: () => file.size(),
        close: () => file.close(),
        write: refuse,
        allocate: refuse,
        truncate: refuse,
        sync: refuse,
      };
      return paced;
    },
    rename: refuse,
    remove: refuse,
    makeFolder: refuse,
    syncFolder: refuse,
  };
}

// ── columns ───────────────────────────────────────────────────────────────────────────────────────

/** Rows that decide how wide the columns are. Those behind them follow, and stick out where they must. */
const heldRowsMax = 200;
const heldCharsMax = 256 * 1024;
const widthMax = 100;

export class Columns {
  readonly #output: Output;
  readonly #widths: number[];
  #held: (readonly string[])[] | undefined;
  #heldChars = 0;

  constructor(output: Output, ...heads: string[]) {
    this.#output = output;
    this.#widths = heads.map(() => 0);
    this.#held = [];
    this.row(...heads);
  }

  /** The cells must be escaped. */
  row(...cells: readonly string[]): void {
    if (this.#held === undefined) {
      this.#print(cells);
      return;
    }
    this.#held.push(cells);
    for (const [i, cell] of cells.entries()) {
      this.#heldChars += cell.length;
      this.#widths[i] = Math.max(this.#widths[i]!, Math.min(widthMax, cell.length));
    }
    if (this.#held.length > heldRowsMax || this.#heldChars > heldCharsMax) this.end();
  }

  /** Prints what is held. */
  end(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const cells of held) this.#print(cells);
  }

  #print(cells: readonly string[]): void {
    const line = cells.map((cell, i) => cell.padEnd(this.#widths[i]!)).join('  ');
    this.#output.write(`${line.trimEnd()}\n`);
  }
}

// ── commands of two words ─────────────────────────────────────────────────────────────────────────

/** What stands behind the first word: `drover log` has three of them. */
export interface Action {
  readonly usage: string;
  readonly argsWanted: number;
  /** Which options it takes besides --json. */
  readonly options: readonly ('full' | 'data' | 'dataLog')[];
  run(output: Output, args: readonly string[], options: OptionValues): Promise<number>;
}

export async function runAction(
  command: string,
  actions: Readonly<Record<string, Action>>,
  [name = '', ...args]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const action = Object.hasOwn(actions, name) ? actions[name]! : undefined;
  if (action === undefined) {
    const usages = Object.values(actions).map(({ usage }) => `drover ${command} ${usage}`);
    throw new CommandError(
      'usage',
      `no ${command} ${escaped(name)}; there is ${usages.join(', ')}`,
    );
  }
  const usage = `it is drover ${command} ${action.usage}`;
  const strange = (['full', 'data', 'dataLog'] as const).find(
    (option) => options[option] !== undefined && !action.options.includes(option),
  );
  if (strange !== undefined) {
    const flag = strange === 'dataLog' ? 'data-log' : strange;
    throw new CommandError('usage', `--${flag} means nothing to ${command} ${name}; ${usage}`);
  }
  if (args.length !== action.argsWanted) {
    throw new CommandError('usage', `${args.length} arguments for ${command} ${name}; ${usage}`);
  }
  const output = new Output(options);
  try {
    return await action.run(output, args, options);
  } catch (error) {
    if (output.isGone) return exitCodes.ok;
    throw error;
  } finally {
    await output.end();
  }
}
