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

import { copyFile, open, readdir, rm } from 'node:fs/promises';
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

/** The same into one folder: a backup of a server that is stopped, or its way back. */
export function copyDataDirectory(
  source: DataSource,
  dataDir: string,
  onFile: (path: string) => void = () => {},
): Promise<Imported> {
  return heldStill(source, async (from) => {
    const folder = join(dataDir, versionFolder);
    const to = { snapshots: folder, logs: folder };
    const files = await copyData(from, to, onFile);
    return { ...(await settledData(to)), files };
  });
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

/** Snapshots and logs, and no more: neither locks nor the mark nor what was never finished. */
async function copyData(
  from: DataFolders,
  to: DataFolders,
  onFile: (path: string) => void,
): Promise<number> {
  let files = 0;
  for (const folder of new Set([to.snapshots, to.logs])) {
    await makeFolders(folder, 0o700);
    if ((await readdir(folder)).length > 0) {
      throw new CommandError('data', `${folder} is not empty; nothing is put over data`);
    }
  }
  const copy = async (paths: readonly string[], folder: string) => {
    for (const path of paths) {
      onFile(path);
      const copied = join(folder, basename(path));
      await copyFile(path, copied);
      const file = await open(copied, 'r+');
      await file.sync().finally(() => file.close());
      files += 1;
    }
    await realFileSystem.syncFolder(folder);
  };
  const paths = (list: readonly { readonly path: string }[]) => list.map(({ path }) => path);
  const snapshots = paths(await listSnapshots(realFileSystem, from.snapshots));
  const logs = paths(await listLogs(realFileSystem, from.logs));
  // The mark tells what was lost from what was never acknowledged: needed for the look, not after it.
  const mark = join(from.logs, markName);
  const marks = (await realFileSystem.status(mark)) === null ? [] : [mark];
  await copy(snapshots, to.snapshots);
  await copy([...logs, ...marks], to.logs);
  return files - marks.length;
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
