import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  bucketName,
  bucketPrefix,
  byTurn,
  claimedBy,
  claimName,
  delayText,
  flatName,
  itemName,
  itemPrefix,
  priorityText,
  slotKey,
} from './queue-names.ts';

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });

test('priorities are written as Curator writes them, and sort as text as they do as numbers', () => {
  expect([0, 5, -1, -(2 ** 31), 2 ** 31 - 1].map(priorityText)).toEqual([
    '100000000',
    '100000005',
    '0FFFFFFFF',
    '080000000',
    '17FFFFFFF',
  ]);
  fc.assert(
    fc.property(int32, int32, (a, b) => {
      expect(priorityText(a) < priorityText(b)).toBe(a < b);
    }),
  );
});

test('a time stands in hex between bars, and is read back', () => {
  const name = `queue-${delayText(1_700_000_000_123)}0000000007`;

  expect(name).toBe('queue-|18BCFE5687B|0000000007');
  expect(flatName('delay', name)).toMatchObject({ dueMs: 1_700_000_000_123, sequence: 7 });
});

test('only names of its own order are items', () => {
  expect(flatName('fifo', 'queue-0000000001')).toMatchObject({ sequence: 1 });
  expect(flatName('fifo', 'queue-|some id|0000000001')).toMatchObject({ sequence: 1 });
  expect(flatName('priority', 'queue-0FFFFFFFE-000000009')).toMatchObject({
    key: '0FFFFFFFE',
    sequence: -9,
  });
  for (const foreign of ['other', 'queue-', 'queue-12', 'queue-x0000000001', 'qn-0000000001']) {
    expect(flatName('fifo', foreign)).toBeNull();
  }
  expect(flatName('priority', 'queue-0000000001')).toBeNull();
  expect(itemName('i-00-0-0-0000000001')).toBeNull();
  expect(bucketName('b-x')).toBeNull();
});

test('an item, its bucket and its claim can be read from their names', () => {
  const id = 'a'.repeat(32);
  const item = `${itemPrefix(id, 3, 255)}0000000012`;

  expect(itemName(item)).toEqual({ name: item, id, tries: 3, dueMs: 255, sequence: 12 });
  expect(claimedBy(claimName(item))).toBe(item);
  expect(claimedBy(item)).toBeNull();
  expect(bucketName(`${bucketPrefix('')}0000000003`)).toMatchObject({ key: '', sequence: 3 });
  expect(bucketName(`${bucketPrefix('100000000')}0000000003`)).toMatchObject({ key: '100000000' });
});

test('the order goes on where the server’s counter passes 2^31', () => {
  const names = ['queue--2147483648', 'queue-2147483647', 'queue-2147483646', 'queue--2147483647'];

  const sorted = names.map((name) => flatName('fifo', name)!).sort(byTurn);

  expect(sorted.map(({ name }) => name)).toEqual([
    'queue-2147483646',
    'queue-2147483647',
    'queue--2147483648',
    'queue--2147483647',
  ]);
});

test('slots of time sort as text as they do as numbers', () => {
  const time = fc.integer({ min: 0, max: 16 ** 11 - 1 });
  fc.assert(
    fc.property(time, time, (a, b) => {
      const [x, y] = [slotKey(a, 60_000), slotKey(b, 60_000)];
      if (Math.floor(a / 60_000) === Math.floor(b / 60_000)) expect(x).toBe(y);
      else expect(x < y).toBe(a < b);
    }),
  );
});
