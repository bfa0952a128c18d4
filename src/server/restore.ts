/**
 * A snapshot that somebody brings, put in the place of all that a server holds.
 *
 * In: the bytes of a snapshot file, ours or Apache's, plain or compressed. Out: the same tree as a
 * snapshot in the data directory, numbered behind everything that is there: it alone is what the next
 * start believes. It stands there whole or not at all; what was there before stays on disk beside it.
 *
 * It is numbered anew, and not by its own zxid as Apache does: else the log of what is to be undone
 * would be replayed over it, and clients that have seen a later zxid would be turned away for good. The
 * Stats of its nodes stay what they were.
 */

import { join } from 'node:path';
import {
  type Compression,
  compressionOf,
  type FileSystem,
  readSnapshot,
  type SnapshotFile,
  type SnapshotSink,
  StorageError,
  temporaryPrefix,
} from '../storage/index.ts';
import { Tree, type TreeOptions, type TreeRestore } from '../tree/index.ts';
import { writeTree } from './tree-snapshot.ts';

/** A name that the next start takes for what was never finished, should we end before it is gone. */
const uploadName = `${temporaryPrefix}restore`;
/** For owners of ephemeral nodes of which the snapshot knows no session: it was taken as they came. */
const orphanTimeoutMs = 30_000;

export interface RestoreOptions {
  /** Of the snapshots: version-2 below the data directory. */
  readonly folder: string;
  readonly fs: FileSystem;
  readonly tree: TreeOptions;
  readonly compression?: Exclude<Compression, 'snappy'> | undefined;
}

export class Restoration {
  readonly #options: RestoreOptions;
  readonly #tree: Tree;
  readonly #restored: TreeRestore;
  /** The highest in it. */
  readonly zxid: number;

  private constructor(options: RestoreOptions, { tree, restored, zxid }: ReadTree) {
    this.#options = options;
    this.#tree = tree;
    this.#restored = restored;
    this.zxid = zxid;
  }

  /** Takes all of it in and checks every seal. Rejects, and leaves nothing behind, where one is wrong. */
  static async read(
    upload: AsyncIterable<Uint8Array>,
    options: RestoreOptions,
  ): Promise<Restoration> {
    const { folder, fs } = options;
    const path = join(folder, uploadName);
    if ((await fs.status(path)) !== null) await fs.remove(path);
    try {
      const compression = await receive(upload, path, fs);
      const file = { name: uploadName, path, zxid: 0n, compression };
      return new Restoration(options, await treeOf(file, options));
    } finally {
      await fs.remove(path).catch(() => {}); // never made, or the next start removes it
    }
  }

  /** Onto the disk, behind `lastZxid`. Returns the zxid that it stands for from now on. */
  async write(lastZxid: number): Promise<number> {
    const zxid = Math.max(this.zxid, lastZxid + 1);
    if (zxid > Number.MAX_SAFE_INTEGER) {
      throw new StorageError('ZXID_ORDER', 'no zxid is left behind those of the snapshot');
    }
    const { folder, fs, compression } = this.#options;
    this.#restored.done(zxid);
    this.#restored.closeUnlisted();
    await writeTree(this.#tree, { folder, fs, compression: compression ?? 'none', isAlone: true });
    return zxid;
  }
}

/** What somebody brings may be made to fill the memory: real trees compress three to thirty times. */
const uploadLimits = { inflateRatioMax: 200 };

/** Writes what comes into a file, and tells by its first bytes how it is compressed. */
async function receive(
  upload: AsyncIterable<Uint8Array>,
  path: string,
  fs: FileSystem,
): Promise<Compression> {
  const file = await fs.open(path, 'create');
  const head = Buffer.alloc(8);
  let bytes = 0;
  try {
    for await (const chunk of upload) {
      if (bytes < head.length) head.set(chunk.subarray(0, head.length - bytes), bytes);
      await file.write(chunk, bytes);
      bytes += chunk.length;
    }
  } finally {
    await file.close();
  }
  return compressionOf(head);
}

interface ReadTree {
  readonly tree: Tree;
  readonly restored: TreeRestore;
  readonly zxid: number;
}

async function treeOf(
  file: SnapshotFile,
  { fs, tree: options }: RestoreOptions,
): Promise<ReadTree> {
  const tree = new Tree(options);
  const restored = tree.beginRestore();
  let zxid = 0n;
  const sink: SnapshotSink = {
    session: (id, timeoutMs) => tree.sessions.set(id, timeoutMs),
    acl: (id, acl) => tree.acls.restore(id, acl),
    node(node) {
      const { czxid, mzxid, pzxid } = node.stat;
      for (const one of [czxid, mzxid, pzxid]) if (one > zxid) zxid = one;
      restored.node(node);
    },
  };
  const { lastZxid } = await readSnapshot(fs, file, sink, uploadLimits);
  if (lastZxid !== null && lastZxid > zxid) zxid = lastZxid;
  for (const owner of tree.owners.keys()) {
    if (!tree.sessions.has(owner)) tree.sessions.set(owner, orphanTimeoutMs);
  }
  return { tree, restored, zxid: Number(zxid) };
}
