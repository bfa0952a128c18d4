import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ProtocolError } from './protocol-error.ts';
import { Reader } from './reader.ts';

const int = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

test('each value is refused when a byte of it is missing', () => {
  const reads: [bytes: number, read: (reader: Reader) => unknown][] = [
    [1, (reader) => reader.bool()],
    [4, (reader) => reader.int()],
    [8, (reader) => reader.long()],
    [4, (reader) => reader.buffer()],
    [4, (reader) => reader.ustring()],
    [4, (reader) => reader.count(1)],
    [9, (reader) => reader.take(9)],
  ];
  for (const [bytes, read] of reads) {
    // More bytes follow in the same memory: the end that was given is what counts.
    const memory = Buffer.alloc(bytes + 20);
    expect(() => read(new Reader(memory, 5, 5 + bytes))).not.toThrow();
    for (let cut = 0; cut < bytes; cut++) {
      expect(() => read(new Reader(memory, 5, 5 + cut))).toThrow(ProtocolError);
    }
  }
});

test('a length or count below -1 is refused', () => {
  for (const length of [-2, -(2 ** 31)]) {
    const bytes = Buffer.concat([int(length), Buffer.alloc(32)]);
    expect(() => new Reader(bytes).buffer()).toThrow(ProtocolError);
    expect(() => new Reader(bytes).ustring()).toThrow(ProtocolError);
    expect(() => new Reader(bytes).ustringOrNull()).toThrow(ProtocolError);
    expect(() => new Reader(bytes).count(1)).toThrow(ProtocolError);
  }
});

test('a length beyond what is left is refused, and says where', () => {
  const bytes = Buffer.concat([int(0), int(2 ** 31 - 1), Buffer.alloc(8)]);
  const at4 = () => new Reader(bytes, 4);

  expect(() => at4().buffer()).toThrow('cut short: 2147483647 bytes wanted at byte 8, 8 left');
  expect(() => at4().ustring()).toThrow(ProtocolError);
  expect(() => at4().count(1)).toThrow('a vector of 2147483647 items in 8 bytes, at byte 4');
});

test('a count is held against the least that its items take', () => {
  const bytes = Buffer.concat([int(3), Buffer.alloc(12)]);

  expect(new Reader(bytes).count(4)).toBe(3);
  expect(() => new Reader(bytes).count(5)).toThrow(ProtocolError);
  // 2^31-1 items of the largest width there is: the product must not wrap around.
  const many = Buffer.concat([int(2 ** 31 - 1), Buffer.alloc(12)]);
  expect(() => new Reader(many).count(2 ** 31 - 1)).toThrow(ProtocolError);
});

test('null is a buffer, an empty vector and no string', () => {
  expect(new Reader(int(-1)).buffer()).toBeNull();
  expect(new Reader(int(-1)).ustringOrNull()).toBeNull();
  expect(new Reader(int(-1)).count(100)).toBe(0);
  expect(() => new Reader(int(-1)).ustring()).toThrow(ProtocolError);
});

test('bytes left over are refused', () => {
  const reader = new Reader(Buffer.alloc(5));
  reader.int();

  expect(() => reader.finish()).toThrow('1 bytes too many, at byte 4');
  reader.bool();
  expect(() => reader.finish()).not.toThrow();
  expect([reader.at, reader.remaining]).toEqual([5, 0]);
});

test('any byte but 0 is true, as for Java', () => {
  const reader = new Reader(Buffer.of(0, 1, 2, 255));

  expect([reader.bool(), reader.bool(), reader.bool(), reader.bool()]).toEqual([
    false,
    true,
    true,
    true,
  ]);
});

test('bytes that are no UTF-8 read as U+FFFD and not as an error', () => {
  const bytes = Buffer.concat([int(3), Buffer.of(0x61, 0xff, 0x62)]);

  expect(new Reader(bytes).ustring()).toBe('a\ufffdb');
});

test('what is taken from borrowed memory is a copy; from own memory it is not', () => {
  const memory = Buffer.concat([int(2), Buffer.from('ok')]);
  const borrowed = new Reader().reset(memory, 0, memory.length, true).buffer();
  const own = new Reader().reset(memory, 0, memory.length, false).buffer();

  memory.fill(0);

  expect(borrowed?.toString()).toBe('ok');
  expect(own?.toString()).toBe('\0\0');
});

test('a reader that is reset reads the next stretch and no more of it', () => {
  const reader = new Reader(int(1));
  reader.int();

  reader.reset(Buffer.concat([int(7), int(8), int(9)]), 4, 8, false);

  expect(reader.int()).toBe(8);
  expect(() => reader.int()).toThrow(ProtocolError);
});

test('random reads of random bytes end in a value or a ProtocolError, within the bounds given', () => {
  const reads = ['bool', 'int', 'long', 'buffer', 'ustring', 'ustringOrNull'] as const;
  const bytes = fc.uint8Array({ maxLength: 40 });
  // Mostly small numbers, so that lengths often fit and reading goes on.
  const smallLengths = fc
    .array(fc.oneof(fc.integer({ min: -3, max: 9 }).map(int), bytes.map(Buffer.from)))
    .map((parts) => Buffer.concat(parts));
  fc.assert(
    fc.property(
      fc.oneof(bytes.map(Buffer.from), smallLengths),
      fc.array(fc.constantFrom(...reads), { maxLength: 12 }),
      fc.boolean(),
      (memory, sequence, borrowed) => {
        const end = Math.max(0, memory.length - 3);
        const reader = new Reader(memory, 0, end, borrowed);
        try {
          for (const read of sequence) reader[read]();
          reader.count(1);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
        expect(reader.at).toBeLessThanOrEqual(end);
      },
    ),
    { numRuns: 5_000 },
  );
});
