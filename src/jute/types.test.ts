import { inspect } from 'node:util';
import { expect, expectTypeOf, test, vi } from 'vitest';
import { decode, encode } from './codec.ts';
import { ProtocolError } from './protocol-error.ts';
import { Reader } from './reader.ts';
import {
  bool,
  buffer,
  fixedRecord,
  type Infer,
  int,
  long,
  record,
  type Type,
  ustring,
  ustringOrNull,
  vector,
} from './types.ts';
import { Writer } from './writer.ts';

const Point = fixedRecord('Point', { x: int, at: long, real: bool });
const Line = record('Line', { name: ustring, points: vector(Point), note: ustringOrNull });

const point = { x: -5, at: 2n ** 62n, real: true };
const pointBytes = Buffer.from('fffffffb' + '4000000000000000' + '01', 'hex');

test('a record is its fields in their order, with nothing between', () => {
  const bytes = encode(Line, { name: 'l', points: [point], note: null });

  expect(bytes.toString('hex')).toBe(`000000016c00000001${pointBytes.toString('hex')}ffffffff`);
});

test('the type of a record follows from its fields', () => {
  expectTypeOf<Infer<typeof Line>>().toEqualTypeOf<{
    readonly name: string;
    readonly points: { readonly x: number; readonly at: bigint; readonly real: boolean }[];
    readonly note: string | null;
  }>();
});

test('a record reads as a plain object whose keys are the fields', () => {
  const read = decode(Line, encode(Line, { name: 'l', points: [], note: 'n' }));

  expect(read).toEqual({ name: 'l', points: [], note: 'n' });
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
});

test('names that mean something to JavaScript are names like any other', () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', ''];
  const List = record('List', { names: vector(ustring) });

  const read = decode(List, encode(List, { names }));

  expect(read.names).toEqual(names);
  expect(({} as Record<string, unknown>).names).toBeUndefined();
});

test('widths are known where they are fixed, and the least of them where not', () => {
  expect([Point.width, Point.widthMin]).toEqual([13, 13]);
  expect([Line.width, Line.widthMin]).toEqual([undefined, 12]);
  expect(record('Nothing', {}).widthMin).toBe(0);
});

test('a fixed record is decoded when it is looked at, field by field, and not before', () => {
  const readLong = vi.spyOn(Buffer.prototype, 'readBigInt64BE');

  const read = decode(Point, pointBytes);
  expect(read.x).toBe(-5);
  expect(read.real).toBe(true);
  expect(readLong).not.toHaveBeenCalled();

  expect(read.at).toBe(2n ** 62n);
  expect(readLong).toHaveBeenCalledOnce();
  readLong.mockRestore();
});

test('a fixed record shows itself as its values: to a caller, to JSON, to the console', () => {
  const read = decode(Point, pointBytes);

  expect(read.toObject()).toEqual(point);
  expect(JSON.stringify(read)).toBe('{"x":-5,"at":"4611686018427387904","real":true}');
  expect(inspect(read)).toBe(inspect(point));
  expect(inspect({ nested: [read] })).toBe(inspect({ nested: [point] }));
});

test('a fixed record read from borrowed memory outlives it', () => {
  const memory = Buffer.from(pointBytes);
  const read = Point.read(new Reader(memory, 0, memory.length, true));

  memory.fill(0);

  expect(read.toObject()).toEqual(point);
});

test('a fixed record writes what it read, and another record of the same fields takes its values', () => {
  const Reversed = fixedRecord('Reversed', { real: bool, at: long, x: int });
  const read = decode(Point, pointBytes);
  const readLong = vi.spyOn(Buffer.prototype, 'readBigInt64BE');

  expect(encode(Point, read)).toEqual(pointBytes);
  expect(readLong).not.toHaveBeenCalled();
  readLong.mockRestore();
  expect(encode(Point, point)).toEqual(pointBytes);
  expect(decode(Reversed, encode(Reversed, read)).toObject()).toEqual(point);
});

test('the extremes of a long come through a fixed record', () => {
  for (const at of [-(2n ** 63n), -1n, 0n, 2n ** 63n - 1n]) {
    expect(decode(Point, encode(Point, { ...point, at })).at).toBe(at);
  }
});

test('a field without a fixed width has no place in a fixed record', () => {
  expect(() => fixedRecord('Wrong', { name: ustring })).toThrow('Wrong.name has no fixed width');
  expect(() => fixedRecord('Wrong', { nested: Point })).toThrow("can't stand in a fixed-width");
});

test('a null vector reads as an empty one', () => {
  const bytes = Buffer.from('ffffffff', 'hex');

  expect(decode(vector(int), bytes)).toEqual([]);
  expect(encode(vector(int), []).toString('hex')).toBe('00000000');
});

test('a vector that promises more than there is allocates nothing', () => {
  const bytes = Buffer.concat([Buffer.from('7fffffff', 'hex'), Buffer.alloc(64)]);

  for (const item of [int, ustring, Point, Line] as Type<unknown>[]) {
    expect(() => decode(vector(item), bytes)).toThrow(ProtocolError);
  }
});

test('items that take no bytes make no vector, as no count of them could be held against anything', () => {
  expect(() => vector(record('Nothing', {}))).toThrow('Nothing');
});

test('null, empty and filled buffers are told apart', () => {
  for (const value of [null, Buffer.alloc(0), Buffer.of(1, 2)]) {
    expect(decode(buffer, encode(buffer, value))).toEqual(value);
  }
});

test('decoding takes the whole of its bytes', () => {
  expect(() => decode(int, Buffer.alloc(5))).toThrow(ProtocolError);
  expect(() => decode(int, Buffer.alloc(3))).toThrow(ProtocolError);
});

test('a type writes behind what is there and reads from where the reader stands', () => {
  const writer = new Writer();
  writer.int(1);
  Line.write(writer, { name: 'l', points: [point, point], note: null });
  writer.int(2);

  const reader = new Reader(writer.written());
  reader.int();
  const line = Line.read(reader);

  expect(line.points.map(({ x }) => x)).toEqual([-5, -5]);
  expect(reader.int()).toBe(2);
  reader.finish();
});
