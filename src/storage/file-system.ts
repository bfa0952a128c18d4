/**
 * The few things that storage asks of a file system, and the real one.
 *
 * Everything that reads or writes data goes through this interface, so that a test can put a disk
 * behind it which fails at the Nth call or loses what was not synced (simulated-disk.ts).
 *
 * What a caller may rely on: after `sync` a file's bytes and length are on disk; after `syncFolder` its
 * name is, and so are renames and removals. Nothing else is promised, not even order.
 */

import { constants, fdatasync, fdatasyncSync, write, writeSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { kindOf } from '../support/index.ts';
import { StorageError } from './storage-error.ts';

/**
 * quiet   the caller does not mind to be held up for as long as a fast disk takes
 * aside   nobody waits for it: before it returns the disk was left to others for as long again
 */
export type SyncManner = 'quiet' | 'aside';

export interface StoredFile {
  /** As many bytes as there are, up to the target's length. Fewer only at the end of the file. */
  read(target: Buffer, position: number): Promise<number>;
  /** All of the bytes, or an error. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Writes at once, so that what is to follow need not wait for a turn. False: `write` is to be asked. */
  writeNow?(bytes: Uint8Array, position: number): boolean;
  /** Writes zeros, so that the blocks are there before the data is. */
  allocate(from: number, to: number): Promise<void>;
  truncate(bytes: number): Promise<void>;
  sync(manner?: SyncManner): Promise<void>;
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
  /** The one name of what is there, whatever links lead to it. */
  realPath(path: string): Promise<string>;
  makeFolder(path: string): Promise<void>;
  syncFolder(path: string): Promise<void>;
}

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_RDWR } = constants;
// A link in the data directory could point anywhere, so none is followed. A named pipe would be waited for
// until somebody writes to it, which no signal ends, so the open does not wait.
const openFlags = {
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  write: O_RDWR | O_NOFOLLOW | O_NONBLOCK,
  create: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
} as const;

function special(file: string, kind: string, cause?: unknown): StorageError {
  const what = `it is ${kind}, not a plain file; move it away`;
  return new StorageError('UNSAFE_DIRECTORY', what, { file, cause });
}

const fileMode = 0o600;
const folderMode = 0o700;
const zeros = Buffer.alloc(256 * 1024);

export const realFileSystem: FileSystem = {
  async open(path, how) {
    const handle = await fs.open(path, openFlags[how], fileMode).catch((error) => {
      throw error.code === 'ENXIO' ? special(path, 'a socket or a pipe', error) : error;
    });
    const stats = how === 'create' ? undefined : await handle.stat();
    if (stats === undefined || stats.isFile() || stats.isDirectory()) {
      return new RealFile(path, handle);
    }
    await handle.close();
    throw special(path, kindOf(stats));
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
  realPath: (path) => fs.realpath(path),
  async makeFolder(path) {
    await makeFolders(resolve(path));
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

/**
 * A level at a time: Node's own recursive mkdir never ends where a folder is there and what is asked
 * for in it can't be, as below /proc. A level that is made is on disk before the next.
 */
async function makeFolders(path: string): Promise<void> {
  const parent = dirname(path);
  const isNew = await makeOne(path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || parent === path) throw error;
    await makeFolders(parent);
    return makeOne(path);
  });
  if (!isNew) return;
  await realFileSystem.syncFolder(parent).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES') throw error; // one may add to a folder that one may not open
  });
}

/** False where it is there already. */
async function makeOne(path: string): Promise<boolean> {
  try {
    await fs.mkdir(path, { mode: folderMode });
    return true;
  } catch (error) {
    const isThere = (await fs.stat(path).catch(() => undefined))?.isDirectory();
    if (isThere) return false;
    throw error;
  }
}

/** Up to here a write is a copy into the kernel's memory, quicker than handing it to another thread. */
const copiedBytesMax = 128 * 1024;
/** A copy that took so long was made to wait for the disk, and everybody with it. */
const copySlowMs = 5;
/** For how long none is tried then. */
const copyPauseMs = 10_000;

