/**
 * A look at the files for people and tools. Nothing here changes anything on disk, and a directory in use
 * may be looked at: what is being written at its end then shows as torn, or not at all.
 */

import { basename, dirname } from 'node:path';
import { Reader } from '../jute/index.ts';
import { digestValue, readTxn, type TxnBody, txnNameOf } from '../protocol/index.ts';
import { listLogs, listSnapshots, parseLogName, parseSnapshotName } from './file-names.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import type { LogEntry } from './log-entry.ts';
import { LogReader, type LogSummary } from './log-reader.ts';
import { readThrough } from './read-through.ts';
import type { Recovered } from './recovery-report.ts';
import type { SnapshotSink } from './snapshot-format.ts';
import { readSnapshot, type SnapshotSummary } from './snapshot-reader.ts';
import { isStorageError, StorageError } from './storage-error.ts';

/** A transaction in words and numbers; what a multi does is in `parts`. */
export interface DescribedTxn {
  readonly zxid: bigint;
  readonly timeMs: number;
  readonly sessionId: bigint;
  readonly cxid: number;
  readonly body: TxnBody;
  readonly parts: readonly TxnBody[];
  readonly digest: bigint | null;
  readonly file: string;
  readonly offset: number;
}

export function describeEntry(entry: LogEntry): DescribedTxn {
  const { zxid, timeMs, clientId, cxid, body, digest, file, offset } = entry;
  return {
    zxid,
    timeMs,
    sessionId: clientId,
    cxid,
    body,
    parts: partsOf(body),
    digest: digest === null ? null : digestValue(digest.halves),
    file,
    offset,
  };
}

/** What a multi does, one by one. Where one of them is an error nothing was done: those before it are as asked for. */
export function partsOf(body: TxnBody): TxnBody[] {
  if (body.type !== 'multi') return [];
  return body.txn.txns
    .filter(({ type }) => txnNameOf(type) !== undefined)
    .map(({ type, data }) => readTxn(type, new Reader(data ?? Buffer.alloc(0))));
}

/** Reads one log, of any name that a log has, and says how it ended. */
export async function dumpLog(
  path: string,
  onTxn: (txn: DescribedTxn) => unknown,
  fs: FileSystem = realFileSystem,
): Promise<LogSummary> {
  const file = parseLogName(dirname(path), basename(path));
  if (file === null) throw new StorageError('UNSUPPORTED', 'not named as a log is', { file: path });
  const reader = await LogReader.open(fs, file);
  try {
    return await reader.read((entry) => onTxn(describeEntry(entry)));
  } finally {
    await reader.close();
  }
}

export function dumpSnapshot(
  path: string,
  sink: SnapshotSink,
  fs: FileSystem = realFileSystem,
): Promise<SnapshotSummary> {
  const file = parseSnapshotName(dirname(path), basename(path));
  if (file === null) {
    throw new StorageError('UNSUPPORTED', 'not named as a snapshot is', { file: path });
  }
  return readSnapshot(fs, file, sink);
}

export interface FileReport {
  readonly path: string;
  /** Null where the file is sound by itself. */
  readonly fault: string | null;
  readonly summary: LogSummary | SnapshotSummary | null;
}

export interface DirectoryReport {
  /** Newest first. */
  readonly snapshots: readonly FileReport[];
  /** Oldest first. */
  readonly logs: readonly FileReport[];
  /** What a server would find if it started now. */
  readonly recovered: Recovered | null;
  /** Why it would refuse to. */
  readonly refusal: StorageError | null;
}

/** Each file by itself, and all of them together as a server would take them. */
export async function verifyDirectory(
  dir: string,
  logDir: string,
  fs: FileSystem = realFileSystem,
): Promise<DirectoryReport> {
  const snapshots: FileReport[] = [];
  for (const { path } of await listSnapshots(fs, dir)) {
    snapshots.push(await report(path, () => dumpSnapshot(path, nobody, fs)));
  }
  const logs: FileReport[] = [];
  for (const { path } of await listLogs(fs, logDir)) {
    logs.push(await report(path, () => dumpLog(path, () => true, fs)));
  }
  try {
    const recovered = await readThrough(dir, logDir, { readOnly: true, fs });
    return { snapshots, logs, recovered, refusal: null };
  } catch (error) {
    if (!isStorageError(error)) throw error;
    return { snapshots, logs, recovered: null, refusal: error };
  }
}

const nobody: SnapshotSink = { session() {}, acl() {}, node() {} };

async function report(
  path: string,
  read: () => Promise<LogSummary | SnapshotSummary>,
): Promise<FileReport> {
  try {
    const summary = await read();
    const { end } = summary as Partial<LogSummary>;
    const isSound = end === undefined || end.kind === 'clean';
    return { path, summary, fault: isSound ? null : faultText(end) };
  } catch (error) {
    return { path, summary: null, fault: error instanceof Error ? error.message : String(error) };
  }
}

function faultText(end: LogSummary['end']): string {
  return 'what' in end ? `${end.kind}: ${end.what}, at offset ${end.offset}` : end.kind;
}
