/**
 * Reads files that a configuration or a command line names, and never waits for ever.
 *
 * To open a named pipe that nobody writes to blocks a thread for good: a program that tried can't even
 * end on a signal. So a pipe, a socket or a device is refused before it is opened. A descriptor that the
 * caller of the process passed on (`/dev/stdin`, or bash's `<(command)`) may be a pipe: somebody writes
 * to that one, or has done so.
 */

import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';

/** The `code` of the error for a path that is a pipe, a socket or a device. */
const notAFile = 'NOT_A_PLAIN_FILE';

export async function refuseSpecialFile(path: string): Promise<void> {
  check(path, await stat(path));
}

/** The bytes of a plain file. Rejects with the code `NOT_A_PLAIN_FILE` for a pipe, a socket or a device. */
export async function readPlainFile(path: string): Promise<Buffer> {
  await refuseSpecialFile(path);
  return readFile(path);
}

/** As `readPlainFile`, at once. */
export function readPlainFileSync(path: string): Buffer {
  check(path, statSync(path));
  return readFileSync(path);
}

function check(path: string, stats: Stats): void {
  // A folder fails by itself when it is read (EISDIR).
  if (stats.isFile() || stats.isDirectory()) return;
  if (stats.isFIFO() && passedOn.test(path)) return;
  const kind = kindOf(stats);
  throw Object.assign(new Error(`${path} is ${kind}, not a plain file`), {
    ...{ code: notAFile, path },
  });
}

const passedOn = /^\/dev\/(stdin|fd\/\d+)$|^\/proc\/[^/]+\/fd\/\d+$/;

/** What a path is that is neither a file nor a folder, in words. */
export function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a named pipe';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}
