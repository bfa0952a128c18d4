/**
 * One server per directory: a lock that dies with whoever holds it.
 *
 *   .drover-lock.<n>   a listening Unix socket; n only grows
 *
 * A file with a process id in it goes stale after a kill, and in a container every server has id 1.
 * A socket answers as long as its process lives, stopped or not, and refuses from the moment it is gone,
 * for every process of the same machine, whatever container it is in. So who finds a lock asks it.
 *
 * Taking over a dead lock by removing it would race: two could find it dead, and the slower one remove
 * the lock of the faster. So nobody removes a lock to get it: one binds the next number, which succeeds
 * for one process alone, looks again whether any other lock is alive, and if so gives up. Both may
 * give up; never do both hold it. The holder then clears the dead ones away.
 *
 * Not covered: a file system shared between machines, and Apache's servers, which have no lock at all.
 */

import { createHash } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import { readdir, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ownPrefix } from './file-names.ts';
import { StorageError } from './storage-error.ts';

const lockPrefix = `${ownPrefix}lock.`;
/** What a socket's address has room for; less on other systems than on Linux. */
const addressBytesMax = 100;
const askTimeoutMs = 1_000;
/**
 * What says that nobody listens. No other error does: one that is stopped may have as many callers
 * waiting as its kernel keeps (EAGAIN), and we may be out of files, or not allowed to ask.
 */
const nobodyCodes: readonly unknown[] = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'];

export interface DirectoryLock extends AsyncDisposable {
  release(): Promise<void>;
}

/** Rejects with IN_USE, naming the holder's process id, while another server lives. */
export async function lockDirectory(folder: string): Promise<DirectoryLock> {
  if (process.platform === 'win32') return lockByPipe(folder);
  const place = addressable(folder);
  const address = (n: number) => join(place.folder, `${lockPrefix}${n}`);
  try {
    const next = Math.max(0, ...(await lockNumbers(folder))) + 1;
    await refuseIfAlive(folder, address, next);
    const server = await listen(address(next)).catch((cause) => {
      if (cause.code === 'EADDRINUSE') throw inUse(folder, null);
      throw new StorageError('UNSAFE_DIRECTORY', `no lock could be made: ${cause}`, {
        cause,
        file: folder,
      });
    });
    try {
      await refuseIfAlive(folder, address, next);
    } catch (error) {
      await end(server);
      throw error;
    }
    for (const n of await lockNumbers(folder))
      if (n !== next) await unlink(address(n)).catch(() => {});
    return held(server, place.close);
  } catch (error) {
    place.close();
    throw error;
  }
}

async function lockNumbers(folder: string): Promise<number[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(lockPrefix));
  return names.map((name) => Number(name.slice(lockPrefix.length))).filter(Number.isSafeInteger);
}

async function refuseIfAlive(folder: string, address: (n: number) => string, own: number) {
  for (const n of await lockNumbers(folder)) {
    if (n === own) continue;
    const holder = await ask(address(n));
    if (holder !== null) throw inUse(folder, holder);
  }
}

/** The holder's process id, 0 if it is alive and does not answer, null if nobody is there. */
function ask(address: string): Promise<number | null> {
  return new Promise((resolve) => {
    const socket = connect(address);
    // A stopped process accepts no connection, but its kernel does: it counts as alive.
    let isAlive = true;
    let answer = '';
    socket.on('data', (bytes) => {
      answer += bytes;
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      isAlive = !nobodyCodes.includes(code);
    });
    socket.setTimeout(askTimeoutMs, () => socket.destroy());
    socket.on('close', () => resolve(isAlive ? Number(answer) || 0 : null));
  });
}

function listen(address: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(String(process.pid));
    });
    server.on('error', reject);
    server.listen(address, () => resolve(server));
    server.unref();
  });
}

function held(server: Server, close: () => void): DirectoryLock {
  let released: Promise<void> | undefined;
  const release = () => {
    released ??= end(server).then(close); // the socket's file goes with the server
    return released;
  };
  return { release, [Symbol.asyncDispose]: release };
}

function end(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function inUse(folder: string, holder: number | null): StorageError {
  const who = holder ? `process ${holder} holds it` : 'somebody holds it';
  const why = `${who}; stop that one, or name another directory`;
  return new StorageError('IN_USE', why, { file: folder });
}

/** A way to the folder that is short enough for a socket's address. */
function addressable(folder: string): { folder: string; close: () => void } {
  if (Buffer.byteLength(folder) + 32 <= addressBytesMax) return { folder, close() {} };
  if (process.platform !== 'linux') {
    throw new StorageError('UNSAFE_DIRECTORY', 'its path is too long for a lock', { file: folder });
  }
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  return { folder: `/proc/self/fd/${handle}`, close: () => closeSync(handle) };
}

/** A named pipe has no file, belongs to one process alone, and goes with it. */
async function lockByPipe(folder: string): Promise<DirectoryLock> {
  const name = createHash('sha256').update(resolve(folder).toLowerCase()).digest('hex');
  const address = join('\\\\?\\pipe', tmpdir(), `drover-${name}`);
  const server = await listen(address).catch(async () => {
    throw inUse(folder, await ask(address));
  });
  return held(server, () => {});
}
