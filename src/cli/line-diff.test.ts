import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diffData, diffLines } from './line-diff.ts';

test('lines that went and came are told, in their order', () => {
  expect(diffLines(['a', 'b', 'c'], ['a', 'x', 'c', 'd'])).toEqual([
    { sign: '-', text: 'b' },
    { sign: '+', text: 'x' },
    { sign: '+', text: 'd' },
  ]);
  expect(diffLines(['same'], ['same'])).toEqual([]);
});

test('taking what went and adding what came leads from one to the other', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 20 });

  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const changes = diffLines(before, after);
      const count = (list: readonly string[], sign: string, text: string) =>
        list.filter((each) => each === text).length +
        changes.filter((change) => change.sign === sign && change.text === text).length;
      for (const text of ['a', 'b', 'c', 'd']) {
        expect(count(before, '+', text)).toBe(count(after, '-', text));
      }
    }),
  );
});

test('long texts and binary data are bounded, and escaped', () => {
  const long = Array.from({ length: 5_000 }, (_, i) => `line ${i}`).join('\n');
  const other = long.replaceAll('line', 'other');

  expect(diffData(Buffer.from(long), Buffer.from(other))).toEqual(['- 5000 lines', '+ 5000 lines']);
  expect(diffData(Buffer.from([255]), Buffer.from('x'))).toEqual(['- 0xff', '+ x']);
  expect(diffData(Buffer.from('a'), Buffer.from('\x1b[2J'))).toEqual(['- a', '+ \\u001b[2J']);
  expect(diffData(Buffer.from('a'), Buffer.from('b'.repeat(10_000)))[1]!.length).toBeLessThan(250);
  expect(diffData(Buffer.from('a'), Buffer.from('a'))).toEqual([]);
  expect(diffData(null, Buffer.from('a'))).toEqual(['- -', '+ a']);
});
