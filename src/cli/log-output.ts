/**
 * Standard error, for lines that nobody waits for.
 *
 * In: lines. Out: the same, in order, as fast as they are taken. Where nobody reads them, or the disk is
 * full, they wait until there is room: up to a bound, behind which they are lost, and their number is told.
 * Whoever logs is neither held up nor ended by it, and neither is the end of the process.
 */

import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';

const standardError = 2;
/** Of lines that wait. */
const waitingBytesMax = 1024 * 1024;
/** Until it is tried again where nothing was taken. */
const againMs = 100;

export class LogOutput {
  readonly #fd = descriptor();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** What the system has at the moment. */
  #leaving: Buffer | undefined;
  #again: NodeJS.Timeout | undefined;
  #lost = 0;

  constructor() {
    process.once('exit', () => this.#last());
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > waitingBytesMax) {
      this.#lost += 1;
      return;
    }
    this.#put(bytes);
    if (this.#leaving === undefined && this.#again === undefined) this.#leave();
  }

  #put(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  /** All that waits, in one go. */
  #leave(): void {
    this.#again = undefined;
    if (this.#waiting.length === 0) return;
    const bytes = this.#waiting.length === 1 ? this.#waiting[0]! : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#leaving = bytes;
    write(this.#fd, bytes, (error, taken) => this.#left(bytes, error === null ? taken : 0));
  }

  #left(bytes: Buffer, taken: number): void {
    this.#leaving = undefined;
    this.#waitingBytes -= taken;
    if (taken < bytes.length) this.#waiting.unshift(bytes.subarray(taken));
    if (taken === 0) {
      this.#again = setTimeout(() => this.#leave(), againMs).unref();
      return;
    }
    if (this.#lost > 0 && this.#waitingBytes < waitingBytesMax / 2) {
      const fields = { level: 40, time: Date.now(), lines: this.#lost };
      this.#put(
        Buffer.from(`${JSON.stringify({ ...fields, msg: 'lines of this log are lost' })}\n`),
      );
      this.#lost = 0;
    }
    this.#leave();
  }

  /** As much as is taken at once: the process ends. What the system has goes out by itself. */
  #last(): void {
    try {
      for (const bytes of this.#waiting) {
        if (writeSync(this.#fd, bytes) < bytes.length) return;
      }
    } catch {
      // There is no room, and nobody left to wait for it.
    }
  }
}

/**
 * A pipe is opened once more, so that to write into a full one fails and does not wait: not even the
 * process could end while a thread of it waits. The other end is nobody's concern but ours then.
 */
function descriptor(): number {
  try {
    if (!fstatSync(standardError).isFIFO()) return standardError;
    return openSync(`/proc/self/fd/${standardError}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return standardError; // as on systems that have no such name for it
  }
}
