/**
 * The state machine: txns in the order of their zxid make the tree, the same txns the same tree.
 *
 * In: a txn's head and body, as the log holds them. Out: what came of it, and the events it caused,
 * in the order in which watchers must hear of them. No clock, no I/O, no sessions' links: time comes
 * in the head.
 *
 * A txn is applied, not checked: whoever made it did that. What a replay over a fuzzy snapshot can
 * meet (the node is there already, the parent is gone) gives an error code and changes no more than
 * DataTree.processTxn would.
 */

import { Reader } from '../jute/index.ts';
import { type Acl, readTxn, type TreeDigest, type TxnBody, wireOf } from '../protocol/index.ts';
import { AclCache, openAclId } from './acl-cache.ts';
import { type NewNode, NodeStore } from './node-store.ts';
import { OwnedPaths } from './owned-paths.ts';
import { containerOwner, ownerKind, ttlOwner } from './owners.ts';
import { pathHash } from './path-hash.ts';
import { noNode } from './path-index.ts';
import { PlainPath } from './plain-path.ts';
import { type QuotaPaths, quotaRoot } from './quotas.ts';
import { type Foretold, RunningDigest } from './running-digest.ts';
import { TreeRestore } from './tree-restore.ts';
import { nodesBelow, TreeWalk } from './tree-walk.ts';
import { Usage } from './usage.ts';

/** A txn's header, with zxid and time as numbers: both stay below 2^53. */
export interface TxnHead {
  /** The session that asked. */
  readonly clientId: bigint;
  readonly cxid: number;
  readonly zxid: number;
  readonly timeMs: number;
}

export interface TreeEvent {
  readonly type: 'created' | 'deleted' | 'dataChanged' | 'childrenChanged';
  readonly path: string;
  /** Of the node at `path`: who may not read it does not hear of it. */
  readonly acl: readonly Acl[];
}

export interface Applied {
  readonly type: TxnBody['type'];
  /** 0, or a code as it stands on the wire. */
  readonly err: number;
  readonly path: string;
  /** The node made or changed, or -1. */
  readonly node: number;
  /** The Stat to show where the node's own may be another by now: later parts of a multi changed it. */
  readonly stat?: Buffer | undefined;
  readonly parts?: readonly Applied[];
}

export interface TreeOptions {
  /** TTL nodes exist: `zookeeper.extendedTypesEnabled`. */
  readonly extendedTypes?: boolean;
  /** A digest over all nodes is kept: `zookeeper.digest.enabled`. */
  readonly digest?: boolean;
}

const ok = 0;
const noNodeErr = wireOf('NO_NODE');
const nodeExistsErr = wireOf('NODE_EXISTS');
const inconsistentErr = wireOf('RUNTIME_INCONSISTENCY');

