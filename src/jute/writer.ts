/**
 * Writes jute values into one growing buffer.
 *
 * In: numbers, strings, buffers. Out: `written()`, a view of what was written, valid until the next
 * write. Many frames go into one writer and leave in one socket write: `beginFrame` keeps room for
 * the length, `endFrame` fills it in.
 */

import { copyAll, copyBytes, writeInt } from './bytes.ts';

const initialBytes = 1024;
/** Below this many characters a loop beats the call into the runtime's own encoder. */
const asciiLoopMax = 48;
/** What `lastLong` is in bytes. */
const scratch = new DataView(new ArrayBuffer(8));
let lastLong = 0n;

export class Writer {
  #bytes: Buffer;
  #at = 0;

  constructor(capacity = initialBytes) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
  }

  get length(): number {
    return this.#at;
  }

  /** Bytes of memory that it holds. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Where it was written to: `length` bytes of it, until it grows. For who would make a view for one call. */
  get memory(): Buffer {
    return this.#bytes;
  }

  /** What was written so far, not copied. */
  written(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Hands over what was written and starts on fresh memory: the receiver may keep it. */
  detach(capacity = initialBytes): Buffer {
    const bytes = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
    this.#at = 0;
    return bytes;
  }

  /** Forgets what was written after `length`; 0 forgets all and keeps the memory. */
  truncate(length: number): void {
    this.#at = length;
  }

  beginFrame(): number {
    return this.skip(4);
  }

  /** Returns the frame's length without the prefix. */
  endFrame(start: number): number {
    const length = this.#at - start - 4;
    writeInt(this.#bytes, start, length);
    return length;
  }

  /** Counts so many bytes as written, for who fills them in by itself: from there on in `memory`. */
  skip(length: number): number {
    this.#reserve(length);
    const start = this.#at;
    this.#at = start + length;
    return start;
  }

  bool(value: boolean): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value ? 1 : 0;
  }

  int(value: number): void {
    this.#reserve(4);
    writeInt(this.#bytes, this.#at, value);
    this.#at += 4;
  }

  long(value: bigint): void {
    // Often the same as the last time: the id of one session, or none.
    if (value !== lastLong) {
      if (BigInt.asIntN(64, value) !== value)
        throw new RangeError(`${value} does not fit in 64 bits`);
      // A Buffer would take it apart shift by shift, with a new bigint for each.
      scratch.setBigInt64(0, value);
      lastLong = value;
    }
    this.longHalves(scratch.getInt32(0), scratch.getInt32(4));
  }

  /** A long as its two halves, for who counts without BigInt. */
  longHalves(high: number, low: number): void {
    this.#reserve(8);
    writeInt(this.#bytes, this.#at, high);
    writeInt(this.#bytes, this.#at + 4, low);
    this.#at += 8;
  }

  raw(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#reserve(length);
    copyAll(bytes, this.#bytes, this.#at);
    this.#at += length;
  }

  rawRange(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    copyBytes(bytes, start, this.#bytes, this.#at, end - start);
    this.#at += end - start;
  }

  buffer(value: Uint8Array | null): void {
    this.int(value === null ? -1 : value.length);
    if (value !== null) this.raw(value);
  }

  ustring(value: string): void {
    const { length } = value;
    this.#reserve(4 + length * 3);
    const start = this.#at + 4;
    let encoded = length;
    if (length > asciiLoopMax || !this.#putAscii(value, start)) {
      encoded = this.#bytes.write(value, start, 'utf8');
    }
    writeInt(this.#bytes, this.#at, encoded);
    this.#at = start + encoded;
  }

  #putAscii(value: string, at: number): boolean {
    const bytes = this.#bytes;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) return false;
      bytes[at + i] = unit;
    }
    return true;
  }

  #reserve(length: number): void {
    const wanted = this.#at + length;
    if (wanted <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(wanted, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
