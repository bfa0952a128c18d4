/**
 * The tree as it will be once the txns under way have landed: what a write is checked against
 * (the outstanding change records of PrepRequestProcessor).
 *
 * In: the changes that each txn will make. Out: for a path, the node as it will be then. A change is
 * forgotten when its txn is applied, from when on the tree itself says the same.
 */

import type { Acl } from '../protocol/index.ts';
import { noNode, type Tree } from '../tree/index.ts';

export interface Change {
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
}

/** What one txn will change, in order, with what stood there before. */
export type Changes = { readonly change: Change; readonly before: Change | undefined }[];

const gone = {
  exists: false,
  version: 0,
  cversion: 0,
  aversion: 0,
  childCount: 0,
  acl: [],
  owner: 0n,
  dataBytes: 0,
} as const;

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
    return {
      path,
      exists: true,
      version: nodes.version(node),
      cversion: nodes.cversion(node),
      aversion: nodes.aversion(node),
      childCount: nodes.childCount(node),
      acl: this.#tree.aclOf(node),
      owner: nodes.ownerOf(node),
      dataBytes: nodes.dataBytes(node),
    };
  }

  put(changes: Changes, change: Change): void {
    changes.push({ change, before: this.#latest.get(change.path) });
    this.#latest.set(change.path, change);
    if (change.owner !== 0n && change.exists) this.#noteEphemeral(change);
  }

  putGone(changes: Changes, path: string): void {
    this.put(changes, { ...gone, path });
  }

  /** The txn is applied: what it changed is in the tree. */
  settle(changes: Changes): void {
    for (const { change } of changes) {
      if (this.#latest.get(change.path) === change) this.#latest.delete(change.path);
      this.#forgetEphemeral(change);
    }
  }

  /** The txn will not be: all is as it was before it. */
  undo(changes: Changes): void {
    for (const { change, before } of changes.splice(0).reverse()) {
      if (before === undefined) this.#latest.delete(change.path);
      else this.#latest.set(change.path, before);
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
