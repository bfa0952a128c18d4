import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Reader } from './reader.ts';
import { Writer } from './writer.ts';

/** Any UTF-16 units at all, lone surrogates among them. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0, max: 0xffff })), {
    maxLength: 120,
  })
  .map((units) => String.fromCharCode(...units));

test('values are written big-endian, with lengths before them and -1 for null', () => {
  const writer = new Writer();

  writer.bool(true);
  writer.bool(false);
  writer.int(-2);
  writer.long(-2n);
  writer.ustring('aé');
  writer.buffer(Buffer.of(7));
  writer.buffer(Buffer.alloc(0));
  writer.buffer(null);

  expect(writer.written().toString('hex')).toBe(
    ['01', '00', 'fffffffe', 'fffffffffffffffe', '0000000361c3a9']
      .concat(['0000000107', '00000000', 'ffffffff'])
      .join(''),
  );
  expect(writer.length).toBe(writer.written().length);
});

test('the extremes of int and long are written and read back', () => {
  const ints = [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1];
  const longs = [-(2n ** 63n), -(2n ** 53n) - 1n, -1n, 0n, 2n ** 32n, 2n ** 63n - 1n];
  const writer = new Writer();

  for (const value of ints) writer.int(value);
  for (const value of longs) writer.long(value);

  const reader = new Reader(writer.written());
  expect(ints.map(() => reader.int())).toEqual(ints);
  expect(longs.map(() => reader.long())).toEqual(longs);
  reader.finish();
});

test('a long given as two halves is the long', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const [whole, halves] = [new Writer(), new Writer()];
      whole.long(value);
      halves.longHalves(Number(value >> 32n), Number(value & 0xffff_ffffn));

      expect(halves.written()).toEqual(whole.written());
    }),
  );
});

test('text is written as UTF-8, short or long, and a lone surrogate as U+FFFD', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const writer = new Writer(1);
      writer.ustring(text);
      const utf8 = Buffer.from(text, 'utf8');

      expect(writer.length).toBe(4 + utf8.length);
      expect(writer.written().readInt32BE()).toBe(utf8.length);
      expect(writer.written().subarray(4)).toEqual(utf8);
    }),
    { numRuns: 500, examples: [['\ud800'], ['a\udc00b'], ['é'.repeat(48)], ['a'.repeat(49)]] },
  );
});

test('a text of a million three-byte characters is written whole', () => {
  const text = '\u20ac'.repeat(2 ** 20);
  const writer = new Writer(1);

  writer.ustring(text);

  expect(new Reader(writer.written()).ustring()).toBe(text);
});

test('from whatever capacity it starts, a writer grows and keeps what it holds', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('int'), value: fc.integer() }),
    fc.record({ kind: fc.constant('bool'), value: fc.boolean() }),
    fc.record({ kind: fc.constant('text'), value: anyText }),
    fc.record({ kind: fc.constant('raw'), value: fc.uint8Array({ maxLength: 300 }) }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 64 }), fc.array(step), (capacity, steps) => {
      const writer = new Writer(capacity);
      const parts: Buffer[] = [];
      for (const { kind, value } of steps) {
        const one = new Writer(4096);
        for (const each of [writer, one]) {
          if (kind === 'int') each.int(value as number);
          else if (kind === 'bool') each.bool(value as boolean);
          else if (kind === 'text') each.ustring(value as string);
          else each.raw(value as Uint8Array);
        }
        parts.push(one.written());
      }

      expect(writer.written().equals(Buffer.concat(parts))).toBe(true);
    }),
  );
});

test('growing doubles, so that a megabyte in bytes is not copied a million times', () => {
  const writer = new Writer(1);
  const buffers = new Set<ArrayBufferLike>();

  for (let i = 0; i < 2 ** 20; i++) {
    writer.bool(true);
    buffers.add(writer.written().buffer);
  }

  expect(buffers.size).toBeLessThanOrEqual(21);
});

test('frames stand one behind another, each behind its length', () => {
  const writer = new Writer(1);

  for (const text of ['', 'a', 'bc']) {
    const start = writer.beginFrame();
    writer.raw(Buffer.from(text));
    expect(writer.endFrame(start)).toBe(text.length);
  }

  expect(writer.written().toString('latin1')).toBe('\0\0\0\0\0\0\0\x01a\0\0\0\x02bc');
});

test('what was detached is not written to again', () => {
  const writer = new Writer();
  writer.int(1);

  const kept = writer.detach();
  writer.int(2);

  expect(kept.toString('hex')).toBe('00000001');
  expect(writer.written().toString('hex')).toBe('00000002');
});

test('truncating forgets the tail alone', () => {
  const writer = new Writer();
  writer.int(1);
  const { length } = writer;
  writer.ustring('to be forgotten');

  writer.truncate(length);
  writer.int(2);

  expect(writer.written().toString('hex')).toBe('0000000100000002');
});

test('a range of other bytes is copied', () => {
  const writer = new Writer(1);

  writer.rawRange(Buffer.from('abcdef'), 2, 5);

  expect(writer.written().toString()).toBe('cde');
});
