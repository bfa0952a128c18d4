/**
 * `drover backup --admin URL`: a snapshot that a running server makes of itself, as a data directory.
 *
 * In: the file that its admin server sends. Out: a folder that a server starts from. Where the server
 * wrote meanwhile, the file holds part of that, and the log that would mend it is not sent along: it is
 * refused, or with --fuzzy taken as it is, whole node by node, and numbered behind all that is in it.
 */

import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Restoration } from '../server/index.ts';
import {
  compressionOf,
  isStorageError,
  parseSnapshotName,
  readSnapshot,
  realFileSystem,
  type SnapshotFile,
  type SnapshotNode,
  type SnapshotSummary,
  snapshotName,
  versionFolder,
} from '../storage/index.ts';
import type { Context, OptionValues } from './command.ts';
import { settledData } from './ensemble-import.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';
import { escaped, hex } from './output.ts';
import { unwritable } from './tree-file.ts';

const snapshotTimeoutMs = 10 * 60_000;

/** The password, where one is wanted, comes from DROVER_ADMIN_AUTH and never from the command line. */
export async function backupByAdmin(
  { output, signal, environment }: Context,
  place: string,
  options: OptionValues,
): Promise<number> {
  const base = adminUrl(String(options.admin));
  const folder = await newFolder(place);
  const files = join(folder, versionFolder);
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(snapshotTimeoutMs)]);
    const response = await ask(base, environment.DROVER_ADMIN_AUTH, late, signal);
    await makeFolders(files, 0o700);
    const received = await checked(await receive(response, base, files, signal), base);
    const path = await standingAlone(received, files, options.fuzzy === true);
    const { lastZxid } = await settledData({ snapshots: files, logs: files });
    const { size } = await stat(path);
    if (output.isJson) output.record({ folder, zxid: lastZxid, bytes: size });
    else
      output.tell(`a snapshot of ${size} bytes, up to zxid ${hex(lastZxid)}, in ${escaped(place)}`);
    return exitCodes.ok;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function ask(
  base: URL,
  auth: string | undefined,
  late: AbortSignal,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetch(new URL('snapshot?streaming=true', base), {
    signal: late,
    headers: auth ? { authorization: auth } : {},
  }).catch((error) => {
    signal.throwIfAborted();
    const why = error.cause?.message ?? error.message;
    throw new CommandError('unreachable', `${base.href}: ${why}; is the admin server on?`, {
      cause: error,
    });
  });
  if (response.ok && response.body !== null) return response;
  throw new CommandError(
    'refused',
    `${base.href} answered ${response.status}: ${adminAnswer(response.status)}`,
  );
}

/** What was sent, under the name that it has on a server; the bytes say how it is compressed. */
async function receive(
  response: Response,
  base: URL,
  folder: string,
  signal: AbortSignal,
): Promise<SnapshotFile> {
  const zxid = response.headers.get('last_zxid') ?? '';
  const plain = parseSnapshotName(folder, `snapshot.${zxid.replace(/^0x/, '')}`);
  if (plain === null) {
    throw new CommandError(
      'refused',
      `${base.href} sent no snapshot: its last_zxid is ${escaped(zxid)}`,
    );
  }
  const temporary = join(folder, '.drover-new-snapshot');
  const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  const target = createWriteStream(temporary, { mode: 0o600, flush: true });
  await pipeline(body, target, { signal }).catch((error) => {
    signal.throwIfAborted();
    if (error.syscall !== undefined) throw unwritable(temporary, error);
    const why = error.cause?.message ?? error.message;
    throw new CommandError('unreachable', `${base.href} did not send all of it: ${why}`, {
      cause: error,
    });
  });
  const name = snapshotName(plain.zxid, compressionOf(await headOf(temporary)));
  await rename(temporary, join(folder, name));
  return parseSnapshotName(folder, name)!;
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(8);
    await file.read(head, 0, head.length, 0);
    return head;
  } finally {
    await file.close();
  }
}

/** Whole, and the last zxid that anything in it tells of. */
interface Checked extends SnapshotSummary {
  readonly reachedZxid: bigint;
}

async function checked(file: SnapshotFile, base: URL): Promise<Checked> {
  let reachedZxid = file.zxid;
  const see = (zxid: bigint | undefined | null) => {
    if (zxid && zxid > reachedZxid) reachedZxid = zxid;
  };
  // A server that keeps no digest may tell of its end by its nodes alone.
  const node = ({ stat: { czxid, mzxid, pzxid } }: SnapshotNode) => {
    for (const zxid of [czxid, mzxid, pzxid]) see(zxid);
  };
  try {
    const summary = await readSnapshot(realFileSystem, file, { session() {}, acl() {}, node });
    for (const zxid of [summary.digest?.zxid, summary.lastZxid]) see(zxid);
    return { ...summary, reachedZxid };
  } catch (error) {
    if (!isStorageError(error, 'DAMAGED_SNAPSHOT')) throw error;
    const message = `${base.href} sent what is no whole snapshot: ${error.message}`;
    throw new CommandError('data', message, { cause: error });
  }
}

/** A start would ask for the log of what the snapshot reaches beyond its name. */
async function standingAlone(
  { file, reachedZxid }: Checked,
  folder: string,
  isFuzzyEnough: boolean,
): Promise<string> {
  const { path, zxid, compression } = file;
  if (reachedZxid === zxid) return path;
  if (!isFuzzyEnough) {
    const message = `the snapshot is not of one moment: the server wrote up to zxid ${hex(reachedZxid)} while it made it, and only its log mends that; take it at a quieter time, copy the files of a stopped one with --data, or say --fuzzy if this will do`;
    throw new CommandError('data', message);
  }
  const kept = compression === 'gzip' ? 'gzip' : 'none';
  const restoration = await Restoration.read(createReadStream(path), {
    folder,
    fs: realFileSystem,
    tree: { extendedTypes: true, digest: true },
    compression: kept,
  });
  const written = BigInt(await restoration.write(Number(zxid)));
  await rm(path);
  return join(folder, snapshotName(written, kept));
}

function adminUrl(text: string): URL {
  try {
    const url = new URL(/^https?:\/\//.test(text) ? text : `http://${text}`);
    if (url.pathname === '/') url.pathname = '/commands/';
    if (!url.pathname.endsWith('/')) url.pathname += '/';
    return url;
  } catch (cause) {
    throw new CommandError('usage', `--admin ${escaped(text)}: host:8080 or a URL is wanted`, {
      cause,
    });
  }
}

function adminAnswer(status: number): string {
  if (status === 401 || status === 403)
    return 'it wants to know who asks: put "digest user:password" into DROVER_ADMIN_AUTH';
  if (status === 404) return 'that server is older than 3.9';
  if (status === 429) return 'it took one a short while ago: admin.rateLimiterIntervalInMS';
  if (status === 503) return 'snapshots are switched off: admin.snapshot.enabled';
  return 'look into its log';
}

/** A backup never goes over another. */
export async function newFolder(place: string): Promise<string> {
  const folder = resolve(place);
  if (existsSync(folder)) {
    throw new CommandError('refused', `${escaped(place)} is there already; name a new folder`);
  }
  await makeFolders(folder, 0o700);
  return folder;
}
