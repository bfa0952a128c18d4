/**
 * The log that writes files, and the snapshots and the purging that go with it.
 *
 * In: batches of txns. Out: a promise for each, kept once all of it would survive a loss of power. Every
 * `snapCount` txns, more or less, the log goes on in a new file, and a snapshot is written behind it.
 *
 * A log that fails is the end. A snapshot that fails costs a longer replay, and is tried again with the
 * next; one that finds bad memory ends the log too.
 */

import { setImmediate } from 'node:timers';
import { Writer } from '../jute/index.ts';
import {
  CreateTxn,
  digestVersion,
  type MultiTxn,
  SetDataTxn,
  StatPersisted,
  type TxnBody,
  txns,
} from '../protocol/index.ts';
import {
  beginEntry,
  type DataDirectory,
  endEntry,
  type FileSystem,
  isStorageError,
  LogWriter,
  purge,
  type Recovered,
  StorageError,
  type WrittenSnapshot,
} from '../storage/index.ts';
import { type Clock, type Logger, monotonicClock, type Timer } from '../support/index.ts';
import type { Tree } from '../tree/index.ts';
import type { PersistenceOptions } from './persistence-options.ts';
import { Tally } from './stats.ts';
import { writeTree } from './tree-snapshot.ts';
import type { LoggedTxn, TxnLog } from './txn-log.ts';

export interface TakenSnapshot extends WrittenSnapshot {
  readonly zxid: bigint;
}

/** What took how long, in milliseconds, and how many txns there were at the start. */
export class StorageTallies {
  readonly snapshottime = new Tally();
  readonly startup_snap_load_time = new Tally();
  readonly startup_txns_load_time = new Tally();
  readonly startup_txns_loaded = new Tally();
}

const half = 2 ** 32;

const snapCountDefault = 100_000;
/** As Apache's: few large txns fill a disk as well, and take as long to replay. */
const snapLogBytesDefault = 4 * 1024 ** 3;
/** From the end of one snapshot to the next: each costs as much as some hundred thousand writes. */
const snapshotPauseMs = 10_000;
/** At the end a snapshot that takes longer is given up: the next start replays the log in its place. */
const finalSnapshotMsMax = 6_000;
/** A node that is written costs a third of a create, and one that is read back a third of a txn that is replayed. */
const txnsPerNode = 2 / 3;
/** Not for longer than it takes to have so much to replay: that takes about two seconds. */
const replayedBytesDefault = 750_000_000;
/** A txn that is replayed takes as long as so many bytes of its data do. */
const txnBytes = 512;
/** In a snapshot, around path and data: their lengths, the ACL and the Stat. */
const snapshotBytesPerNode = 4 + 4 + 8 + StatPersisted.width;
/** Real trees become smaller still. */
const deflatedAtLeast = 3;

export class DiskLog implements TxnLog {
  readonly #directory: DataDirectory;
  readonly #tree: Tree;
  readonly #writer: LogWriter;
  readonly #options: PersistenceOptions;
  readonly #fs: FileSystem;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #tallies: StorageTallies;
  readonly #scratch = new Writer(64 * 1024);
  #sinceSnapshot = 0;
  /** Of these, in the log. */
  #bytesSinceSnapshot = 0;
  #nextSnapshotAfter: number;
  #nextSnapshotAfterBytes: number;
  #snapshotting: Promise<TakenSnapshot> | undefined;
  /** When the last one was done, by the clock that only grows. */
  #snapshotMs = -Infinity;
  #purging: Promise<void> | undefined;
  #purgeTimer: Timer | undefined;
  readonly #closing = new AbortController();
  readonly #ending = new AbortController();
  #isClosed = false;
  /** What was found while nobody asked; the next batch hears of it. */
  #broken: StorageError | undefined;
  /** The last one that is whole: written by us, or read at the start. */
  lastSnapshot: { readonly zxid: number; readonly wallMs: number } | undefined;

