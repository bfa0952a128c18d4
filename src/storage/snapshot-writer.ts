/**
 * Writes a snapshot (snapshot-format.ts) without holding it in memory and without holding up anybody.
 *
 * In: sessions and ACLs as they are now, and the nodes one by one, parents first. Out: a file that is
 * there under its name only when all of it is on disk. Between two chunks the event loop is free, so
 * the nodes must come from something that bears changes meanwhile; see snapshot-format.ts on fuzziness.
 */

import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { Writer } from '../jute/index.ts';
import { Acl, FileHeader, StatPersisted } from '../protocol/index.ts';
import { adler32, adlerStart } from './adler32.ts';
import { type Compression, snapshotName, temporaryPrefix } from './file-names.ts';
import { type FileSystem, realFileSystem, type StoredFile } from './file-system.ts';
import {
  type EncodedNodes,
  endPath,
  openAclId,
  type SnapshotNode,
  snapshotDbid,
  snapshotMagic,
  snapshotVersion,
  type ZxidDigest,
} from './snapshot-format.ts';
import { StorageError } from './storage-error.ts';

export interface SnapshotContent {
  /** The last txn that is in the tree for certain as the writing begins: it names the file. */
  readonly zxid: bigint;
  readonly sessions: ReadonlyMap<bigint, number>;
  /** Every ACL that a node to come may have, by its number. */
  readonly acls: ReadonlyMap<number, readonly Acl[]>;
  readonly nodes: Iterable<SnapshotNode> | AsyncIterable<SnapshotNode> | EncodedNodes;
  /**
   * Asked for behind the last node: the sum over the tree as it is then. Null in its place: none is kept,
   * and nothing is written behind the nodes, so that every server reads the file (snapshot-format.ts).
   */
  readonly digest?: (() => ZxidDigest | null) | null;
  /** Asked for behind the last node: the last txn in the tree by then. Without it, `zxid`. */
  readonly lastZxid?: () => bigint;
}

export interface SnapshotWriterOptions {
  /** The folder of the snapshots themselves: dataDir/version-2. */
  readonly folder: string;
  readonly fs?: FileSystem;
  readonly compression?: Exclude<Compression, 'snappy'>;
  readonly unsafeNoFsync?: boolean;
  /** Nobody else needs the disk meanwhile: no room is left for them, and it is done sooner. */
  readonly isAlone?: boolean;
  /** Aborted, it is given up between two chunks, and its file is removed. */
  readonly signal?: AbortSignal;
  /** Asked before a file is made; what it rejects with is why none is. */
  readonly before?: () => Promise<void>;
}

export interface WrittenSnapshot {
  readonly path: string;
  readonly bytes: number;
  readonly nodes: number;
}

/** About a thousand small nodes: a millisecond of work at a time. */
const chunkBytes = 128 * 1024;
/**
 * Synced as it grows: one sync of it all at the end would hold up the log's for as long. On a disk that
 * takes 200 MB a second one of 4 MB did so for 25 to 60 ms.
 */
const syncEveryBytes = 512 * 1024;

export async function writeSnapshot(
  content: SnapshotContent,
  options: SnapshotWriterOptions,
): Promise<WrittenSnapshot> {
  const { folder, fs = realFileSystem, compression = 'none' } = options;
  const { unsafeNoFsync = false, isAlone = false, signal } = options;
  const name = snapshotName(content.zxid, compression);
  const path = join(folder, name);
  const temporary = join(folder, `${temporaryPrefix}${name}`);
  try {
    await options.before?.();
    if ((await fs.status(temporary)) !== null) await fs.remove(temporary);
    const encoder = new SnapshotEncoder(content);
    const chunks = compression === 'gzip' ? gzipped(encoder.chunks()) : encoder.chunks();
    const file = await fs.open(temporary, 'create');
    let bytes: number;
    try {
      bytes = await writeAll(file, chunks, !unsafeNoFsync, isAlone, signal);
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path);
    if (!unsafeNoFsync) await fs.syncFolder(folder);
    return { path, bytes, nodes: encoder.nodes };
  } catch (error) {
    await fs.remove(temporary).catch(() => {}); // on a full disk it is the first thing to go
    if (error instanceof StorageError) throw error;
    throw new StorageError('SNAPSHOT_FAILED', String(error), { cause: error, file: path });
  }
}

