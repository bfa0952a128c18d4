import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { RequestBudget } from './request-budget.ts';

const limits = { nodesMax: 10, bytesMax: 100, timeMs: 1_000 };

test('a request is stopped by nodes, by bytes and by time, and told by which', () => {
  const clock = new ManualClock();
  const budget = () => new RequestBudget(limits, clock);

  budget().spend(10, 100);
  expect(() => budget().spend(11, 0)).toThrow('stopped: a request here may read 10 nodes');
  expect(() => budget().spend(0, 101)).toThrow('stopped: a request here may read 100 bytes');
  const slow = budget();
  clock.advance(999);
  slow.spend(1, 0);
  clock.advance(1);
  expect(() => slow.spend(0, 0)).toThrow('stopped: a request here may take 1 s');
});

test('what goes on after the answer costs the request nothing', () => {
  const budget = new RequestBudget(limits, new ManualClock());

  budget.end();

  expect(() => budget.spend(1_000, 1_000)).not.toThrow();
});
