/**
 * A snapshot of the tree, written while the tree changes: fuzzy, as Apache's are.
 *
 * In: a tree. Out: a file that, with the log from its zxid on replayed over it, is the tree again. Memory
 * that went bad is never written over what is good on disk.
 */

import { digestVersion } from '../protocol/index.ts';
import {
  type EncodedNodes,
  type SnapshotWriterOptions,
  StorageError,
  type WrittenSnapshot,
  writeSnapshot,
  type ZxidDigest,
} from '../storage/index.ts';
import { nobodyAcl, noNode, openAclId, type Tree } from '../tree/index.ts';

export function writeTree(tree: Tree, options: SnapshotWriterOptions): Promise<WrittenSnapshot> {
  const acls = new Map(tree.acls.entries());
  const hiddenId = tree.acls.nextId;
  if (options.isAlone !== true) acls.set(hiddenId, nobodyAcl);
  return writeSnapshot(
    {
      zxid: BigInt(tree.lastZxid),
      sessions: new Map(tree.sessions),
      acls,
      nodes: snapshotNodes(tree, acls, hiddenId),
      digest: tree.digest === undefined ? null : () => digestNow(tree),
      lastZxid: () => BigInt(tree.lastZxid),
    },
    options,
  );
}

function digestNow({ digest, lastZxid }: Tree): ZxidDigest | null {
  if (digest === undefined || lastZxid === 0) return null;
  return { zxid: BigInt(lastZxid), version: digestVersion, value: digest.value };
}

/**
 * Every node, as a snapshot has it; one whose memory went bad is not written over the good one on disk.
 * One that got a new ACL since the list was made stands as nobody's: the txn that gave it is in the log
 * behind the snapshot, and is replayed. Who restores the file alone must not find open what never was.
 */
function snapshotNodes(
  tree: Tree,
  acls: ReadonlyMap<number, unknown>,
  hiddenId: number,
): EncodedNodes {
  const { nodes } = tree;
  const walk = tree.walk();
  return {
    writeSome(writer, untilBytes) {
      let count = 0;
      do {
        const node = walk.next();
        if (node === noNode) break;
        if (!tree.isIntact(node)) throw new StorageError('BROKEN_MEMORY', nodes.pathOf(node));
        const acl = nodes.aclOf(node);
        nodes.writeSnapshot(writer, node, acl === openAclId || acls.has(acl) ? acl : hiddenId);
        count += 1;
      } while (writer.length < untilBytes);
      return count;
    },
  };
}
