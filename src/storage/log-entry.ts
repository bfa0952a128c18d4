/**
 * One transaction as it stands in a log.
 *
 *   entry    adler32:long  length:int  txn[length]  0x42      checksum over the txn bytes alone
 *   txn      TxnHeader (32 bytes)  record, by the header's type  [TxnDigest (12 bytes)]
 *
 * The class comment of Apache's FileTxnLog says that the checksum covers the length and the end byte
 * as well; its code does not. Nothing longer than `txnBytesMax` is ever written.
 */

import { ProtocolError, Reader, readInt, type Writer, writeInt } from '../jute/index.ts';
import {
  type DigestHalves,
  frameBytesMax,
  readCreateV0,
  readTxn,
  type TxnBody,
  TxnDigest,
  TxnHeader,
  txns,
} from '../protocol/index.ts';
import { adler32 } from './adler32.ts';
import { StorageError } from './storage-error.ts';

/** Before the txn: checksum and length. */
export const entryHeadBytes = 12;
/** Behind it: the end byte. */
export const entryBytesAround = entryHeadBytes + 1;
export const endOfEntry = 0x42;

/** Apache's BinaryInputArchive takes jute.maxbuffer and as much again, and refuses to start on more (ZOOKEEPER-4306). */
export const txnBytesMax = 2 * frameBytesMax;
export const txnBytesMin = TxnHeader.width;

/** What is said of a length that can't be. One that is too long need not be damage: nothing is to be salvaged then. */
export function lengthFault(what: string, length: number): string {
  if (length <= txnBytesMax) return `${what} of ${length}`;
  return `${what} of ${length}, where ${txnBytesMax} at most are read: it is damaged, or a server with a raised jute.maxbuffer wrote it`;
}

/** Where they stand in a TxnHeader: clientId, cxid, zxid, time, type. */
const cxidOffset = 8;
const zxidOffset = 12;
const timeOffset = 20;
const typeOffset = 28;

export function zxidOfTxn(bytes: Buffer, start = 0): bigint {
  return bytes.readBigInt64BE(start + zxidOffset);
}

/** Refused before anything is written: a log with such an entry could never be read back. */
export function checkTxnSize(bytes: number): void {
  if (bytes > txnBytesMax || bytes < txnBytesMin) {
    throw new StorageError(
      'TXN_TOO_LARGE',
      `${bytes} bytes; from ${txnBytesMin} to ${txnBytesMax} are possible`,
    );
  }
}

/** For who encodes a txn into a stretch of entries: room for what `sealEntry` fills in. */
export function beginEntry(writer: Writer): void {
  writer.longHalves(0, 0);
  writer.int(0);
}

export function endEntry(writer: Writer): void {
  writer.bool(false);
}

/** Fills in what stands around the txn of the entry from `at` to `end`. */
export function sealEntry(bytes: Buffer, at: number, end: number): void {
  const start = at + entryHeadBytes;
  writeInt(bytes, at, 0);
  writeInt(bytes, at + 4, adler32(bytes, start, end - 1));
  writeInt(bytes, at + 8, end - 1 - start);
  bytes[end - 1] = endOfEntry;
}

/** Whether the zxid of the entry at `next` is the one behind that of the entry at `last`. */
export function isCountedOn(bytes: Buffer, next: number, last: number): boolean {
  const nextAt = next + entryHeadBytes + zxidOffset;
  const lastAt = last + entryHeadBytes + zxidOffset;
  const isSameHigh = readInt(bytes, nextAt) === readInt(bytes, lastAt);
  // From one half to the next the lower one comes back to 0, and is not taken for the next.
  const low = readInt(bytes, nextAt + 4) >>> 0;
  return isSameHigh && low === (readInt(bytes, lastAt + 4) >>> 0) + 1;
}

