/**
 * Six ints for every node, in chunks: where its record is, and who its parent, children and siblings are.
 *
 * In: records' addresses. Out: nodes, which are small numbers; that of one that is gone is given to the
 * next. What always holds: every node but the root is in the ring of its parent's children, in the order
 * in which they were made.
 */

import { noNode } from './path-index.ts';

const chunkShift = 12;
const chunkNodes = 1 << chunkShift;
const stride = 6;
const field = {
  /** Below 0 for a number that is no node's. */
  address: 0,
  parent: 1,
  firstChild: 2,
  before: 3,
  /** Of a number that is no node's, the next such one. */
  after: 4,
  acl: 5,
} as const;

export class NodeTable {
  readonly #chunks: Int32Array[] = [];
  #used = 0;
  #free = noNode;

  /** False once the node was removed, until its number is given to another. */
  isNode(node: number): boolean {
    return node < this.#used && this.#get(node, field.address) >= 0;
  }

  address(node: number): number {
    return this.#get(node, field.address);
  }

  setAddress(node: number, address: number): void {
    this.#set(node, field.address, address);
  }

  parent(node: number): number {
    return this.#get(node, field.parent);
  }

  firstChild(node: number): number {
    return this.#get(node, field.firstChild);
  }

  /** The next in the ring; behind the last comes the first. */
  after(node: number): number {
    return this.#get(node, field.after);
  }

  acl(node: number): number {
    return this.#get(node, field.acl);
  }

  setAcl(node: number, acl: number): void {
    this.#set(node, field.acl, acl);
  }

  /** The last of its parent's children; the root has none. */
  add(parent: number, address: number, acl: number): number {
    const node = this.#number();
    this.#set(node, field.address, address);
    this.#set(node, field.parent, parent);
    this.#set(node, field.firstChild, noNode);
    this.#set(node, field.acl, acl);
    if (parent !== noNode) this.#link(parent, node);
    return node;
  }

  remove(node: number): void {
    this.#unlink(this.#get(node, field.parent), node);
    this.#set(node, field.address, noNode);
    this.#set(node, field.after, this.#free);
    this.#free = node;
  }

  #get(node: number, which: number): number {
    return this.#chunks[node >>> chunkShift]![(node & (chunkNodes - 1)) * stride + which]!;
  }

  #set(node: number, which: number, value: number): void {
    this.#chunks[node >>> chunkShift]![(node & (chunkNodes - 1)) * stride + which] = value;
  }

  #number(): number {
    if (this.#free !== noNode) {
      const node = this.#free;
      this.#free = this.#get(node, field.after);
      return node;
    }
    const node = this.#used++;
    if ((node & (chunkNodes - 1)) === 0) this.#chunks.push(new Int32Array(chunkNodes * stride));
    return node;
  }

  #link(parent: number, node: number): void {
    const first = this.#get(parent, field.firstChild);
    if (first === noNode) {
      this.#set(node, field.before, node);
      this.#set(node, field.after, node);
      this.#set(parent, field.firstChild, node);
    } else {
      const last = this.#get(first, field.before);
      this.#set(node, field.before, last);
      this.#set(node, field.after, first);
      this.#set(last, field.after, node);
      this.#set(first, field.before, node);
    }
  }

  #unlink(parent: number, node: number): void {
    const before = this.#get(node, field.before);
    const after = this.#get(node, field.after);
    this.#set(before, field.after, after);
    this.#set(after, field.before, before);
    if (this.#get(parent, field.firstChild) === node) {
      this.#set(parent, field.firstChild, after === node ? noNode : after);
    }
  }
}
