import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Backoff } from './backoff.ts';

test('waits double up to the longest, and start over after a reset', () => {
  const backoff = new Backoff({ firstMs: 100, maxMs: 1_000, random: () => 1 });
  const five = () => Array.from({ length: 5 }, () => backoff.next());

  expect(five()).toEqual([100, 200, 400, 800, 1_000]);
  expect(five()).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
  backoff.reset();
  expect(backoff.next()).toBe(100);
});

test('every wait is between half of its ceiling and all of it, however many tries there were', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      fc.integer({ min: 0, max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (firstMs, maxMs, tries, luck) => {
        const backoff = new Backoff({ firstMs, maxMs, random: () => luck });
        for (let i = 0; i < tries; i++) backoff.next();
        const ceilingMs = Math.min(maxMs, firstMs * 2 ** Math.min(tries, 60));

        const waitMs = backoff.next();

        expect(waitMs).toBeGreaterThanOrEqual(ceilingMs / 2);
        expect(waitMs).toBeLessThanOrEqual(ceilingMs);
      },
    ),
  );
});

test('without a source of chance of its own, two clients do not wait alike', () => {
  const waits = Array.from({ length: 20 }, () => new Backoff({ firstMs: 1e6, maxMs: 1e6 }).next());

  expect(new Set(waits).size).toBeGreaterThan(1);
});