/** A sync that was waited for and took so long held others up. */
const waitSlowMs = 4;
/** None is waited for, for so many times as long: slow ones hold others up for 5 % of the time at most. */
const waitPauseTimes = 20;

/** Whoever syncs aside stands aside for so long at most: a disk that is this slow is so for everybody. */
const asideMaxMs = 100;

/**
 * Writes and syncs go past the promises of `FileHandle`, which cost as much again as the write itself
 * (146 us of CPU for a small write and its sync, 122 by callbacks, 107 with the write as a copy). What
 * may take long is not done on the event loop: writes only as long as they are copies, syncs only while
 * nobody else is there (see `sync`).
 */
class RealFile implements StoredFile {
  readonly #path: string;
  readonly #handle: fs.FileHandle;
  #copiesFromMs = 0;
  #waitsFromMs = 0;

  constructor(path: string, handle: fs.FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  async read(target: Buffer, position: number): Promise<number> {
    let done = 0;
    while (done < target.length) {
      const left = target.length - done;
      const at = position + done;
      const { bytesRead } = await this.#handle.read(target, done, left, at).catch((error) => {
        throw Object.assign(error, { path: this.#path }); // the system knows a number alone
      });
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.writeNow(bytes, position)) this.#hand(bytes, position, 0, resolve, reject);
      else resolve();
    });
  }

  /** False where it should not be tried. Throws what is wrong. */
  writeNow(bytes: Uint8Array, position: number): boolean {
    const { length } = bytes;
    const startMs = performance.now();
    if (length > copiedBytesMax || startMs < this.#copiesFromMs) return false;
    const { fd } = this.#handle;
    // A full disk shows first as a short write, and as an error only when the rest is tried.
    for (let done = 0; done < length; ) {
      done += writeSync(fd, bytes, done, length - done, position + done);
    }
    const endMs = performance.now();
    if (endMs - startMs > copySlowMs) this.#copiesFromMs = endMs + copyPauseMs;
    return true;
  }

  #hand(
    bytes: Uint8Array,
    position: number,
    done: number,
    resolve: () => void,
    reject: (error: Error) => void,
  ): void {
    const left = bytes.length - done;
    write(this.#handle.fd, bytes, done, left, position + done, (error, written) => {
      if (error !== null) reject(error);
      else if (written === left) resolve();
      else this.#hand(bytes, position, done + written, resolve, reject);
    });
  }

  async allocate(from: number, to: number): Promise<void> {
    for (let at = from; at < to; at += zeros.length) {
      await this.write(zeros.subarray(0, Math.min(zeros.length, to - at)), at);
    }
  }

  truncate(bytes: number): Promise<void> {
    return this.#handle.truncate(bytes);
  }

  /**
   * fdatasync covers the length too, where it has changed. Another thread does it, and to wake that one
   * and be woken by it takes as long again as a fast disk does: whoever has nothing else to do waits
   * right here, as long as the disk is fast.
   */
  sync(manner?: SyncManner): Promise<void> {
    if (manner === 'aside') return this.#syncAside();
    return new Promise((resolve, reject) => {
      const isQuiet = manner === 'quiet';
      const startMs = isQuiet ? performance.now() : 0;
      if (isQuiet && startMs >= this.#waitsFromMs) {
        fdatasyncSync(this.#handle.fd);
        const endMs = performance.now();
        const tookMs = endMs - startMs;
        if (tookMs > waitSlowMs) this.#waitsFromMs = endMs + tookMs * waitPauseTimes;
        resolve();
        return;
      }
      fdatasync(this.#handle.fd, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  }

  async #syncAside(): Promise<void> {
    const startMs = performance.now();
    await this.sync();
    const pauseMs = Math.min(performance.now() - startMs, asideMaxMs);
    if (pauseMs === 0) return; // time stands: a test has faked it, and the timers with it
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
