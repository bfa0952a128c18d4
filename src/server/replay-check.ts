/**
 * Whether a replay makes the tree that the files say: every digest in them, the snapshot's and the one
 * behind each txn, is compared with the tree's own.
 *
 * One that is right proves the whole tree, whatever was wrong before it. That matters, since Apache can
 * be mistaken in its forecast: to PrepRequestProcessor "" and "/" are two nodes, so that a write to the
 * root which meets a create below it under way is logged with a digest that no tree ever had; and a
 * snapshot's nodes may be a txn ahead of its digest. So what counts is how it ends: where the last
 * digests are wrong the first of them is the place to name, from which on nothing is certain.
 */

import {
  type DigestHalves,
  digestHalves,
  digestText,
  digestVersion,
  type TreeDigest,
} from '../protocol/index.ts';
import { type LogEntry, type Restored, StorageError, type ZxidDigest } from '../storage/index.ts';

export class ReplayCheck {
  #snapshot: ZxidDigest | null = null;
  #snapshotFile = '';
  #exactFromZxid = 0n;
  #fault: StorageError | undefined;
  /** How many were compared, and how many of them were not the tree's. */
  compared = 0;
  mismatches = 0;
  /** The first that was wrong, though a later one proves the tree. */
  settled: StorageError | undefined;

  /** Why the tree can't be trusted, once all is replayed. */
  get fault(): StorageError | undefined {
    return this.#fault;
  }

  /** The snapshot is in the tree. */
  restored({ snapshot, exactFromZxid }: Restored, tree: TreeDigest): void {
    const { digest, file } = snapshot;
    this.#exactFromZxid = exactFromZxid;
    this.#snapshot = digest;
    this.#snapshotFile = file.path;
    if (digest?.zxid === file.zxid) this.#compareSnapshot(digest, tree);
  }

  /** The txn is in the tree. */
  applied(entry: LogEntry, tree: TreeDigest): void {
    const { zxid, digest, file, offset } = entry;
    if (zxid === this.#snapshot?.zxid) this.#compareSnapshot(this.#snapshot, tree);
    // Before, the snapshot may hold part of what is to come.
    if (digest === null || zxid < this.#exactFromZxid) return;
    if (digest.version !== digestVersion) return; // of another method: nothing follows from it
    this.#compare(zxid, digest.halves, tree, file, offset);
  }

  #compareSnapshot({ zxid, version, value }: ZxidDigest, tree: TreeDigest): void {
    this.#snapshot = null;
    if (version !== digestVersion) return;
    this.#compare(zxid, digestHalves(value), tree, this.#snapshotFile);
  }

  #compare(
    zxid: bigint,
    expected: DigestHalves,
    tree: TreeDigest,
    file: string,
    offset?: number,
  ): void {
    this.compared += 1;
    if (tree.equals(expected)) {
      this.settled ??= this.#fault;
      this.#fault = undefined;
      return;
    }
    this.mismatches += 1;
    const what = `its digest is ${digestText(tree)}, not ${digestText(expected)}`;
    this.#fault ??= new StorageError('WRONG_DIGEST', what, {
      file,
      offset,
      zxids: { from: zxid, to: zxid },
    });
  }
}
