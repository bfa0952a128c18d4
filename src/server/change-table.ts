/**
 * The latest change that is under way for each path.
 *
 * A hash table whose chains run through the changes themselves. A `Map` would do, but for the garbage
 * collector: a Map from which as much is taken as is put in makes itself a new table again and again,
 * each old one points to the next, and once one of them is old so is all that ever stood in them, until
 * the whole heap is looked through (a third of all that writes allocate, and pauses of 3 to 5 ms).
 */

import { pathHash } from '../tree/index.ts';

/** What the table needs of its entries, which are in it once at most. */
export interface Chained<T> {
  readonly path: string;
  /** By `pathHash`. */
  readonly hash: number;
  /** The next one of its chain; the table's alone. */
  chained: T | undefined;
}

/** Few enough to cost nothing, many enough for all that a busy server has under way. */
const buckets = 4096;

export class ChangeTable<T extends Chained<T>> {
  readonly #buckets: (T | undefined)[] = new Array<T | undefined>(buckets).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(path: string, hash = pathHash(path)): T | undefined {
    let entry = this.#buckets[hash & (buckets - 1)];
    while (entry !== undefined && (entry.hash !== hash || entry.path !== path)) {
      entry = entry.chained;
    }
    return entry;
  }

  /** Puts it in, in the place of `before` where that is there for the same path. */
  put(entry: T, before: T | undefined): void {
    if (before !== undefined) this.delete(before);
    const at = entry.hash & (buckets - 1);
    entry.chained = this.#buckets[at];
    this.#buckets[at] = entry;
    this.#size += 1;
  }

  delete(entry: T): void {
    const at = entry.hash & (buckets - 1);
    let before: T | undefined;
    for (let here = this.#buckets[at]; here !== undefined; here = here.chained) {
      if (here === entry) {
        if (before === undefined) this.#buckets[at] = entry.chained;
        else before.chained = entry.chained;
        entry.chained = undefined;
        this.#size -= 1;
        return;
      }
      before = here;
    }
  }
}
