import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PartitionClock } from './partition-clock.ts';
import { boundaryAt } from './rule.ts';

const clock = (options: Partial<ConstructorParameters<typeof PartitionClock>[0]> = {}) =>
  new PartitionClock({ allowanceMs: 0, stepMs: 60, offset: 0n, ...options });

/** Hands out records with these times, from offset 0 on. */
function hand(one: PartitionClock, timesMs: readonly number[], from = 0): void {
  for (const [i, timeMs] of timesMs.entries()) {
    one.hand(BigInt(from + i), timeMs, BigInt(from + i + 1));
  }
}

test('nothing is known before the first record', () => {
  expect(clock().positionMs).toBeNull();
});

test('the next record counts when all before it is done, and not before', () => {
  const one = clock();
  hand(one, [10, 20]);
  one.expect(2n, 130);

  expect(one.positionMs).toBeNull();

  one.finish();
  expect(one.positionMs).toBe(130);
  expect(one.reached).toEqual([
    { end: 0, offset: 0n },
    { end: 120, offset: 2n },
  ]);
});

test('a boundary is passed at the first record that leaves no room for earlier ones', () => {
  const one = clock({ allowanceMs: 20 });
  hand(one, [90, 70, 130, 125, 200]);
  one.finish();

  expect(one.positionMs).toBe(180);
  expect(one.reached).toEqual([
    { end: 60, offset: 0n },
    { end: 180, offset: 4n },
  ]);
});

test('a gap of days is one entry, with the offset that every boundary in it has', () => {
  const one = clock();
  hand(one, [10]);
  one.finish();
  one.expect(1n, 5 * 86_400_000);

  expect(one.reached).toHaveLength(2);
  expect(one.reached[1]).toEqual({ end: 5 * 86_400_000, offset: 1n });
});

test('offsets that hold no record are no reason to wait: what comes after them counts as next', () => {
  const one = clock();
  hand(one, [10]);
  one.finish();
  one.expect(3n, 130); // 1 and 2 were compacted away, or are marks of a transaction

  expect([one.positionMs, one.done]).toEqual([130, 3n]);
  expect(one.reached.at(-1)).toEqual({ end: 120, offset: 3n });
});

test('what comes after such offsets still waits for what is in hand', () => {
  const one = clock();
  hand(one, [10]);
  one.expect(3n, 130);

  expect([one.positionMs, one.done]).toEqual([null, 0n]);

  one.finish();
  expect([one.positionMs, one.done]).toEqual([130, 3n]);
});

test('where a cut stands is no record: the latest is known when one was done', () => {
  const one = clock({ offset: 7n, positionMs: 120 });
  expect([one.positionMs, one.lastTimeMs]).toEqual([120, null]);

  hand(one, [60], 7); // appended later, and late
  expect(one.lastTimeMs).toBeNull();
  one.finish();
  expect([one.positionMs, one.lastTimeMs]).toEqual([120, 60]);

  one.handAll([{ offset: 8n }, { offset: 9n }], [190, 130], 10n);
  one.finish();
  expect(one.lastTimeMs).toBe(190);
});

test('late records are counted and move nothing back', () => {
  const one = clock({ allowanceMs: 5 });
  hand(one, [100, 96, 94, 10]);
  one.finish();

  expect(one.lateRecords).toBe(2);
  expect(one.positionMs).toBe(95);
});

test('skipped records are done as soon as all before them is', () => {
  const one = clock();
  one.skip(3n);
  expect(one.done).toBe(3n);
  hand(one, [7], 3);
  one.skip(6n);

  expect(one.done).toBe(3n);
  one.finish();
  expect(one.done).toBe(6n);
});

test('what was settled by a cut is told no more', () => {
  const one = clock();
  hand(one, [10, 70, 130]);
  one.finish();

  one.settle(60);

  expect(one.reached).toEqual([{ end: 120, offset: 2n }]);
});

test('a boundary is reached when the work on everything before it is done, and not before', () => {
  const one = clock({ positionMs: 0 });
  hand(one, [10, 70]);

  expect([one.takeReached(), one.reached]).toEqual([[], []]);
  expect([one.positionMs, one.done]).toEqual([0, 0n]);

  one.finish();
  expect(one.takeReached()).toEqual([{ start: 0, end: 60, offset: 1n }]);
  expect(one.reached).toEqual([{ end: 60, offset: 1n }]);
});

test('of what is in hand only the boundaries before it are reached', () => {
  const one = clock({ positionMs: 0 });
  hand(one, [10, 70]);
  one.finish();
  hand(one, [80, 130, 200], 2);

  expect(one.takeReached()).toEqual([{ start: 0, end: 60, offset: 1n }]);
  expect(one.reached).toEqual([{ end: 60, offset: 1n }]);

  one.finish();
  expect(one.takeReached()).toEqual([
    { start: 60, end: 120, offset: 3n },
    { start: 120, end: 180, offset: 4n },
  ]);
});

