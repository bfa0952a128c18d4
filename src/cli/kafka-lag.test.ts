import { expect, test } from 'vitest';
import { timeLagMs } from '../kafka/index.ts';
import { ageText } from './kafka-view.ts';

const id = { topic: 't', partition: '0' };

/** Records at these times, oldest first. */
function recordsAt(timesMs: readonly number[]) {
  const asked: number[] = [];
  return {
    asked,
    async offsetForTime(_: unknown, timestampMs: number) {
      asked.push(timestampMs);
      const found = timesMs.findIndex((each) => each >= timestampMs);
      return BigInt(found === -1 ? timesMs.length : found);
    },
  };
}

test.each([0, 400, 5_000, 61_000, 86_400_000, 30 * 86_400_000])(
  'the age of the next record is found to within a twentieth: %d ms',
  async (age) => {
    const nowMs = 2_000_000_000_000;
    const source = recordsAt([nowMs - age - 1_000_000, nowMs - age, nowMs]);

    const lag = await timeLagMs(source, id, 1n, nowMs);

    expect(Math.abs(lag - age)).toBeLessThanOrEqual(Math.max(1_000, age * 0.05));
    expect(source.asked.length).toBeLessThan(40);
  },
);

test('a record without an end of its age is no endless search', async () => {
  const source = { offsetForTime: async () => 9n };

  expect(await timeLagMs(source, id, 1n, Date.now())).toBeGreaterThan(86_400_000 * 365);
});

test.each([
  [-5, '0s'],
  [0, '0s'],
  [1_440, '1.4s'],
  [59_999, '59s'],
  [60_000, '1m'],
  [725_000, '12m 5s'],
  [3_600_000, '1h'],
  [100_000_000, '1d 3h'],
])('%d ms is said as %s', (ms, text) => {
  expect(ageText(ms)).toBe(text);
});
