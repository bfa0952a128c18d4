/**
 * Phrases that cost a reader a second reading become fewer, never more. Counted in pages, messages, help and
 * comments; tests are not read by users and are left out. A count that fell is written into test/words.json, so
 * that it cannot rise again: `LOWER_COUNTS=1 npx vitest run --project unit test/words.test.ts` does it.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');

/** Each phrase, and what to say instead. */
const phrases: [phrase: string, instead: string][] = [
  ['\\b(is|are) wanted\\b', '"must be" or "expected"'],
  ['\\bwhoever\\b', 'the client, caller, holder, member or process'],
  ['\\bsomebody\\b', 'the client, caller, holder, member or process'],
  ['\\bunless said\\b', '"by default", or a default in a table'],
  ['\\bat hand\\b', '"current", or nothing'],
  ['\\bof before\\b', '"previous" or "former"'],
  ['told now and then', '"rate-limited"'],
  ['\\bneed not be there\\b', '"may not exist"'],
  ['\\bwho (asks|wants|has|is)\\b', 'the client, caller, holder, member or process that …'],
];

/** How often each phrase may still occur: lower a number, never raise it. */
const limitsFile = join(root, 'test/words.json');
const limits: Record<string, number> = JSON.parse(readFileSync(limitsFile, 'utf8'));

/** What users and contributors read: files below a folder, or directly in it. */
const places: [folder: string, ending: RegExp, isDeep: boolean][] = [
  ['.', /\.md$/, false],
  ['changes', /\.md$/, true],
  ['docs', /\.md$/, true],
  ['examples', /\.(?:[cm]?[jt]s|md|json)$/, true],
  ['scripts', /\.[cm]?[jt]s$/, true],
  ['src', /\.ts$/, true],
  ['web/src', /\.(?:tsx?|css|html)$/, true],
  ['web', /\.html$/, false],
];

function filesOf([folder, ending, isDeep]: (typeof places)[number]): string[] {
  return readdirSync(join(root, folder), { recursive: isDeep, encoding: 'utf8' })
    .filter((name) => ending.test(name) && !/\.test\.|(?:^|[\\/])node_modules[\\/]/.test(name))
    .map((name) => join(root, folder, name));
}

/** The text as it is read: a phrase counts, too, where a comment or a string breaks off in its middle. */
const asRead = (text: string) =>
  text
    .replace(/(['"`])\s*\+\s*\n\s*\1/g, '')
    .replace(/\n[ \t]*(?:\*(?!\/)|\/\/+|>)?[ \t]*/g, ' ')
    .replace(/[ \t]+/g, ' ');

const countIn = (text: string, phrase: string) => text.match(new RegExp(phrase, 'gi'))?.length ?? 0;

const texts = places.flatMap(filesOf).map((file) => ({
  file: relative(root, file).split(sep).join('/'),
  text: asRead(readFileSync(file, 'utf8')),
}));

test.each(phrases)('the phrase %s does not spread: say %s', (phrase, instead) => {
  const limit = limits[phrase]!;
  const counts = texts
    .map(({ file, text }) => ({ file, count: countIn(text, phrase) }))
    .filter(({ count }) => count > 0);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const list = counts.map(({ file, count }) => `${count} ${file}`).join('\n');

  if (total < limit && process.env.LOWER_COUNTS === '1') {
    limits[phrase] = total;
    writeFileSync(limitsFile, `${JSON.stringify(limits, null, 2)}\n`);
    return;
  }
  expect(
    total,
    total > limit
      ? `there are ${total - limit} more of ${phrase} than before: say ${instead}. They are in\n${list}`
      : `there are fewer of ${phrase}: lower its number in test/words.json from ${limit} to ${total}, or run LOWER_COUNTS=1 npx vitest run --project unit test/words.test.ts`,
  ).toBe(limit);
});

test('a phrase is found across the lines of a comment and the parts of a string, whatever its case', () => {
  const found = (text: string, phrase: string) => countIn(asRead(text), phrase);

  expect(found(' * the batch at\n * hand, and At hand', '\\bat hand\\b')).toBe(2);
  expect(found('  // the batch at\n  // hand', '\\bat hand\\b')).toBe(1);
  expect(found("'a number is ' +\n  'wanted'", '\\b(is|are) wanted\\b')).toBe(1);
  expect(found('what hands', '\\bat hand\\b')).toBe(0);
});

test('each phrase has its number', () => {
  expect(Object.keys(limits)).toEqual(phrases.map(([phrase]) => phrase));
});

test('the files to count in were found', () => {
  for (const name of ['README.md', 'docs/client.md', 'src/client/index.ts', 'scripts/ready.mjs']) {
    expect(texts.map(({ file }) => file)).toContain(name);
  }
  expect(texts.length).toBeGreaterThan(400);
});
