/**
 * Writes jute values into one growing buffer.
 *
 * In: numbers, strings, buffers. Out: `written()`, a view of what was written, valid until the next
 * write. Many frames go into one writer and leave in one socket write: `beginFrame` keeps room for
 * the length, `endFrame` fills it in.
 */

const initialBytes = 1024;
/** Below this many characters a loop beats the call into the runtime's own encoder. */
const asciiLoopMax = 48;
const scratch = new DataView(new ArrayBuffer(8));

export class Writer {
  #bytes: Buffer;
  #at = 0;

  constructor(capacity = initialBytes) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
  }

  get length(): number {
    return this.#at;
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
    const start = this.#at;
    this.#reserve(4);
    this.#at = start + 4;
    return start;
  }

  /** Returns the frame's length without the prefix. */
  endFrame(start: number): number {
    const length = this.#at - start - 4;
    this.#put(start, length);
    return length;
  }

  bool(value: boolean): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value ? 1 : 0;
  }

  int(value: number): void {
    this.#reserve(4);
    this.#put(this.#at, value);
    this.#at += 4;
  }

  long(value: bigint): void {
    if (BigInt.asIntN(64, value) !== value)
      throw new RangeError(`${value} does not fit in 64 bits`);
    // A Buffer would take it apart shift by shift, with a new bigint for each.
    scratch.setBigInt64(0, value);
    this.longHalves(scratch.getInt32(0), scratch.getInt32(4));
  }

  /** A long as its two halves, for who counts without BigInt. */
  longHalves(high: number, low: number): void {
    this.#reserve(8);
    this.#put(this.#at, high);
    this.#put(this.#at + 4, low);
    this.#at += 8;
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  rawRange(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    bytes.copy(this.#bytes, this.#at, start, end);
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
    this.#put(this.#at, encoded);
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

  #put(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
  }

  #reserve(length: number): void {
    const wanted = this.#at + length;
    if (wanted <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(wanted, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
