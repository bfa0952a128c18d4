/**
 * A world of its own for a simulation: time that jumps from event to event, and chance from a seed.
 *
 * In: events with their due time. Out: the same, in the order of time, and of asking where that is
 * equal. Between two moments everything that promises have to do is done, so a run depends on nothing
 * but its seed.
 */

import { setImmediate } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/support/index.ts';
import { seeded } from '../random.ts';

export { seeded };

interface Entry {
  readonly atMs: number;
  readonly order: number;
  /** Undefined once it was cancelled: what it held is let go of long before its time. */
  run: (() => void) | undefined;
}

export class World {
  readonly random: () => number;
  readonly #heap: Entry[] = [];
  #order = 0;
  nowMs = 0;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  /** A whole number from `min` up to and without `max`. */
  int(min: number, max: number): number {
    return min + Math.floor(this.random() * (max - min));
  }

  at(atMs: number, run: () => void): Timer {
    const due = Math.max(this.nowMs, Math.ceil(atMs));
    const entry: Entry = { atMs: due, order: this.#order++, run };
    this.#push(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  after(delayMs: number, run: () => void): Timer {
    return this.at(this.nowMs + Math.max(0, delayMs), run);
  }

  /** Runs all that is due until then, or until `isDone` says so. */
  async run(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    await setImmediate();
    while (!isDone()) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.nowMs = untilMs;
        return;
      }
      this.nowMs = next.atMs;
      while (this.#heap[0] !== undefined && this.#heap[0].atMs === this.nowMs) {
        this.#pop().run?.();
      }
      await setImmediate();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  #pop(): Entry {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return top;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** A process: it can be stopped, and then nothing reaches it until it goes on; or die, and nothing ever. */
export class Process {
  readonly world: World;
  readonly clock: Clock;
  readonly #held: (() => void)[] = [];
  /** Runs first when it goes on: what a client does on its first look at the clock. */
  readonly onResume = new Set<() => void>();
  state: 'running' | 'paused' | 'dead' = 'running';

  constructor(world: World) {
    this.world = world;
    this.clock = {
      nowMs: () => world.nowMs,
      wallMs: () => 1_700_000_000_000 + world.nowMs,
      after: (delayMs, fire) => world.after(delayMs, () => this.deliver(fire)),
    };
  }

  deliver(work: () => void): void {
    if (this.state === 'running') work();
    else if (this.state === 'paused') this.#held.push(work);
  }

  pause(): void {
    if (this.state === 'running') this.state = 'paused';
  }

  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'running';
    for (const first of this.onResume) first();
    for (const work of this.#held.splice(0)) work();
  }

  kill(): void {
    this.state = 'dead';
    this.#held.length = 0;
  }
}
