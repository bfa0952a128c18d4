/**
 * From the files of a data directory back to a tree: the newest whole snapshot, then every txn behind it.
 *
 * In: snapshots and logs, Apache's or ours. Out: everything in them, to the handlers, or a
 * `StorageError` that names file, offset and zxids. What always holds: a txn that somebody was told of
 * is either handed over or missed aloud. The evidence of what there must have been:
 *
 *   - zxids follow each other (zxids.ts), across files too
 *   - what lies before the durable mark was synced (durable-mark.ts)
 *   - a log named for zxid X was begun when X - 1 was on disk, and a snapshot named for X, however
 *     damaged, when X was: what we recover must reach as far
 *   - a snapshot's own digest or last zxid shows how far its nodes reach: so must the logs
 *
 * Logs that end before the newest snapshot does are no loss: the snapshot holds what they lack. That is
 * how a member of an ensemble looks that was sent a whole snapshot.
 */

import { type Mark, readMark } from './durable-mark.ts';
import { type LogFile, listLogs, listSnapshots, type SnapshotFile } from './file-names.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import type { LogEntry } from './log-entry.ts';
import { LogReader, type LogSummary } from './log-reader.ts';
import { logHeaderBytes } from './log-writer.ts';
import type {
  Notice,
  NoticeKind,
  Recovered,
  RecoverOptions,
  RecoveryHandlers,
} from './recovery-report.ts';
import { putAside, settle } from './settle.ts';
import { readSnapshot, type SnapshotSummary } from './snapshot-reader.ts';
import type { InflateLimits } from './snapshot-source.ts';
import {
  isStorageError,
  rangeText,
  StorageError,
  type ZxidRange,
  zxidText,
} from './storage-error.ts';
import { counterOf, mayFollow } from './zxids.ts';

/** `dir` and `logDir` are the folders of the files themselves: version-2 below dataDir and dataLogDir. */
export function recover(
  dir: string,
  logDir: string,
  handlers: RecoveryHandlers,
  options: RecoverOptions & InflateLimits & { readonly fs?: FileSystem } = {},
): Promise<Recovered> {
  return new Recovery(dir, logDir, handlers, options).run();
}

/** Something must have been on disk once: up to `zxid`, as `why` says. */
interface Evidence {
  readonly zxid: bigint;
  readonly why: string;
  readonly file: string;
}

class Recovery {
  readonly #fs: FileSystem;
  readonly #dir: string;
  readonly #logDir: string;
  readonly #handlers: RecoveryHandlers;
  readonly #options: RecoverOptions & InflateLimits;
  readonly #notices: Notice[] = [];
  readonly #evidence: Evidence[] = [];
  readonly #logs: LogSummary[] = [];
  #hasLogs = false;
  #snapshot: SnapshotSummary | null = null;
  #damagedSnapshots: SnapshotFile[] = [];
  #baseZxid = 0n;
  /** The last txn handed over; the base's own before the first. */
  #lastZxid = 0n;
  /** The last txn seen in a log, handed over or skipped. */
  #lastSeenZxid: bigint | null = null;
  #txns = 0;

  constructor(
    dir: string,
    logDir: string,
    handlers: RecoveryHandlers,
    options: RecoverOptions & InflateLimits & { readonly fs?: FileSystem },
  ) {
    this.#fs = options.fs ?? realFileSystem;
    this.#dir = dir;
    this.#logDir = logDir;
    this.#handlers = handlers;
    this.#options = options;
  }

