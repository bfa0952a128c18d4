import { expect, test } from 'vitest';
import { between, type OpTimesSeen, quantileMs } from './op-times.ts';

const boundsMs = [1, 10, 100];
const seen = (buckets: Record<string, number[]>): OpTimesSeen => ({
  boundsMs,
  ops: Object.entries(buckets).map(([op, counts]) => ({ op, maxMs: 150, buckets: counts })),
});

test('a stretch is what came since the look before, op by op', () => {
  const before = seen({ get: [5, 1, 0, 0], set: [1, 0, 0, 0] });
  const now = seen({ get: [5, 3, 1, 0], set: [1, 0, 0, 0], create: [0, 2, 0, 0] });

  const came = between(before, now).map(({ op, count, buckets }) => ({ op, count, buckets }));

  expect(came).toEqual([
    { op: 'get', count: 3, buckets: [0, 2, 1, 0] },
    { op: 'create', count: 2, buckets: [0, 2, 0, 0] },
  ]);
});

test('counters that went back begin anew', () => {
  const [came] = between(seen({ get: [9, 9, 9, 9] }), seen({ get: [2, 0, 0, 0] }));

  expect(came).toMatchObject({ count: 2, buckets: [2, 0, 0, 0] });
});

test('a percentile lies in the bucket that holds it, and never above the longest', () => {
  const [came] = between(undefined, seen({ get: [90, 9, 0, 1] }));

  expect(quantileMs(0.5, came!, boundsMs)).toBeCloseTo(0.555, 2);
  expect(quantileMs(0.95, came!, boundsMs)).toBeCloseTo(6, 1);
  expect(quantileMs(0.999, came!, boundsMs)).toBeGreaterThan(100);
  expect(quantileMs(1, came!, boundsMs)).toBe(150);
});
