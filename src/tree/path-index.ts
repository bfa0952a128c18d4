/**
 * From the bytes of a path to the number of its node.
 *
 * A hash table, cut into shards that grow one at a time: a tree of millions of nodes never stops to rehash
 * all of them at once. A slot holds the hash and the node, and a node stands in the first free slot from
 * where its hash points to: who looks for what is not there mostly reads one line of memory, and nothing
 * of any node. To grow takes nothing but the table either.
 *
 *   table   hash, node + 1, hash, node + 1, …; 0 for none. Some slots are always free
 *
 * In: the hash of a path and the number of its node. Out: the slots in which it may stand. Whether a node
 * there is the one meant, the caller decides: only it has the paths.
 */

export const noNode = -1;

const shardBits = 6;
const shards = 1 << shardBits;
const slotsMin = 16;
/** Of all slots, so many are taken at most. */
const fullAt = 5 / 8;
/** Ints of a slot. */
const slotInts = 2;

/** Where, in a table, to begin to look for what has this hash. */
export function slotOf(table: Int32Array, hash: number): number {
  return ((hash >>> shardBits) * slotInts) & (table.length - 1);
}

/** Where to go on from there. */
export function nextSlot(table: Int32Array, at: number): number {
  return (at + slotInts) & (table.length - 1);
}

/** What stands in a slot, or `noNode`: there is nothing beyond it then. */
export function nodeAt(table: Int32Array, at: number): number {
  return table[at + 1]! - 1;
}

export class PathIndex {
  readonly #tables: Int32Array[] = [];
  readonly #counts = new Int32Array(shards);

  constructor() {
    for (let i = 0; i < shards; i++) this.#tables.push(new Int32Array(slotsMin * slotInts));
  }

  /** The one in which all that has this hash stands. Good until something is added or removed. */
  table(hash: number): Int32Array {
    return this.#tables[hash & (shards - 1)]!;
  }

  add(hash: number, node: number): void {
    const shard = hash & (shards - 1);
    let table = this.#tables[shard]!;
    if (++this.#counts[shard]! * slotInts > table.length * fullAt) {
      table = grown(table);
      this.#tables[shard] = table;
    }
    put(table, hash, node + 1);
  }

  remove(hash: number, node: number): void {
    const table = this.table(hash);
    let free = slotOf(table, hash);
    while (nodeAt(table, free) !== node) {
      if (nodeAt(table, free) === noNode) throw new Error(`the path index has no node ${node}`);
      free = nextSlot(table, free);
    }
    this.#counts[hash & (shards - 1)]! -= 1;
    // Whoever had to go past it would not be found beyond a free slot: the next such one takes its place.
    const distance = (from: number, to: number) => (to - from) & (table.length - 1);
    for (let at = nextSlot(table, free); table[at + 1] !== 0; at = nextSlot(table, at)) {
      const home = slotOf(table, table[at]!);
      if (distance(home, at) < distance(free, at)) continue;
      table[free] = table[at]!;
      table[free + 1] = table[at + 1]!;
      free = at;
    }
    table[free + 1] = 0;
  }
}

function put(table: Int32Array, hash: number, entry: number): void {
  let at = slotOf(table, hash);
  while (table[at + 1] !== 0) at = nextSlot(table, at);
  table[at] = hash;
  table[at + 1] = entry;
}

function grown(table: Int32Array): Int32Array {
  const larger = new Int32Array(table.length * 2);
  for (let at = 0; at < table.length; at += slotInts) {
    if (table[at + 1] !== 0) put(larger, table[at]!, table[at + 1]!);
  }
  return larger;
}
