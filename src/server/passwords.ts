/**
 * Session passwords: what a client shows, with the id of its session, to have the session on another
 * connection. The password of each session follows from its id, so none has to be kept.
 *
 * By our own rule it is the id, encrypted by a secret of the data directory (one block of AES-256). By Apache's rule it is 16
 * bytes of java.util.Random, seeded with the id xor a constant: every client that may read an ephemeral
 * node learns the id of its owner, and so the password. Apache's rule is kept for sessions that were
 * living when a directory of Apache's was opened first, and for all where the server is told to.
 */

import { type Cipher, createCipheriv, randomBytes, timingSafeEqual } from 'node:crypto';
import { passwordBytes } from '../protocol/index.ts';
import { type SessionSecret, secretBytes } from '../storage/index.ts';

const superSecret = 0xb3415c00n;
const multiplier = 0x5deece66dn;
const mask = (1n << 48n) - 1n;
/** The 48 bits of the generator as two halves, so that their products are whole numbers below 2^53. */
const half = 2 ** 24;
const multiplierHigh = 0x5de;
const multiplierLow = 0xece66d;

/** The password by Apache's rule. */
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

export type PasswordRule = 'secret' | 'apache';

export class SessionPasswords {
  readonly #rule: PasswordRule;
  readonly #cipher: Cipher | undefined;
  readonly #apacheSessions: ReadonlySet<bigint>;

  /**
   * With the rule `apache` a password by `secret` is still taken: its client is told the other one when it
   * comes back, so that a restart is enough to change the rule.
   */
  constructor(
    rule: PasswordRule,
    { secret, apacheSessions }: Partial<SessionSecret> = { secret: randomBytes(secretBytes) },
  ) {
    this.#rule = rule;
    // Block by block: each password is one. A tenth of what an HMAC costs.
    this.#cipher = secret && createCipheriv('aes-256-ecb', secret, null);
    this.#apacheSessions = apacheSessions ?? new Set();
  }

  of(sessionId: bigint): Buffer {
    const isApache = this.#rule === 'apache' || this.#apacheSessions.has(sessionId);
    return isApache ? passwordOf(sessionId) : this.#encrypted(sessionId, this.#cipher!);
  }

  isOf(sessionId: bigint, given: Buffer | null): boolean {
    if (sessionId === 0n || given?.length !== passwordBytes) return false;
    if (timingSafeEqual(given, this.of(sessionId))) return true;
    if (this.#rule !== 'apache' || this.#cipher === undefined) return false;
    return timingSafeEqual(given, this.#encrypted(sessionId, this.#cipher));
  }

  #encrypted(sessionId: bigint, cipher: Cipher): Buffer {
    const block = Buffer.alloc(passwordBytes);
    block.writeBigInt64BE(sessionId);
    return cipher.update(block);
  }
}
