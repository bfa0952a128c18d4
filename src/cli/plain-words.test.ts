import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commands } from './commands.ts';
import { nameOf, normalised, optionsOf, parseByCommander } from './parse.ts';
import { readPlainWords } from './plain-words.ts';

const all = Object.values(commands).filter(({ passesThrough }) => !passesThrough);

function plainOf(command: (typeof all)[number], tokens: readonly string[]) {
  const { own, shared } = optionsOf(command);
  return readPlainWords(command.usage, [...own, ...shared], normalised(tokens, command));
}

test('plain words mean what commander makes of them, for every command', () => {
  const words = [
    '/a',
    'b',
    '',
    '-',
    '--',
    '-1',
    '-sR',
    '--json=x',
    '--nonsense',
    '-v7',
    '--help',
    'a b',
  ];
  let understood = 0;
  for (const command of all) {
    const { own, shared } = optionsOf(command);
    const flags = [...own, ...shared].flatMap((option) => option.flags.match(/--?[\w-]+/g) ?? []);
    const tokens = fc.array(fc.constantFrom(...words, '/a', '/b', 'c', ...flags), { maxLength: 6 });
    fc.assert(
      fc.property(tokens, (given) => {
        const plain = plainOf(command, given);
        if (plain === undefined) return;
        understood += 1;
        expect(plain, `${nameOf(command)} ${given.join(' ')}`).toEqual(
          parseByCommander(command, given),
        );
      }),
      { numRuns: 60 },
    );
  }
  expect(understood).toBeGreaterThan(100);
});

test.each([
  ['ls', ['/'], ['/'], {}],
  ['ls', ['--server', 'h:1', '-s', '/a', '--json'], ['/a'], { server: 'h:1', s: true, json: true }],
  ['ls', ['-server', 'h:1'], [], { server: 'h:1' }],
  ['get', ['/a', '--session-timeout', '-5'], ['/a'], { sessionTimeout: '-5' }],
  ['ls', ['--auth', 'a:b', '--auth', 'c:d'], [], { auth: ['a:b', 'c:d'] }],
  ['mirror', ['/a', '/b', '--no-acl'], ['/a', '/b'], { acl: false }],
  ['mirror', ['/a', '/b'], ['/a', '/b'], { acl: true }],
] as const)('%s %j is read without commander', (name, tokens, args, options) => {
  const plain = plainOf(commands[name]!, tokens);

  expect(plain?.args).toEqual(args);
  expect(plain?.options).toEqual({ auth: [], ...options });
});

test.each([
  ['ls', ['-sR', '/']],
  ['ls', ['/', '--server']],
  ['ls', ['/', 'watch', 'more']],
  ['get', []],
  ['get', ['/a', '--json=yes']],
  ['get', ['-h']],
] as const)('%s %j is left to commander', (name, tokens) => {
  expect(plainOf(commands[name]!, tokens)).toBeUndefined();
});
