import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ttlMaxMs } from '../protocol/index.ts';
import { ArgumentError } from '../support/index.ts';
import {
  checkAcl,
  checkCount,
  checkData,
  checkPath,
  checkSequentialPath,
  checkTtl,
  checkVersion,
} from './arguments.ts';

const world = { scheme: 'world', id: 'anyone' };
const lone = '\ud800';

test.each<[string, () => unknown, RegExp]>([
  ['a path that is no string', () => checkPath(7), /^path: a string is wanted, not 7/],
  ['a path that is null', () => checkPath(null), /^path: a string is wanted, not null/],
  ['a String object', () => checkPath(new String('/a')), /not an object \(String\)/],
  ['an empty path', () => checkPath(''), /^path: a path must not be empty/],
  ['a relative path', () => checkPath('a/b'), /must start with \/: "a\/b"/],
  ['a slash at the end', () => checkPath('/a/'), /must not end with \//],
  ['an empty name', () => checkPath('/a//b'), /must have no empty name/],
  ['a dot', () => checkPath('/a/.'), /"\." is no name/],
  ['two dots', () => checkPath('/../a'), /"\.\." is no name/],
  ['a NUL', () => checkPath('/a\u0000b'), /U\+0000 is not allowed, at character 2/],
  ['a lone surrogate', () => checkPath(`/a${lone}`), /U\+D800 is not allowed/],
  ['an astral character, as Java refuses it', () => checkPath('/😀'), /U\+D83D is not allowed/],
  [
    'a long bad name, cut in the message',
    () => checkPath(`/${'x'.repeat(2 ** 20)}/`),
    /^.{1,600}$/,
  ],
  ['another argument, by its name', () => checkPath('x', 'prefix'), /^prefix: /],
  ['a sequential path with a bad parent', () => checkSequentialPath('/a//'), /no empty name/],
  ['a sequential path that is no string', () => checkSequentialPath({}), /an object \(Object\)/],
  ['a version that is text', () => checkVersion('1'), /^version: a 32-bit integer .* not "1"/],
  ['a version that is NaN', () => checkVersion(Number.NaN), /not NaN/],
  ['a version that is null', () => checkVersion(null), /^version: .* not null/],
  ['a fraction of a version', () => checkVersion(1.5), /not 1\.5/],
  ['a version past 32 bits', () => checkVersion(2 ** 31), /not 2147483648/],
  ['a version below 32 bits', () => checkVersion(-(2 ** 31) - 1), /not -2147483649/],
  ['an infinite version', () => checkVersion(Number.POSITIVE_INFINITY), /not Infinity/],
  ['a bigint version', () => checkVersion(1n), /not 1n/],
  ['data that is an object', () => checkData({ a: 1 }), /^data: .*an object \(Object\); encode it/],
  ['data that has no prototype', () => checkData(Object.create(null)), /an object \(no class\)/],
  ['data that is a number', () => checkData(5), /^data: .* not 5/],
  ['data that is a list', () => checkData([1, 2]), /not a list/],
  ['data that is an ArrayBuffer', () => checkData(new ArrayBuffer(1)), /an object \(ArrayBuffer\)/],
  ['text that is not well-formed', () => checkData(`a${lone}`), /^data: .*well-formed/],
  ['an ACL that is no list', () => checkAcl(world), /^acl: a list of at least one entry/],
  ['an ACL that is null', () => checkAcl(null), /^acl: .* not null/],
  ['an empty ACL', () => checkAcl([]), /^acl: .* not an empty list/],
  ['a hole in an ACL', () => checkAcl([undefined]), /^acl\[0\]\.perms: 0 to 31 is wanted/],
  ['perms that are text', () => checkAcl([{ perms: 'r', id: world }]), /^acl\[0\]\.perms: .* "r"/],
  ['perms past all', () => checkAcl([{ perms: 32, id: world }]), /^acl\[0\]\.perms: .* not 32/],
  ['an entry without id', () => checkAcl([{ perms: 1 }]), /^acl\[0\]\.id\.scheme: .* undefined/],
  [
    'the second entry, by its number',
    () =>
      checkAcl([
        { perms: 1, id: world },
        { perms: 1, id: { scheme: 'ip', id: 4 } },
      ]),
    /^acl\[1\]\.id\.id: .* not 4/,
  ],
  [
    'an id that is not well-formed',
    () => checkAcl([{ perms: 1, id: { scheme: 'digest', id: lone } }]),
    /^acl\[0\]\.id\.id: well-formed/,
  ],
  ['no TTL', () => checkTtl(undefined), /^ttlMs: .* not undefined/],
  ['a TTL of 0', () => checkTtl(0), /^ttlMs: whole milliseconds from 1 .* not 0/],
  ['a TTL past five bytes', () => checkTtl(Number(ttlMaxMs) + 1), /^ttlMs: /],
  ['a TTL that is a bigint', () => checkTtl(5n), /not 5n/],
  ['a count that is NaN', () => checkCount('inFlightMax', Number.NaN), /^inFlightMax: .* not NaN/],
  ['a count of 0', () => checkCount('inFlightMax', 0), /at least 1 is wanted, not 0/],
  ['a function', () => checkVersion(() => 1), /not a function/],
  ['a symbol', () => checkPath(Symbol('/a')), /not a symbol/],
])('%s is refused, naming the argument and why', (_, check, why) => {
  expect(check).toThrow(ArgumentError);
  expect(check).toThrow(why);
});

test('what it says of bad input can be printed, whatever the input was', () => {
  fc.assert(
    fc.property(fc.anything(), fc.string({ unit: 'binary' }), (any, text) => {
      const checks: readonly ((value: unknown) => unknown)[] = [
        checkPath,
        checkVersion,
        checkData,
        checkAcl,
        checkTtl,
      ];
      for (const check of checks) {
        for (const value of [any, text]) {
          try {
            check(value);
          } catch (error) {
            expect(error).toBeInstanceOf(ArgumentError);
            expect((error as Error).message).not.toMatch(
              // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
              /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/,
            );
            expect((error as Error).message.length).toBeLessThan(1_000);
          }
        }
      }
    }),
    { seed: 1 },
  );
});

test('names that are special to JavaScript are names like any other', () => {
  for (const path of ['/__proto__', '/constructor/prototype', '/toString', '/a/hasOwnProperty']) {
    expect(() => checkPath(path)).not.toThrow();
  }
});

test('a name of a mebibyte is a name: what is too long for a frame is found out when it is sent', () => {
  expect(() => checkPath(`/${'n'.repeat(2 ** 20)}`)).not.toThrow();
});

test('a sequential name may be empty or end in a slash, as the number follows', () => {
  for (const path of ['/', '/a/', '/a/lock-', '/a/.']) {
    expect(() => checkSequentialPath(path)).not.toThrow();
  }
});

test('what is good comes back as it goes on the wire', () => {
  const bytes = new Uint8Array([9, 1, 2, 9]).subarray(1, 3);
  const acl = [{ perms: 31, id: world }];

  expect([checkVersion(undefined), checkVersion(-1), checkVersion(2 ** 31 - 1)]).toEqual([
    -1,
    -1,
    2 ** 31 - 1,
  ]);
  expect(checkData(null)).toBeNull();
  expect(checkData(undefined)).toEqual(Buffer.alloc(0));
  expect(checkData('é😀')).toEqual(Buffer.from('é😀'));
  expect(checkData(bytes)).toEqual(Buffer.from([1, 2]));
  expect(checkAcl(undefined)).toEqual([{ perms: 31, id: world }]);
  expect(checkAcl(acl)).toBe(acl);
  expect([checkTtl(1), checkTtl(Number(ttlMaxMs))]).toEqual([1n, ttlMaxMs]);
});
