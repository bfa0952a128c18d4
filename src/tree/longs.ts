/**
 * 64-bit fields at a place in a buffer, as numbers: zxids and times, which stay below 2^53, so that
 * the hot path needs no BigInt. What can use all 64 bits (a session's id) is read as a bigint.
 */

import type { Buffer } from 'node:buffer';
import { readInt, writeInt } from '../jute/index.ts';

const high = 0x1_0000_0000;

export function readLong(bytes: Buffer, at: number): number {
  return readInt(bytes, at) * high + (readInt(bytes, at + 4) >>> 0);
}

export function writeLong(bytes: Buffer, at: number, value: number): void {
  writeInt(bytes, at, Math.floor(value / high));
  writeInt(bytes, at + 4, value >>> 0);
}

/** A 64-bit value from outside as a number. One that a number can't hold exactly is refused. */
export function numberOf(value: bigint, what: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${what} ${value} is past 2^53`);
  return number;
}
