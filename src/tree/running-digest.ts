/**
 * The tree's digest (tree-digest.ts in protocol/), kept as nodes come, change and go.
 *
 * Each node's share is kept beside it, so that a change costs one CRC: of what the node's memory holds
 * then, all of it, and not of what it should hold. Who foretold the digest from the share alone finds a
 * node whose memory has changed by itself.
 */

import { childrenCrcChange, isCounted, TreeDigest } from '../protocol/index.ts';
import type { NodeStore } from './node-store.ts';

/** A parent with more data is not read through for every child: its share follows from the last. */
const parentBytesMax = 256;

export class RunningDigest {
  readonly sum = new TreeDigest();
  readonly #nodes: NodeStore;

  constructor(nodes: NodeStore) {
    this.#nodes = nodes;
  }

  /** The node is new, or another than it was. */
  changed(node: number, path: string): void {
    if (isCounted(path)) this.#put(node, this.#nodes.computeCrc(node));
  }

  /** A child came or went: these two fields are other than before. */
  childrenChanged(parent: number, path: string, pzxid: number, cversion: number): void {
    const nodes = this.#nodes;
    if (nodes.dataBytes(parent) <= parentBytesMax) {
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
  isIntact(node: number, path: string): boolean {
    return !isCounted(path) || this.#nodes.crcOf(node) === this.#nodes.computeCrc(node);
  }

  #put(node: number, crc: number): void {
    this.sum.replace(this.#nodes.crcOf(node), crc);
    this.#nodes.setCrc(node, crc);
  }
}
