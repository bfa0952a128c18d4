/**
 * The lanes that have something to hand out, the one whose next record happened first in front; and
 * whether any has only what is too early.
 *
 * In: `look`, each time something about a lane is different. Out: the first of them. A heap, whose entries
 * are checked when they come to the front: so neither costs more where there are thousands of lanes.
 */

import type { Lane } from './lane.ts';

interface Entry {
  readonly lane: Lane;
  readonly timeMs: number;
  /** Of those at the same time whoever came first. */
  readonly turn: number;
}

export class ReadyLanes {
  readonly #heap: Entry[] = [];
  /** The entry of a lane that counts; others of it are left over. */
  readonly #entries = new Map<Lane, Entry>();
  readonly #held = new Set<Lane>();
  #turns = 0;

  look(lane: Lane): void {
    if (lane.isHeldBack) this.#held.add(lane);
    else this.#held.delete(lane);
    if (!lane.isReady) {
      this.#entries.delete(lane);
      return;
    }
    const timeMs = timeOf(lane);
    if (this.#entries.get(lane)?.timeMs === timeMs) return;
    const entry = { lane, timeMs, turn: this.#turns++ };
    this.#entries.set(lane, entry);
    this.#push(entry);
  }

  get first(): Lane | undefined {
    for (;;) {
      const entry = this.#heap[0];
      if (entry === undefined) return undefined;
      const { lane } = entry;
      if (this.#entries.get(lane) === entry && lane.isReady) return lane;
      if (this.#entries.get(lane) === entry) this.#entries.delete(lane);
      this.#pop();
    }
  }

  /** There is something, and all of it comes too early. */
  get isHeldBack(): boolean {
    if (this.first !== undefined) return false;
    for (const lane of this.#held) {
      if (lane.isHeldBack) return true;
      this.#held.delete(lane);
    }
    return false;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(entry, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1;
      if (!isBefore(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
  }
}

const timeOf = ({ nextTimeMs }: Lane) => nextTimeMs ?? Number.NEGATIVE_INFINITY;
const isBefore = (a: Entry, b: Entry) =>
  a.timeMs === b.timeMs ? a.turn < b.turn : a.timeMs < b.timeMs;
