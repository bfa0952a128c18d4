import fc from 'fast-check';
import { expect, test } from 'vitest';
import { expression, glob, literal } from './pattern.ts';
import { PatternError } from './pattern-syntax.ts';

// ── agreement with JavaScript ───────────────────────────────────────────────────────────────────

const atoms = fc.constantFrom(
  ...[
    'a',
    'b',
    'ſ',
    'K',
    '_',
    '-',
    '😀',
    '.',
    '\\d',
    '\\W',
    '\\w',
    '\\s',
    '\\.',
    '\\x61',
    '\\u0062',
  ],
  ...[
    '[ab]',
    '[^a]',
    '[a-c_]',
    '[\\d-]',
    '[^\\w😀]',
    '\\p{L}',
    '\\P{Lu}',
    '(?:)',
    '()',
    '\\ud83d\\ude00',
  ],
);
const assertions = fc.constantFrom('^', '$', '\\b', '\\B');
const quantifiers = fc.constantFrom(
  '*',
  '+',
  '?',
  '*?',
  '+?',
  '??',
  '{2}',
  '{0}',
  '{1,}',
  '{0,2}?',
);
const { pattern: patterns } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
  pattern: fc
    .array(fc.array(tie('part'), { maxLength: 3 }), { minLength: 1, maxLength: 2 })
    .map((ways) => ways.map((parts) => parts.join('')).join('|')),
  part: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    atoms,
    assertions,
    fc.tuple(atoms, quantifiers).map((both) => both.join('')),
    fc.tuple(tie('pattern'), fc.oneof(fc.constant(''), quantifiers)).map(([p, q]) => `(${p})${q}`),
  ),
}));
const texts = fc
  .array(fc.constantFrom('a', 'b', 'A', 's', 'k', 'K', '1', '_', '-', ' ', '\n', '😀', '\ud83d'), {
    maxLength: 7,
  })
  .map((chars) => chars.join(''));

test.each([false, true])(
  'a random pattern matches what JavaScript matches, case ignored: %s',
  (ignoreCase) => {
    const flags = ignoreCase ? 'iu' : 'u';
    fc.assert(
      fc.property(patterns, fc.array(texts, { minLength: 1, maxLength: 5 }), (pattern, all) => {
        const part = expression(pattern, { ignoreCase });
        const whole = expression(pattern, { ignoreCase, whole: true });
        const theirs = new RegExp(pattern, flags);
        const theirsWhole = new RegExp(`^(?:${pattern})$`, flags);
        for (const given of all) {
          // V8 also looks for \\B between the two halves of a character, which the standard does not.
          const text = pattern.includes('\\B') ? given.replaceAll(/[\ud83d\ude00]/gu, '') : given;
          expect(part.test(text), `${pattern} in ${text}`).toBe(theirs.test(text));
          expect(whole.test(text), `${pattern} of ${text}`).toBe(theirsWhole.test(text));
        }
      }),
      { numRuns: 2_000 },
    );
  },
);

test('a random glob matches what the same expression matches', () => {
  const globs = fc
    .array(fc.constantFrom('*', '?', 'a', 'b', '.', '[', '(', '-', '\\', '😀'), { maxLength: 8 })
    .map((chars) => chars.join(''));
  fc.assert(
    fc.property(globs, texts, fc.boolean(), (pattern, text, ignoreCase) => {
      const quoted = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&');
      const source = `^${quoted.replaceAll('*', '.*').replaceAll('?', '.')}$`;
      const theirs = new RegExp(source, ignoreCase ? 'isu' : 'su');

      expect(glob(pattern, { ignoreCase }).test(text)).toBe(theirs.test(text));
    }),
    { numRuns: 2_000 },
  );
});

test('a literal is found anywhere, with or without its case', () => {
  expect(literal('a.(-').test('xa.(-y')).toBe(true);
  expect(literal('a.').test('ab')).toBe(false);
  expect(literal('API').test('my-api')).toBe(false);
  expect(literal('API', { ignoreCase: true }).test('my-api')).toBe(true);
  expect(literal('').test('')).toBe(true);
});

