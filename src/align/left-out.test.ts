import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { LeftOut } from './left-out.ts';

const t = { topic: 't', partition: '0' };
const at = (offset: bigint) => ({ offset, timestampMs: null, key: null, value: null });

test('the first record that is left out is told at once, the next ones together, and the rest at the end', () => {
  const clock = new ManualClock();
  const told: string[] = [];
  const leftOut = new LeftOut({ group: 'g', clock, warn: (message) => told.push(message) });

  leftOut.add(t, at(1n), 'future');
  expect(told).toEqual([
    expect.stringMatching(/^align g: a record was left out.*t\/0 offset 1 \(future\)/),
  ]);

  for (const offset of [2n, 3n, 4n]) leftOut.add(t, at(offset), 'missing');
  expect(told).toHaveLength(1);
  clock.advance(10_000);
  expect(told[1]).toMatch(/3 records were left out.*the last: t\/0 offset 4 \(missing\)/);

  leftOut.add(t, at(5n), 'future');
  leftOut.close();
  expect(told).toHaveLength(3);
  expect(clock.pending).toBe(0);
});