  constructor(
    directory: DataDirectory,
    tree: Tree,
    lastZxid: bigint,
    options: PersistenceOptions,
    fs: FileSystem,
    logger: Logger,
    tallies: StorageTallies,
  ) {
    this.#tallies = tallies;
    this.#directory = directory;
    this.#tree = tree;
    this.#options = options;
    this.#fs = fs;
    this.#logger = logger;
    this.#clock = options.clock ?? monotonicClock;
    this.#nextSnapshotAfter = this.#snapCount();
    this.#nextSnapshotAfterBytes = this.#snapLogBytes();
    const { logFolder, snapshotFolder } = directory;
    this.#writer = new LogWriter({
      folder: logFolder,
      ...(snapshotFolder === logFolder ? {} : { snapshotFolder }),
      lastZxid,
      fs,
      unsafeNoFsync: options.unsafeNoFsync ?? false,
      ...(options.preallocBytes === undefined ? {} : { preallocBytes: options.preallocBytes }),
    });
  }

  get isInstant(): boolean {
    return this.#options.unsafeNoFsync ?? false;
  }

  get lastDurableZxid(): bigint {
    return this.#writer.lastDurableZxid;
  }

  /**
   * A directory without a snapshot gets one: Apache refuses to start on logs alone. So does one that
   * was salvaged: from here on what was lost is no longer in the way.
   */
  async start({ snapshot, txns: replayed, logs, notices }: Recovered): Promise<void> {
    this.#sinceSnapshot = replayed;
    const behind = logs.filter(({ lastZxid }) => (lastZxid ?? 0n) > (snapshot?.file.zxid ?? 0n));
    this.#bytesSinceSnapshot = behind.reduce((sum, { end }) => sum + end.offset, 0);
    if (snapshot !== null) {
      const { path, zxid } = snapshot.file;
      const wallMs = (await this.#fs.status(path))?.modifiedMs ?? 0;
      this.lastSnapshot = { zxid: Number(zxid), wallMs };
    }
    const isSalvaged = notices.some(({ kind }) => kind === 'salvaged');
    if (snapshot === null || isSalvaged) await this.snapshot(true);
    this.#schedulePurge();
  }

  async append(batch: readonly LoggedTxn[], isQuiet = false): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    const { bytes, ends } = this.#encode(batch);
    // A snapshot keeps the disk busy.
    await this.#writer.appendEntries(bytes, ends, isQuiet && this.#snapshotting === undefined);
    this.#sinceSnapshot += batch.length;
    this.#bytesSinceSnapshot += bytes.length;
    if (!this.#isSnapshotDue || this.#snapshotting !== undefined) return;
    // After the batch was applied: what is durable and not in the tree yet would only be replayed.
    setImmediate(() => {
      this.snapshot().catch((error) => this.#logger.error({ err: error }, 'snapshot failed'));
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#purgeTimer?.cancel();
    this.#closing.abort(); // a purge reads gigabytes, and can do so after the next start
    await this.#snapshotting?.catch(() => {}); // told in the log already
    await this.#purging;
    try {
      await this.#writer.close();
    } finally {
      await this.#directory.release(); // whoever starts next must find it free, whatever the disk says
    }
  }

  async freshSnapshot(): Promise<TakenSnapshot | undefined> {
    await this.#snapshotting?.catch(() => {}); // whoever asked for that one is told
    return this.snapshot();
  }

  /** One that is under way, and one more where it pays; for no longer than an end may take. */
  async finalSnapshot(): Promise<void> {
    const late = this.#clock.after(
      finalSnapshotMsMax,
      () => this.#ending.abort(new Error(`it took more than ${finalSnapshotMsMax} ms`)),
      true,
    );
    try {
      await this.#snapshotAtEnd();
    } finally {
      late.cancel();
    }
  }

  async #snapshotAtEnd(): Promise<void> {
    await this.#snapshotting?.catch(() => {});
    if (this.#ending.signal.aborted) return;
    // Half as many as one is taken for anyway: it is quicker than to replay them.
    const { snapCount = snapCountDefault, snapLogBytes = snapLogBytesDefault } = this.#options;
    const isLong = snapLogBytes > 0 && 2 * this.#bytesSinceSnapshot >= snapLogBytes;
    if (2 * this.#sinceSnapshot < snapCount && !isLong) return;
    try {
      await this.snapshot(true);
    } catch (error) {
      this.#logger.error({ err: error }, 'no snapshot at the end: the next start takes longer');
    }
  }

  /** `isAlone`: no txns are to be logged meanwhile. */
  snapshot(isAlone = false): Promise<TakenSnapshot | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    this.#snapshotting ??= this.#writeSnapshot(isAlone)
      .catch((error) => {
        if (isStorageError(error, 'BROKEN_MEMORY')) this.#broken = error;
        throw error;
      })
      .finally(() => {
        this.#snapshotting = undefined;
      });
    return this.#snapshotting;
  }

  /**
   * By the size of the log, as in Apache. By number, where nobody said after how many: not before two thirds as
   * many txns as there are nodes, and not at once after the last one, unless there is much to be replayed by
   * then. What a snapshot costs grows with the tree, and so would the part of the time that goes into them
   * while it is filled; and while one is synced, writes wait longer for the disk.
   */
  get #isSnapshotDue(): boolean {
    if (this.#bytesSinceSnapshot >= this.#nextSnapshotAfterBytes) return true;
    if (this.#sinceSnapshot < this.#nextSnapshotAfter) return false;
    if (this.#options.snapCount !== undefined) return true;
    if (this.#sinceSnapshot < txnsPerNode * this.#tree.nodes.count) return false;
    const { replayedBytesMax = replayedBytesDefault } = this.#options;
    const replayedBytes = this.#sinceSnapshot * txnBytes + this.#bytesSinceSnapshot;
    if (replayedBytes >= replayedBytesMax) return true;
    return this.#clock.nowMs() - this.#snapshotMs >= snapshotPauseMs;
  }

  #snapCount(): number {
    return this.#from(this.#options.snapCount ?? snapCountDefault);
  }

  #snapLogBytes(): number {
    const { snapLogBytes = snapLogBytesDefault } = this.#options;
    return snapLogBytes > 0 ? this.#from(snapLogBytes) : Infinity;
  }

  /** From half of it on: spread over time, so that the servers of one machine don't all write at once. */
  #from(most: number): number {
    const { random = Math.random } = this.#options;
    return Math.max(1, Math.ceil(most / 2 + (most / 2) * random()));
  }

  /**
   * The log can do without a snapshot, and not without room on the disk: one that would take the last of it
   * is not begun. It would have done so before anybody looks how much is left.
   */
  async #checkRoom(): Promise<void> {
    const { snapshotRoomBytes } = this.#options;
    if (snapshotRoomBytes === undefined) return;
    const roomBytes = await snapshotRoomBytes();
    const { approximateDataSize, nodes } = this.#tree;
    const plainBytes = approximateDataSize + nodes.count * snapshotBytesPerNode;
    const isPlain = this.#options.snapshotCompression !== 'gzip';
    const bytes = Math.ceil(isPlain ? plainBytes : plainBytes / deflatedAtLeast);
    if (bytes <= roomBytes) return;
    const what = `the disk has no room for about ${bytes} bytes besides what the log needs`;
    throw new StorageError('SNAPSHOT_FAILED', what, { file: this.#directory.snapshotFolder });
  }

  async #writeSnapshot(isAlone: boolean): Promise<TakenSnapshot> {
    this.#sinceSnapshot = 0;
    this.#bytesSinceSnapshot = 0;
    this.#nextSnapshotAfter = this.#snapCount();
    this.#nextSnapshotAfterBytes = this.#snapLogBytes();
    this.#writer.roll();
    const startMs = this.#clock.nowMs();
    const zxid = BigInt(this.#tree.lastZxid);
    const written = await writeTree(this.#tree, {
      folder: this.#directory.snapshotFolder,
      fs: this.#fs,
      compression: this.#options.snapshotCompression ?? 'none',
      unsafeNoFsync: this.#options.unsafeNoFsync ?? false,
      isAlone,
      signal: this.#ending.signal,
      ...(isAlone ? {} : { before: () => this.#checkRoom() }),
    });
    this.#snapshotMs = this.#clock.nowMs();
    const tookMs = Math.round(this.#snapshotMs - startMs);
    this.#tallies.snapshottime.add(tookMs);
    this.lastSnapshot = { zxid: Number(zxid), wallMs: this.#clock.wallMs() };
    this.#logger.info({ ...written, zxid: `0x${zxid.toString(16)}`, tookMs }, 'snapshot written');
    return { ...written, zxid };
  }

  /** All of a batch in one stretch of memory; the log copies what it is given. */
  #encode(batch: readonly LoggedTxn[]): { bytes: Buffer; ends: readonly number[] } {
    const writer = this.#scratch;
    writer.truncate(0);
    const ends: number[] = [];
    for (const { head, body, digest } of batch) {
      beginEntry(writer);
      writer.long(head.clientId);
      writer.int(head.cxid);
      writer.longHalves(Math.floor(head.zxid / half), head.zxid | 0);
      writer.longHalves(Math.floor(head.timeMs / half), head.timeMs | 0);
      writeBody(writer, body);
      if (digest !== undefined) {
        writer.int(digestVersion);
        writer.longHalves(digest.high, digest.low);
      }
      endEntry(writer);
      ends.push(writer.length);
    }
    return { bytes: writer.written(), ends };
  }

  #schedulePurge(): void {
    const { autopurge } = this.#options;
    if (autopurge === undefined || autopurge.intervalMs <= 0) return;
    const again = () => {
      if (this.#isClosed) return; // the folder may be another's by then
      this.#purgeTimer = this.#clock.after(autopurge.intervalMs, run, true);
    };
    const run = () => {
      this.#purging = this.#purge(autopurge.retain).finally(again);
    };
    run();
  }

  async #purge(retain: number): Promise<void> {
    const { snapshotFolder, logFolder } = this.#directory;
    try {
      const { signal } = this.#closing;
      const { removed, refusal } = await purge(snapshotFolder, logFolder, retain, this.#fs, signal);
      if (refusal !== null) this.#logger.warn({ refusal }, 'nothing was purged');
      else if (removed.length > 0) this.#logger.info({ removed }, 'purged');
    } catch (error) {
      if (!this.#isClosed) this.#logger.error({ err: error }, 'purge failed');
    }
  }
}

/** Its type and its record. The two that are most of all have a way of their own. */
function writeBody(writer: Writer, body: TxnBody): void {
  if (body.type === 'setData') {
    writer.int(txns.setData.code);
    SetDataTxn.write(writer, body.txn);
  } else if (body.type === 'create') {
    writer.int(txns.create.code);
    CreateTxn.write(writer, body.txn);
  } else {
    const { code, record } = txns[body.type];
    writer.int(code);
    record.write(writer, (body.type === 'multi' ? readableBy38(body.txn) : body.txn) as never);
  }
}

/**
 * Servers before 3.9 log a create2 within a multi as a create, and know no other when they replay one:
 * they would drop the whole multi without a word. To a replay the two are the same.
 */
function readableBy38({ txns: parts }: MultiTxn): MultiTxn {
  const { create, create2 } = txns;
  if (!parts.some(({ type }) => type === create2.code)) return { txns: parts };
  return {
    txns: parts.map((part) => (part.type === create2.code ? { ...part, type: create.code } : part)),
  };
}
