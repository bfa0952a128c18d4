import fc from 'fast-check';
import { expect, test } from 'vitest';
import { quotedWord, tokens } from './tokens.ts';

// What Java's pattern in ZooKeeperMain makes of each, run on a JVM.
test.each([
  ['ls /', ['ls', '/']],
  ['  create   /a\tb  ', ['create', '/a', 'b']],
  [`set /a "two words"`, ['set', '/a', 'two words']],
  [`set /a 'say "yes"'`, ['set', '/a', 'say "yes"']],
  [`set /a it's`, ['set', '/a', "it's"]],
  [`set /a a"b c"`, ['set', '/a', 'a"b', 'c"']],
  [`set /a ""`, ['set', '/a', '']],
  [`set /a "never closed`, ['set', '/a', 'never', 'closed']],
  [`set /a "a""b"`, ['set', '/a', 'a', 'b']],
  [`set /a "it's"`, ['set', '/a', "it's"]],
  ['set /a a\\ b', ['set', '/a', 'a\\', 'b']],
  ['set /a a\u00a0b', ['set', '/a', 'a\u00a0b']],
  ['', []],
])('%s is the words that zkCli makes of it', (line, words) => {
  expect(tokens(line)).toEqual(words);
});

test('what can be written as a word comes back as it was', () => {
  const word = fc.string({ unit: 'grapheme' }).filter((text) => {
    const isBoth = text.includes('"') && text.includes("'");
    return !/[\n\r\v\f]/.test(text) && !isBoth;
  });

  fc.assert(
    fc.property(word, (text) => {
      expect(tokens(`set ${quotedWord(text)} x`)).toEqual(['set', text, 'x']);
    }),
  );
});
