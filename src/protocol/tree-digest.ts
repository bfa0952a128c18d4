/**
 * The sum over a whole tree by which two servers, or a log and its replay, can be compared: Apache's
 * DigestCalculator, version 2, and AdHash.
 *
 *   node   CRC-32 over  path  data  czxid mzxid pzxid ctime mtime version cversion aversion owner
 *   tree   the sum of its nodes' CRCs, modulo 2^64
 *
 * Nodes below /zookeeper/ don't count: quotas change there without a transaction. The root's path is
 * empty. Not in the sum, so not protected by it: ACLs.
 *
 * Every write needs a few of these CRCs, over a hundred bytes or so: they are computed here, since a
 * call into the runtime costs more than that. Between two of its bytes a CRC is `state`, an int; what
 * comes out is an int too, where the bits count and not the sign.
 */

import { crc32 } from 'node:zlib';
import type { StatPersisted } from './records.ts';

export const digestVersion = 2;

const uncountedPrefix = '/zookeeper/';
/** For who has paths as bytes. */
export const uncountedPrefixBytes: Uint8Array = Buffer.from(uncountedPrefix);

/** Whether the node at `path` has a share in the sum. Most are told from the others by one letter. */
export const isCounted = (path: string): boolean =>
  path.charCodeAt(1) !== 0x7a || !path.startsWith(uncountedPrefix);

/**
 * Eight tables in one, so that eight bytes take one step: the last is for the first byte of them. One
 * array and not eight, since the compiler then looks it up and checks it once.
 */
const table = new Int32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let state = byte;
  for (let bit = 0; bit < 8; bit++) state = state & 1 ? (state >>> 1) ^ 0xedb88320 : state >>> 1;
  table[byte] = state;
}
for (let at = 256; at < table.length; at++) {
  const state = table[at - 256]!;
  table[at] = (state >>> 8) ^ table[state & 0xff]!;
}

export const crcStart = -1;
export const crcEnd = (state: number): number => ~state;

/** Above, the runtime is faster, its call included. */
const ownBytesMax = 512;

export function crcBytes(state: number, bytes: Uint8Array, start: number, end: number): number {
  if (end - start > ownBytesMax) return ~crc32(bytes.subarray(start, end), ~state >>> 0);
  let at = start;
  for (const last = end - 7; at < last; at += 8) {
    state =
      table[0x700 + ((state ^ bytes[at]!) & 0xff)]! ^
      table[0x600 + (((state >>> 8) ^ bytes[at + 1]!) & 0xff)]! ^
      table[0x500 + (((state >>> 16) ^ bytes[at + 2]!) & 0xff)]! ^
      table[0x400 + ((state >>> 24) ^ bytes[at + 3]!)]! ^
      table[0x300 + bytes[at + 4]!]! ^
      table[0x200 + bytes[at + 5]!]! ^
      table[0x100 + bytes[at + 6]!]! ^
      table[bytes[at + 7]!]!;
  }
  if (end - at >= 4) {
    state =
      table[0x300 + ((state ^ bytes[at]!) & 0xff)]! ^
      table[0x200 + (((state >>> 8) ^ bytes[at + 1]!) & 0xff)]! ^
      table[0x100 + (((state >>> 16) ^ bytes[at + 2]!) & 0xff)]! ^
      table[(state >>> 24) ^ bytes[at + 3]!]!;
    at += 4;
  }
  for (; at < end; at++) state = (state >>> 8) ^ table[(state ^ bytes[at]!) & 0xff]!;
  return state;
}

/** An int as jute writes it, the high byte first. */
function crcInt(state: number, value: number): number {
  return (
    table[0x300 + ((state ^ (value >>> 24)) & 0xff)]! ^
    table[0x200 + (((state >>> 8) ^ (value >>> 16)) & 0xff)]! ^
    table[0x100 + (((state >>> 16) ^ (value >>> 8)) & 0xff)]! ^
    table[(state >>> 24) ^ (value & 0xff)]!
  );
}

/** Two of them, or a long in halves. */
function crcInts(state: number, high: number, low: number): number {
  return (
    table[0x700 + ((state ^ (high >>> 24)) & 0xff)]! ^
    table[0x600 + (((state >>> 8) ^ (high >>> 16)) & 0xff)]! ^
    table[0x500 + (((state >>> 16) ^ (high >>> 8)) & 0xff)]! ^
    table[0x400 + ((state >>> 24) ^ (high & 0xff))]! ^
    table[0x300 + (low >>> 24)]! ^
    table[0x200 + ((low >>> 16) & 0xff)]! ^
    table[0x100 + ((low >>> 8) & 0xff)]! ^
    table[low & 0xff]!
  );
}

const half = 2 ** 32;

/** A long that is below 2^53, as zxids and times are. */
function crcLong(state: number, value: number): number {
  return crcInts(state, Math.floor(value / half), value);
}

