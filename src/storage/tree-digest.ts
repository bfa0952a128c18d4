/**
 * The sum over a whole tree by which two servers, or a log and its replay, can be compared: Apache's
 * DigestCalculator, version 2, and AdHash.
 *
 *   node   CRC-32 over  path  data  czxid mzxid pzxid ctime mtime version cversion aversion owner
 *   tree   the sum of its nodes' CRCs, modulo 2^64
 *
 * Nodes below /zookeeper/ don't count: quotas change there without a transaction. The root's path is
 * empty. Not in the sum, so not protected by it: ACLs.
 */

import { crc32 } from 'node:zlib';
import type { StatPersisted } from '../protocol/index.ts';

export const digestVersion = 2;

const uncountedPrefix = '/zookeeper/';
const statBytes = 60;
let scratch = Buffer.allocUnsafeSlow(1024);

/** A node's share of the sum: 0 to 2^32 - 1. */
export function nodeDigest(path: string, data: Uint8Array | null, stat: StatPersisted): number {
  if (path.startsWith(uncountedPrefix)) return 0;
  const dataBytes = data?.length ?? 0;
  const bytesMax = path.length * 3 + dataBytes + statBytes;
  if (bytesMax > scratch.length) scratch = Buffer.allocUnsafeSlow(bytesMax);
  // One call into the runtime costs more than copying a small node.
  let at = path === '/' ? 0 : scratch.write(path, 0, 'utf8');
  if (data !== null) scratch.set(data, at);
  at += dataBytes;
  at = scratch.writeBigInt64BE(stat.czxid, at);
  at = scratch.writeBigInt64BE(stat.mzxid, at);
  at = scratch.writeBigInt64BE(stat.pzxid, at);
  at = scratch.writeBigInt64BE(stat.ctime, at);
  at = scratch.writeBigInt64BE(stat.mtime, at);
  at = scratch.writeInt32BE(stat.version, at);
  at = scratch.writeInt32BE(stat.cversion, at);
  at = scratch.writeInt32BE(stat.aversion, at);
  at = scratch.writeBigInt64BE(stat.ephemeralOwner, at);
  return crc32(scratch.subarray(0, at));
}

const half = 2 ** 32;

/** The running sum, as two halves: it changes with every write, and a BigInt would be made each time. */
export class TreeDigest {
  #high = 0;
  #low = 0;

  add(nodeDigest: number): void {
    this.#low += nodeDigest;
    if (this.#low < half) return;
    this.#low -= half;
    this.#high = (this.#high + 1) % half;
  }

  remove(nodeDigest: number): void {
    this.#low -= nodeDigest;
    if (this.#low >= 0) return;
    this.#low += half;
    this.#high = (this.#high + half - 1) % half;
  }

  clear(): void {
    this.#high = 0;
    this.#low = 0;
  }

  /** The halves as a Writer's `longHalves` takes them. */
  get high(): number {
    return this.#high;
  }

  get low(): number {
    return this.#low;
  }

  /** As the log and the snapshot hold it: a signed long. */
  get value(): bigint {
    return BigInt.asIntN(64, (BigInt(this.#high) << 32n) | BigInt(this.#low));
  }
}
