import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parentOf, pathFault } from '../protocol/index.ts';
import { pathHash } from './path-hash.ts';
import { PlainPath } from './plain-path.ts';

const odd = fc.constantFrom('.', '..', '.a', 'a.', '', 'é', 'a\0', '\u001f', '\u007f', 'a b', '~');
const usual = fc.constantFrom('a', 'app', 'members', 'n-0000000001', '~x');
const names = fc.array(fc.oneof(usual, usual, fc.string({ minLength: 1, maxLength: 8 }), odd), {
  maxLength: 5,
});
const paths = fc
  .tuple(fc.constantFrom('/', '', '//'), names)
  .map(([front, parts]) => front + parts.join('/'));

test('a plain path is legal, and its hashes are those of the path and of the one above it', () => {
  let plain = 0;
  fc.assert(
    fc.property(paths, (path) => {
      const read = new PlainPath();
      if (!read.read(path)) return;
      plain += 1;
      expect(pathFault(path)).toBeNull();
      expect(read.slash).toBe(path.lastIndexOf('/'));
      expect(read.hash).toBe(pathHash(path));
      expect(read.parentHash).toBe(pathHash(parentOf(path)!));
    }),
    { numRuns: 5_000 },
  );
  expect(plain).toBeGreaterThan(500);
});

test.each(['/a', '/a/b', '/app/members/n-0000000001', '/a.b/c-d_e~ f'])('%s is plain', (path) => {
  expect(new PlainPath().read(path)).toBe(true);
});

test.each([
  ['', 'nothing'],
  ['/', 'the root'],
  ['a/b', 'no slash in front'],
  ['/a/', 'a slash at the end'],
  ['/a//b', 'an empty name'],
  ['//a', 'an empty name in front'],
  ['/a/./b', 'a dot'],
  ['/a/..', 'two dots'],
  ['/.a', 'a dot in front of a name'],
  ['/a\0b', 'a zero'],
  ['/a\nb', 'a line end'],
  ['/a\u007fb', 'a delete'],
  ['/é', 'more than ASCII'],
])('%j is left to others: %s', (path) => {
  expect(new PlainPath().read(path)).toBe(false);
});
