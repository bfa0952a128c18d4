/** Files and sockets of this process: a link is one of them, and so is the log that is begun anew. */

import { readdirSync, readFileSync } from 'node:fs';

/** -1 where the system does not say. */
export function openFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return -1;
  }
}

let filesMax: number | undefined;

/** How many there may be; -1 where the system does not say. */
export function openFilesMax(): number {
  try {
    filesMax ??= Number(
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? -1,
    );
  } catch {
    filesMax = -1;
  }
  return filesMax;
}

/** Kept for logs and snapshots, and for who looks in. A server that can't open its next log ends. */
const keptMax = 256;

/** How many links leave enough for all else. */
export function roomForLinks(most = openFilesMax(), open = openFiles()): number {
  if (most === -1 || open === -1) return Infinity;
  const free = Math.max(0, most - open);
  return free - Math.min(keptMax, Math.ceil(free / 4));
}
