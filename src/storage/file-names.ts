/**
 * What the files of a data directory are called.
 *
 *   log.<hex of its first zxid>
 *   snapshot.<hex of the last zxid in it>[.gz|.snappy]
 *   .drover-…      ours: locks, the mark, files being written. Apache's reader takes any name whose first
 *                  part is "log" or "snapshot" for one of its own, even snapshot.5.tmp; not these.
 */

import { join } from 'node:path';
import type { FileSystem } from './file-system.ts';

/** The folder below dataDir and dataLogDir that says which format it holds. */
export const versionFolder = 'version-2';

export const ownPrefix = '.drover-';
/** Files being written: whatever still has this name was never finished. */
export const temporaryPrefix = `${ownPrefix}new-`;

export type Compression = 'none' | 'gzip' | 'snappy';

const extensions: Record<Compression, string> = { none: '', gzip: '.gz', snappy: '.snappy' };

export interface LogFile {
  readonly name: string;
  readonly path: string;
  readonly zxid: bigint;
}

export interface SnapshotFile extends LogFile {
  readonly compression: Compression;
}

export function logName(zxid: bigint): string {
  return `log.${BigInt.asUintN(64, zxid).toString(16)}`;
}

export function snapshotName(zxid: bigint, compression: Compression = 'none'): string {
  return `snapshot.${BigInt.asUintN(64, zxid).toString(16)}${extensions[compression]}`;
}

export function parseLogName(folder: string, name: string): LogFile | null {
  const match = /^log\.([0-9a-f]{1,16})$/.exec(name);
  return match && { name, path: join(folder, name), zxid: zxidOf(match[1]!) };
}

export function parseSnapshotName(folder: string, name: string): SnapshotFile | null {
  const match = /^snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?$/.exec(name);
  if (match === null) return null;
  const compression = match[2] === '.gz' ? 'gzip' : match[2] === '.snappy' ? 'snappy' : 'none';
  return { name, path: join(folder, name), zxid: zxidOf(match[1]!), compression };
}

/** Oldest first. */
export async function listLogs(fs: FileSystem, folder: string): Promise<LogFile[]> {
  const names = await fs.list(folder);
  return names
    .map((name) => parseLogName(folder, name))
    .filter((file) => file !== null)
    .sort(byZxid);
}

/** Newest first. */
export async function listSnapshots(fs: FileSystem, folder: string): Promise<SnapshotFile[]> {
  const names = await fs.list(folder);
  return names
    .map((name) => parseSnapshotName(folder, name))
    .filter((file) => file !== null)
    .sort((a, b) => byZxid(b, a));
}

export async function listTemporaries(fs: FileSystem, folder: string): Promise<string[]> {
  return (await fs.list(folder)).filter((name) => name.startsWith(temporaryPrefix)).sort();
}

function byZxid(a: LogFile, b: LogFile): number {
  return a.zxid < b.zxid ? -1 : a.zxid > b.zxid ? 1 : a.name < b.name ? -1 : 1;
}

function zxidOf(hex: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${hex}`));
}