  async run(): Promise<Recovered> {
    const all = await listLogs(this.#fs, this.#logDir);
    this.#hasLogs = all.length > 0;
    const mark = await readMark(this.#fs, this.#logDir);
    this.#proveMarked(mark, this.#logDir);
    if (this.#dir !== this.#logDir) {
      this.#proveMarked(await readMark(this.#fs, this.#dir), this.#dir);
    }
    const empty = await this.#emptyLogs(all, mark);
    const filled = all.slice(0, all.length - empty.length);
    await this.#readSnapshot();
    try {
      await this.#readLogs(this.#needed(filled), mark);
      this.#checkEvidence();
    } catch (error) {
      await this.#salvage(error, filled);
    }
    if (!this.#options.readOnly) await this.#settle(empty);
    return {
      lastZxid: this.#lastZxid,
      snapshot: this.#snapshot,
      exactFromZxid: this.#exactFromZxid(),
      txns: this.#txns,
      logs: this.#logs,
      notices: this.#notices,
    };
  }

  /** The newest that is whole. Each damaged one before it proves at least how far the txns went. */
  async #readSnapshot(): Promise<void> {
    for (const file of await listSnapshots(this.#fs, this.#dir)) {
      this.#handlers.begin({ zxid: file.zxid, file: file.path });
      try {
        const { readOnly: _, ...limits } = this.#options;
        this.#snapshot = await readSnapshot(this.#fs, file, this.#handlers, limits);
      } catch (error) {
        if (!isStorageError(error, 'DAMAGED_SNAPSHOT')) throw error;
        this.#damagedSnapshots.push(file);
        this.#notice('snapshotSkipped', file.path, error.message);
        this.#prove(file.zxid, 'a snapshot is named for it', file.path);
        continue;
      }
      this.#baseZxid = file.zxid;
      this.#lastZxid = file.zxid;
      const { digest, lastZxid } = this.#snapshot;
      if (digest !== null) this.#prove(digest.zxid, 'the snapshot has its digest', file.path);
      if (lastZxid !== null) this.#prove(lastZxid, 'the snapshot reaches it', file.path);
      const snapshot = this.#snapshot;
      this.#handlers.restored?.({ snapshot, exactFromZxid: this.#exactFromZxid() });
      return;
    }
    this.#handlers.begin({ zxid: 0n, file: null });
  }

  /** Logs at the end that hold nothing: begun, perhaps with a header, when the server stopped. */
  async #emptyLogs(logs: readonly LogFile[], mark: Mark | null): Promise<LogFile[]> {
    const empty: LogFile[] = [];
    for (const file of logs.toReversed()) {
      const { entries, end } = await this.#read(file, mark, () => false);
      if (entries > 0 || (end.kind !== 'empty' && end.kind !== 'clean')) break;
      empty.push(file);
      this.#notice('emptyLog', file.path, `${file.name} holds no transaction`);
      this.#prove(file.zxid - 1n, 'a log was begun behind it', file.path);
    }
    return empty;
  }

  /** From the one that holds the first txn behind the snapshot. Older ones are not looked at. */
  #needed(logs: readonly LogFile[]): readonly LogFile[] {
    const start = logs.findLastIndex(({ zxid }) => zxid <= this.#baseZxid + 1n);
    return logs.slice(Math.max(0, start));
  }

  async #readLogs(logs: readonly LogFile[], mark: Mark | null): Promise<void> {
    for (const file of logs) {
      const isTail = file === logs.at(-1);
      const summary = await this.#read(file, isTail ? mark : null, (entry) => this.#take(entry));
      this.#logs.push(summary);
      const { end } = summary;
      if (end.kind === 'damaged') {
        const to = end.behind?.lastZxid;
        const behind = end.behind && `; whole records go on at offset ${end.behind.offset}`;
        throw new StorageError('DAMAGED_LOG', `${end.what}${behind ?? ''}`, {
          file: file.path,
          offset: end.offset,
          zxids: { from: (this.#lastSeenZxid ?? this.#lastZxid) + 1n, to },
        });
      }
      if (end.kind === 'torn') {
        const message = `${end.what}, at offset ${end.offset}: a batch that was never acknowledged`;
        this.#notice('tornTail', file.path, message);
      }
    }
    const last = this.#lastSeenZxid;
    if (last !== null && last < this.#baseZxid) {
      const message = `the logs end at ${zxidText(last)}, before the snapshot does`;
      this.#notice('logEndsBeforeSnapshot', logs.at(-1)!.path, message);
    }
  }

  async #read(file: LogFile, mark: Mark | null, onEntry: (entry: LogEntry) => unknown) {
    const reader = await LogReader.open(this.#fs, file, mark);
    try {
      return await reader.read(onEntry);
    } finally {
      await reader.close();
    }
  }

  #take(entry: LogEntry): void {
    const { zxid, file, offset } = entry;
    if (this.#lastSeenZxid !== null && zxid <= this.#lastSeenZxid) {
      const what = `zxid ${zxidText(zxid)} after ${zxidText(this.#lastSeenZxid)}: two logs overlap`;
      throw new StorageError('DAMAGED_LOG', what, { file, offset, zxids: { from: zxid } });
    }
    this.#lastSeenZxid = zxid;
    if (zxid <= this.#baseZxid) return;
    if (!mayFollow(zxid, this.#lastZxid)) {
      const zxids = { from: this.#lastZxid + 1n, to: zxid - 1n };
      throw new StorageError('MISSING_TXNS', `${rangeText(zxids)}`, { file, offset, zxids });
    }
    try {
      this.#handlers.txn(entry);
    } catch (cause) {
      const at = { file, offset, zxids: { from: zxid, to: zxid } };
      throw new StorageError('NOT_APPLIED', String(cause), { cause, ...at });
    }
    this.#lastZxid = zxid;
    this.#txns += 1;
  }

  #proveMarked(mark: Mark | null, folder: string): void {
    if (mark === null || mark.log <= 0n) return;
    // At the start of a log it says what that goes on from, and nothing of what is in it.
    const isBegun = mark.offset > logHeaderBytes;
    this.#prove(isBegun ? mark.log : mark.log - 1n, 'it was marked durable', folder);
  }

  #prove(zxid: bigint, why: string, file: string): void {
    // Counter 0 of an epoch is an election: a zxid that names files and is never logged.
    if (counterOf(zxid) !== 0n) this.#evidence.push({ zxid, why, file });
  }

  #checkEvidence(): void {
    const beyond = this.#evidence.filter(({ zxid }) => zxid > this.#lastZxid);
    const furthest = beyond.sort((a, b) => (a.zxid < b.zxid ? 1 : -1))[0];
    if (furthest !== undefined) {
      const { zxid, why, file } = furthest;
      const zxids = { from: this.#lastZxid + 1n, to: zxid };
      const where = this.#hasLogs ? '' : `; no log is in ${this.#logDir}: is that where they are?`;
      throw new StorageError('MISSING_TXNS', `there was ${zxidText(zxid)}: ${why}${where}`, {
        file,
        zxids,
      });
    }
    if (this.#snapshot === null && this.#damagedSnapshots.length > 0 && this.#lastZxid === 0n) {
      const file = this.#damagedSnapshots[0]!.path;
      throw new StorageError('MISSING_TXNS', 'no snapshot is whole, and there is no log', { file });
    }
  }

  /** Goes on from what was handed over so far, if that was asked for and there is anything. */
  async #salvage(error: unknown, logs: readonly LogFile[]): Promise<void> {
    if (!isStorageError(error, 'DAMAGED_LOG', 'MISSING_TXNS')) throw error;
    const zxids = { from: this.#lastZxid + 1n, to: await this.#lastAtStake(error, logs) };
    const told = this.#inFull(error, zxids);
    const hasBase = this.#snapshot !== null || this.#lastZxid > 0n;
    if (!hasBase || !this.#options.salvage || this.#options.readOnly) throw told;
    const cut = { lastZxid: this.#lastZxid, logs, snapshots: this.#damagedSnapshots };
    const aside = await putAside(this.#fs, this.#logDir, this.#dir, cut);
    const kept = aside.length === 0 ? '' : `; ${aside.join(', ')} put aside`;
    const message = `went on from ${zxidText(this.#lastZxid)}${kept}`;
    this.#notice('salvaged', error.file ?? '', `${message}: ${told.message}`, zxids);
  }

  /** A salvage ends before the first fault, so that it gives up what is whole behind it, too. */
  async #lastAtStake(
    { zxids }: StorageError,
    logs: readonly LogFile[],
  ): Promise<bigint | undefined> {
    const newest = logs.at(-1);
    if (newest === undefined) return zxids?.to;
    const { lastZxid, end } = await this.#read(newest, null, () => {});
    const behind = end.kind === 'damaged' ? end.behind?.lastZxid : undefined;
    let last = zxids?.to;
    for (const zxid of [lastZxid ?? 0n, behind ?? 0n]) {
      if (zxid > (last ?? this.#lastZxid)) last = zxid;
    }
    return last;
  }

  /** With all that an operator has to know: a snapshot that would have done, and what else would go. */
  #inFull(error: StorageError, { to }: ZxidRange): StorageError {
    const { code, detail, file, offset, zxids } = error;
    const skipped = this.#damagedSnapshots.map(({ name }) => `; ${name} is damaged`);
    const isMore = to !== undefined && zxids?.to !== undefined && to > zxids.to;
    const more = isMore
      ? `; a salvage gives up all behind it, too, up to zxid ${zxidText(to)}`
      : '';
    const all = `${detail}${skipped.join('')}${more}`;
    return new StorageError(code, all, { file, offset, zxids });
  }

  async #settle(empty: readonly LogFile[]): Promise<void> {
    const tail = this.#logs.at(-1);
    const isSalvaged = this.#notices.some(({ kind }) => kind === 'salvaged');
    const left = await settle(this.#fs, this.#logDir, this.#dir, {
      empty,
      // What a snapshot on disk holds need not be made durable again.
      tail: tail === undefined || isSalvaged || this.#isCovered(tail) ? null : tail,
    });
    for (const file of left) this.#notice('leftOver', file, `${file} was never finished; removed`);
  }

  #isCovered({ end, lastZxid }: LogSummary): boolean {
    return end.kind === 'clean' && (lastZxid ?? 0n) <= this.#baseZxid;
  }

  #exactFromZxid(): bigint {
    let zxid = this.#baseZxid;
    const { digest, lastZxid } = this.#snapshot ?? {};
    for (const reached of [digest?.zxid, lastZxid]) if ((reached ?? 0n) > zxid) zxid = reached!;
    return zxid;
  }

  #notice(kind: NoticeKind, file: string, message: string, zxids?: ZxidRange): void {
    const notice: Notice = { kind, file, message, zxids };
    this.#notices.push(notice);
    this.#options.onNotice?.(notice);
  }
}
