/**
 * Ints and short stretches of bytes at a place in a buffer. Node's own methods check and convert more
 * than is needed here, and for a few bytes that costs more than the work itself.
 */

import type { Buffer } from 'node:buffer';

/** More bytes than this are copied by the runtime, with a view of them made first; fewer by a loop. */
const loopMax = 64;
/** The same for all that a buffer holds, where no view is needed. */
const wholeLoopMax = 16;

export function readInt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

export function writeInt(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function copyBytes(
  from: Buffer,
  fromAt: number,
  to: Buffer,
  toAt: number,
  length: number,
): void {
  if (length > loopMax) {
    to.set(from.subarray(fromAt, fromAt + length), toAt);
    return;
  }
  let i = 0;
  // Eight in a round take half as long as one.
  for (const last = length - 7; i < last; i += 8) {
    const f = fromAt + i;
    const t = toAt + i;
    to[t] = from[f]!;
    to[t + 1] = from[f + 1]!;
    to[t + 2] = from[f + 2]!;
    to[t + 3] = from[f + 3]!;
    to[t + 4] = from[f + 4]!;
    to[t + 5] = from[f + 5]!;
    to[t + 6] = from[f + 6]!;
    to[t + 7] = from[f + 7]!;
  }
  for (; i < length; i++) to[toAt + i] = from[fromAt + i]!;
}

/** All that `from` holds. */
export function copyAll(from: Uint8Array, to: Buffer, toAt: number): void {
  const { length } = from;
  if (length > wholeLoopMax) to.set(from, toAt);
  else for (let i = 0; i < length; i++) to[toAt + i] = from[i]!;
}
