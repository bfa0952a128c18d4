/**
 * The tree as it will be once the txns under way have landed: what a write is checked against
 * (the outstanding change records of PrepRequestProcessor).
 *
 * In: the changes that each txn will make. Out: for a path, the node as it will be then. A change is
 * forgotten when its txn is applied, from when on the tree itself says the same.
 */

import type { Acl } from '../protocol/index.ts';
import { noNode, type Tree } from '../tree/index.ts';

/**
 * A node as a txn will leave it. A class with one way to make it, and not an object spread from
 * another: every write makes two of these.
 */
export class Change {
  readonly path: string;
  readonly exists: boolean;
  readonly version: number;
  /** The stored counter of child creates. */
  readonly cversion: number;
  readonly aversion: number;
  readonly childCount: number;
  readonly acl: readonly Acl[];
  readonly owner: bigint;
  readonly dataBytes: number;
  /** What stood for the path before, as long as this one is under way. */
  before: Change | undefined = undefined;

  constructor(
    path: string,
    exists: boolean,
    version: number,
    cversion: number,
    aversion: number,
    childCount: number,
    acl: readonly Acl[],
    owner: bigint,
    dataBytes: number,
  ) {
    this.path = path;
    this.exists = exists;
    this.version = version;
    this.cversion = cversion;
    this.aversion = aversion;
    this.childCount = childCount;
    this.acl = acl;
    this.owner = owner;
    this.dataBytes = dataBytes;
  }

  static made(path: string, acl: readonly Acl[], owner: bigint, dataBytes: number): Change {
    return new Change(path, true, 0, 0, 0, 0, acl, owner, dataBytes);
  }

  static gone(path: string): Change {
    return new Change(path, false, 0, 0, 0, 0, noAcl, 0n, 0);
  }

  withChildren(childCount: number, cversion: number): Change {
    const { path, version, aversion, acl, owner, dataBytes } = this;
    return new Change(path, true, version, cversion, aversion, childCount, acl, owner, dataBytes);
  }

  withData(version: number, dataBytes: number): Change {
    const { path, cversion, aversion, childCount, acl, owner } = this;
    return new Change(path, true, version, cversion, aversion, childCount, acl, owner, dataBytes);
  }

  withAcl(acl: readonly Acl[], aversion: number): Change {
    const { path, version, cversion, childCount, owner, dataBytes } = this;
    return new Change(path, true, version, cversion, aversion, childCount, acl, owner, dataBytes);
  }
}

/** What one txn will change, in order. */
export type Changes = Change[];

const noAcl: readonly Acl[] = [];

export class Outlook {
  readonly #tree: Tree;
  readonly #latest = new Map<string, Change>();
  /** Ephemeral nodes that are under way, by session: a close has to take them along. */
  readonly #ephemerals = new Map<bigint, Set<string>>();

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** The node as it will be, or undefined. */
  get(path: string): Change | undefined {
    if (this.#latest.size > 0) {
      const change = this.#latest.get(path);
      if (change !== undefined) return change.exists ? change : undefined;
    }
    const node = this.#tree.find(path);
    if (node === noNode) return undefined;
    const { nodes } = this.#tree;
    return new Change(
      path,
      true,
      nodes.version(node),
      nodes.cversion(node),
      nodes.aversion(node),
      nodes.childCount(node),
      this.#tree.aclOf(node),
      nodes.ownerOf(node),
      nodes.dataBytes(node),
    );
  }

  put(changes: Changes, change: Change): void {
    changes.push(change);
    change.before = this.#latest.get(change.path);
    this.#latest.set(change.path, change);
    if (change.owner !== 0n && change.exists) this.#noteEphemeral(change);
  }

  putGone(changes: Changes, path: string): void {
    this.put(changes, Change.gone(path));
  }

  /** The txn is applied: what it changed is in the tree. */
  settle(changes: Changes): void {
    for (const change of changes) {
      change.before = undefined; // or each would keep the one before it, without end
      if (this.#latest.get(change.path) === change) this.#latest.delete(change.path);
      this.#forgetEphemeral(change);
    }
  }

  /** The txn will not be: all is as it was before it. */
  undo(changes: Changes): void {
    for (const change of changes.splice(0).reverse()) {
      if (change.before === undefined) this.#latest.delete(change.path);
      else this.#latest.set(change.path, change.before);
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
    for (const path of this.#ephemerals.get(session) ?? []) if (own(path)) paths.add(path);
    return [...paths];
  }

  /** How many the session will own, and the bytes of their paths: never less than it will be. */
  ephemeralUse(session: bigint): { count: number; pathBytes: number } {
    const underWay = this.#ephemerals.get(session);
    let pathBytes = this.#tree.ephemeralBytesOf(session);
    for (const path of underWay ?? []) pathBytes += Buffer.byteLength(path);
    return { count: this.#tree.ephemeralsOf(session).size + (underWay?.size ?? 0), pathBytes };
  }

  #noteEphemeral({ owner, path }: Change): void {
    const paths = this.#ephemerals.get(owner);
    if (paths === undefined) this.#ephemerals.set(owner, new Set([path]));
    else paths.add(path);
  }

  #forgetEphemeral({ owner, path }: Change): void {
    if (owner === 0n) return;
    const paths = this.#ephemerals.get(owner);
    const latest = this.#latest.get(path);
    if (paths === undefined || latest?.owner === owner) return;
    paths.delete(path);
    if (paths.size === 0) this.#ephemerals.delete(owner);
  }
}
