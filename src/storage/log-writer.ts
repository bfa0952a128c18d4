/**
 * The transaction log, byte for byte as ZooKeeper writes it.
 *
 *   header   "ZKLG"  version:int = 2  dbid:long = 0
 *   entry*   see log-entry.ts
 *   padding  zeros: the file is grown ahead of the data
 *
 * In: txns in the order of their zxid. Out: a promise per batch, kept once the batch is on disk.
 *
 * Group commit: while one batch is being synced the next ones collect, and then go out together, in
 * one write and one sync. A new file's header and name, and the mark for it (durable-mark.ts), are on
 * disk before the first batch is written, so a file without a header held nothing that anybody was told of.
 *
 * A write or sync that fails is final. The kernel drops what it could not write and calls the pages
 * clean, so that a second sync would succeed and mean nothing.
 */

import { join } from 'node:path';
import { encode } from '../jute/index.ts';
import { FileHeader } from '../protocol/index.ts';
import { type Clock, type Deferred, deferred, monotonicClock } from '../support/index.ts';
import { MarkWriter } from './durable-mark.ts';
import { logName } from './file-names.ts';
import { type FileSystem, realFileSystem, type StoredFile } from './file-system.ts';
import {
  checkTxnSize,
  entryBytesAround,
  entryHeadBytes,
  isCountedOn,
  sealEntry,
  zxidOfTxn,
} from './log-entry.ts';
import { Preallocation } from './preallocation.ts';
import { StorageError, zxidText } from './storage-error.ts';
import { mayFollow } from './zxids.ts';

export const logMagic = 0x5a4b4c47; // ZKLG
export const logVersion = 2;
export const logHeaderBytes: number = FileHeader.width;

export const preallocBytesDefault = 64 * 1024 * 1024;
/** The most that one write takes, but for a single larger txn: what a power cut can tear at most. */
export const batchBytesMax = 4 * 1024 * 1024;

export interface LogWriterOptions {
  /** The folder of the logs themselves: dataLogDir/version-2. */
  readonly folder: string;
  /** That of the snapshots, if it is another: a mark there tells whoever starts without these logs that they are missing. */
  readonly snapshotFolder?: string | undefined;
  /** The last zxid recovered; 0 in a new directory. */
  readonly lastZxid: bigint;
  readonly fs?: FileSystem;
  readonly clock?: Clock;
  /** How much a file is grown ahead; 0 for not at all. */
  readonly preallocBytes?: number;
  /** Acknowledges what a power cut may take away again. For tests and throw-away data. */
  readonly unsafeNoFsync?: boolean;
  /** Told once, when the log has failed for good. */
  readonly onFailure?: (error: StorageError) => void;
}

/** Entries that go to disk together. */
interface Batch {
  bytes: Buffer;
  length: number;
  readonly firstZxid: bigint;
  /** Where its last entry begins. */
  lastAt: number;
  readonly startsFile: boolean;
  isQuiet: boolean;
  readonly done: Deferred<void>;
}

interface OpenLog {
  readonly file: StoredFile;
  readonly zxid: bigint;
  readonly space: Preallocation;
  position: number;
}

const batchBytesInitial = 64 * 1024;

