/**
 * Removes old snapshots and logs, and never the last good way back.
 *
 * Kept are the newest `keep` snapshots that are whole, each read to the end to know it (ZOOKEEPER-3231:
 * counting damaged ones removes the state itself), every log that is needed from the oldest of them on,
 * and anything newer. Before the first file goes, the way from that oldest one to the present is read
 * through, so that each of the kept snapshots is a way back and not just a file.
 *
 * To read all that takes as long as some starts do. Who has to end meanwhile aborts it: up to the first file
 * that goes it can be left at any time.
 *
 * May run while the log is being written: the end of the newest log is then in motion, and not judged.
 */

import { type LogFile, listLogs, listSnapshots, type SnapshotFile } from './file-names.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import { LogReader } from './log-reader.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { isStorageError, zxidText } from './storage-error.ts';
import { mayFollow } from './zxids.ts';

/** As Apache's autopurge.snapRetainCount, which takes no less either. */
export const snapshotsKeptMin = 3;

export interface PurgeResult {
  readonly removed: readonly string[];
  /** Why nothing was removed, where that is not just for want of old files. */
  readonly refusal: string | null;
}

export async function purge(
  dir: string,
  logDir: string,
  keep: number = snapshotsKeptMin,
  fs: FileSystem = realFileSystem,
  signal?: AbortSignal,
): Promise<PurgeResult> {
  const snapshots = await listSnapshots(fs, dir);
  const kept = await newestWhole(fs, snapshots, Math.max(keep, snapshotsKeptMin), signal);
  if (kept === null) return { removed: [], refusal: null };
  const logs = await listLogs(fs, logDir);
  // The newest log that may hold the txn behind the snapshot, and all behind that one.
  const firstNeeded = logs.findLastIndex(({ zxid }) => zxid <= kept.zxid + 1n);
  const needed = logs.slice(Math.max(0, firstNeeded));
  const refusal = await faultOfWay(fs, kept, needed, signal);
  if (refusal !== null) return { removed: [], refusal };
  const oldSnapshots = snapshots.filter(({ zxid }) => zxid < kept.zxid).reverse();
  const oldLogs = logs.slice(0, Math.max(0, firstNeeded));
  // Apache syncs neither its snapshots nor their names: one that is kept must not be lost when others are gone.
  if (oldSnapshots.length + oldLogs.length > 0) await fs.syncFolder(dir);
  // Snapshots first, the oldest first: whichever is still there after a crash still has its logs.
  for (const { path } of [...oldSnapshots, ...oldLogs]) await fs.remove(path);
  if (oldSnapshots.length > 0) await fs.syncFolder(dir);
  if (oldLogs.length > 0) await fs.syncFolder(logDir);
  return { removed: [...oldSnapshots, ...oldLogs].map(({ path }) => path), refusal: null };
}

/** The oldest of the newest `count` whole snapshots; null while there are not as many. */
async function newestWhole(
  fs: FileSystem,
  snapshots: readonly SnapshotFile[],
  count: number,
  signal: AbortSignal | undefined,
): Promise<SnapshotFile | null> {
  const nobody = {
    session() {},
    acl() {},
    node() {},
    encoded() {
      signal?.throwIfAborted();
      return true; // nothing is made of it
    },
  };
  let whole = 0;
  for (const snapshot of snapshots) {
    try {
      await readSnapshot(fs, snapshot, nobody);
    } catch (error) {
      signal?.throwIfAborted();
      if (!isStorageError(error, 'DAMAGED_SNAPSHOT')) throw error;
      continue;
    }
    await makeDurable(fs, snapshot);
    if (++whole === count) return snapshot;
  }
  return null;
}

/** Apache does not sync its snapshots (ZOOKEEPER-2310), so one that reads well may be in memory alone. */
async function makeDurable(fs: FileSystem, { path }: SnapshotFile): Promise<void> {
  const file = await fs.open(path, 'write');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What stands in the way from the snapshot to the end of the logs; null for nothing. */
async function faultOfWay(
  fs: FileSystem,
  snapshot: SnapshotFile,
  logs: readonly LogFile[],
  signal: AbortSignal | undefined,
): Promise<string | null> {
  let last = snapshot.zxid;
  for (const file of logs) {
    const reader = await LogReader.open(fs, file);
    try {
      let gap: string | null = null;
      const { end } = await reader.read(({ zxid }) => {
        signal?.throwIfAborted();
        if (zxid <= snapshot.zxid) return true;
        if (!mayFollow(zxid, last)) gap = `a gap before zxid ${zxidText(zxid)} in ${file.path}`;
        last = zxid;
        return gap === null;
      });
      if (gap !== null) return gap;
      const isInMotion = file === logs.at(-1);
      if (end.kind === 'damaged' && !isInMotion) return `${end.what} in ${file.path}`;
    } finally {
      await reader.close();
    }
  }
  return null;
}
