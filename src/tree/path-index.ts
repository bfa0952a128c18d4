/**
 * From the bytes of a path to the number of its node.
 *
 * A hash table of chains, cut into shards that grow one at a time: a tree of millions of nodes never
 * stops to rehash all of them at once. The chains run through `links`, which the owner of the nodes
 * provides, so that the table itself is four bytes for each bucket. At least half of the buckets are
 * empty: who looks for what is not there mostly looks no further, and each look is a wait for memory.
 *
 * In: the hash of a path and the number of its node. Out: the first node of a chain. Whether that is
 * the node meant, the caller decides: only it has the paths.
 */

export const noNode = -1;

const shardBits = 6;
const shards = 1 << shardBits;
const bucketsMin = 16;

/** Where a node's own hash and the next node of its chain are kept. */
export interface Links {
  hashOf(node: number): number;
  nextOf(node: number): number;
  setNext(node: number, next: number): void;
}

const hashStart = 0x811c9dc5;
const hashFactor = 0x01000193;

/** FNV-1a with a last mix, so that the low bits, which pick the shard, depend on all of the path. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = hashStart;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, hashFactor);
  return mixed(hash);
}

/** The same for a path that is a string. */
export function pathHash(path: string): number {
  let hash = hashStart;
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i);
    if (unit > 0x7f) {
      const bytes = Buffer.from(path);
      return hashOf(bytes, 0, bytes.length);
    }
    hash = Math.imul(hash ^ unit, hashFactor);
  }
  return mixed(hash);
}

function mixed(hash: number): number {
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

export class PathIndex {
  readonly #links: Links;
  readonly #buckets: Int32Array[] = [];
  readonly #counts = new Int32Array(shards);

  constructor(links: Links) {
    this.#links = links;
    for (let i = 0; i < shards; i++) this.#buckets.push(new Int32Array(bucketsMin).fill(noNode));
  }

  first(hash: number): number {
    const buckets = this.#buckets[hash & (shards - 1)]!;
    return buckets[(hash >>> shardBits) & (buckets.length - 1)]!;
  }

  add(hash: number, node: number): void {
    const shard = hash & (shards - 1);
    let buckets = this.#buckets[shard]!;
    if (++this.#counts[shard]! * 2 > buckets.length) buckets = this.#grow(shard);
    const at = (hash >>> shardBits) & (buckets.length - 1);
    this.#links.setNext(node, buckets[at]!);
    buckets[at] = node;
  }

  remove(hash: number, node: number): void {
    const shard = hash & (shards - 1);
    const buckets = this.#buckets[shard]!;
    const at = (hash >>> shardBits) & (buckets.length - 1);
    const links = this.#links;
    this.#counts[shard]! -= 1;
    if (buckets[at] === node) {
      buckets[at] = links.nextOf(node);
      return;
    }
    let before = buckets[at]!;
    while (links.nextOf(before) !== node) before = links.nextOf(before);
    links.setNext(before, links.nextOf(node));
  }

  #grow(shard: number): Int32Array {
    const old = this.#buckets[shard]!;
    const grown = new Int32Array(old.length * 2).fill(noNode);
    const links = this.#links;
    for (let i = 0; i < old.length; i++) {
      for (let node = old[i]!; node !== noNode; ) {
        const next = links.nextOf(node);
        const at = (links.hashOf(node) >>> shardBits) & (grown.length - 1);
        links.setNext(node, grown[at]!);
        grown[at] = node;
        node = next;
      }
    }
    this.#buckets[shard] = grown;
    return grown;
  }
}
