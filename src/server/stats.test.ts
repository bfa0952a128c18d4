import { expect, test } from 'vitest';
import { Latency, OpLatencies, ServerStats, slowAppendMs } from './stats.ts';

test('a quantile stands where that part of all stays below', () => {
  const latency = new Latency();
  for (let i = 0; i < 90; i++) latency.record(2);
  for (let i = 0; i < 9; i++) latency.record(40);
  latency.record(700);

  expect(latency.quantileMs(0.5)).toBeGreaterThan(1);
  expect(latency.quantileMs(0.5)).toBeLessThanOrEqual(2.5);
  expect(latency.quantileMs(0.95)).toBeGreaterThan(25);
  expect(latency.quantileMs(0.95)).toBeLessThanOrEqual(50);
  expect(latency.quantileMs(1)).toBe(700);
});

test('a quantile of nothing is 0, of one value that value', () => {
  const latency = new Latency();
  expect(latency.quantileMs(0.99)).toBe(0);

  latency.record(3);

  expect(latency.quantileMs(0.01)).toBe(3);
  expect(latency.quantileMs(0.999)).toBe(3);
});

test('a batch that took the disk too long is counted', () => {
  const stats = new ServerStats(0);
  stats.appended(slowAppendMs, 3);
  stats.appended(slowAppendMs + 1, 5);

  expect(stats).toMatchObject({ batches: 2, batchTxnsMax: 5, slowAppends: 1 });
  expect(stats.batchTxns).toMatchObject({ count: 2, sum: 8, min: 3, max: 5 });
});

test('latencies are kept op by op; reads are timed together', () => {
  const byOp = new OpLatencies();
  for (let i = 0; i < 3; i++) byOp.answered(4);
  byOp.answered(8);
  byOp.took(2);
  byOp.took(700); // nothing was answered since
  byOp.record(1, 40);
  byOp.record(-11, 5);

  const told = [...byOp.entries()].map(([code, { count, maxMs }]) => [code, count, maxMs]);
  expect(told).toEqual([
    [-11, 1, 5],
    [1, 1, 40],
    [4, 3, 2],
    [8, 1, 2],
  ]);
  byOp.reset();
  expect([...byOp.entries()].every(([, { count }]) => count === 0)).toBe(true);
});
