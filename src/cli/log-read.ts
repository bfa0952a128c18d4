/**
 * One transaction log, read to its end and judged: what `drover log` and its three actions share.
 *
 * In: a log's file, and whether it is the newest of its folder. Out: what it holds, how it ends, and
 * one sentence where there is something to say. A damaged end that has moved at a second look is a
 * server writing, and no damage. What the mark of durable bytes says counts for the newest log alone.
 */

import { dirname } from 'node:path';
import { ProtocolError } from '../jute/index.ts';
import {
  type DescribedTxn,
  describeEntry,
  type FileSystem,
  type LogFile,
  LogReader,
  type LogSummary,
  listLogs,
  readMark,
} from '../storage/index.ts';
import type { OptionValues } from './command.ts';
import { escaped, hex } from './output.ts';
import { folderOf, unreadable } from './snapshot.ts';

/** How a log ended: `moving` is a log whose end was being written while it was read. */
export interface ReadLog extends Omit<LogSummary, 'end'> {
  readonly end: LogSummary['end']['kind'] | 'moving';
  readonly offset: number;
  /** One sentence, where there is something to say. */
  readonly remark: string | null;
}

class UnknownTxn extends Error {
  readonly offset: number;
  readonly zxid: bigint;

  constructor(offset: number, zxid: bigint, cause: ProtocolError) {
    super(cause.message, { cause });
    this.offset = offset;
    this.zxid = zxid;
  }
}

/** Reads one log to its end. What is behind the durable mark is judged by it only in the newest log. */
export async function readLog(
  fs: FileSystem,
  file: LogFile,
  isNewest: boolean,
  onTxn?: (txn: DescribedTxn) => void,
): Promise<ReadLog> {
  try {
    const first = await readOnce(fs, file, isNewest, onTxn);
    if (first.end.kind !== 'damaged' || !isNewest) return judged(first);
    // Bytes that were zeros a moment ago and are an entry now look like damage.
    const second = await readOnce(fs, file, isNewest);
    if (second.end.offset === first.end.offset) return judged(first);
    const remark = `${escaped(file.path)} is being written; it was read up to zxid ${zxidOrNone(first.lastZxid)}, run it again for what came since`;
    return { ...first, end: 'moving', offset: first.end.offset, remark };
  } catch (error) {
    if (!(error instanceof UnknownTxn)) throw unreadable(error, file.path);
    const { offset, zxid, message } = error;
    const remark = `${escaped(file.path)} holds at offset ${offset}, zxid ${hex(zxid)}, what is no transaction although its checksum is right: ${escaped(message)}; whoever wrote it was newer, or wrong: restore a backup, or read it with what wrote it`;
    return {
      ...{ file, entries: 0, firstZxid: null, lastZxid: null },
      ...{ end: 'damaged', offset, remark },
    };
  }
}

async function readOnce(
  fs: FileSystem,
  file: LogFile,
  isNewest: boolean,
  onTxn?: (txn: DescribedTxn) => void,
): Promise<LogSummary> {
  const mark = isNewest ? await readMark(fs, dirname(file.path)) : null;
  const reader = await LogReader.open(fs, file, mark);
  try {
    return await reader.read((entry) => {
      if (onTxn === undefined) return;
      let txn: DescribedTxn;
      try {
        txn = describeEntry(entry);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        throw new UnknownTxn(entry.offset, entry.zxid, error);
      }
      onTxn(txn);
    });
  } finally {
    await reader.close();
  }
}

export function judged(summary: LogSummary): ReadLog {
  const { end, file, lastZxid } = summary;
  const at = `${escaped(file.path)}, behind zxid ${zxidOrNone(lastZxid)}, at offset ${end.offset}`;
  const remarks: Record<typeof end.kind, string | null> = {
    clean: null,
    empty: `${escaped(file.path)} is empty: a log that was just being made`,
    torn: `${at}: ${'what' in end ? end.what : ''}: a batch that was never acknowledged, or is being written right now; nothing is lost`,
    damaged: `${at}, is damaged: ${'what' in end ? end.what : ''}${lostText(end)}`,
  };
  return { ...summary, end: end.kind, offset: end.offset, remark: remarks[end.kind] };
}

function lostText(end: LogSummary['end']): string {
  if (end.kind !== 'damaged') return '';
  const { behind } = end;
  const advice = 'restore the file from a backup, or see docs/files.md on salvage';
  if (behind === null) return `; ${advice}`;
  const { zxid, lastZxid, offset } = behind;
  return `, and whole transactions, ${hex(zxid)} to ${hex(lastZxid)}, stand behind it from offset ${offset}; ${advice}`;
}

export function zxidOrNone(zxid: bigint | null): string {
  return zxid === null ? 'none' : hex(zxid);
}

/** The logs of a folder, oldest first; a folder that can not be read is said in one sentence. */
export async function listOrFail(fs: FileSystem, folder: string): Promise<LogFile[]> {
  try {
    return await listLogs(fs, folder);
  } catch (error) {
    throw unreadable(error, folder);
  }
}

/** The logs stand with the snapshots unless `--data-log` names a folder of their own. */
export async function logFolderOf(folder: string, { dataLog }: OptionValues): Promise<string> {
  return dataLog === undefined ? folder : folderOf(String(dataLog));
}
