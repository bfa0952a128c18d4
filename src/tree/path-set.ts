/**
 * A set of paths, as many as there are: one of V8's holds 2^24 at most, and stops everybody while it grows to that.
 *
 * In: paths as they come and go. Out: the same, each once, in no order that means something.
 */

import { TextMap } from '../support/index.ts';
import { pathHash } from './path-hash.ts';

const shardCount = 256;

export class PathSet implements Iterable<string> {
  readonly #shards: (TextMap<true> | undefined)[] = Array.from({ length: shardCount });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(path: string): boolean {
    return this.#size > 0 && (this.#shards[shardOf(path)]?.has(path) ?? false);
  }

  add(path: string): void {
    const at = shardOf(path);
    let shard = this.#shards[at];
    if (shard === undefined) {
      shard = new TextMap();
      this.#shards[at] = shard;
    }
    const before = shard.size;
    shard.set(path, true);
    this.#size += shard.size - before;
  }

  delete(path: string): void {
    if (this.#shards[shardOf(path)]?.delete(path)) this.#size -= 1;
  }

  *[Symbol.iterator](): Generator<string, void, void> {
    for (const shard of this.#shards) if (shard !== undefined) yield* shard.keys();
  }
}

function shardOf(path: string): number {
  return pathHash(path) & (shardCount - 1);
}
