/**
 * The few things that storage asks of a file system, and the real one.
 *
 * Everything that reads or writes data goes through this interface, so that a test can put a disk
 * behind it which fails at the Nth call or loses what was not synced (simulated-disk.ts).
 *
 * What a caller may rely on: after `sync` a file's bytes and length are on disk; after `syncFolder` its
 * name is, and so are renames and removals. Nothing else is promised, not even order.
 */

import { constants } from 'node:fs';
import * as fs from 'node:fs/promises';

export interface StoredFile {
  /** As many bytes as there are, up to the target's length. Fewer only at the end of the file. */
  read(target: Buffer, position: number): Promise<number>;
  /** All of the bytes, or an error. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Writes zeros, so that the blocks are there before the data is. */
  allocate(from: number, to: number): Promise<void>;
  truncate(bytes: number): Promise<void>;
  sync(): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface FileStatus {
  readonly bytes: number;
  readonly isFolder: boolean;
  /** Permission bits alone. */
  readonly mode: number;
  readonly modifiedMs: number;
}

export interface FileSystem {
  open(path: string, how: 'read' | 'write' | 'create'): Promise<StoredFile>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Names in no particular order; a folder that is not there is an error. */
  list(folder: string): Promise<string[]>;
  /** Null when there is nothing of that name. A link counts as itself, not as what it points to. */
  status(path: string): Promise<FileStatus | null>;
  makeFolder(path: string): Promise<void>;
  syncFolder(path: string): Promise<void>;
}

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_RDONLY, O_RDWR } = constants;
// A link in the data directory could point anywhere, so none is followed.
const openFlags = {
  read: O_RDONLY | O_NOFOLLOW,
  write: O_RDWR | O_NOFOLLOW,
  create: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
} as const;

const fileMode = 0o600;
const folderMode = 0o700;
const zeros = Buffer.alloc(256 * 1024);

export const realFileSystem: FileSystem = {
  async open(path, how) {
    return new RealFile(await fs.open(path, openFlags[how], fileMode));
  },
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.unlink(path),
  list: (folder) => fs.readdir(folder),
  async status(path) {
    try {
      const stats = await fs.lstat(path);
      return {
        bytes: stats.size,
        isFolder: stats.isDirectory(),
        mode: stats.mode & 0o7777,
        modifiedMs: stats.mtimeMs,
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  },
  async makeFolder(path) {
    await fs.mkdir(path, { recursive: true, mode: folderMode });
  },
  async syncFolder(path) {
    if (process.platform === 'win32') return; // a folder can't be opened there, nor synced
    const folder = await fs.open(path, O_RDONLY);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  },
};

class RealFile implements StoredFile {
  readonly #handle: fs.FileHandle;

  constructor(handle: fs.FileHandle) {
    this.#handle = handle;
  }

  async read(target: Buffer, position: number): Promise<number> {
    let done = 0;
    while (done < target.length) {
      const left = target.length - done;
      const { bytesRead } = await this.#handle.read(target, done, left, position + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    let done = 0;
    // A full disk shows first as a short write, and as an error only when the rest is tried.
    while (done < bytes.length) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.#handle.write(bytes, done, left, position + done);
      done += bytesWritten;
    }
  }

  async allocate(from: number, to: number): Promise<void> {
    for (let at = from; at < to; at += zeros.length) {
      await this.write(zeros.subarray(0, Math.min(zeros.length, to - at)), at);
    }
  }

  truncate(bytes: number): Promise<void> {
    return this.#handle.truncate(bytes);
  }

  sync(): Promise<void> {
    return this.#handle.datasync(); // fdatasync covers the length too, where it has changed
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
