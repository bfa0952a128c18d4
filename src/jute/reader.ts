/**
 * Reads jute values off a stretch of bytes.
 *
 * In: bytes from a frame or a file. Out: numbers, strings, buffers. Every length is checked against
 * what is left before anything is allocated, so hostile input costs its own size at most; whatever
 * does not fit is a `ProtocolError` that says where.
 *
 * One reader serves many frames: `reset` points it at the next, so the hot path allocates none.
 */

import { copyBytes, readInt } from './bytes.ts';
import { ProtocolError } from './protocol-error.ts';

const empty = Buffer.alloc(0);

export class Reader {
  #bytes: Buffer;
  #at: number;
  #end: number;
  #borrowed: boolean;

  /** `borrowed`: the memory is used again after this frame, so what outlives it must be copied. */
  constructor(bytes: Buffer = empty, start = 0, end: number = bytes.length, borrowed = false) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#borrowed = borrowed;
  }

  reset(bytes: Buffer, start: number, end: number, borrowed: boolean): this {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#borrowed = borrowed;
    return this;
  }

  /** Another reader of what is left: this one stays where it is. */
  rest(): Reader {
    return new Reader(this.#bytes, this.#at, this.#end, this.#borrowed);
  }

  get at(): number {
    return this.#at;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  /** A frame that says more than its record is not the frame we think it is. */
  finish(): void {
    if (this.#at !== this.#end) {
      throw new ProtocolError(`${this.#end - this.#at} bytes too many, at byte ${this.#at}`);
    }
  }

  bool(): boolean {
    const at = this.#skip(1);
    return this.#bytes[at] !== 0;
  }

  int(): number {
    return readInt(this.#bytes, this.#skip(4));
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#skip(8));
  }

  /** `length` bytes that stay valid for as long as the caller likes. */
  take(length: number): Buffer {
    const at = this.#skip(length);
    if (!this.#borrowed) return this.#bytes.subarray(at, at + length);
    const kept = Buffer.allocUnsafe(length);
    copyBytes(this.#bytes, at, kept, 0, length);
    return kept;
  }

  buffer(): Buffer | null {
    const length = this.int();
    if (length === -1) return null;
    if (length < 0)
      throw new ProtocolError(`a buffer of length ${length}, at byte ${this.#at - 4}`);
    return this.take(length);
  }

  ustring(): string {
    const text = this.ustringOrNull();
    if (text === null)
      throw new ProtocolError(`null in place of a string, at byte ${this.#at - 4}`);
    return text;
  }

  ustringOrNull(): string | null {
    const length = this.int();
    if (length === -1) return null;
    if (length < 0)
      throw new ProtocolError(`a string of length ${length}, at byte ${this.#at - 4}`);
    const at = this.#skip(length);
    return this.#bytes.toString('utf8', at, at + length);
  }

  /** Skips `expected` where just these bytes are next. */
  skipIf(expected: Uint8Array): boolean {
    const at = this.#at;
    if (expected.length > this.#end - at) return false;
    const bytes = this.#bytes;
    for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
    this.#at = at + expected.length;
    return true;
  }

  /** How many items follow. Each takes at least `itemBytesMin`, so a lie shows before we allocate. */
  count(itemBytesMin: number): number {
    const count = this.int();
    if (count === -1) return 0; // a null vector: Java writes it for a list that was never set
    if (count < 0 || count * itemBytesMin > this.remaining) {
      throw new ProtocolError(
        `a vector of ${count} items in ${this.remaining} bytes, at byte ${this.#at - 4}`,
      );
    }
    return count;
  }

  #skip(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) {
      throw new ProtocolError(
        `cut short: ${length} bytes wanted at byte ${at}, ${this.#end - at} left`,
      );
    }
    this.#at = at + length;
    return at;
  }
}