test('a record that is only known to come next reaches no boundary while what is before it is in hand', () => {
  const one = clock({ positionMs: 0 });
  hand(one, [10]);
  one.expect(1n, 130);

  expect(one.takeReached()).toEqual([]);

  one.finish();
  expect(one.takeReached()).toEqual([{ start: 0, end: 120, offset: 1n }]);
});

test('a next record that is withdrawn has passed nothing, and those behind it pass as ever', () => {
  const one = clock({ positionMs: 0 });
  hand(one, [10]);
  one.finish();
  one.expect(1n, 6_000);
  expect(one.takeReached()).toEqual([{ start: 0, end: 6_000, offset: 1n }]);

  one.withdraw();
  expect([one.positionMs, one.reached]).toEqual([10, []]);
  one.skip(2n);
  one.expect(2n, 130);

  expect(one.takeReached()).toEqual([{ start: 0, end: 120, offset: 2n }]);
  expect([one.positionMs, one.reached]).toEqual([130, [{ end: 120, offset: 2n }]]);
});

describe('with a callback at each boundary', () => {
  test('a boundary does not count until it is confirmed', () => {
    const one = clock({ isConfirming: true, positionMs: 10 });
    hand(one, [20, 75]);
    one.finish();

    expect(one.takeReached()).toEqual([{ start: 0, end: 60, offset: 1n }]);
    expect(one.takeReached()).toEqual([]);
    expect(one.positionMs).toBe(59);
    expect(one.reached).toEqual([]);

    one.confirm(60);
    expect(one.positionMs).toBe(75);
    expect(one.reached).toEqual([{ end: 60, offset: 1n }]);
  });

  test('the next owner goes on where the one before was, and tells no boundary twice', () => {
    const before = clock({ positionMs: 10, offset: 4n });
    hand(before, [20, 75], 4);
    before.finish();
    const after = clock({
      offset: before.done,
      positionMs: before.positionMs!,
      passes: before.reached,
      isConfirming: true,
    });

    expect(after.takeReached()).toEqual([]);
    expect(after.reached).toEqual([{ end: 60, offset: 5n }]);
    after.expect(6n, 130);
    expect(after.takeReached()).toEqual([{ start: 60, end: 120, offset: 6n }]);
  });
});

test('whatever the order: positions only grow, and a cut splits the records as the boundary says', () => {
  const times = fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 1, maxLength: 60 });
  const allowance = fc.integer({ min: 0, max: 100 });
  fc.assert(
    fc.property(times, allowance, fc.integer({ min: 1, max: 200 }), (all, allowanceMs, stepMs) => {
      const one = clock({ allowanceMs, stepMs });
      let last = Number.NEGATIVE_INFINITY;
      for (const [i, timeMs] of all.entries()) {
        one.hand(BigInt(i), timeMs, BigInt(i + 1));
        if (i % 3 !== 0) continue;
        one.finish();
        expect(one.positionMs!).toBeGreaterThanOrEqual(last);
        last = one.positionMs!;
      }
      one.finish();
      const highest = Math.max(...all);
      expect(one.positionMs).toBe(highest - allowanceMs);
      expect(one.reached.at(-1)?.end).toBe(boundaryAt(stepMs, highest - allowanceMs));
      for (const { end, offset } of one.reached) {
        const before = all.slice(0, Number(offset));
        // Nothing before a cut is at or beyond the boundary and the allowance ...
        expect(before.every((timeMs) => timeMs < end + allowanceMs)).toBe(true);
        // ... and the record at the cut is what says so.
        expect(all[Number(offset)]!).toBeGreaterThanOrEqual(end + allowanceMs);
      }
    }),
  );
});

test('all at once is the same as one after the other', () => {
  const times = fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 1, maxLength: 60 });
  const numbers = fc.tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: 200 }));
  fc.assert(
    fc.property(times, numbers, (all, [allowanceMs, stepMs]) => {
      const [one, other] = [clock({ allowanceMs, stepMs }), clock({ allowanceMs, stepMs })];
      hand(one, all);
      other.handAll(
        all.map((_, i) => ({ offset: BigInt(i) })),
        all,
        BigInt(all.length),
      );
      one.finish();
      other.finish();

      const seen = (which: PartitionClock) => {
        const { positionMs, reached, done, lateRecords } = which;
        return { positionMs, reached, done, lateRecords };
      };
      expect(seen(other)).toEqual(seen(one));
    }),
  );
});
