/**
 * The tree as it will be once the txns under way have landed: what a write is checked against
 * (the outstanding change records of PrepRequestProcessor).
 *
 * In: the changes that each txn will make. Out: for a path, the node as it will be then; and, where the
 * tree keeps one, the digest that it will have by then. A change is forgotten when its txn is applied,
 * from when on the tree itself says the same.
 */

import {
  type Acl,
  aversionCrcChange,
  childrenCrcChange,
  type DigestedStat,
  type DigestHalves,
  isCounted,
  nodeCrc,
  TreeDigest,
} from '../protocol/index.ts';
import { TextMap } from '../support/index.ts';
import { type LoadedStat, noNode, pathHash, type Tree, type TxnHead } from '../tree/index.ts';
import { type Chained, ChangeTable } from './change-table.ts';

/**
 * A node as a txn will leave it. A class with one way to make it, and not an object spread from
 * another: every write makes two of these.
 */
export class Change implements LoadedStat, DigestedStat, Chained<Change> {
  readonly path: string;
  readonly hash: number;
  chained: Change | undefined = undefined;
  /** The node in the tree, as long as nothing under way takes it away; none for one that is not there. */
  node = noNode;
  exists = true;
  /** It is of a txn under way, and not the tree's own word. */
  isUnderWay = false;
  /** A later one under way stands for the path. */
  isOutdated = false;
  version = 0;
  /** The stored counter of child creates. */
  cversion = 0;
  aversion = 0;
  childCount = 0;
  dataBytes = 0;
  acl: readonly Acl[] = noAcl;
  owner = 0n;
  /** What the tree will call its owner: not always the same, see `Prepare.create`. */
  landedOwner = 0n;
  // From here on only where a digest is kept.
  czxid = 0;
  pzxid = 0;
  ctimeMs = 0;
  /** Its share in the digest, and what that was before. */
  crc = 0;
  crcBefore = 0;
  /** What stood for the path before, as long as this one is under way. */
  before: Change | undefined = undefined;
  /** The next one of the same txn. */
  following: Change | undefined = undefined;

  constructor(path: string, hash: number) {
    this.path = path;
    this.hash = hash;
  }

  /** The same once more, for the next txn to change; what nobody else has is changed as it is. */
  next(): Change {
    if (!this.isUnderWay) {
      this.crcBefore = this.crc;
      return this;
    }
    const next = new Change(this.path, this.hash);
    next.node = this.node;
    next.czxid = this.czxid;
    next.pzxid = this.pzxid;
    next.ctimeMs = this.ctimeMs;
    next.version = this.version;
    next.cversion = this.cversion;
    next.aversion = this.aversion;
    next.childCount = this.childCount;
    next.dataBytes = this.dataBytes;
    next.acl = this.acl;
    next.owner = this.owner;
    next.landedOwner = this.landedOwner;
    next.crc = this.crc;
    next.crcBefore = this.crc;
    return next;
  }
}

/**
 * What one txn will change, in order: a chain, and not a list. A list would be one more thing to make for
 * every write; and lists that are used again, once they are old, keep alive what they no longer hold.
 */
export interface Changes {
  first: Change | undefined;
  last: Change | undefined;
}

export const noChanges = (): Changes => ({ first: undefined, last: undefined });

const noAcl: readonly Acl[] = [];

interface UnderWay {
  readonly paths: TextMap<true>;
  /** Of all of them: a multi may have tens of thousands, and each is held against the sum. */
  pathBytes: number;
}

export class Outlook {
  readonly #tree: Tree;
  readonly #latest = new ChangeTable<Change>();
  /** Ephemeral nodes that are under way, by session: a close has to take them along. */
  readonly #ephemerals = new Map<bigint, UnderWay>();
  readonly #digest: TreeDigest | undefined;
  /** Of the txn that is being prepared. */
  #zxid = 0;
  #timeMs = 0;

  constructor(tree: Tree) {
    this.#tree = tree;
    this.#digest = tree.digest === undefined ? undefined : new TreeDigest();
  }

