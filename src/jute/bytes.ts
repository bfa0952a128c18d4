/**
 * Ints and short stretches of bytes at a place in a buffer. Node's own methods check and convert more
 * than is needed here, and for a few bytes that costs more than the work itself.
 */

import type { Buffer } from 'node:buffer';

/** More bytes than this are copied by the runtime, fewer by a loop. */
const loopMax = 128;

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
  if (length > loopMax) from.copy(to, toAt, fromAt, fromAt + length);
  else for (let i = 0; i < length; i++) to[toAt + i] = from[fromAt + i]!;
}
