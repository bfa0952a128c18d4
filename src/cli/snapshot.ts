/**
 * `drover snapshot dump|verify|diff`: a look at snapshots, Apache's and ours, plain or compressed.
 *
 * Nothing is ever changed. Exit codes: 0 is fine, 1 says that damage or a difference was found, 2 that
 * there was nothing to look at, or no right to.
 */

import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Acl, openAcl } from '../protocol/index.ts';
import {
  diffSnapshots,
  dumpSnapshot,
  type FileSystem,
  isStorageError,
  listSnapshots,
  parseSnapshotName,
  type SnapshotNode,
  type SnapshotSink,
  type SnapshotSummary,
  type StorageError,
  versionFolder,
} from '../storage/index.ts';
import { ownerKind, ttlOfOwner } from '../tree/index.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type Action, filesOf, runAction } from './file-actions.ts';
import {
  aclJson,
  aclText,
  dataJson,
  dataText,
  escaped,
  foundCode,
  hex,
  type Output,
  timeText,
} from './output.ts';

const actions = {
  dump: { usage: 'dump FILE', argsWanted: 1, options: ['full'], run: dump },
  verify: { usage: 'verify FILE|DIR', argsWanted: 1, options: [], run: verify },
  diff: { usage: 'diff FILE FILE', argsWanted: 2, options: [], run: diff },
} satisfies Record<string, Action>;

export function snapshot(
  context: Context,
  args: readonly string[],
  options: OptionValues,
): Promise<number> {
  return runAction('snapshot', actions, context, args, options);
}

// ── dump ──────────────────────────────────────────────────────────────────────────────────────────

async function dump(output: Output, [path = '']: readonly string[]): Promise<number> {
  await checkFile(path);
  try {
    const sink = output.isJson ? jsonSink(output) : columnSink(output);
    const summary = await dumpSnapshot(path, sink, filesOf(output));
    sink.end();
    if (output.isJson) output.record({ record: 'end', ...summaryJson(summary) });
    await output.drained();
    if (!output.isJson) output.tell(`${escaped(path)}: ${summaryText(summary)}`);
    return exitCodes.ok;
  } catch (error) {
    if (output.isGone || !isDamage(error)) throw unreadable(error, path);
    // Every seal is behind the nodes, so they are out before it is known.
    await output.drained();
    output.tell(`${damageText(error, path)}; believe nothing of what was printed`);
    return foundCode;
  }
}

type EndingSink = SnapshotSink & { end(): void };

function jsonSink(output: Output): EndingSink {
  const acls = new Map<number, Acl[]>();
  return {
    session: (id, timeoutMs) => output.record({ record: 'session', id, timeoutMs }),
    acl: (id, acl) => void acls.set(id, acl),
    node(node) {
      const { path, data, stat: at } = node;
      output.record({
        record: 'node',
        path: path || '/',
        data: dataJson(data),
        acl: aclJson(aclOf(node, acls)),
        czxid: at.czxid,
        mzxid: at.mzxid,
        pzxid: at.pzxid,
        ctime: timeText(Number(at.ctime)),
        mtime: timeText(Number(at.mtime)),
        version: at.version,
        cversion: at.cversion,
        aversion: at.aversion,
        ephemeralOwner: at.ephemeralOwner,
      });
    },
    end() {},
  };
}

function columnSink(output: Output): EndingSink {
  const acls = new Map<number, Acl[]>();
  const sessions = new Columns(output, 'SESSION', 'TIMEOUT');
  let nodes: Columns | undefined;
  return {
    session: (id, timeoutMs) => sessions.row(hex(id), `${timeoutMs} ms`),
    acl: (id, acl) => void acls.set(id, acl),
    node(node) {
      if (nodes === undefined) {
        sessions.end();
        output.write('\n');
        nodes = new Columns(output, 'MZXID', 'MTIME', 'VERSION', 'OWNER', 'ACL', 'PATH', 'DATA');
      }
      const { path, data, stat: at } = node;
      nodes.row(
        hex(at.mzxid),
        timeText(Number(at.mtime)),
        String(at.version),
        ownerText(at.ephemeralOwner),
        aclText(aclOf(node, acls)),
        escaped(path || '/'),
        dataText(data, output.shownBytes),
      );
    },
    end() {
      sessions.end();
      nodes?.end();
    },
  };
}

/** The number -1 stands for the open ACL without being in the list. */
function aclOf({ acl }: SnapshotNode, acls: ReadonlyMap<number, Acl[]>): readonly Acl[] {
  return acls.get(acl) ?? (acl === -1 ? openAcl : []);
}

