/**
 * How a log ends, told from its bytes: where the first entry that can't be read stands, is it the end,
 * a batch that a crash cut short, or damage?
 *
 * A log is written once, front to back, into zeros. So of a batch that was not synced, a power cut
 * leaves each 512-byte sector either whole or as zeros, in any mixture, and a kill leaves a front part.
 * An entry that is wrong in any other way was whole once and has been damaged since. So has an entry
 * that lies before the durable mark, and so has one with whole entries behind it, unless all of that
 * fits in the one batch that may have been on its way.
 *
 * Without a mark (a directory of Apache's) only a missing back part counts as a crash; a power cut that
 * left holes is refused like damage, since it can't be told from it. Two faults do look like a crash,
 * and nothing can be done about it: a file cut off, and records zeroed at the very end.
 */

import type { StoredFile } from './file-system.ts';
import {
  endOfEntry,
  entryBytesAround,
  entryHeadBytes,
  faultOfEntry,
  txnBytesMax,
  txnBytesMin,
  zxidOfTxn,
} from './log-entry.ts';
import { batchBytesMax } from './log-writer.ts';

/** Whole entries found behind the place where reading stopped. */
export interface EntriesBehind {
  readonly offset: number;
  readonly endOffset: number;
  readonly zxid: bigint;
  readonly lastZxid: bigint;
}

export type LogEnd =
  /** Nothing but zeros behind the last entry, or nothing at all. */
  | { readonly kind: 'clean'; readonly offset: number }
  /** A batch that was being written: what is behind `offset` was never acknowledged. */
  | { readonly kind: 'torn'; readonly offset: number; readonly what: string }
  | {
      readonly kind: 'damaged';
      readonly offset: number;
      readonly what: string;
      readonly behind: EntriesBehind | null;
    };

export interface TailContext {
  readonly file: StoredFile;
  readonly size: number;
  /** Where the first entry stands that can't be read, and why not. */
  readonly offset: number;
  readonly what: string;
  readonly lastZxid: bigint;
  /** How far the file was certainly synced; null where nobody kept a mark. */
  readonly markOffset: number | null;
}

const sectorBytes = 512;
/** An Adler-32 stands in eight bytes. */
const zerosOfChecksum = 4;
const blockBytes = 1024 * 1024;
const entryBytesMax = txnBytesMax + entryBytesAround;
const windowBytes = 2 * entryBytesMax;
/** Data can be made to look like a thousand entries; checking them all must not take for ever. */
const checkBytesMax = 2 ** 30;

export async function judgeTail(context: TailContext): Promise<LogEnd> {
  const { file, size, offset, what, markOffset, lastZxid } = context;
  const end = await endOfData(file, offset, size);
  const isBeforeMark = markOffset !== null && offset < markOffset;
  if (end === offset && !isBeforeMark) return { kind: 'clean', offset };
  const behind = await entriesBehind(file, offset + 1, end, lastZxid);
  const damaged: LogEnd = { kind: 'damaged', offset, what, behind };
  if (isBeforeMark) {
    const known = `what lies before offset ${markOffset} was synced`;
    return { ...damaged, what: `${end === offset ? 'the log ends early' : what}; ${known}` };
  }
  if (!(await isTear(context, end, behind))) return damaged;
  const isOneBatch = (behind?.endOffset ?? offset) - offset <= batchBytesMax + entryBytesMax;
  if (!isOneBatch || (behind !== null && markOffset === null)) return damaged;
  return { kind: 'torn', offset, what };
}

/** The offset behind the last byte that is not zero, `start` if there is none. */
async function endOfData(file: StoredFile, start: number, size: number): Promise<number> {
  const block = Buffer.allocUnsafe(Math.min(blockBytes, Math.max(0, size - start)));
  const zeros = Buffer.alloc(block.length);
  let end = start;
  for (let at = start; at < size; at += blockBytes) {
    const length = await file.read(block.subarray(0, Math.min(blockBytes, size - at)), at);
    if (length === 0) break;
    if (block.subarray(0, length).equals(zeros.subarray(0, length))) continue;
    let last = length - 1;
    while (block[last] === 0) last--;
    end = at + last + 1;
  }
  return end;
}

