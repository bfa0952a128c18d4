/**
 * Brings the data of one server, ours or Apache's, to every member of an ensemble that never ran.
 *
 * In: a dataDir that no server holds. Out: the same snapshots and logs below each member's own folders.
 * The source is only read. Every member gets all of it: a majority that began empty could elect a
 * leader among themselves, and the member with the data would then be told to throw it away.
 *
 * No epoch files are written. A server that finds none takes the epoch of its last zxid, which is the
 * same on all, and the first election begins a new one. What lies behind the last whole transaction
 * (a batch that nobody was told of) is cut off in the copy, as our own server would at its start.
 */

import { copyFile, open, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  type DirectoryLock,
  isStorageError,
  listLogs,
  listSnapshots,
  lockDirectory,
  markName,
  type Recovered,
  readThrough,
  realFileSystem,
  secondFolder,
  versionFolder,
} from '../storage/index.ts';
import type { LocalEnsemble } from './ensemble.ts';
import { CommandError } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';
import { escaped } from './output.ts';

export interface DataSource {
  readonly dataDir: string;
  /** Where the logs are, if not in the dataDir. */
  readonly dataLogDir?: string | undefined;
}

export interface Imported {
  readonly lastZxid: bigint;
  /** Read from logs, behind the snapshot. */
  readonly txns: number;
  readonly files: number;
}

export async function importData(
  source: DataSource,
  ensemble: LocalEnsemble,
  onFile: (path: string) => void = () => {},
): Promise<Imported> {
  return heldStill(source, async (from) => {
    const [first, ...others] = ensemble.members.map(({ id }) => targetOf(ensemble, id));
    const files = await copyData(from, first!, onFile);
    const imported = await settledData(first!);
    for (const other of others) await copyData(first!, other, onFile);
    return { ...imported, files };
  });
}

/**
 * The same into one folder: a backup of a server, or its way back.
 *
 * The server may be running. The copy is then its state at some moment after the copying began: everything
 * that was acknowledged before is in it. Copying file by file in any other order may leave out log records
 * that the copied mark or a copied snapshot promises, and a server refuses to start on such a copy. So
 * each copy is read as a server would read it; one that changed too much on the way is made again.
 */
export async function copyDataDirectory(
  source: DataSource,
  dataDir: string,
  onFile: (path: string) => void = () => {},
): Promise<Imported> {
  const from = await foldersOf(source);
  const folder = join(dataDir, versionFolder);
  const to = { snapshots: folder, logs: folder };
  for (let tries = 1; ; tries++) {
    const before = await fingerprintOf(from);
    try {
      const files = await copyData(from, to, onFile);
      return { ...(await settledData(to)), files };
    } catch (error) {
      const isMoving = (await fingerprintOf(from)) !== before;
      if (!isMoving || tries === liveTriesMax || !isFromMoving(error)) throw error;
      await rm(folder, { recursive: true });
    }
  }
}

/** How often a directory that a server writes to is copied again when the copy cannot be read. */
const liveTriesMax = 10;

/** A file was purged under the copy, or the copy lacks something that was written meanwhile. */
const isFromMoving = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException).code === 'ENOENT' || isStorageError((error as Error).cause);

/** Tells whether a server has written to the folders in between. */
async function fingerprintOf({ snapshots, logs }: DataFolders): Promise<string> {
  const lines: string[] = [];
  for (const folder of new Set([snapshots, logs])) {
    for (const name of (await readdir(folder)).sort()) {
      const status = await stat(join(folder, name)).catch(() => undefined);
      lines.push(`${name} ${status?.size} ${status?.mtimeMs}`);
    }
  }
  return lines.join('\n');
}

/** Nobody may write to it meanwhile. */
async function heldStill<T>(
  source: DataSource,
  work: (from: DataFolders) => Promise<T>,
): Promise<T> {
  const from = await foldersOf(source);
  const locks: DirectoryLock[] = [];
  try {
    for (const folder of new Set([from.snapshots, from.logs])) {
      locks.push(...(await lockOf(folder)));
    }
    return await work(from);
  } catch (error) {
    if (isStorageError(error, 'IN_USE')) {
      const message = `${escaped(source.dataDir)} is in use: ${error.message}; stop that server first`;
      throw new CommandError('data', message, { cause: error });
    }
    if (isStorageError(error, 'UNSAFE_DIRECTORY')) {
      throw new CommandError('data', error.message, { cause: error });
    }
    throw error;
  } finally {
    for (const lock of locks) await lock.release();
  }
}