/** No file says whether nodes with a time to live were switched on: a session's id never looks like one. */
function ownerText(owner: bigint): string {
  const kind = ownerKind(owner, true);
  if (kind === 'none') return '-';
  if (kind === 'ttl') return `ttl ${ttlOfOwner(owner)} ms`;
  return kind === 'container' ? kind : hex(owner);
}

// ── verify ────────────────────────────────────────────────────────────────────────────────────────

interface Verified {
  readonly state: 'sound' | 'damaged' | 'moving';
  readonly summary: SnapshotSummary | null;
  /** One sentence. */
  readonly fault: string | null;
}

async function verify(output: Output, [target = '']: readonly string[]): Promise<number> {
  const paths = await snapshotPaths(output, target);
  const columns = output.isJson
    ? undefined
    : new Columns(output, 'FILE', 'STATE', 'SESSIONS', 'NODES', 'BYTES', 'LAST-ZXID');
  const faults: string[] = [];
  let isDamaged = false;
  for (const path of paths) {
    const { state, summary, fault } = await verifySnapshot(output, path);
    isDamaged ||= state === 'damaged';
    if (columns === undefined) {
      const file = { file: path, state };
      output.record({ record: 'snapshot', ...file, fault, ...(summary && summaryJson(summary)) });
    } else {
      const { sessions, nodes, bytes, lastZxid } = summary ?? {};
      const counts = [sessions, nodes, bytes].map((count) => String(count ?? '-'));
      columns.row(escaped(path), state, ...counts, lastZxid ? hex(lastZxid) : '-');
    }
    if (fault !== null) faults.push(fault);
  }
  columns?.end();
  await output.drained();
  for (const fault of faults) output.tell(fault);
  return isDamaged ? foundCode : exitCodes.ok;
}

async function snapshotPaths(output: Output, target: string): Promise<string[]> {
  if (!(await isFolder(target))) {
    await checkFile(target);
    return [target];
  }
  const folder = await folderOf(target);
  const files = await listSnapshots(filesOf(output), folder);
  if (files.length === 0) throw new CommandError('usage', `no snapshot is in ${escaped(folder)}`);
  return files.map(({ path }) => path);
}

/** Looks at which a fault must be in the same place. */
export const looksMax = 4;

/** A fault that is found in the same place twice is damage; one that moves is a file being written. */
async function verifySnapshot(output: Output, path: string): Promise<Verified> {
  let before: string | undefined;
  for (let look = 0; look < looksMax; look++) {
    try {
      const summary = await dumpSnapshot(path, nobody, filesOf(output));
      return { state: 'sound', summary, fault: null };
    } catch (error) {
      if (output.isGone || !isDamage(error)) throw unreadable(error, path);
      const fault = damageText(error, path);
      if (fault === before) {
        const advice = `a server goes back to the snapshot before it, so see with drover log verify ${escaped(dirname(path))} whether the logs reach from there, before you remove it`;
        return { state: 'damaged', summary: null, fault: `${fault}; ${advice}` };
      }
      before = fault;
    }
  }
  const fault = `${escaped(path)} is being written; look again once the server is done with it`;
  return { state: 'moving', summary: null, fault };
}

const nobody: SnapshotSink = { session() {}, acl() {}, node() {} };

// ── diff ──────────────────────────────────────────────────────────────────────────────────────────

async function diff(output: Output, [left = '', right = '']: readonly string[]): Promise<number> {
  await checkFile(left);
  await checkFile(right);
  const columns = output.isJson ? undefined : new Columns(output, 'CHANGE', 'PATH', 'FIELDS');
  const counts = { added: 0, removed: 0, changed: 0 };
  try {
    await diffSnapshots(
      left,
      right,
      ({ kind, path, fields }) => {
        counts[kind] += 1;
        columns?.row(kind, escaped(path), fields.join(',') || '-');
        if (columns === undefined) output.record({ record: 'difference', kind, path, fields });
      },
      filesOf(output),
    );
  } catch (error) {
    if (output.isGone || !isDamage(error)) throw unreadable(error, left);
    const text = damageText(error, error.file ?? left);
    throw new CommandError('usage', `${text}, so the two can't be compared`, { cause: error });
  }
  const { added, removed, changed } = counts;
  if (columns === undefined) output.record({ record: 'end', left, right, ...counts });
  if (added + removed + changed > 0) columns?.end();
  await output.drained();
  if (columns !== undefined) output.tell(`${added} added, ${removed} removed, ${changed} changed`);
  return added + removed + changed > 0 ? foundCode : exitCodes.ok;
}

