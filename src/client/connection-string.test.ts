import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ArgumentError } from '../support/index.ts';
import { hostText, parseServers } from './connection-string.ts';

test.each([
  ['localhost', [['localhost', 2181]], ''],
  ['localhost:2182', [['localhost', 2182]], ''],
  [
    'a:1,b:65535,c',
    [
      ['a', 1],
      ['b', 65_535],
      ['c', 2181],
    ],
    '',
  ],
  [
    ' a:1 , b:2 ,',
    [
      ['a', 1],
      ['b', 2],
    ],
    '',
  ],
  ['10.0.0.1:2181/', [['10.0.0.1', 2181]], ''],
  ['a/app', [['a', 2181]], '/app'],
  [
    'a:1,b:2/app/one',
    [
      ['a', 1],
      ['b', 2],
    ],
    '/app/one',
  ],
  ['[::1]:2182', [['::1', 2182]], ''],
  ['[fe80::1%eth0]', [['fe80::1%eth0', 2181]], ''],
  ['::1', [['::1', 2181]], ''],
  [
    '2001:db8::1,[2001:db8::2]:99/x',
    [
      ['2001:db8::1', 2181],
      ['2001:db8::2', 99],
    ],
    '/x',
  ],
  ['a/__proto__', [['a', 2181]], '/__proto__'],
] as const)('%j names its hosts and its chroot', (text, hosts, chroot) => {
  const servers = parseServers(text);

  expect(servers.hosts).toEqual(hosts.map(([name, port]) => ({ name, port })));
  expect(servers.chroot).toBe(chroot);
});

test.each([
  [undefined, /a string such as .* is wanted, not undefined/],
  [{ host: 'a' }, /a string such as .* is wanted, not object/],
  ['', /no host is named/],
  [',, ,', /no host is named/],
  ['/app', /no host is named/],
  [':2181', /":2181" names no host/],
  ['a:', /"a:" has no port between 1 and 65535/],
  ['a:0', /"a:0" has no port between 1 and 65535/],
  ['a:65536', /between 1 and 65535/],
  ['a:-1', /between 1 and 65535/],
  ['a:1e3', /between 1 and 65535/],
  ['[::1]:x', /between 1 and 65535/],
  ['[::1', /"\[::1" is neither/],
  ['a:1:2', /"a:1:2" is neither/],
  ['a b:1', /"a b:1" is neither/],
  ['zk://a:1', /the chroot \/\/a:1 is not a path/],
  ['a/app/', /the chroot \/app\/ is not a path: .* must not end with \//],
  ['a//b', /the chroot .* is not a path/],
  ['a/../b', /".." is no name/],
])('%j is refused, saying why', (text, why) => {
  const parse = () => parseServers(text as string);

  expect(parse).toThrow(ArgumentError);
  expect(parse).toThrow(/^servers: /);
  expect(parse).toThrow(why);
});

test('whatever is thrown in, the answer is hosts or an ArgumentError', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab1:,[]/. %\u0000') }), (text) => {
      try {
        const { hosts, chroot } = parseServers(text);
        expect(hosts.length).toBeGreaterThan(0);
        expect(chroot === '' || chroot.startsWith('/')).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(ArgumentError);
      }
    }),
  );
});

test('a host is written so that it can be read again', () => {
  for (const text of ['a:1', '[::1]:2181', '127.0.0.1:65535']) {
    expect(hostText(parseServers(text).hosts[0]!)).toBe(text);
  }
});
