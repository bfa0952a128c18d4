/** Chance that can be had again: the same seed gives the same numbers, on every machine. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Mulberry32: 32 bits of state are plenty for a script of some hundred commands. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** 0 up to, not including, `end`. */
  below(end: number): number {
    return this.#next() % end;
  }

  chance(part: number): boolean {
    return this.#next() < part * 0x1_0000_0000;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  /** One of the values, each as likely as the number before it says. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let at = this.below(choices.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, value] of choices) {
      at -= weight;
      if (at < 0) return value;
    }
    throw new Error('the weights changed while we looked');
  }

  times<T>(count: number, make: () => T): T[] {
    return Array.from({ length: count }, make);
  }
}

/** A seed of its own for each script of a run, far from those of its neighbours. */
export function seedOf(run: number, script: number): number {
  let h = Math.imul(run ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(script + 1, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}