/** Whether a crash alone can have made the entry at `offset` what it is. */
async function isTear(
  context: TailContext,
  end: number,
  behind: EntriesBehind | null,
): Promise<boolean> {
  const { file, size, offset, markOffset } = context;
  if (end - offset < entryHeadBytes) return true;
  const bytes = Buffer.alloc(Math.min(entryBytesMax, size - offset));
  await file.read(bytes, offset);
  const maySectorsBeLost = markOffset !== null;
  if (maySectorsBeLost && hasLostSector(bytes, offset, entryHeadBytes)) return true;
  const length = bytes.readInt32BE(8);
  if (length < txnBytesMin || length > txnBytesMax) return false;
  // A whole entry with a wrong length: its own checksum says how long it was.
  for (const next of [end, ...(behind === null ? [] : [behind.offset])]) {
    if (isEntry(bytes, 0, next - offset - entryBytesAround)) return false;
  }
  const wanted = length + entryBytesAround;
  // Only the end byte is wrong. No crash changes one byte, but one may have come right before it.
  if (wanted <= bytes.length && faultOfEntry(bytes, 0, length) === 'wrong end byte') {
    const isMissing = offset + wanted > end || isLostSector(bytes, offset, wanted - 1);
    return maySectorsBeLost && isMissing;
  }
  // The back part is missing: the end byte is never zero.
  if (offset + wanted > end) return true;
  return maySectorsBeLost && hasLostSector(bytes, offset, wanted);
}

/**
 * A sector that still is as it was before the write: zeros from where the write began. One that has no more
 * of the entry than the zeros it begins with tells nothing.
 */
function hasLostSector(bytes: Buffer, offset: number, length: number): boolean {
  for (let at = 0; at < length; at = sectorEnd(offset, at)) {
    const end = sectorEnd(offset, at);
    if (end > zerosOfChecksum && isZero(bytes, at, end)) return true;
  }
  return false;
}

/** Whether a sector begins at `at`, and is lost. */
function isLostSector(bytes: Buffer, offset: number, at: number): boolean {
  return (offset + at) % sectorBytes === 0 && isZero(bytes, at, sectorEnd(offset, at));
}

/** Where the sector ends that `at` is in, both counted from `offset` in the file. */
function sectorEnd(offset: number, at: number): number {
  return sectorBytes - ((offset + at) % sectorBytes) + at;
}

function isZero(bytes: Buffer, from: number, to: number): boolean {
  return bytes.subarray(from, to).every((byte) => byte === 0);
}

function isEntry(bytes: Buffer, at: number, length: number): boolean {
  if (length < txnBytesMin || length > txnBytesMax) return false;
  if (at + length + entryBytesAround > bytes.length) return false;
  return (
    bytes[at + entryHeadBytes + length] === endOfEntry && faultOfEntry(bytes, at, length) === null
  );
}

/** Looks for a whole entry at every offset from `start`, and then follows on from it. */
async function entriesBehind(
  file: StoredFile,
  start: number,
  end: number,
  lastZxid: bigint,
): Promise<EntriesBehind | null> {
  const bytes = Buffer.allocUnsafe(Math.min(windowBytes, Math.max(0, end - start)));
  let checkedBytes = 0;
  for (let from = start; end - from >= txnBytesMin; from += entryBytesMax) {
    const window = bytes.subarray(0, await file.read(bytes, from));
    const until = Math.min(entryBytesMax, window.length - entryHeadBytes);
    for (let at = 0; at < until; at++) {
      if (window.readUInt32BE(at) !== 0) continue;
      const length = window.readUInt32BE(at + 8);
      if (length < txnBytesMin || length > txnBytesMax) continue;
      if (window[at + entryHeadBytes + length] !== endOfEntry) continue;
      checkedBytes += length;
      if (checkedBytes > checkBytesMax) return unknownEntries(from + at, end, lastZxid);
      if (!isEntry(window, at, length)) continue;
      const zxid = zxidOfTxn(window, at + entryHeadBytes);
      // Data may hold a log of its own; what belongs here goes on from what was read.
      if (zxid > lastZxid) return followEntries(file, end, from + at, zxid);
    }
  }
  return null;
}

/** Not looked at to the end: to be on the safe side, taken for entries up to there. */
function unknownEntries(offset: number, endOffset: number, lastZxid: bigint): EntriesBehind {
  return { offset, endOffset, zxid: lastZxid + 1n, lastZxid: lastZxid + 1n };
}

async function followEntries(
  file: StoredFile,
  size: number,
  start: number,
  zxid: bigint,
): Promise<EntriesBehind> {
  const bytes = Buffer.allocUnsafe(Math.min(entryBytesMax, Math.max(0, size - start)));
  let offset = start;
  let lastZxid = zxid;
  for (;;) {
    const length = await file.read(bytes, offset);
    const whole = bytes.subarray(0, length);
    if (length < entryHeadBytes || !isEntry(whole, 0, whole.readInt32BE(8))) break;
    lastZxid = zxidOfTxn(whole, entryHeadBytes);
    offset += whole.readInt32BE(8) + entryBytesAround;
  }
  return { offset: start, endOffset: offset, zxid, lastZxid };
}