// ── what both `log` and `snapshot` need ───────────────────────────────────────────────────────────

function summaryJson({ file, ...summary }: SnapshotSummary): object {
  const { bytes, sessions, nodes, digest, lastZxid } = summary;
  return { file: file.path, zxid: file.zxid, bytes, sessions, nodes, digest, lastZxid };
}

function summaryText({ sessions, nodes, lastZxid, file }: SnapshotSummary): string {
  const last = lastZxid === null ? `named for zxid ${hex(file.zxid)}` : `up to ${hex(lastZxid)}`;
  return `${sessions} sessions, ${nodes} nodes, ${last}; every checksum is right`;
}

/** A file that the disk refuses to read is not known to be damaged: that has a `syscall`. */
function isDamage(error: unknown): error is StorageError {
  return isStorageError(error, 'DAMAGED_SNAPSHOT', 'DAMAGED_LOG') && !ioErrorOf(error);
}

/** Where a snapshot is damaged, and how; null where it is whole by now. */
export async function snapshotFault(
  fs: FileSystem,
  path: string,
): Promise<{ offset: number | null; sentence: string } | null> {
  try {
    await dumpSnapshot(path, nobody, fs);
    return null;
  } catch (error) {
    if (!isDamage(error)) throw unreadable(error, path);
    return { offset: error.offset ?? null, sentence: damageText(error, path) };
  }
}

/** File, offset, zxid and what is wrong. */
function damageText(error: StorageError, path: string): string {
  const cause = error.cause instanceof Error ? error.cause.message : error.message;
  const zxid = parseSnapshotName('', basename(path))?.zxid;
  const where = error.offset === undefined ? '' : ` at offset ${error.offset}`;
  const named = zxid === undefined ? '' : ` (zxid ${hex(zxid)})`;
  return `${escaped(path)}${named} is damaged${where}: ${escaped(cause)}`;
}

function ioErrorOf(error: unknown): NodeJS.ErrnoException | undefined {
  const { syscall } = error as NodeJS.ErrnoException;
  if (syscall !== undefined) return error as NodeJS.ErrnoException;
  const { cause } = error as Error;
  return cause instanceof Error ? ioErrorOf(cause) : undefined;
}

const adviceByCode: Readonly<Record<string, string>> = {
  ENOENT: 'is not there; look for a typing error, or, if a server uses the directory, run it again',
  EACCES: 'may not be read by this user; run it as the one who runs the server',
  EPERM: 'may not be read by this user; run it as the one who runs the server',
  ELOOP: 'is a link, and links are not followed; name the file that it points to',
  ENOTDIR: 'is no folder; name a dataDir or its version-2',
  EISDIR: 'is a folder; name a file in it',
};

/** One sentence for what is foreseen. Anything else stays as it is: a bug has a stack. */
export function unreadable(error: unknown, path: string): unknown {
  if (isStorageError(error, 'UNSUPPORTED')) {
    const message = `${escaped(error.file ?? path)} is ${escaped(error.message)}`;
    return new CommandError('usage', message, { cause: error });
  }
  const io = error instanceof Error ? ioErrorOf(error) : undefined;
  if (io === undefined) return error;
  const advice = adviceByCode[io.code ?? ''] ?? `can't be read (${io.code}); check the disk`;
  return new CommandError('usage', `${escaped(io.path ?? path)} ${advice}`, { cause: error });
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw unreadable(error, path);
  }
}

/** Where the files are: a dataDir has them in version-2, unless that is what was named. */
export async function folderOf(directory: string): Promise<string> {
  if (!(await isFolder(directory))) {
    const message = `${escaped(directory)} is no folder; name a dataDir or its version-2`;
    throw new CommandError('usage', message);
  }
  const below = join(directory, versionFolder);
  const status = await stat(below).catch(() => undefined);
  return status?.isDirectory() ? below : directory;
}

async function checkFile(path: string): Promise<void> {
  const names = 'snapshot.<zxid in hex>, with .gz or .snappy behind it where it is compressed';
  if (await isFolder(path)) {
    throw new CommandError('usage', `${escaped(path)} is a folder; name one file in it: ${names}`);
  }
  if (parseSnapshotName(dirname(path), basename(path)) !== null) return;
  throw new CommandError('usage', `${escaped(path)} is not named as a snapshot is: ${names}`);
}