/** `/a/b` gives `/a`, `/a` gives `/`. */
function parentPath(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

export interface LoggedDigest {
  readonly zxid: number;
  readonly digest: bigint;
}

/** As Apache's DataTree has them. */
const digestLogInterval = 128;
const digestLogMax = 1024;

export class Tree {
  readonly nodes = new NodeStore();
  readonly acls = new AclCache();
  readonly extendedTypes: boolean;
  /** Every session that a createSession made and no closeSession ended, with its first timeout. */
  readonly sessions = new Map<bigint, number>();
  readonly #owned: OwnedPaths;
  readonly #digest: RunningDigest | undefined;
  #lastZxid = 0;
  readonly #digestLog: LoggedDigest[] = [];
  /** False while nobody waits for any event: none is put together then. */
  tellsEvents = true;
  /** Characters of all paths and bytes of all data. */
  #dataSize = 0;
  readonly #usage = new Usage(this.nodes, (bytes) => {
    this.#dataSize += bytes;
  });
  #events: TreeEvent[] = [];
  readonly #plain = new PlainPath();

  constructor(options: TreeOptions = {}) {
    this.extendedTypes = options.extendedTypes ?? false;
    this.#owned = new OwnedPaths(this.extendedTypes);
    this.#digest = options.digest ? new RunningDigest(this.nodes) : undefined;
    const blank = { data: Buffer.alloc(0), hash: undefined, acl: openAclId, zxid: 0, timeMs: 0 };
    const add = (parent: number, path: string): number => {
      const node = this.#insert(parent, { ...blank, path, owner: 0n, shownOwner: 0n });
      this.#digest?.changed(node, path);
      return node;
    };
    const root = add(noNode, '/');
    const own = add(root, '/zookeeper');
    add(own, quotaRoot);
    const config = add(own, '/zookeeper/config');
    // Whoever may write it could reconfigure an ensemble (ZOOKEEPER-2014).
    const readOnly = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }];
    this.nodes.setAcl(config, this.acls.use(readOnly), -1);
  }

  get lastZxid(): number {
    return this.#lastZxid;
  }

  /** The paths that have one. */
  get quotas(): QuotaPaths {
    return this.#usage.paths;
  }

  /** The sum over all nodes as they are now, where one is kept. */
  get digest(): TreeDigest | undefined {
    return this.#digest?.sum;
  }

  /** False where the node's memory has changed by itself: where a digest is kept it shows. */
  isIntact(node: number): boolean {
    return this.#digest === undefined || this.#digest.isIntact(node);
  }

  /** As Apache counts: the root stands in its map twice, under "" and "/". */
  get nodeCount(): number {
    return this.nodes.count + 1;
  }

  get approximateDataSize(): number {
    return this.#dataSize;
  }

  get ephemeralCount(): number {
    return this.#owned.ephemeralCount;
  }

  /** The node at `path`, or -1. An empty path is the root, as in Apache's map. */
  find(path: string): number {
    return this.nodes.find(path === '' ? '/' : path);
  }

  aclOf(node: number): readonly Acl[] {
    return this.acls.get(this.nodes.aclOf(node));
  }

  ephemeralsOf(session: bigint): ReadonlySet<string> {
    return this.#owned.of(session);
  }

  ephemeralBytesOf(session: bigint): number {
    return this.#owned.bytesOf(session);
  }

  get owners(): ReadonlyMap<bigint, ReadonlySet<string>> {
    return this.#owned.bySession;
  }

  get containers(): Iterable<string> {
    return this.#owned.containers;
  }

  get ttls(): Iterable<string> {
    return this.#owned.ttls;
  }

  /** All nodes below, the node itself not counted. */
  countBelow(node: number): number {
    if (this.nodes.parentOf(node) === noNode) return this.nodes.count - 1;
    let count = 0;
    const open = [node];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const children = this.nodes.childrenOf(next);
      count += children.length;
      for (const child of children) if (this.nodes.childCount(child) > 0) open.push(child);
    }
    return count;
  }

  /** What the last txn applied caused, in the order in which it is to be told. */
  get events(): readonly TreeEvent[] {
    return this.#events;
  }

  /**
   * `foretold`: the nodes that a txn of one change will leave behind, in the order of the changes (a
   * parent before its child), from whoever has just prepared it. A replay has none, and looks for all.
   */
  apply(head: TxnHead, body: TxnBody, foretold?: Foretold): Applied {
    if (this.#events.length > 0) this.#events = [];
    const applied = this.#part(head, body, foretold);
    if (head.zxid > this.#lastZxid) this.#lastZxid = head.zxid;
    if (head.zxid % digestLogInterval === 0) this.#logDigest(head.zxid);
    return applied;
  }

  /** Txns follow that belong together: what was looked at before them is looked at again. */
  batchBegun(): void {
    this.#digest?.batchBegun();
  }

  /** The digest as every 128th txn left it, of late: what the four letters `hash` tell. */
  get digestLog(): readonly LoggedDigest[] {
    return this.#digestLog;
  }

  #logDigest(zxid: number): void {
    this.#digestLog.push({ zxid, digest: this.#digest?.sum.value ?? 0n });
    if (this.#digestLog.length > digestLogMax) this.#digestLog.shift();
  }

  // ── snapshots ─────────────────────────────────────────────────────────────────────────────────

  /** Every node, parents before their children, while the tree changes. */
  walk(): TreeWalk {
    return new TreeWalk(this.nodes, this.find('/'), () => this.#lastZxid);
  }

  /** Before the ACLs and nodes of a snapshot: the numbers of ACLs are the snapshot's from here on. */
  beginRestore(): TreeRestore {
    const { nodes, acls } = this;
    for (const node of this.walk()) nodes.setAcl(node, openAclId, nodes.aversion(node));
    acls.clear();
    return new TreeRestore({
      nodes,
      acls,
      digest: this.#digest,
      walk: () => this.walk(),
      insert: (parent, made) => this.#insert(parent, made),
      shownOwner: (owner) => this.#shownOwner(owner),
      grown: (bytes) => {
        this.#dataSize += bytes;
      },
      restored: (zxid) => {
        this.#usage.restore();
        this.#lastZxid = zxid;
      },
    });
  }

  /** Nothing up to `zxid` is given out again. */
  goOnFrom(zxid: number): void {
    this.#lastZxid = Math.max(this.#lastZxid, zxid);
  }

  // ── txns ──────────────────────────────────────────────────────────────────────────────────────

  #part(head: TxnHead, body: TxnBody, foretold: Foretold | undefined): Applied {
    switch (body.type) {
      case 'setData':
      case 'reconfig':
        return this.#setData(head, body, foretold);
      case 'create':
      case 'create2': {
        const owner = body.txn.ephemeral ? head.clientId : 0n;
        return this.#create(head, body, owner, owner, foretold);
      }
      case 'createContainer':
        return this.#create(head, body, containerOwner, 0n, foretold);
      case 'createTTL': {
        const owner = ttlOwner(body.txn.ttl);
        return this.#create(head, body, owner, this.#shownOwner(owner), foretold);
      }
      case 'delete':
      case 'deleteContainer':
        return this.#outcome(body, body.txn.path, this.#delete(body.txn.path, head.zxid, foretold));
      case 'setACL':
        return this.#setAcl(body, foretold);
      case 'check':
        return this.#outcome(body, body.txn.path, ok);
      case 'multi':
        return this.#multi(head, body);
      case 'error':
        return this.#outcome(body, '', body.txn.err);
      case 'createSession':
        this.sessions.set(head.clientId, body.txn.timeOut);
        return this.#outcome(body, '', ok);
      case 'closeSession':
        return this.#closeSession(head, body);
    }
  }

  #outcome(body: TxnBody, path: string, err: number, node = noNode): Applied {
    return { type: body.type, err, path, node };
  }

  #create(
    head: TxnHead,
    body: Extract<TxnBody, { type: 'create' | 'create2' | 'createTTL' | 'createContainer' }>,
    owner: bigint,
    shownOwner: bigint,
    foretoldParent: Foretold | undefined,
  ): Applied {
    const { path, data, acl } = body.txn;
    const foretoldNode = foretoldParent?.following;
    const plain = foretoldParent === undefined && this.#plain.read(path) ? this.#plain : undefined;
    const above = foretoldParent?.path ?? parentPath(path);
    const parent = plain
      ? this.nodes.find(above, plain.parentHash)
      : this.#at(above, foretoldParent);
    if (parent === noNode) return this.#outcome(body, path, noNodeErr);
    const aclId = this.acls.use(acl);
    const hash = (plain ?? foretoldNode)?.hash ?? pathHash(path);
    const there = foretoldNode === undefined ? this.nodes.find(path, hash) : noNode;
    if (there !== noNode) {
      // Only a replay comes here. As in Apache, the ACL and, of a plain create, the counters are taken.
      this.acls.release(this.nodes.aclOf(there));
      this.nodes.setAcl(there, aclId, this.nodes.aversion(there));
      if (body.type === 'create') this.#raise(parent, above, body.txn.parentCVersion, head.zxid);
      return this.#outcome(body, path, nodeExistsErr);
    }
    this.#raise(parent, above, body.txn.parentCVersion, head.zxid);
    const { zxid, timeMs } = head;
    const node = this.#insert(parent, {
      path,
      hash,
      data,
      acl: aclId,
      zxid,
      timeMs,
      owner,
      shownOwner,
    });
    this.#digest?.changed(node, path, foretoldNode);
    const isQuota = above.startsWith(quotaRoot);
    // Usage is counted into the node at once; who made it is still shown what they made.
    const stat = isQuota ? this.nodes.statOf(node) : undefined;
    if (isQuota) this.#usage.quotaMade(above, path);
    this.#usage.use(path, data === null ? 0 : data.length, 1);
    if (this.tellsEvents) {
      this.#events.push(
        { type: 'created', path, acl: this.acls.get(aclId) },
        { type: 'childrenChanged', path: above, acl: this.aclOf(parent) },
      );
    }
    const outcome = this.#outcome(body, path, ok, node);
    return stat === undefined ? outcome : { ...outcome, stat };
  }

  /** The counter of creates only rises: a replay may come after what the snapshot saw. */
  #raise(parent: number, path: string, cversion: number, zxid: number): void {
    const known = this.nodes.cversion(parent);
    const next = cversion === -1 ? known + 1 : cversion;
    if (next <= known) return;
    const pzxid = this.nodes.pzxid(parent);
    this.nodes.setChildMade(parent, next, zxid);
    this.#digest?.childrenChanged(parent, path, pzxid, known);
  }

  #insert(parent: number, made: NewNode): number {
    const node = this.nodes.add(parent, made);
    this.#dataSize += made.path.length + (made.data?.length ?? 0);
    this.#owned.add(made.path, made.owner);
    return node;
  }

  /** Whom clients are shown as its owner: a session, or nobody. */
  #shownOwner(owner: bigint): bigint {
    return ownerKind(owner, this.extendedTypes) === 'session' ? owner : 0n;
  }

  /** The node at `path`: where who foretold it has found it, or looked for. */
  #at(path: string, foretold: Foretold | undefined): number {
    return foretold === undefined || foretold.node === noNode
      ? this.nodes.find(path)
      : foretold.node;
  }

  #delete(path: string, zxid: number, foretoldParent?: Foretold): number {
    const above = foretoldParent?.path ?? parentPath(path);
    const parent = this.#at(above, foretoldParent);
    if (parent === noNode) return noNodeErr;
    // Also when the child is gone: a replay must leave the parent as the first run did.
    const pzxid = this.nodes.pzxid(parent);
    if (zxid > pzxid) {
      this.nodes.setPzxid(parent, zxid);
      this.#digest?.childrenChanged(parent, above, pzxid, this.nodes.cversion(parent));
    }
    const node = this.nodes.find(path, foretoldParent?.following?.hash);
    if (node === noNode) return noNodeErr;
    // Only a replay comes here with children: a fuzzy snapshot holds those of a later node of this
    // name, whose own creates are still to come.
    if (this.nodes.childCount(node) > 0) {
      const below = nodesBelow(this.nodes, node);
      for (let at = below.length - 1; at >= 0; at -= 1) {
        this.#delete(this.nodes.pathOf(below[at]!), zxid);
      }
    }
    const aclId = this.nodes.aclOf(node);
    const acl = this.acls.get(aclId);
    const bytes = this.nodes.dataBytes(node);
    if (this.nodes.isOwned(node)) this.#owned.delete(path, this.nodes.ownerOf(node));
    this.#digest?.removed(node);
    this.nodes.remove(node);
    this.acls.release(aclId);
    this.#dataSize -= path.length + bytes;
    if (above.startsWith(quotaRoot)) this.#usage.quotaGone(above, path);
    this.#usage.use(path, -bytes, -1);
    if (this.tellsEvents) {
      this.#events.push(
        { type: 'deleted', path, acl },
        { type: 'childrenChanged', path: above, acl: this.aclOf(parent) },
      );
    }
    return ok;
  }

  #setData(
    head: TxnHead,
    body: Extract<TxnBody, { type: 'setData' | 'reconfig' }>,
    foretold: Foretold | undefined,
  ): Applied {
    const { path, data, version } = body.txn;
    const node = this.#at(path, foretold);
    if (node === noNode) return this.#outcome(body, path, noNodeErr);
    const difference = (data === null ? 0 : data.length) - this.nodes.dataBytes(node);
    this.nodes.setData(node, data);
    this.nodes.setModified(node, head.zxid, head.timeMs, version);
    this.#digest?.changed(node, path, foretold);
    this.#usage.use(path, difference, 0);
    this.#dataSize += difference;
    if (this.tellsEvents) this.#events.push({ type: 'dataChanged', path, acl: this.aclOf(node) });
    return this.#outcome(body, path, ok, node);
  }

  #setAcl(body: Extract<TxnBody, { type: 'setACL' }>, foretold: Foretold | undefined): Applied {
    const { path, acl, version } = body.txn;
    const node = this.#at(path, foretold);
    if (node === noNode) return this.#outcome(body, path, noNodeErr);
    const old = this.nodes.aclOf(node);
    this.nodes.setAcl(node, this.acls.use(acl), version);
    this.#digest?.changed(node, path, foretold);
    this.acls.release(old);
    return this.#outcome(body, path, ok, node);
  }

  #multi(head: TxnHead, body: Extract<TxnBody, { type: 'multi' }>): Applied {
    const txns = body.txn.txns.map(({ type, data }) =>
      readTxn(type, new Reader(data ?? Buffer.alloc(0))),
    );
    const culprit = txns.findIndex(({ type }) => type === 'error');
    const parts = txns.map((part, i): Applied => {
      if (culprit !== -1) {
        const err = part.type === 'error' ? part.txn.err : i < culprit ? ok : inconsistentErr;
        return { type: 'error', err, path: '', node: noNode };
      }
      const applied = this.#part(head, part, undefined);
      if (applied.node === noNode || applied.stat !== undefined) return applied;
      return { ...applied, stat: this.nodes.statOf(applied.node) };
    });
    const err = parts.find((part) => part.err !== ok)?.err ?? ok;
    return { type: 'multi', err, path: '', node: noNode, parts };
  }

  #closeSession(head: TxnHead, body: Extract<TxnBody, { type: 'closeSession' }>): Applied {
    this.sessions.delete(head.clientId);
    for (const path of body.txn.paths2Delete) this.#delete(path, head.zxid);
    // A log of before 3.6 names no paths: whatever the session still owns goes.
    for (const path of [...this.ephemeralsOf(head.clientId)]) this.#delete(path, head.zxid);
    return this.#outcome(body, '', ok);
  }
}