export class LogWriter {
  readonly #fs: FileSystem;
  readonly #options: LogWriterOptions;
  readonly #queue: Batch[] = [];
  #draining: Promise<void> | undefined;
  #log: OpenLog | undefined;
  #mark: MarkWriter | undefined;
  /** The one beside the snapshots. It trails the log, and the log does not depend on it. */
  #farMark: MarkWriter | undefined;
  #spare: Buffer | undefined;
  #startsFile = true;
  #isClosed = false;
  #failure: StorageError | null = null;
  #lastZxid: bigint;
  #lastDurableZxid: bigint;
  #pendingBytes = 0;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#fs = options.fs ?? realFileSystem;
    this.#lastZxid = options.lastZxid;
    this.#lastDurableZxid = options.lastZxid;
  }

  /** The last one taken, on disk or not. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  get lastDurableZxid(): bigint {
    return this.#lastDurableZxid;
  }

  /** Taken and not on disk yet: when it grows, the disk is slower than the clients. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Bytes of entries in the file being written, with its header; 0 before the first. */
  get fileBytes(): number {
    return this.#log?.position ?? 0;
  }

  get failure(): StorageError | null {
    return this.#failure;
  }

  /**
   * Takes txns, each encoded as header, record and digest, and resolves when all of them are on disk.
   * The bytes are copied before it returns. A txn that is too large or out of order rejects the whole
   * call before anything is written, and the log goes on; every other rejection is final.
   */
  append(txns: readonly Buffer[]): Promise<void> {
    const ends: number[] = [];
    let length = 0;
    for (const txn of txns) {
      length += txn.length + entryBytesAround;
      ends.push(length);
    }
    const bytes = Buffer.allocUnsafe(length);
    for (const [i, txn] of txns.entries()) bytes.set(txn, ends[i]! - 1 - txn.length);
    return this.appendEntries(bytes, ends);
  }

  /**
   * The same for txns that stand in one stretch of memory, each with room around it for the rest of its
   * entry (`beginEntry`, `endEntry`), which is filled in here. One copy takes all of them. `isQuiet`: the
   * caller has nothing better to do meanwhile (`StoredFile.sync`).
   */
  appendEntries(bytes: Buffer, ends: readonly number[], isQuiet = false): Promise<void> {
    try {
      this.#check(bytes, ends);
    } catch (error) {
      return Promise.reject(error);
    }
    if (ends.length === 0) return Promise.resolve();
    let from = 0;
    let last = 0;
    let at = 0;
    for (const end of ends) {
      sealEntry(bytes, at, end);
      if (end - from > batchBytesMax && at > from) {
        this.#take(bytes, from, at, last);
        from = at;
      }
      last = at;
      at = end;
    }
    this.#take(bytes, from, at, last);
    this.#lastZxid = zxidOfTxn(bytes, last + entryHeadBytes);
    const batch = this.#queue.at(-1)!;
    const { done } = batch;
    batch.isQuiet = isQuiet && this.#draining === undefined;
    this.#draining ??= this.#drain();
    return done.promise;
  }

  /** What is appended from now on goes into a new file, named for its first zxid. */
  roll(): void {
    this.#startsFile = true;
  }

  /** Waits for what was taken, cuts the padding off and lets go of the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#draining;
    try {
      await this.#finishFile();
    } finally {
      await this.#mark?.close();
      await this.#farMark?.close();
    }
  }

  #check(bytes: Buffer, ends: readonly number[]): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#isClosed) throw new StorageError('CLOSED', 'append after close');
    let last = -1;
    let at = 0;
    for (const end of ends) {
      checkTxnSize(end - at - entryBytesAround);
      if (last === -1 || !isCountedOn(bytes, at, last)) {
        const before = last === -1 ? this.#lastZxid : zxidOfTxn(bytes, last + entryHeadBytes);
        const zxid = zxidOfTxn(bytes, at + entryHeadBytes);
        // What recovery would refuse as a gap must not be written in the first place.
        if (!mayFollow(zxid, before)) {
          throw new StorageError('ZXID_ORDER', `${zxidText(zxid)} after ${zxidText(before)}`);
        }
      }
      last = at;
      at = end;
    }
  }

  /** Takes whole entries, the last of which begins at `last`. */
  #take(bytes: Buffer, from: number, to: number, last: number): void {
    const length = to - from;
    let batch = this.#queue.at(-1);
    if (batch === undefined || this.#startsFile || batch.length + length > batchBytesMax) {
      batch = this.#newBatch(zxidOfTxn(bytes, from + entryHeadBytes));
    }
    batch.bytes = withRoom(batch.bytes, batch.length, length);
    bytes.copy(batch.bytes, batch.length, from, to);
    batch.lastAt = batch.length + last - from;
    batch.length += length;
    this.#pendingBytes += length;
  }

  #newBatch(firstZxid: bigint): Batch {
    const bytes = this.#spare ?? Buffer.allocUnsafeSlow(batchBytesInitial);
    this.#spare = undefined;
    const batch: Batch = {
      bytes,
      length: 0,
      firstZxid,
      lastAt: 0,
      startsFile: this.#startsFile,
      isQuiet: false,
      done: deferred(),
    };
    batch.done.promise.catch(() => {}); // an append of several batches looks at the last one alone
    this.#startsFile = false;
    this.#queue.push(batch);
    return batch;
  }

  /** The loop of the log's life: one batch after the other, until there is none or one fails. */
  async #drain(): Promise<void> {
    for (let batch = this.#queue.shift(); batch !== undefined; batch = this.#queue.shift()) {
      try {
        await this.#commit(batch);
      } catch (error) {
        this.#fail(error, batch);
        break;
      }
      this.#lastDurableZxid = zxidOfTxn(batch.bytes, batch.lastAt + entryHeadBytes);
      this.#pendingBytes -= batch.length;
      this.#spare = batch.bytes.length <= batchBytesMax ? batch.bytes : undefined;
      batch.done.resolve();
    }
    this.#draining = undefined;
  }

  async #commit(batch: Batch): Promise<void> {
    if (batch.startsFile) await this.#startFile(batch.firstZxid);
    const log = this.#log!;
    const end = log.position + batch.length;
    if (!log.space.has(end)) await log.space.reserve(end);
    const bytes = batch.bytes.subarray(0, batch.length);
    // Nothing is waited for between write and sync where that can be: the disk is at work when we return.
    if (!log.file.writeNow?.(bytes, log.position)) await log.file.write(bytes, log.position);
    if (!this.#options.unsafeNoFsync) await log.file.sync(batch.isQuiet ? 'quiet' : undefined);
    log.position = end;
    log.space.ahead(end, batch.length);
    this.#mark?.moveTo({ log: log.zxid, offset: end });
    this.#farMark?.moveTo({ log: log.zxid, offset: end });
  }

  async #startFile(zxid: bigint): Promise<void> {
    await this.#finishFile();
    const { folder, snapshotFolder, unsafeNoFsync, clock = monotonicClock } = this.#options;
    const { preallocBytes = preallocBytesDefault } = this.#options;
    if (!unsafeNoFsync) this.#mark ??= await MarkWriter.open(this.#fs, folder, clock);
    if (!unsafeNoFsync && snapshotFolder !== undefined && this.#farMark === undefined) {
      // That disk may be full, and this one not.
      const opening = MarkWriter.open(this.#fs, snapshotFolder, clock);
      this.#farMark = await opening.catch(() => undefined);
    }
    // Made anew or not at all: a file of that name would hold txns that recovery has not seen.
    const file = await this.#fs.open(join(folder, logName(zxid)), 'create');
    const space = new Preallocation(file, logHeaderBytes, preallocBytes);
    this.#log = { file, zxid, space, position: logHeaderBytes };
    await file.write(logHeader, 0);
    await space.start();
    if (unsafeNoFsync) return;
    await file.sync();
    await this.#fs.syncFolder(folder);
    await this.#mark?.begin({ log: zxid, offset: logHeaderBytes });
  }

  async #finishFile(): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    this.#log = undefined;
    await log.space.settled();
    try {
      // After a failure nothing is certain about what lies where: recovery decides, and cuts.
      if (this.#failure === null) await log.file.truncate(log.position);
    } finally {
      await log.file.close();
    }
  }

  #fail(cause: unknown, batch: Batch): void {
    const error = new StorageError('WRITE_FAILED', String(cause), {
      cause,
      file: this.#log && join(this.#options.folder, logName(this.#log.zxid)),
      offset: this.#log?.position,
      zxids: { from: batch.firstZxid, to: this.#lastZxid },
      lastDurableZxid: this.#lastDurableZxid,
    });
    this.#failure = error;
    batch.done.reject(error);
    for (const waiting of this.#queue.splice(0)) waiting.done.reject(error);
    this.#options.onFailure?.(error);
  }
}

const logHeader: Buffer = encode(FileHeader, { magic: logMagic, version: logVersion, dbid: 0n });

function withRoom(bytes: Buffer, used: number, wanted: number): Buffer {
  if (used + wanted <= bytes.length) return bytes;
  const grown = Buffer.allocUnsafeSlow(Math.max(used + wanted, bytes.length * 2));
  bytes.copy(grown, 0, 0, used);
  return grown;
}
