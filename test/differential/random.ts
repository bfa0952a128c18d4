/** Chance that can be had again, as scripts are made of it. */

import { seededWords } from '../random.ts';

export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededWords(seed);
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
