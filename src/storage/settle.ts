/**
 * Makes a directory that has been read fit for writing: what recovery believed is on disk for certain,
 * and what it did not believe is gone.
 *
 * After a failed sync the kernel shows data that the disk does not have, and calls it clean. A server
 * that restarts would read it, build on it and acknowledge on top of it, and lose it with the next
 * power cut. Syncing again proves nothing, so the newest log is written anew: its whole entries into a
 * new file, synced, and put in the place of the old one. That also cuts off a torn tail.
 */

import { join } from 'node:path';
import { markName } from './durable-mark.ts';
import { type LogFile, listTemporaries, ownPrefix, temporaryPrefix } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import { LogReader, type LogSummary } from './log-reader.ts';

const copyBytes = 1024 * 1024;
/** Where damaged files go when a recovery was told to go on without them. */
export const asideFolder = `${ownPrefix}salvaged`;

export interface Leftovers {
  readonly empty: readonly LogFile[];
  /** The newest log, where its entries must be made durable. */
  readonly tail: LogSummary | null;
}

/** Returns the files that somebody began and never finished; they are removed. */
export async function settle(
  fs: FileSystem,
  logDir: string,
  dir: string,
  { empty, tail }: Leftovers,
): Promise<string[]> {
  if (tail !== null && tail.entries > 0) await rewrite(fs, logDir, tail.file, tail.end.offset);
  // A log whose first batch was torn holds nothing either, and stands where the next one will.
  const gone = tail !== null && tail.entries === 0 ? [...empty, tail.file] : empty;
  for (const file of gone) await fs.remove(file.path);
  const removed: string[] = [];
  for (const folder of new Set([logDir, dir])) {
    for (const name of await listTemporaries(fs, folder)) {
      await fs.remove(join(folder, name));
      removed.push(join(folder, name));
    }
  }
  if (gone.length + removed.length > 0) {
    await fs.syncFolder(logDir);
    if (dir !== logDir) await fs.syncFolder(dir);
  }
  return removed;
}

/** Replaces a file by its first bytes, in one step: it is the old one or the new one, never neither. */
async function rewrite(
  fs: FileSystem,
  folder: string,
  { name, path }: LogFile,
  bytes: number,
): Promise<void> {
  const temporary = join(folder, `${temporaryPrefix}${name}`);
  await copy(fs, path, temporary, bytes);
  await fs.rename(temporary, path);
  await fs.syncFolder(folder);
}

async function copy(fs: FileSystem, from: string, to: string, bytesMax: number): Promise<void> {
  if ((await fs.status(to)) !== null) await fs.remove(to);
  const source = await fs.open(from, 'read');
  const target = await fs.open(to, 'create');
  try {
    const buffer = Buffer.allocUnsafe(copyBytes);
    for (let at = 0; at < bytesMax; ) {
      const chunk = buffer.subarray(0, Math.min(copyBytes, bytesMax - at));
      const length = await source.read(chunk, at);
      if (length === 0) break;
      await target.write(chunk.subarray(0, length), at);
      at += length;
    }
    await target.sync();
  } finally {
    await source.close();
    await target.close();
  }
}

/**
 * Keeps what a salvage gives up, and leaves a directory that ends at `lastZxid`.
 *
 * Everything is copied aside before anything is touched. Then the newest goes first, and the log that
 * is cut comes last: whenever this is interrupted, what is left is still refused without salvage.
 */
export async function putAside(
  fs: FileSystem,
  logDir: string,
  dir: string,
  cut: {
    readonly lastZxid: bigint;
    readonly logs: readonly LogFile[];
    readonly snapshots: readonly LogFile[];
  },
): Promise<string[]> {
  const { lastZxid } = cut;
  const kept = cut.logs.findLast(({ zxid }) => zxid <= lastZxid);
  const beyond = cut.logs.filter(({ zxid }) => zxid > lastZxid);
  const snapshots = cut.snapshots.filter(({ zxid }) => zxid > lastZxid);
  const aside: string[] = [];
  for (const file of [...beyond, ...(kept ? [kept] : []), ...snapshots]) {
    const folder = join(snapshots.includes(file) ? dir : logDir, asideFolder);
    await fs.makeFolder(folder);
    const temporary = join(folder, `${temporaryPrefix}${file.name}`);
    await copy(fs, file.path, temporary, Number.POSITIVE_INFINITY);
    await fs.rename(temporary, await freeName(fs, join(folder, file.name)));
    await fs.syncFolder(folder);
    aside.push(file.name);
  }
  for (const { path } of [...beyond.toReversed(), ...snapshots]) await fs.remove(path);
  for (const folder of new Set([logDir, dir])) {
    await fs.remove(join(folder, markName)).catch(() => {}); // it speaks of a log that is no more
  }
  if (kept) await rewrite(fs, logDir, kept, await offsetBehind(fs, kept, lastZxid));
  await fs.syncFolder(logDir);
  await fs.syncFolder(dir);
  return aside;
}

/** What was put aside before stays: zxids are given out again, and with them the names of logs. */
async function freeName(fs: FileSystem, path: string): Promise<string> {
  let free = path;
  for (let n = 2; (await fs.status(free)) !== null; n++) free = `${path}.${n}`;
  return free;
}

async function offsetBehind(fs: FileSystem, file: LogFile, lastZxid: bigint): Promise<number> {
  const reader = await LogReader.open(fs, file);
  let offset = 0;
  try {
    const { end } = await reader.read((entry) => {
      if (entry.zxid <= lastZxid) return true;
      offset = entry.offset;
      return false;
    });
    return offset === 0 ? end.offset : offset;
  } finally {
    await reader.close();
  }
}
