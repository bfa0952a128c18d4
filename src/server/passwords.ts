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

export function passwordOf(sessionId: bigint): Buffer {
  const password = Buffer.alloc(passwordBytes);
  let seed = (sessionId ^ superSecret ^ multiplier) & mask;
  for (let i = 0; i < passwordBytes; i += 4) {
    seed = (seed * multiplier + 0xbn) & mask;
    // nextBytes takes each int from its low byte on.
    password.writeUInt32LE(Number((seed >> 16n) & 0xffff_ffffn), i);
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