  /** Before a txn is prepared: zxid and time that it will have, if it will be. */
  begin({ zxid, timeMs }: TxnHead): void {
    this.#zxid = zxid;
    this.#timeMs = timeMs;
    if (this.#latest.size === 0) this.#digest?.set(this.#tree.digest!);
  }

  /** What the tree's will be once all that is under way has landed, the txn at hand included. */
  get digest(): DigestHalves | undefined {
    return this.#digest?.halves;
  }

  /** The node as it will be, or undefined. */
  get(path: string, hash = pathHash(path)): Change | undefined {
    if (this.#latest.size > 0) {
      const change = this.#latest.get(path, hash);
      if (change !== undefined) return change.exists ? change : undefined;
    }
    const node = path === '' ? this.#tree.find(path) : this.#tree.nodes.find(path, hash);
    if (node === noNode) return undefined;
    const change = new Change(path, hash);
    change.node = node;
    this.#tree.nodes.loadStat(node, change, this.#digest !== undefined);
    change.acl = this.#tree.aclOf(node);
    change.owner = this.#tree.nodes.ownerOf(node);
    change.landedOwner = change.owner;
    return change;
  }

  // ── what a txn will do ────────────────────────────────────────────────────────────────────────

  create(
    changes: Changes,
    parent: Change,
    path: string,
    hash: number,
    data: Buffer | null,
    acl: readonly Acl[],
    owner: bigint,
    landedOwner: bigint,
  ): void {
    // The counter only rises, in the tree too: at its end it stays as it is.
    this.#putChildren(changes, parent, 1, Math.max(parent.cversion, (parent.cversion + 1) | 0));
    const made = new Change(path, hash);
    made.czxid = this.#zxid;
    made.pzxid = this.#zxid;
    made.ctimeMs = this.#timeMs;
    made.acl = acl;
    made.owner = owner;
    made.landedOwner = landedOwner;
    this.#putData(changes, made, data);
  }

  delete(changes: Changes, parent: Change, node: Change): void {
    this.#putChildren(changes, parent, -1, parent.cversion);
    const gone = new Change(node.path, node.hash);
    gone.exists = false;
    gone.crcBefore = node.crc;
    this.#put(changes, gone);
  }

  setData(changes: Changes, node: Change, data: Buffer | null, version: number): void {
    const changed = node.next();
    changed.version = version;
    this.#putData(changes, changed, data);
  }

  setAcl(changes: Changes, node: Change, acl: readonly Acl[], aversion: number): void {
    const crcChange = aversionCrcChange(node.aversion, aversion);
    const changed = node.next();
    changed.acl = acl;
    changed.aversion = aversion;
    if (this.#isSummed(changed)) changed.crc ^= crcChange;
    this.#put(changes, changed);
  }

  #putData(changes: Changes, changed: Change, data: Buffer | null): void {
    changed.dataBytes = data === null ? 0 : data.length;
    if (this.#digest !== undefined) {
      const { owner } = changed;
      changed.owner = changed.landedOwner; // the digest is of the tree as it will be
      changed.crc = nodeCrc(changed.path, data, this.#zxid, this.#timeMs, changed);
      changed.owner = owner;
    }
    this.#put(changes, changed);
  }

  #putChildren(changes: Changes, parent: Change, more: number, cversion: number): void {
    const { pzxid: pzxidBefore, cversion: cversionBefore } = parent;
    const changed = parent.next();
    changed.childCount += more;
    changed.cversion = cversion;
    if (more < 0 || cversion > cversionBefore) changed.pzxid = Math.max(pzxidBefore, this.#zxid);
    if (this.#isSummed(changed)) {
      changed.crc ^= childrenCrcChange(pzxidBefore, changed.pzxid, cversionBefore, cversion);
    }
    this.#put(changes, changed);
  }

  #isSummed({ path }: Change): boolean {
    return this.#digest !== undefined && isCounted(path);
  }

  #put(changes: Changes, change: Change): void {
    if (changes.last === undefined) changes.first = change;
    else changes.last.following = change;
    changes.last = change;
    const before = this.#latest.get(change.path, change.hash);
    if (before !== undefined) before.isOutdated = true;
    change.before = before;
    change.isUnderWay = true;
    this.#latest.put(change, before);
    this.#digest?.replace(change.crcBefore, change.crc);
    if (change.owner !== 0n && change.exists) this.#noteEphemeral(change);
  }

  /** The txn is applied: what it changed is in the tree. */
  settle(changes: Changes): void {
    for (let change = changes.first; change !== undefined; change = change.following) {
      change.before = undefined; // or each would keep the one before it, without end
      if (!change.isOutdated) this.#latest.delete(change);
      this.#forgetEphemeral(change);
    }
  }

  /** The txn will not be: all is as it was before it. */
  undo(changes: Changes): void {
    const undone: Change[] = [];
    for (let change = changes.first; change !== undefined; change = change.following) {
      undone.push(change);
    }
    changes.first = undefined;
    changes.last = undefined;
    for (const change of undone.reverse()) {
      const { before } = change;
      this.#latest.delete(change);
      if (before !== undefined) {
        before.isOutdated = false;
        this.#latest.put(before, undefined);
      }
      this.#digest?.replace(change.crc, change.crcBefore);
      this.#forgetEphemeral(change);
    }
  }

  /** What the session will own. */
  ephemeralsOf(session: bigint): string[] {
    const own = (path: string) => {
      const change = this.#latest.get(path);
      return change === undefined || (change.exists && change.owner === session);
    };
    const paths = new Set([...this.#tree.ephemeralsOf(session)].filter(own));
    for (const path of this.#ephemerals.get(session)?.paths.keys() ?? [])
      if (own(path)) paths.add(path);
    return [...paths];
  }

  /** How many the session will own, and the bytes of their paths: never less than it will be. */
  ephemeralUse(session: bigint): { count: number; pathBytes: number } {
    const underWay = this.#ephemerals.get(session);
    return {
      count: this.#tree.ephemeralsOf(session).size + (underWay?.paths.size ?? 0),
      pathBytes: this.#tree.ephemeralBytesOf(session) + (underWay?.pathBytes ?? 0),
    };
  }

  #noteEphemeral({ owner, path }: Change): void {
    let underWay = this.#ephemerals.get(owner);
    if (underWay === undefined) {
      underWay = { paths: new TextMap(), pathBytes: 0 };
      this.#ephemerals.set(owner, underWay);
    }
    if (underWay.paths.has(path)) return;
    underWay.paths.set(path, true);
    underWay.pathBytes += Buffer.byteLength(path);
  }

  #forgetEphemeral({ owner, path }: Change): void {
    if (owner === 0n) return;
    const underWay = this.#ephemerals.get(owner);
    const latest = this.#latest.get(path);
    if (underWay === undefined || latest?.owner === owner) return;
    if (!underWay.paths.delete(path)) return;
    underWay.pathBytes -= Buffer.byteLength(path);
    if (underWay.paths.size === 0) this.#ephemerals.delete(owner);
  }
}
