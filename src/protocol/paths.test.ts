import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { childOf, isWithin, nameOf, parentOf, pathFault, sequenceSuffix } from './paths.ts';

/** The rules once more, as a pattern over names. */
function isLegal(path: string): boolean {
  const name =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what the rule names
    /^(?!\.{1,2}$)[^/\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]+$/;
  return (
    path === '/' ||
    (path[0] === '/' &&
      path
        .slice(1)
        .split('/')
        .every((each) => name.test(each)))
  );
}

const edges = [
  0, 1, 0x1f, 0x20, 0x7e, 0x7f, 0x9f, 0xa0, 0xd7ff, 0xd800, 0xdfff, 0xf8ff, 0xf900, 0xffef, 0xfff0,
  0xffff,
];
const nasty = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom('/', '.', 'a', '..') },
      { weight: 1, arbitrary: fc.constantFrom(...edges).map((unit) => String.fromCharCode(unit)) },
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));
const path = nasty.map((tail) => `/${tail}`).filter(isLegal);

describe('a path is legal', () => {
  test.each([
    '/',
    '/a',
    '/a/b',
    '/.a',
    '/a.',
    '/...',
    '/..a',
    '/a..b/..c',
    '/ ',
    '/__proto__',
    '/\u00a0',
    '/\ud7ff',
    '/\uf900',
    '/\uffef',
    '/zookeeper/config',
  ])('%j', (legal) => {
    expect(pathFault(legal)).toBeNull();
  });

  test('with names of any length', () => {
    expect(pathFault(`/${'x'.repeat(2 ** 20)}`)).toBeNull();
  });
});

describe('a path is refused, with the reason', () => {
  test.each([
    ['', 'must not be empty'],
    ['a', 'must start with /'],
    [' /a', 'must start with /'],
    ['//', 'must not end with /'],
    ['/a/', 'must not end with /'],
    ['//a', 'no empty name, at character 1'],
    ['/a//b', 'no empty name, at character 3'],
    ['/.', '"." is no name, at character 1'],
    ['/a/.', '"." is no name, at character 3'],
    ['/./a', '"." is no name'],
    ['/..', '".." is no name, at character 1'],
    ['/a/../b', '".." is no name, at character 3'],
    ['/a\0', 'U+0000 is not allowed, at character 2'],
    ['/\n', 'U+000A'],
    ['/\u007f', 'U+007F'],
    ['/\u009f', 'U+009F'],
    ['/\ud800', 'U+D800'],
    ['/\u{1f600}', 'U+D83D'],
    ['/\uf8ff', 'U+F8FF'],
    ['/\ufff0', 'U+FFF0'],
    ['/\uffff', 'U+FFFF'],
  ])('%j: %s', (illegal, reason) => {
    expect(pathFault(illegal)).toContain(reason);
  });

  test('just when the pattern does not fit', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nasty,
          nasty.map((tail) => `/${tail}`),
        ),
        (any) => {
          expect(pathFault(any) === null).toBe(isLegal(any));
        },
      ),
      { numRuns: 5_000 },
    );
  });
});

describe('walking', () => {
  test('a parent and a name make up the path', () => {
    fc.assert(
      fc.property(path, (any) => {
        const parent = parentOf(any);
        if (parent === null) {
          expect(any).toBe('/');
          return;
        }
        expect(childOf(parent, nameOf(any))).toBe(any);
        expect(pathFault(parent)).toBeNull();
        expect(isWithin(any, parent)).toBe(true);
        expect(isWithin(parent, any)).toBe(false);
      }),
    );
  });

  test('the root has no parent and is no name', () => {
    expect(parentOf('/')).toBeNull();
    expect(nameOf('/')).toBe('');
    expect(childOf('/', 'a')).toBe('/a');
  });

  test('a path is within itself and what is above it, and not within what its name starts with', () => {
    expect(isWithin('/a/b', '/a/b')).toBe(true);
    expect(isWithin('/a/b/c', '/a')).toBe(true);
    expect(isWithin('/a', '/')).toBe(true);
    expect(isWithin('/', '/')).toBe(true);
    expect(isWithin('/ab', '/a')).toBe(false);
    expect(isWithin('/', '/a')).toBe(false);
  });
});

describe('the suffix of a sequential create', () => {
  test.each([
    [0, '0000000000'],
    [7, '0000000007'],
    [999_999_999, '0999999999'],
    [2 ** 31 - 1, '2147483647'],
    [-1, '-000000001'],
    [-(2 ** 31), '-2147483648'],
  ])('of %i is %s', (counter, suffix) => {
    expect(sequenceSuffix(counter)).toBe(suffix);
  });

  test('wraps around with the counter, which has 32 bits', () => {
    expect(sequenceSuffix(2 ** 31)).toBe('-2147483648');
    expect(sequenceSuffix(2 ** 32)).toBe('0000000000');
  });
});