/** None on a file system that can only be read, as a backup's may be: nobody was found to hold it. */
async function lockOf(folder: string): Promise<DirectoryLock[]> {
  try {
    return [await lockDirectory(folder)];
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
    if (isStorageError(error, 'UNSAFE_DIRECTORY') && code === 'EROFS') return [];
    throw error;
  }
}

export interface DataFolders {
  readonly snapshots: string;
  readonly logs: string;
}

async function foldersOf({ dataDir, dataLogDir = dataDir }: DataSource): Promise<DataFolders> {
  const snapshots = join(dataDir, versionFolder);
  const logs = join(dataLogDir, versionFolder);
  for (const [folder, option] of [
    [snapshots, '--from'],
    [logs, '--from-log'],
  ] as const) {
    const status = await realFileSystem.status(folder);
    if (status?.isFolder) continue;
    const message = `${option}: there is no ${escaped(folder)}; name a dataDir, the folder above ${versionFolder}`;
    throw new CommandError('usage', message);
  }
  return { snapshots, logs: await secondFolder(realFileSystem, snapshots, logs) };
}

function targetOf(ensemble: LocalEnsemble, id: number): DataFolders {
  const { data, log } = ensemble.folders(id);
  return { snapshots: join(data, versionFolder), logs: join(log, versionFolder) };
}

/**
 * Copies snapshots and logs, and the mark: neither locks nor what was never finished.
 *
 * The order makes the copy of a running server whole. The mark comes first, because it promises what the logs
 * hold; then the snapshots, because a snapshot needs the log up to its end; then the logs, oldest first. A
 * log that was the newest when it was copied is copied again if the server has begun another since.
 */
async function copyData(
  from: DataFolders,
  to: DataFolders,
  onFile: (path: string) => void,
): Promise<number> {
  const copied = new Set<string>();
  for (const folder of new Set([to.snapshots, to.logs])) {
    await makeFolders(folder, 0o700);
    if ((await readdir(folder)).length > 0) {
      throw new CommandError('data', `${folder} is not empty; nothing is put over data`);
    }
  }
  const copy = async (paths: readonly string[], folder: string) => {
    for (const path of paths) {
      onFile(path);
      const target = join(folder, basename(path));
      await copyFile(path, target);
      const file = await open(target, 'r+');
      await file.sync().finally(() => file.close());
      copied.add(target);
    }
    await realFileSystem.syncFolder(folder);
  };
  const mark = join(from.logs, markName);
  const marks = (await realFileSystem.status(mark)) === null ? [] : [mark];
  await copy(marks, to.logs);
  const snapshots = await listSnapshots(realFileSystem, from.snapshots);
  await copy(
    snapshots.map(({ path }) => path),
    to.snapshots,
  );
  let newest: string | undefined;
  for (;;) {
    const logs = (await listLogs(realFileSystem, from.logs)).map(({ path }) => path);
    if (logs.at(-1) === newest) break;
    await copy(
      newest === undefined ? logs : logs.slice(Math.max(0, logs.indexOf(newest))),
      to.logs,
    );
    newest = logs.at(-1);
  }
  return copied.size - marks.length;
}

/** Reads all of the copy, as a server would, and cuts off what was never acknowledged. */
export async function settledData(folders: DataFolders): Promise<Omit<Imported, 'files'>> {
  let recovered: Recovered;
  try {
    recovered = await readThrough(folders.snapshots, folders.logs);
  } catch (error) {
    if (!isStorageError(error)) throw error;
    const message = `the data is damaged, and was not taken: ${error.message}; see drover log verify, and drover serve --salvage`;
    throw new CommandError('data', message, { cause: error });
  }
  await rm(join(folders.logs, markName), { force: true });
  const { lastZxid, snapshot, txns } = recovered;
  if (snapshot === null && lastZxid === 0n) {
    throw new CommandError('data', 'there is nothing in it: no snapshot and no transaction');
  }
  return { lastZxid, txns };
}
