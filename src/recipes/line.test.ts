import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sequenceSuffix } from '../protocol/index.ts';
import { inOrder, oneAtATime } from './line.ts';

const named = (sequence: number, prefix = 'lock-') =>
  `_c_0f0e0d0c-0000-4000-8000-${String(Math.abs(sequence)).padStart(12, '0')}-${prefix}${sequenceSuffix(sequence)}`;

test('a line is in the order of its numbers, whatever its marks and the order of the list', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (numbers) => {
      const names = numbers.map((number) => named(number));

      const sorted = [...numbers].sort((a, b) => a - b);
      expect(inOrder(names, ['lock-'])).toEqual(sorted.map((number) => named(number)));
    }),
  );
});

test("where the server's counter passes 2^31 and goes on below zero, the order goes on too", () => {
  const counters = [2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1];
  const names = counters.map((counter) => named(counter));
  expect(names[2]).toMatch(/-lock--2147483648$/);

  expect(inOrder([...names].reverse(), ['lock-'])).toEqual(names);
});

test('what is no contender is not in line', () => {
  const others = [
    'lock-',
    'lock-12',
    'other-0000000001',
    '_c_x-lock-00000000001',
    'lock-000000000a',
  ];

  expect(inOrder([...others, 'lock-0000000001'], ['lock-'])).toEqual(['lock-0000000001']);
});

test('for a lock, everyone waits for the one just before', () => {
  expect(['a', 'b', 'c'].map((_, at) => oneAtATime(['a', 'b', 'c'], at))).toEqual([null, 'a', 'b']);
});
