/**
 * A walk over every node, parents before their children, step by step.
 *
 * The tree may change between two steps: a node removed meanwhile is left out, and so is one made under a
 * parent that was told before, as in Apache's fuzzy snapshots. A parent's Stat must say of which children it
 * knows: it is not told of any other, whose create is still to be replayed and would find the node there and
 * leave the parent as it is.
 */

import type { NodeStore } from './node-store.ts';
import { noNode } from './path-index.ts';

/** The children of a parent that was told, of that moment. */
interface Level {
  readonly zxid: number;
  readonly children: Int32Array;
  at: number;
}

export class TreeWalk {
  readonly #nodes: NodeStore;
  readonly #lastZxid: () => number;
  readonly #levels: Level[] = [];
  /** Told first; none after that. */
  #root: number;

  constructor(nodes: NodeStore, root: number, lastZxid: () => number) {
    this.#nodes = nodes;
    this.#root = root;
    this.#lastZxid = lastZxid;
  }

  /** The next node, or none. */
  next(): number {
    const nodes = this.#nodes;
    const root = this.#root;
    if (root !== noNode) {
      this.#root = noNode;
      this.#enter(root);
      return root;
    }
    for (let level = this.#levels.at(-1); level !== undefined; level = this.#levels.at(-1)) {
      if (level.at === level.children.length) {
        this.#levels.pop();
        continue;
      }
      const node = level.children[level.at++]!;
      // Its number may be another's by now, here or elsewhere: one made after its parent was told.
      if (!nodes.isNode(node) || nodes.czxid(node) > level.zxid) continue;
      if (nodes.childCount(node) > 0) this.#enter(node);
      return node;
    }
    return noNode;
  }

  *[Symbol.iterator](): Generator<number, void, void> {
    for (let node = this.next(); node !== noNode; node = this.next()) yield node;
  }

  #enter(parent: number): void {
    const children = this.#nodes.childrenOf(parent);
    this.#levels.push({ zxid: this.#lastZxid(), children, at: 0 });
  }
}

/** All below a node as they are now, parents before their children: they may be nested deeper than calls can be. */
export function nodesBelow(nodes: NodeStore, node: number): number[] {
  const below = [...nodes.childrenOf(node)];
  for (let at = 0; at < below.length; at += 1) {
    for (const child of nodes.childrenOf(below[at]!)) below.push(child);
  }
  return below;
}
