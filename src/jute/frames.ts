/**
 * Cuts a stream into frames: a 4-byte length, then that many bytes.
 *
 * In: chunks as the socket gives them. Out: each frame's bytes, without its length. A frame that lies
 * whole in one chunk is handed on where it lies; only one that spans chunks is put together, in
 * memory that grows with what has arrived, never with what a length promised.
 */

import { readInt } from './bytes.ts';
import { ProtocolError } from './protocol-error.ts';

/** `borrowed`: the memory belongs to the chunk and is not the receiver's to keep. */
export type FrameSink = (bytes: Buffer, start: number, end: number, borrowed: boolean) => void;

export class FrameSplitter {
  readonly #frameBytesMax: number;
  readonly #sink: FrameSink;
  /** The frame begun, its prefix included. */
  #pending: Buffer | undefined;
  #pendingBytes = 0;

  constructor(frameBytesMax: number, sink: FrameSink) {
    this.#frameBytesMax = frameBytesMax;
    this.#sink = sink;
  }

  /** Bytes held of a frame that is not whole yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** What a chunk holds, up to `chunkEnd`. */
  push(chunk: Buffer, chunkEnd: number = chunk.length): void {
    let at = this.#pendingBytes > 0 ? this.#resume(chunk, chunkEnd) : 0;
    while (chunkEnd - at >= 4) {
      const length = this.#checked(chunk, at);
      const end = at + 4 + length;
      if (end > chunkEnd) break;
      this.#sink(chunk, at + 4, end, true);
      at = end;
    }
    if (at < chunkEnd) this.#keep(chunk, at, chunkEnd);
  }

  /** Completes the frame begun, as far as the chunk goes. Returns where the rest of it starts. */
  #resume(chunk: Buffer, chunkEnd: number): number {
    let at = 0;
    if (this.#pendingBytes < 4) {
      at = Math.min(4 - this.#pendingBytes, chunkEnd);
      this.#keep(chunk, 0, at);
      if (this.#pendingBytes < 4) return at;
    }
    const wanted = 4 + this.#checked(this.#pending!, 0);
    const until = Math.min(at + wanted - this.#pendingBytes, chunkEnd);
    this.#keep(chunk, at, until);
    if (this.#pendingBytes === wanted) {
      const frame = this.#pending!;
      this.#pending = undefined;
      this.#pendingBytes = 0;
      this.#sink(frame, 4, wanted, false);
    }
    return until;
  }

  #checked(bytes: Buffer, at: number): number {
    const length = readInt(bytes, at);
    if (length < 0 || length > this.#frameBytesMax) {
      throw new ProtocolError(
        `a frame of ${length} bytes; at most ${this.#frameBytesMax} are taken`,
      );
    }
    return length;
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    const wanted = this.#pendingBytes + end - start;
    if (this.#pending === undefined || wanted > this.#pending.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(wanted, (this.#pending?.length ?? 0) * 2));
      this.#pending?.copy(grown, 0, 0, this.#pendingBytes);
      this.#pending = grown;
    }
    chunk.copy(this.#pending, this.#pendingBytes, start, end);
    this.#pendingBytes = wanted;
  }
}
