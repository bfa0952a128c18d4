/**
 * A file of lines as a partition: the number of a line, from 0, is its offset.
 *
 *   {"timestamp":1700000000000,"key":"k","value":"v"}\n      one record a line
 *
 * In: a path, and a range of lines. Out: their bytes, and how many whole lines there are. A mark is
 * kept for every so many lines, so that finding one reads no more than that; a line that has not ended
 * is not there yet, unless the file is said to be whole. The file may grow at any time. It must not shrink: then offsets would mean
 * something else, and reading fails.
 */

import { type FileHandle, open } from 'node:fs/promises';
import { ReaderError } from '../reader.ts';

/** Lines between two marks. */
const markEvery = 256;
const chunkBytes = 64 * 1024;
const newline = 0x0a;

export interface Lines {
  readonly lines: readonly Buffer[];
  /** The first of them. */
  readonly from: number;
}

export class NdjsonFile {
  readonly path: string;
  readonly #lineBytesMax: number;
  readonly #isWhole: boolean;
  /** One for all who read: a second would be left open. Asked for again while there is no file. */
  #handle: Promise<FileHandle | null> | undefined;
  #isClosed = false;
  /** Where line i * markEvery begins. */
  readonly #marks: number[] = [0];
  /** Whole lines seen, and where the last of them ends. */
  #count = 0;
  #bytes = 0;
  #trouble: ReaderError | undefined;
  /** One look at a time: two would count the same lines twice. */
  #looking: Promise<number> | undefined;

  /** `isWhole`: nobody writes to it any more, so that what comes after the last newline is a line too. */
  constructor(path: string, lineBytesMax: number, isWhole = false) {
    this.path = path;
    this.#lineBytesMax = lineBytesMax;
    this.#isWhole = isWhole;
  }

  /** Counts what has been written since the last look. A file that is not there has no lines. */
  count(): Promise<number> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<number> {
    const handle = await this.#open();
    if (handle === null) return 0;
    const { size } = await handle.stat();
    if (size < this.#bytes) {
      throw new ReaderError(
        'SOURCE_FAILED',
        `${this.path} was cut from ${this.#bytes} to ${size} bytes; a partition only grows, so open it anew`,
      );
    }
    const buffer = Buffer.allocUnsafe(chunkBytes);
    let at = this.#bytes;
    while (at < size) {
      const { bytesRead } = await handle.read(buffer, 0, chunkBytes, at);
      if (bytesRead === 0) break;
      for (let i = 0; i < bytesRead; i++) {
        if (buffer[i] !== newline) continue;
        this.#count += 1;
        this.#bytes = at + i + 1;
        if (this.#count % markEvery === 0) this.#marks.push(this.#bytes);
      }
      at += bytesRead;
      this.#trouble = this.#checkLength(at);
      if (this.#trouble !== undefined) return this.#count;
    }
    if (this.#isWhole && at > this.#bytes) {
      this.#count += 1;
      this.#bytes = at;
    }
    return this.#count;
  }

  /** What stands behind the lines that were counted, where it is too long to be one. */
  get trouble(): ReaderError | undefined {
    return this.#trouble;
  }

  #checkLength(at: number): ReaderError | undefined {
    if (at - this.#bytes <= this.#lineBytesMax) return undefined;
    return new ReaderError(
      'BAD_RECORD',
      `${this.path} line ${this.#count + 1} is longer than ${this.#lineBytesMax} bytes; set lineBytesMax, or end it`,
    );
  }

  /** Lines from one on: at most so many, and at least one however long it is. */
  async read(from: number, linesMax: number, bytesMax: number): Promise<Lines> {
    const handle = await this.#open();
    const lines: Buffer[] = [];
    const end = Math.min(this.#count, from + linesMax);
    if (handle === null || from >= end) return { lines, from };
    let line = from - (from % markEvery);
    let at = this.#marks[line / markEvery]!;
    let taken = 0;
    let rest: Buffer = Buffer.alloc(0);
    while (line < end && taken < bytesMax) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const { bytesRead } = await handle.read(chunk, 0, chunkBytes, at);
      if (bytesRead === 0) {
        if (!this.#isWhole || line !== end - 1 || rest.length === 0) {
          throw new ReaderError('SOURCE_FAILED', `${this.path} was cut short`);
        }
        if (line >= from) lines.push(rest);
        break;
      }
      at += bytesRead;
      const bytes =
        rest.length > 0
          ? Buffer.concat([rest, chunk.subarray(0, bytesRead)])
          : chunk.subarray(0, bytesRead);
      let start = 0;
      for (;;) {
        const stop = bytes.indexOf(newline, start);
        if (stop === -1 || line >= end || (lines.length > 0 && taken >= bytesMax)) break;
        if (line >= from) {
          lines.push(bytes.subarray(start, stop));
          taken += stop - start;
        }
        line += 1;
        start = stop + 1;
      }
      rest = bytes.subarray(start);
    }
    return { lines, from };
  }

  async #open(): Promise<FileHandle | null> {
    if (this.#isClosed) throw new ReaderError('CLOSED', `${this.path} was closed`);
    this.#handle ??= openFile(this.path);
    const opening = this.#handle;
    try {
      const handle = await opening;
      if (handle === null && this.#handle === opening) this.#handle = undefined;
      return handle;
    } catch (error) {
      if (this.#handle === opening) this.#handle = undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#looking?.catch(() => {});
    const handle = await this.#handle?.catch(() => null); // told to who asked for it
    this.#handle = undefined;
    await handle?.close();
  }
}

/** Null where there is none yet. */
async function openFile(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new ReaderError('SOURCE_FAILED', `${path} cannot be read`, { cause: error });
  }
}