function crcText(state: number, text: string): number {
  let at = 0;
  for (const last = text.length - 3; at < last; at += 4) {
    const a = text.charCodeAt(at);
    const b = text.charCodeAt(at + 1);
    const c = text.charCodeAt(at + 2);
    const d = text.charCodeAt(at + 3);
    if ((a | b | c | d) > 0x7f) break;
    state =
      table[0x300 + ((state ^ a) & 0xff)]! ^
      table[0x200 + (((state >>> 8) ^ b) & 0xff)]! ^
      table[0x100 + (((state >>> 16) ^ c) & 0xff)]! ^
      table[(state >>> 24) ^ d]!;
  }
  for (; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) {
      const rest = Buffer.from(text.slice(at));
      return crcBytes(state, rest, 0, rest.length);
    }
    state = (state >>> 8) ^ table[(state ^ unit) & 0xff]!;
  }
  return state;
}

/** What a node has of its own beside path and data, with zxids and times as numbers. */
export interface DigestedStat {
  readonly czxid: number;
  readonly pzxid: number;
  readonly ctimeMs: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly owner: bigint;
}

/** A node's share, for who keeps its Stat in numbers: right after its data was written. */
export function nodeCrc(
  path: string,
  data: Uint8Array | null,
  mzxid: number,
  mtimeMs: number,
  stat: DigestedStat,
): number {
  if (!isCounted(path)) return 0;
  let state = path === '/' ? crcStart : crcText(crcStart, path);
  if (data !== null) state = crcBytes(state, data, 0, data.length);
  state = crcLong(state, stat.czxid);
  state = crcLong(state, mzxid);
  state = crcLong(state, stat.pzxid);
  state = crcLong(state, stat.ctimeMs);
  state = crcLong(state, mtimeMs);
  state = crcInts(state, stat.version, stat.cversion);
  state = crcInt(state, stat.aversion);
  const { owner } = stat;
  if (owner === 0n) return crcEnd(crcInts(state, 0, 0));
  const high = Number(BigInt.asIntN(32, owner >> 32n));
  return crcEnd(crcInts(state, high, Number(BigInt.asIntN(32, owner))));
}

/**
 * How a CRC changes with some fields of the Stat, whatever is in front of them: equal bytes cancel
 * out, since a CRC is linear. So a parent's share is known without its data. `crc ^ this` is the new one.
 */
export function childrenCrcChange(
  pzxid: number,
  nextPzxid: number,
  cversion: number,
  nextCversion: number,
): number {
  const high = Math.floor(pzxid / half) ^ Math.floor(nextPzxid / half);
  let state = crcInts(0, high, pzxid ^ nextPzxid);
  state = crcInts(crcInts(state, 0, 0), 0, 0); // ctime and mtime
  state = crcInts(state, 0, cversion ^ nextCversion); // version and cversion
  return crcInts(crcInt(state, 0), 0, 0);
}

export function aversionCrcChange(aversion: number, next: number): number {
  return crcInts(crcInt(0, aversion ^ next), 0, 0);
}

const statBytes = 60;
let scratch = Buffer.allocUnsafeSlow(1024);

/** A node's share of the sum, 0 to 2^32 - 1, from its record: the plain way, for tools and tests. */
export function nodeDigest(path: string, data: Uint8Array | null, stat: StatPersisted): number {
  if (!isCounted(path)) return 0;
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

/** A sum's value at one moment, in two halves as a Writer's `longHalves` takes them: ints, with a sign. */
export interface DigestHalves {
  readonly high: number;
  readonly low: number;
}

/** The running sum, as two ints: it changes with every write, and anything larger would be made anew. */
export class TreeDigest implements DigestHalves {
  #high = 0;
  #low = 0;

  /** A CRC, with or without a sign. */
  add(nodeDigest: number): void {
    const low = (this.#low >>> 0) + (nodeDigest >>> 0);
    this.#low = low | 0;
    if (low >= half) this.#high = (this.#high + 1) | 0;
  }

  remove(nodeDigest: number): void {
    const low = (this.#low >>> 0) - (nodeDigest >>> 0);
    this.#low = low | 0;
    if (low < 0) this.#high = (this.#high - 1) | 0;
  }

  replace(before: number, after: number): void {
    this.remove(before);
    this.add(after);
  }

  set({ high, low }: DigestHalves): void {
    this.#high = high | 0;
    this.#low = low | 0;
  }

  clear(): void {
    this.#high = 0;
    this.#low = 0;
  }

  get high(): number {
    return this.#high;
  }

  get low(): number {
    return this.#low;
  }

  get halves(): DigestHalves {
    return { high: this.#high, low: this.#low };
  }

  equals({ high, low }: DigestHalves): boolean {
    return this.#low === low && this.#high === high;
  }

  /** As the log and the snapshot hold it: a signed long. */
  get value(): bigint {
    return digestValue(this);
  }
}

/** A signed long. */
export function digestValue({ high, low }: DigestHalves): bigint {
  return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low >>> 0));
}

export function digestHalves(value: bigint): DigestHalves {
  return { high: Number(BigInt.asIntN(32, value >> 32n)), low: Number(BigInt.asIntN(32, value)) };
}

export function digestText(digest: DigestHalves | bigint): string {
  const value = typeof digest === 'bigint' ? digest : digestValue(digest);
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}
