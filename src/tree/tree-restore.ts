/**
 * A tree that is filled from a snapshot.
 *
 * In: the nodes of the snapshot, parents before their children, and its ACLs, which `AclCache.restore` takes.
 * Out: the same tree, as of the zxid that `done` is told. Nothing but this changes the tree meanwhile.
 *
 * A snapshot may be fuzzy: what it has of one moment and what of the next only the log mends that is replayed
 * behind it. `closeUnlisted` and `toldZxid` look at what is left to be wished for after that.
 */

import { readInt, Writer } from '../jute/index.ts';
import { parentOf, StatPersisted } from '../protocol/index.ts';
import { type AclCache, nobodyAcl } from './acl-cache.ts';
import type { EncodedNodeAt } from './node-record.ts';
import type { NewNode, NodeStore } from './node-store.ts';
import { hashOf } from './path-hash.ts';
import { noNode } from './path-index.ts';
import type { RunningDigest } from './running-digest.ts';
import { nodesBelow, type TreeWalk } from './tree-walk.ts';

/** What it asks of the tree. */
export interface RestoredTree {
  readonly nodes: NodeStore;
  readonly acls: AclCache;
  readonly digest: RunningDigest | undefined;
  walk(): TreeWalk;
  insert(parent: number, made: NewNode): number;
  /** The owner that clients are shown. */
  shownOwner(owner: bigint): bigint;
  /** Paths and data grew by so many bytes. */
  grown(bytes: number): void;
  restored(zxid: number): void;
}

/** As a snapshot has it. */
export interface RestoredNode {
  /** Empty for the root. */
  readonly path: string;
  readonly data: Buffer | null;
  readonly acl: number;
  readonly stat: StatPersisted;
}

/** Where the owner stands in a StatPersisted. */
const persistedOwnerAt = 44;

const slashByte = 0x2f;
const ownPath = Buffer.from('/zookeeper');

/** Where the last name of a path in ASCII begins, at its slash; -1 for the root and for whatever else it is. */
function lastSlash(bytes: Buffer, start: number, end: number): number {
  if (end - start < 2 || bytes[start] !== slashByte || bytes[end - 1] === slashByte) return -1;
  let slash = -1;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte > 0x7f) return -1;
    if (byte === slashByte) slash = at;
  }
  return slash;
}

/** Whether a path may be /zookeeper or one below it. */
function isOwn(bytes: Buffer, start: number): boolean {
  for (let i = 0; i < ownPath.length; i++) if (bytes[start + i] !== ownPath[i]) return false;
  return true;
}

export class TreeRestore {
  readonly #tree: RestoredTree;
  readonly #persisted = new Writer(StatPersisted.width);
  #parentOfLast = { path: '', node: noNode };
  #encodedParentOfLast = { path: Buffer.alloc(0), node: noNode };

  constructor(tree: RestoredTree) {
    this.#tree = tree;
  }

  /** A node, its parent before it. */
  node({ path: told, data, acl, stat }: RestoredNode): void {
    const { nodes, acls, digest } = this.#tree;
    const path = told === '' ? '/' : told;
    const known = nodes.find(path);
    let node = known;
    if (known === noNode) {
      const parent = this.#parent(parentOf(path));
      if (parent === noNode) throw new Error(`a snapshot has ${path} before its parent`);
      const owner = stat.ephemeralOwner;
      const shownOwner = this.#tree.shownOwner(owner);
      const blank = { hash: undefined, zxid: 0, timeMs: 0 };
      node = this.#tree.insert(parent, { ...blank, path, data, acl, owner, shownOwner });
    } else {
      this.#tree.grown((data?.length ?? 0) - nodes.dataBytes(known));
      nodes.setData(known, data);
      acls.release(nodes.aclOf(known));
      nodes.setAcl(known, acl, 0);
    }
    acls.countUse(acl);
    this.#persisted.truncate(0);
    StatPersisted.write(this.#persisted, stat);
    nodes.restoreStat(node, this.#persisted.written());
    digest?.changed(node, path);
  }

  /**
   * The same for a node as it stands in the bytes of a snapshot, without a string or a buffer for it. False
   * for one that is not like most: owned, not ASCII, below /zookeeper…, there already; then `node` takes it.
   */
  encoded(bytes: Buffer, at: EncodedNodeAt): boolean {
    const start = at.pathAt + 4;
    const end = at.dataAt;
    const ownerAt = at.statAt + persistedOwnerAt;
    if (readInt(bytes, ownerAt) !== 0 || readInt(bytes, ownerAt + 4) !== 0) return false;
    const slash = lastSlash(bytes, start, end);
    if (slash === -1 || isOwn(bytes, start)) return false;
    const { nodes, acls, digest } = this.#tree;
    const hash = hashOf(bytes, start, end);
    if (nodes.findHashed(hash, bytes, start, end) !== noNode) return false;
    const parent = this.#encodedParent(bytes, start, Math.max(slash, start + 1));
    if (parent === noNode) return false;
    const acl = readInt(bytes, at.aclAt) * 2 ** 32 + (readInt(bytes, at.aclAt + 4) >>> 0);
    const node = nodes.addEncoded(parent, bytes, at, hash, acl);
    this.#tree.grown(end - start + nodes.dataBytes(node));
    acls.countUse(acl);
    digest?.restored(node);
    return true;
  }

  /** Mostly the same as of the node before: nothing is removed meanwhile. */
  #parent(path: string | null): number {
    if (path === null) return noNode;
    if (path !== this.#parentOfLast.path) {
      this.#parentOfLast = { path, node: this.#tree.nodes.find(path) };
    }
    return this.#parentOfLast.node;
  }

  #encodedParent(bytes: Buffer, start: number, end: number): number {
    const last = this.#encodedParentOfLast;
    if (last.path.equals(bytes.subarray(start, end))) return last.node;
    const path = Buffer.from(bytes.subarray(start, end));
    const node = this.#tree.nodes.findBytes(path, 0, path.length);
    this.#encodedParentOfLast = { path, node };
    return node;
  }

  /** After all nodes: nothing up to `zxid` has to be applied any more. */
  done(zxid: number): void {
    this.#tree.acls.dropUnused();
    this.#tree.restored(zxid);
  }

  /** The last zxid that any node tells of: those, too, that a walk leaves out as being of later on. */
  get toldZxid(): number {
    const { nodes } = this.#tree;
    const root = nodes.find('/');
    let zxid = 0;
    for (const node of [root, ...nodesBelow(nodes, root)]) {
      zxid = Math.max(zxid, nodes.czxid(node), nodes.mzxid(node), nodes.pzxid(node));
    }
    return zxid;
  }

  /**
   * After all txns behind the snapshot: nodes whose ACL neither told (ZOOKEEPER-4689) are nobody's from
   * now on. Returns their paths.
   */
  closeUnlisted(): string[] {
    const { nodes, acls } = this.#tree;
    if (!acls.hasUnlisted) return [];
    const closed: string[] = [];
    for (const node of this.#tree.walk()) {
      if (acls.isListed(nodes.aclOf(node))) continue;
      nodes.setAcl(node, acls.use(nobodyAcl), nodes.aversion(node));
      closed.push(nodes.pathOf(node));
    }
    acls.allListed();
    return closed;
  }
}
