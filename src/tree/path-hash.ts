/**
 * The hash of a path, keyed by a secret of this process: HalfSipHash-1-3, which Linux uses for its hash tables.
 *
 * Clients choose the names of nodes. With a hash that everybody can compute, a client makes thousands of names
 * with one hash, and each lookup then compares them all. A random start for a simple hash is no defence: names
 * that collide for one start collide for others too. Nothing on disk holds a hash, so each process has its own key.
 *
 * In: a path, as a string or as bytes. Out: 32 bits, the same for both.
 */

import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';

export interface HashKey {
  readonly low: number;
  readonly high: number;
}

function randomKey(): HashKey {
  const bytes = randomBytes(8);
  return { low: bytes.readInt32LE(0), high: bytes.readInt32LE(4) };
}

const ownKey = randomKey();

/** Rounds after the last word. */
const finalRounds = 3;

export function hashOf(bytes: Uint8Array, start: number, end: number, key = ownKey): number {
  let a = key.low;
  let b = key.high;
  let c = a ^ 0x6c796765;
  let d = b ^ 0x74656462;
  let at = start;
  for (let rounds = ((end - start) >> 2) + 1 + finalRounds; rounds > 0; rounds -= 1) {
    let word = 0;
    if (rounds > finalRounds + 1) {
      word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      at += 4;
    } else if (rounds === finalRounds + 1) {
      word = (end - start) << 24;
      for (let shift = 0; at < end; at += 1, shift += 8) word |= bytes[at]! << shift;
    } else if (rounds === finalRounds) {
      c ^= 0xff;
    }
    d ^= word;
    a = (a + b) | 0;
    b = ((b << 5) | (b >>> 27)) ^ a;
    a = (a << 16) | (a >>> 16);
    c = (c + d) | 0;
    d = ((d << 8) | (d >>> 24)) ^ c;
    a = (a + d) | 0;
    d = ((d << 7) | (d >>> 25)) ^ a;
    c = (c + b) | 0;
    b = ((b << 13) | (b >>> 19)) ^ c;
    c = (c << 16) | (c >>> 16);
    a ^= word;
  }
  return b ^ d;
}

/** Longer paths, and those with other characters than ASCII, are encoded by the runtime. */
const scratch = new Uint8Array(256);

/** The same for a path that is a string. */
export function pathHash(path: string): number {
  const { length } = path;
  if (length <= scratch.length) {
    let i = 0;
    for (; i < length; i++) {
      const unit = path.charCodeAt(i);
      if (unit > 0x7f) break;
      scratch[i] = unit;
    }
    if (i === length) return hashOf(scratch, 0, length);
  }
  const bytes = Buffer.from(path);
  return hashOf(bytes, 0, bytes.length);
}
