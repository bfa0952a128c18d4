/**
 * Session passwords, as Apache derives them from the session's id: 16 bytes of java.util.Random,
 * seeded with the id xor a constant. They are no secret to who knows an id; they are kept as they are
 * so that sessions survive when a data directory moves between our server and Apache's.
 */

import { timingSafeEqual } from 'node:crypto';
import { passwordBytes } from '../protocol/index.ts';

const superSecret = 0xb3415c00n;
const multiplier = 0x5deece66dn;
const mask = (1n << 48n) - 1n;
/** The 48 bits of the generator as two halves, so that their products are whole numbers below 2^53. */
const half = 2 ** 24;
const multiplierHigh = 0x5de;
const multiplierLow = 0xece66d;

export function passwordOf(sessionId: bigint): Buffer {
  const password = Buffer.allocUnsafe(passwordBytes);
  const seed = Number((sessionId ^ superSecret ^ multiplier) & mask);
  let high = Math.floor(seed / half);
  let low = seed % half;
  for (let i = 0; i < passwordBytes; i += 4) {
    const product = low * multiplierLow + 0xb;
    high = (high * multiplierLow + low * multiplierHigh + Math.floor(product / half)) % half;
    low = product % half;
    // Of the 48 bits the upper 32; nextBytes takes each int from its low byte on.
    password.writeUInt32LE(high * 256 + (low >>> 16), i);
  }
  return password;
}

export function isPasswordOf(sessionId: bigint, given: Buffer | null): boolean {
  return (
    sessionId !== 0n &&
    given !== null &&
    given.length === passwordBytes &&
    timingSafeEqual(given, passwordOf(sessionId))
  );
}
