import { expect, test } from 'vitest';
import { Reader } from './reader.ts';
import { looped, recordCode } from './record-code.ts';
import { buffer, int, long, ustring, ustringOrNull, vector } from './types.ts';
import { Writer } from './writer.ts';

const fields = {
  path: ustring,
  data: buffer,
  at: long,
  n: int,
  why: ustringOrNull,
  all: vector(int),
};
const value = { path: '/é', data: Buffer.from('d'), at: -2n, n: 7, why: null, all: [1, 2] };

test('code made for a record and a loop over its fields do the same', () => {
  const bytes = [recordCode(fields), looped(fields)].map(({ write }) => {
    const writer = new Writer();
    write(writer, value);
    return writer.written();
  });

  expect(bytes[0]).toEqual(bytes[1]);
  for (const { read } of [recordCode(fields), looped(fields)]) {
    expect(read(new Reader(bytes[0]!))).toEqual(value);
  }
});

test('a field whose name could be code is refused', () => {
  expect(() => recordCode({ 'a; b': int })).toThrow(/can't be the name of a field/);
});