async function writeAll(
  file: StoredFile,
  chunks: AsyncIterable<Buffer>,
  isSynced: boolean,
  isAlone: boolean,
  signal: AbortSignal | undefined,
): Promise<number> {
  let position = 0;
  let syncedTo = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    await file.write(chunk, position);
    position += chunk.length;
    if (!isSynced || position - syncedTo < syncEveryBytes) continue;
    await file.sync(isAlone ? undefined : 'aside');
    syncedTo = position;
  }
  if (isSynced) await file.sync();
  return position;
}

function gzipped(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const source = Readable.from(chunks);
  const gzip = createGzip({ chunkSize: chunkBytes });
  source.on('error', (error) => gzip.destroy(error));
  gzip.on('close', () => source.destroy());
  return source.pipe(gzip);
}

/** Apache writes the block also when it has no digest yet; so no reader is surprised. */
const noDigestYet: ZxidDigest = { zxid: 0n, version: 2, value: 0n };

class SnapshotEncoder {
  readonly #content: SnapshotContent;
  readonly #writer = new Writer(chunkBytes * 2);
  #sum = adlerStart;
  /** How much of the writer's bytes is in the sum. */
  #summedBytes = 0;
  #nodes = 0;

  constructor(content: SnapshotContent) {
    this.#content = content;
    // At once, while it is all of one moment: sessions may come and go once we let others run.
    this.#writeHead();
  }

  get nodes(): number {
    return this.#nodes;
  }

  async *chunks(): AsyncGenerator<Buffer> {
    const { nodes, digest, lastZxid, zxid } = this.#content;
    if ('writeSome' in nodes) {
      for (let some = this.#writeSome(nodes); some > 0; some = this.#writeSome(nodes)) {
        if (this.#writer.length >= chunkBytes) yield this.#take();
      }
    } else if (Symbol.iterator in nodes) {
      for (const node of nodes) {
        this.#writeNode(node);
        if (this.#writer.length >= chunkBytes) yield this.#take();
      }
    } else {
      for await (const node of nodes) {
        this.#writeNode(node);
        if (this.#writer.length >= chunkBytes) yield this.#take();
      }
    }
    this.#writer.ustring(endPath);
    this.#seal();
    if (digest !== null) {
      this.#writeDigest(digest?.() ?? noDigestYet);
      this.#writer.long(lastZxid?.() ?? zxid);
      this.#seal();
    }
    yield this.#take();
  }

  #writeDigest({ zxid, version, value }: ZxidDigest): void {
    this.#writer.long(zxid);
    this.#writer.int(version);
    this.#writer.long(value);
    this.#seal();
  }

  #writeHead(): void {
    const { sessions, acls } = this.#content;
    const writer = this.#writer;
    FileHeader.write(writer, {
      magic: snapshotMagic,
      version: snapshotVersion,
      dbid: snapshotDbid,
    });
    writer.int(sessions.size);
    for (const [id, timeoutMs] of sessions) {
      writer.long(id);
      writer.int(timeoutMs);
    }
    writer.int(acls.size);
    for (const [id, acl] of acls) {
      writer.long(BigInt(id));
      writer.int(acl.length);
      for (const entry of acl) Acl.write(writer, entry);
    }
  }

  #writeSome(nodes: EncodedNodes): number {
    const count = nodes.writeSome(this.#writer, chunkBytes);
    this.#nodes += count;
    return count;
  }

  #writeNode(node: SnapshotNode): void {
    this.#nodes += 1;
    const { path, data, acl, stat } = node;
    // Apache would start on it and fail later, at the first look at this ACL (ZOOKEEPER-4689).
    if (acl !== openAclId && !this.#content.acls.has(acl)) {
      throw new StorageError('SNAPSHOT_FAILED', `${path} has an ACL that is not listed: ${acl}`);
    }
    const writer = this.#writer;
    writer.ustring(path);
    writer.buffer(data);
    writer.longHalves(acl < 0 ? -1 : Math.floor(acl / 2 ** 32), acl | 0);
    StatPersisted.write(writer, stat);
  }

  #seal(): void {
    this.#addUp();
    this.#writer.longHalves(0, this.#sum | 0);
    this.#writer.ustring(endPath);
  }

  #take(): Buffer {
    this.#addUp();
    this.#summedBytes = 0;
    return this.#writer.detach(chunkBytes * 2);
  }

  #addUp(): void {
    const bytes = this.#writer.written();
    this.#sum = adler32(bytes, this.#summedBytes, bytes.length, this.#sum);
    this.#summedBytes = bytes.length;
  }
}
