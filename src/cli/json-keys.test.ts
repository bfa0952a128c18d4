import { expect, test } from 'vitest';
import { keyValue, setAt, valueAt } from './json-keys.ts';

const data = (value: unknown, indent?: number) => Buffer.from(JSON.stringify(value, null, indent));

test('a value is found by its keys, through objects and lists', () => {
  const doc = data({ a: { b: [10, { 'c.d': 'x' }] }, n: null });

  expect(valueAt(doc, 'a.b.0', '/p')).toBe(10);
  expect(valueAt(doc, 'a.b[1].c\\.d', '/p')).toBe('x');
  expect(valueAt(doc, 'n', '/p')).toBeNull();
  expect(() => valueAt(doc, 'a.none', '/p')).toThrow('/p has no a.none');
  expect(() => valueAt(doc, 'n.x', '/p')).toThrow('has no n.x');
  expect(() => valueAt(Buffer.from('{'), 'a', '/p')).toThrow('no JSON');
});

test('what every object inherits is no value of the document', () => {
  expect(() => valueAt(data({}), 'constructor', '/p')).toThrow('has no');
  expect(() => valueAt(data({}), '__proto__', '/p')).toThrow('has no');
});

test('a value is set where it is, or made with what is missing above it, and the indent stays', () => {
  expect(JSON.parse(setAt(data({ a: 1 }), 'b.c', true, '/p'))).toEqual({ a: 1, b: { c: true } });
  expect(JSON.parse(setAt(data([1, 2]), '1', 'x', '/p'))).toEqual([1, 'x']);
  expect(setAt(data({ a: 1 }, 2), 'a', 2, '/p')).toBe('{\n  "a": 2\n}');
  expect(setAt(null, 'a', 1, '/p')).toBe('{"a":1}');
  expect(() => setAt(data({ a: 1 }), 'a.b', 2, '/p')).toThrow('neither object nor list');
});

test('setting __proto__ changes a key and no prototype', () => {
  const text = setAt(data({}), '__proto__.polluted', 1, '/p');

  expect(text).toBe('{"__proto__":{"polluted":1}}');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test('values are JSON where they are JSON, else text', () => {
  expect(keyValue('a=1')).toEqual({ keys: 'a', value: 1 });
  expect(keyValue('a=b=c')).toEqual({ keys: 'a', value: 'b=c' });
  expect(keyValue('a={"x":[]}')).toEqual({ keys: 'a', value: { x: [] } });
  expect(keyValue('a=')).toEqual({ keys: 'a', value: '' });
  expect(keyValue('a.b', '2')).toEqual({ keys: 'a.b', value: 2 });
  expect(() => keyValue('a')).toThrow('key=value is wanted');
  expect(() => keyValue('a=1', '2')).toThrow('one value is wanted');
});
