/**
 * The tree's digest (tree-digest.ts in protocol/), kept as nodes come, change and go.
 *
 * Each node's share is kept beside it, so that a change costs one CRC. Who foretold it has computed that
 * already, from path and data as they were asked for: where the node's Stat is the one foretold, its
 * share is taken over, and else computed from what the node's memory holds, which then shows as another
 * digest than the txn's. Memory that changes by itself later is found when a child comes or goes, once for
 * all that do so in a row, and by `isIntact`, before a snapshot is written over the good one.
 */

import {
  childrenCrcChange,
  isCounted,
  TreeDigest,
  uncountedPrefixBytes,
} from '../protocol/index.ts';
import type { ForetoldStat } from './node-record.ts';
import type { NodeStore } from './node-store.ts';
import { noNode } from './path-index.ts';

/** A node as somebody says that it will be, and what its share is then. */
export interface Foretold extends ForetoldStat {
  readonly path: string;
  /** Where it is, of one that is there already. */
  readonly node: number;
  /** Of its path. */
  readonly hash: number;
  readonly crc: number;
  /** The next one of the same txn. */
  readonly following: Foretold | undefined;
}

/** A parent with more data is not read through for every child: its share follows from the last. */
const parentBytesMax = 256;

export class RunningDigest {
  readonly sum = new TreeDigest();
  readonly #nodes: NodeStore;
  /** The parent that was read through last, for a child that came or went. */
  #checkedParent = noNode;

  constructor(nodes: NodeStore) {
    this.#nodes = nodes;
  }

  /** Time has passed: what was read through may be another by now. */
  batchBegun(): void {
    this.#checkedParent = noNode;
  }

  /** The node is new, or another than it was. */
  changed(node: number, path: string, foretold?: Foretold): void {
    if (isCounted(path)) this.#put(node, this.#shareOf(node, foretold));
  }

  /** A node that counts has come, as its memory holds it. */
  restored(node: number): void {
    this.#put(node, this.#nodes.computeCrc(node));
  }

  #shareOf(node: number, foretold: Foretold | undefined): number {
    const nodes = this.#nodes;
    return foretold !== undefined && nodes.agrees(node, foretold)
      ? foretold.crc
      : nodes.computeCrc(node);
  }

  /** A child came or went: these two fields are other than before. */
  childrenChanged(parent: number, path: string, pzxid: number, cversion: number): void {
    const nodes = this.#nodes;
    if (parent !== this.#checkedParent && nodes.dataBytes(parent) <= parentBytesMax) {
      this.#checkedParent = parent;
      this.changed(parent, path);
      return;
    }
    if (!isCounted(path)) return;
    const next = { pzxid: nodes.pzxid(parent), cversion: nodes.cversion(parent) };
    const change = childrenCrcChange(pzxid, next.pzxid, cversion, next.cversion);
    this.#put(parent, nodes.crcOf(parent) ^ change);
  }

  /** Before the node goes. */
  removed(node: number): void {
    this.sum.remove(this.#nodes.crcOf(node));
  }

  /** False where the node's memory is not what it was when it changed last. */
  isIntact(node: number): boolean {
    const nodes = this.#nodes;
    if (nodes.crcOf(node) === nodes.computeCrc(node)) return true;
    return nodes.startsWith(node, uncountedPrefixBytes); // has no share
  }

  #put(node: number, crc: number): void {
    this.sum.replace(this.#nodes.crcOf(node), crc);
    this.#nodes.setCrc(node, crc);
  }
}
