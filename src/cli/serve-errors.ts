/** What can go wrong with a server, each in one sentence that says what to do. */

import { ConfigError, type RunningServer, type ServerConfig } from '../server/index.ts';
import { isStorageError, type StorageError } from '../storage/index.ts';
import { CommandError } from './exit-codes.ts';
import { at } from './serve-words.ts';

export function stoppedMessage(error: Error, server: RunningServer): string {
  const zxid = isStorageError(error) ? error.lastDurableZxid : undefined;
  const last = `0x${(zxid ?? BigInt(server.engine.lastZxid)).toString(16)}`;
  return `stopped, as going on could lose writes: ${error.message}; the last write that is certainly on disk has zxid ${last}`;
}

/** What a folder or a file can be wrong with, in the words of the system. */
const fileCodes: ReadonlySet<string> = new Set([
  ...['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR', 'ENOENT', 'EISDIR', 'EEXIST'],
  ...['ENAMETOOLONG', 'ELOOP', 'EINVAL', 'EIO', 'ENXIO', 'ENODEV', 'ENOTSUP', 'EOPNOTSUPP'],
  ...['EMFILE', 'ENFILE'],
]);

/** What to choose another port with. */
const portFlags = [
  ['--port', 'clientPort'],
  ['secureClientPort', 'secureClientPort'],
  ['--admin-port', 'admin.serverPort'],
  ['--metrics-port', 'metricsProvider.httpPort'],
] as const;

/** Of these, what keeps a lock from being made like any other file; others say that there are no locks there. */
const lockCodes: ReadonlySet<unknown> = new Set(['EACCES', 'EROFS', 'ENOSPC', 'EDQUOT']);

/** What is to be done about those that are no matter of rights. */
const cures: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: make room',
  EDQUOT: 'the disk quota is used up: make room',
  EIO: 'the disk fails: look at the system log',
  EMFILE: 'this process may open no more files: raise its limit (ulimit -n)',
  ENFILE: 'this machine may open no more files: end what holds them',
  EISDIR: 'a folder stands where a file is wanted: move it away',
  EEXIST: 'something stands in its place: move it away',
  ELOOP:
    'it is a link, and in a data directory none is followed: put what it leads to in its place',
};

function salvageAdvice({ code }: StorageError, isSalvaging: boolean): string {
  if (code === 'WRONG_DIGEST') return '; restore a backup, or go on with all of it by --salvage';
  if (!code.startsWith('DAMAGED') && code !== 'MISSING_TXNS') return '';
  if (isSalvaging) return '; there is nothing whole to go on from: restore a backup';
  return '; restore a backup, or go on without what is lost by --salvage';
}

/** One sentence, for what is foreseen. Anything else stays as it is: a bug has a stack. */
export function asCommandError(error: unknown, config?: ServerConfig): unknown {
  if (error instanceof CommandError) return error;
  if (error instanceof ConfigError)
    return new CommandError('usage', error.message, { cause: error });
  if (isStorageError(error, 'SNAPSHOT_FAILED') && 'syscall' in (error.cause as object)) {
    // It is the first of a new directory; without it no server starts.
    return asCommandError(Object.assign(error.cause as Error, { path: error.file }), config);
  }
  if (isStorageError(error, 'UNSAFE_DIRECTORY')) {
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    if (code !== undefined && lockCodes.has(code))
      return unusable(error.file!, 'written', code, error);
  }
  if (isStorageError(error)) {
    const advice = salvageAdvice(error, config?.must('drover.salvage') ?? false);
    return new CommandError('data', `${error.message}${advice}`, { cause: error });
  }
  const { code, syscall, path, address, port, hostname } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
    hostname?: string;
  };
  if (syscall === 'listen' || syscall === 'getaddrinfo') {
    const where = port === undefined ? (address ?? hostname ?? '') : at(address ?? '', port);
    const [flag] = portFlags.find(([, key]) => config?.get(key) === port) ?? [];
    const key = flag ?? 'its key in the configuration';
    const messages: Record<string, string> = {
      EADDRINUSE: `${where} is taken by another program; stop that one, or choose another port with ${key}`,
      EACCES: `${where} may not be listened on by this user; choose a port above 1023 with ${key}`,
      EADDRNOTAVAIL: `${where} is no address of this machine; choose one with --address`,
      ENOTFOUND: `${where} has no address; choose one with --address`,
    };
    const message = messages[code ?? ''] ?? `can't listen on ${where} (${code})`;
    return new CommandError('address', message, { cause: error });
  }
  if (code !== undefined && fileCodes.has(code)) {
    const where = path ?? config?.must('dataDir') ?? 'a file';
    return unusable(where, syscall === 'read' ? 'read' : 'written', code, error);
  }
  return error;
}

function unusable(
  where: string,
  how: 'read' | 'written',
  code: string,
  cause: unknown,
): CommandError {
  const cure = cures[code] ?? 'give this user the right to';
  const message = `${where} can't be ${how} (${code}); ${cure}, or name another folder with --data`;
  return new CommandError('data', message, { cause });
}
