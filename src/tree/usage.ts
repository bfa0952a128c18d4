/**
 * What is used of each quota: nodes and bytes, counted into the quota's own `zookeeper_stats` node.
 *
 * Every server counts for itself: no txn, no version, no event.
 */

import type { NodeStore } from './node-store.ts';
import { noNode } from './path-index.ts';
import {
  limitsName,
  QuotaPaths,
  quotaRoot,
  readQuota,
  statsName,
  statsPath,
  usageText,
} from './quotas.ts';

export class Usage {
  /** The paths that have a quota. */
  readonly paths = new QuotaPaths();
  readonly #nodes: NodeStore;
  /** Told by how many bytes the data of all nodes grew. */
  readonly #grown: (bytes: number) => void;

  constructor(nodes: NodeStore, grown: (bytes: number) => void) {
    this.#nodes = nodes;
    this.#grown = grown;
  }

  /** A node was made below `/zookeeper/quota`, at `path`, with `above` over it. */
  quotaMade(above: string, path: string): void {
    const quota = above.slice(quotaRoot.length);
    if (path.endsWith(`/${limitsName}`)) this.paths.add(quota);
    if (path.endsWith(`/${statsName}`)) this.#recount(quota);
  }

  /** One is gone from there. */
  quotaGone(above: string, path: string): void {
    if (path.endsWith(`/${limitsName}`)) this.paths.delete(above.slice(quotaRoot.length));
  }

  /** The node at `path` came, changed or went: counts for the quota above it, if there is one. */
  use(path: string, bytes: number, count: number): void {
    const quota = this.paths.above(path);
    if (quota === undefined) return;
    const node = this.#nodes.find(statsPath(quota));
    if (node === noNode) return;
    const usage = readQuota(this.#nodes.dataOf(node));
    this.#set(
      node,
      usageText(usage.count + BigInt(count), usage.bytes + BigInt(bytes), usage.others),
    );
  }

  /** All nodes came from a snapshot: finds the quotas among them, and counts. */
  restore(): void {
    const open = [this.#nodes.find(quotaRoot)];
    for (let node = open.pop(); node !== undefined && node !== noNode; node = open.pop()) {
      for (const child of this.#nodes.childrenOf(node)) open.push(child);
      const path = this.#nodes.pathOf(node);
      if (!path.endsWith(`/${limitsName}`)) continue;
      const quota = path.slice(quotaRoot.length, -limitsName.length - 1);
      this.paths.add(quota);
      this.#recount(quota);
    }
  }

  #recount(quota: string): void {
    const nodes = this.#nodes;
    const stats = nodes.find(statsPath(quota));
    const top = nodes.find(quota === '' ? '/' : quota); // the root has usage, and no limits
    if (stats === noNode) return;
    let count = 0;
    let bytes = 0;
    const open = top === noNode ? [] : [top];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      count += 1;
      bytes += nodes.dataBytes(node);
      for (const child of nodes.childrenOf(node)) open.push(child);
    }
    this.#set(stats, usageText(BigInt(count), BigInt(bytes)));
  }

  #set(node: number, text: Buffer): void {
    this.#grown(text.length - this.#nodes.dataBytes(node));
    this.#nodes.setData(node, text);
  }
}
