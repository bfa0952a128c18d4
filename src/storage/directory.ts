/**
 * A data directory, opened for one server: made where it is not there, checked, and locked.
 *
 *   dataDir/version-2      snapshots          0700, files 0600: what is in them may be secret
 *   dataLogDir/version-2   logs, often on a disk of their own; the same folder where none is named
 *
 * A folder that anybody may write to is refused: whoever can put a file there can put a tree there.
 * Links on the way to a directory are followed, those in it are not.
 */

import { join } from 'node:path';
import { listLogs, listSnapshots, versionFolder } from './file-names.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import { type DirectoryLock, lockDirectory } from './lock.ts';
import { StorageError } from './storage-error.ts';

export interface DataDirectory extends AsyncDisposable {
  /** Where the snapshots are: what `recover` takes as `dir`. */
  readonly snapshotFolder: string;
  /** Where the logs are: what `recover` takes as `logDir`. */
  readonly logFolder: string;
  release(): Promise<void>;
}

export interface DirectoryOptions {
  readonly dataDir: string;
  readonly dataLogDir?: string;
}

const othersMayWrite = 0o002;
const sticky = 0o1000;

export async function openDirectory(
  { dataDir, dataLogDir = dataDir }: DirectoryOptions,
  fs: FileSystem = realFileSystem,
): Promise<DataDirectory> {
  for (const parent of new Set([dataDir, dataLogDir])) await makeFolder(fs, parent, versionFolder);
  const snapshotFolder = join(dataDir, versionFolder);
  const logFolder = await secondFolder(fs, snapshotFolder, join(dataLogDir, versionFolder));
  const folders = [...new Set([snapshotFolder, logFolder])];
  if (folders.length > 1) await refuseMixUp(fs, snapshotFolder, logFolder);
  const locks: DirectoryLock[] = [];
  const release = async () => {
    for (const lock of locks.splice(0)) await lock.release();
  };
  try {
    for (const folder of folders) locks.push(await lockDirectory(folder));
  } catch (error) {
    await release();
    throw error;
  }
  return { snapshotFolder, logFolder, release, [Symbol.asyncDispose]: release };
}

async function makeFolder(fs: FileSystem, parent: string, name: string): Promise<void> {
  const folder = join(parent, name);
  for (const path of [parent, folder]) {
    if ((await fs.status(path)) === null) {
      await fs.makeFolder(path);
      continue;
    }
    const status = (await fs.status(path === parent ? await leadsTo(fs, path) : path))!;
    if (path === folder && !status.isFolder) {
      const what = 'it is no folder, or a link to one, which is not followed';
      throw new StorageError('UNSAFE_DIRECTORY', what, { file: path });
    }
    if (status.mode & othersMayWrite && !(path === parent && status.mode & sticky)) {
      const what =
        'anybody may write to it; take that right away (chmod o-w), or name another folder';
      throw new StorageError('UNSAFE_DIRECTORY', what, { file: path });
    }
  }
  await fs.syncFolder(parent);
}

async function leadsTo(fs: FileSystem, path: string): Promise<string> {
  try {
    return await fs.realPath(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    const what = 'it is a link that leads nowhere; make what it leads to, or name another folder';
    throw new StorageError('UNSAFE_DIRECTORY', what, { file: path, cause });
  }
}

/** By one name where it is one folder: it is locked once. */
export async function secondFolder(fs: FileSystem, first: string, second: string): Promise<string> {
  return (await fs.realPath(first)) === (await fs.realPath(second)) ? first : second;
}

/** Apache refuses it as well (ZOOKEEPER-2967): the two directories have been swapped or mistyped. */
async function refuseMixUp(fs: FileSystem, snapshots: string, logs: string): Promise<void> {
  if ((await listLogs(fs, snapshots)).length > 0) {
    const what =
      'logs among the snapshots; if dataLogDir is new, move them to its version-2, else see whether it was swapped with dataDir';
    throw new StorageError('UNSAFE_DIRECTORY', what, { file: snapshots });
  }
  if ((await listSnapshots(fs, logs)).length > 0) {
    const what = 'snapshots among the logs; are dataDir and dataLogDir swapped?';
    throw new StorageError('UNSAFE_DIRECTORY', what, { file: logs });
  }
}
