import { expect, test } from 'vitest';
import { TimeDoubts, type TimeDoubtsOptions } from './time-doubts.ts';

const day = 86_400_000;
const nowMs = 10_000 * day;

/** What is believed of these times, and what is not: `offset reason`. */
function judged(times: readonly number[], options: TimeDoubtsOptions = {}) {
  const believed: number[] = [];
  const doubted: string[] = [];
  const doubts = new TimeDoubts(
    { nowMs, ...options },
    (timeMs) => believed.push(timeMs),
    ({ offset, reason }) => doubted.push(`${offset} ${reason}`),
  );
  for (const [i, timeMs] of times.entries()) doubts.add(BigInt(i), timeMs);
  doubts.end();
  return { believed, doubted };
}

test('times that a run would not believe are told, with the reason', () => {
  const far = nowMs + day;

  expect(judged([1, Number.NaN, -1, far, 9e15, 2])).toEqual({
    believed: [1, 2],
    doubted: ['1 missing', '2 negative', '3 future', '4 tooFar'],
  });
  expect(judged([far], { futureTolerance: '1d' }).believed).toEqual([far]);
});

test('a time far ahead of those behind it is told, also of the first record', () => {
  const odd = 100 * day;

  expect(judged([odd, 1, 2, odd, 3, 4, 5]).doubted).toEqual(['0 ahead', '3 ahead']);
  expect(judged([1, odd, 2], { maxAhead: false }).doubted).toEqual([]);
});

test('times that stay far ahead are a gap, and what comes last is believed', () => {
  const later = [100 * day, 100 * day + 1, 100 * day + 2, 100 * day + 3];

  expect(judged([1, 2, ...later]).doubted).toEqual([]);
  expect(judged([1, 2, 100 * day])).toEqual({ believed: [1, 2, 100 * day], doubted: [] });
});
