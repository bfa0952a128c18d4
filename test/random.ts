/**
 * Chance that can be had again: the same seed gives the same numbers, on every machine. Mulberry32:
 * small, fast, and good enough to shuffle events; not for secrets.
 *
 * A change here makes other runs of every seed that was ever written down.
 */

/** Whole numbers from 0 to 2^32 - 1. */
export function seededWords(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** From 0 up to, not including, 1: in place of Math.random. */
export function seeded(seed: number): () => number {
  const next = seededWords(seed);
  return () => next() / 2 ** 32;
}