/** What is wrong with the bytes at `at`, which hold a whole entry of `length`; null for nothing. */
export function faultOfEntry(bytes: Buffer, at: number, length: number): string | null {
  const start = at + entryHeadBytes;
  const sum = adler32(bytes, start, start + length);
  if (bytes.readUInt32BE(at) !== 0 || bytes.readUInt32BE(at + 4) !== sum) return 'wrong checksum';
  if (bytes[start + length] !== endOfEntry) return 'wrong end byte';
  return null;
}

/** A digest as it stands behind a txn. */
export interface TreeDigestAt {
  readonly version: number;
  /** Of the sum over the whole tree, in two halves: a replay compares one for each txn. */
  readonly halves: DigestHalves;
}

/**
 * A txn where it lies, in a larger stretch that was read for it: copy what outlives the entry. A replay
 * meets millions of these, so nothing is made of the bytes before somebody asks.
 */
export class LogEntry {
  readonly file: string;
  readonly offset: number;
  readonly zxid: bigint;
  readonly #memory: Buffer;
  readonly #start: number;
  readonly #end: number;
  #decoded: DecodedTxn | undefined;

  constructor(file: string, offset: number, memory: Buffer, start: number, end: number) {
    this.file = file;
    this.offset = offset;
    this.#memory = memory;
    this.#start = start;
    this.#end = end;
    this.zxid = zxidOfTxn(memory, start);
  }

  /** Header, record and digest. */
  get bytes(): Buffer {
    return this.#memory.subarray(this.#start, this.#end);
  }

  /** The session that asked. */
  get clientId(): bigint {
    return this.#memory.readBigInt64BE(this.#start);
  }

  get cxid(): number {
    return readInt(this.#memory, this.#start + cxidOffset);
  }

  get timeMs(): number {
    const at = this.#start + timeOffset;
    return readInt(this.#memory, at) * 2 ** 32 + (readInt(this.#memory, at + 4) >>> 0);
  }

  /** What the transaction does. Throws `ProtocolError` where the bytes are none. */
  get body(): TxnBody {
    return this.#decode().body;
  }

  /** The sum over the whole tree after this transaction, where the writer kept one. */
  get digest(): TreeDigestAt | null {
    return this.#decode().digest;
  }

  #decode(): DecodedTxn {
    this.#decoded ??= decodeTxn(this.#memory, this.#start, this.#end);
    return this.#decoded;
  }
}

export interface DecodedTxn {
  readonly body: TxnBody;
  readonly digest: TreeDigestAt | null;
}

export function decodeTxn(bytes: Buffer, start = 0, end: number = bytes.length): DecodedTxn {
  const type = readInt(bytes, start + typeOffset);
  const reader = new Reader(bytes, start + TxnHeader.width, end);
  try {
    const body = readTxn(type, reader);
    return { body, digest: reader.remaining === 0 ? null : readDigest(reader) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const old = decodeOldTxn(type, bytes.subarray(start, end));
    if (old === null) throw error;
    return old;
  }
}

/**
 * The two shapes that Apache's SerializeUtils tries when the first does not fit: a create of 3.4, which
 * has no digest behind it, and a close by a server that was told not to log the paths.
 */
function decodeOldTxn(type: number, bytes: Buffer): DecodedTxn | null {
  const rest = bytes.subarray(TxnHeader.width);
  if (type === txns.create.code) {
    try {
      const txn = { ...readCreateV0(rest), parentCVersion: -1 };
      return { body: { type: 'create', txn }, digest: null };
    } catch {
      return null;
    }
  }
  if (type === txns.closeSession.code && rest.length === TxnDigest.width) {
    const body: TxnBody = { type: 'closeSession', txn: { paths2Delete: [] } };
    return { body, digest: readDigest(new Reader(rest)) };
  }
  return null;
}

/** A TxnDigest. */
function readDigest(reader: Reader): TreeDigestAt {
  const version = reader.int();
  const high = reader.int();
  const low = reader.int();
  reader.finish();
  return { version, halves: { high, low } };
}
