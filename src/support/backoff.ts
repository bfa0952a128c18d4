/**
 * How long to wait before the next try: doubling from `firstMs` up to `maxMs`, and of that one half
 * and a random part of the other, so that a thousand clients of one dead server don't return as one.
 */

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** 0 (inclusive) to 1 (exclusive), as `Math.random`. */
  readonly random?: () => number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  #tries = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  next(): number {
    const { firstMs, maxMs, random = Math.random } = this.#options;
    // 2 ** 30 is past any sensible ratio of max to first, and below where doubling loses its unit.
    const ceilingMs = Math.min(maxMs, firstMs * 2 ** Math.min(this.#tries, 30));
    this.#tries += 1;
    // Never under half: a wait of nearly nothing, by chance, is no wait at all.
    return ceilingMs * (0.5 + 0.5 * random());
  }

  reset(): void {
    this.#tries = 0;
  }
}
