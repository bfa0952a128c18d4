import { expect, test } from 'vitest';
import { compareNames } from './diff-side.ts';
import { resolvePath } from './paths.ts';

test.each([
  ['/a', undefined, '/a'],
  ['/a', '', '/a'],
  ['/a', 'b', '/a/b'],
  ['/a', '/b', '/b'],
  ['/a', '..', '/'],
  ['/a', '../..', '/'],
  ['/a/b', '../c/./d', '/a/c/d'],
  ['/', 'a/', '/a'],
  ['/', '/a/', '/a'],
  ['/', '/', '/'],
  ['/', '.', '/'],
  ['/', '/a/../b', '/b'],
  ['/', '/...', '/...'],
  ['/', '/a.b/.c', '/a.b/.c'],
])('from %s, %s is %s', (cwd, text, path) => {
  expect(resolvePath(cwd, text)).toBe(path);
});

test('a slash at the end stays where a sequential name follows it', () => {
  expect(resolvePath('/', '/q/', true)).toBe('/q/');
  expect(resolvePath('/a', 'q/', true)).toBe('/a/q/');
  expect(resolvePath('/a', '/', true)).toBe('/');
});

test('names are compared one by one, as trees are walked', () => {
  const walked = ['', 'a', 'a/b', 'a/b/c', 'a-', 'a.b', 'ab'];

  // '-' and '.' stand before '/' in the alphabet, and yet a/b belongs to a.
  expect([...walked].reverse().sort(compareNames)).toEqual(walked);
  expect(compareNames('', 'a')).toBeLessThan(0);
  expect(compareNames('a', 'a')).toBe(0);
});
