import { expect, test } from 'vitest';
import { copyAll, copyBytes, readInt, writeInt } from './bytes.ts';

const source = Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 7 + 1) & 0xff));

test('a stretch of any length is copied to its place, and nothing beside it', () => {
  for (let length = 0; length <= 140; length++) {
    const to = Buffer.alloc(160, 0xee);

    copyBytes(source, 5, to, 9, length);

    const wanted = Buffer.alloc(160, 0xee);
    source.copy(wanted, 9, 5, 5 + length);
    expect(to).toEqual(wanted);
  }
});

test('all of a buffer of any length is copied to its place, and nothing beside it', () => {
  for (let length = 0; length <= 140; length++) {
    const to = Buffer.alloc(160, 0xee);

    copyAll(source.subarray(3, 3 + length), to, 9);

    const wanted = Buffer.alloc(160, 0xee);
    source.copy(wanted, 9, 3, 3 + length);
    expect(to).toEqual(wanted);
  }
});

test.each([0, 1, -1, 0x7fffffff, -0x80000000, 0x01020304])('%i comes back as it was', (value) => {
  const bytes = Buffer.alloc(6);

  writeInt(bytes, 1, value);

  expect(readInt(bytes, 1)).toBe(value);
  expect(bytes.readInt32BE(1)).toBe(value);
});