// ── linear time ─────────────────────────────────────────────────────────────────────────────────

test('patterns that take a backtracking engine for ever take no time', () => {
  const text = 'a'.repeat(100_000);

  for (const pattern of ['(a+)+b', '(a|a)*b', '(a*)*b', '(.*a){20}b', '(?:a?){300}a{300}b']) {
    expect(expression(pattern).test(text), pattern).toBe(false);
    expect(expression(pattern, { whole: true }).test(text), pattern).toBe(false);
  }
  expect(glob('*a*a*a*a*a*a*b').test(text)).toBe(false);
}, 20_000);

/** As many letters a and b as asked for, without a period. */
function letters(count: number, seed: number): string {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 31 === 0 ? 'a' : 'b';
  };
  return Array.from({ length: count }, next).join('');
}

test('a pattern whose positions multiply stays within its memory and is still right', () => {
  const pattern = expression('a[ab]{40}c');
  const text = letters(20_000, 1);

  expect(pattern.test(text)).toBe(false);
  expect(pattern.test(`${text}a${'b'.repeat(40)}c${text}`)).toBe(true);
});

test('the work of a pattern ends at its limit, over all texts together', () => {
  const pattern = expression('a[ab]{200}c', { stepsMax: 100_000 });
  const all = () => {
    for (let seed = 2; seed < 1_000; seed++) pattern.test(letters(300, seed));
  };

  expect(() => pattern.test(letters(300, 1))).not.toThrow();
  expect(all).toThrow(/too much work/);
  expect(all).toThrow(PatternError);
});

// ── what is refused ─────────────────────────────────────────────────────────────────────────────

test.each([
  ['(a)\\1', /back-reference \(\\1\)/],
  ['(?<n>a)\\k<n>', /back-reference \(\\k\)/],
  ['(?=a)', /look-ahead/],
  ['(?!a)', /look-ahead/],
  ['(?<=a)', /look-behind/],
  ['(?<!a)', /look-behind/],
  ['(?>a)', /atomic group/],
  ['(?i)a', /flags/],
  ['a*+', /possessive/],
  ['a{2}+', /possessive/],
  ['[a-z&&b]', /intersection/],
  ['[a[b]]', /class inside a class/],
  ['[[:alpha:]]', /class inside a class/],
  ['\\Qa\\E', /quotation/],
  ['\\0', /octal/],
  ['\\v', /escape \\v/],
  ['\\z', /escape \\z/],
  ['[\\b]', /escape \\b/],
  ['\\p{IsLatin}', /property \\p\{IsLatin\}/],
  ['[]', /empty class/],
  ['(', /no \)/],
  [')', /no \(/],
  ['[a', /no \]/],
  ['a\\', /nothing after/],
  ['*', /nothing before/],
  ['a**', /nothing before/],
  ['^*', /cannot be repeated/],
  ['a{', /no count/],
  ['a{,2}', /no count/],
  ['a{2,1}', /out of order/],
  ['[b-a]', /out of order/],
  ['[\\d-z]', /both ends/],
  ['a{1001}', /more than 1000 times/],
  ['((a{1000}){1000}){1000}', /too large/],
  ['(((){1000}){1000}){1000}', /too large/],
  ['('.repeat(101) + ')'.repeat(101), /nested/],
  ['a'.repeat(10_001), /10001 characters/],
])('%s is refused by name', (pattern, why) => {
  expect(() => expression(pattern)).toThrow(why);
  expect(() => expression(pattern)).toThrow(PatternError);
});

test('what JavaScript alone refuses and Java takes is text: a dash, a colon, a closing bracket', () => {
  expect(expression('api\\-v1\\:a]b}').test('api-v1:a]b}')).toBe(true);
  expect(expression('[a\\-z]').test('-')).toBe(true);
});
