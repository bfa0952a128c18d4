/** The files below changes/ have the form that the release reads; changes/README.md describes it. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'changes');
const kinds = ['added', 'changed', 'deprecated', 'removed', 'fixed', 'security'];
const rooms = [...readdirSync(join(root, 'src')), 'package', 'docs'];
const wordsMax = 60;

/** What is wrong with a file below changes/, in sentences. */
function faultsOf(name: string, text: string): string[] {
  const faults: string[] = [];
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*\.md$/.test(name)) {
    faults.push('the name must be lower-case words joined by "-", and end in .md');
  }
  const parts = /^---\nkind: (.*)\nroom: (.*)\n---\n\n([\s\S]+)$/.exec(text);
  if (parts === null) return [...faults, 'must begin with ---, kind, room, --- and an empty line'];
  const [, kind = '', room = '', body = ''] = parts;
  if (!kinds.includes(kind)) faults.push(`kind must be one of ${kinds.join(', ')}, got "${kind}"`);
  if (!rooms.includes(room)) faults.push(`room must be one of ${rooms.join(', ')}, got "${room}"`);
  const sentence = body.trim();
  if (sentence.includes('\n\n')) faults.push('must be one paragraph');
  if (/^[#*-] /.test(sentence)) faults.push('must be plain text, not a heading or a list');
  if (!sentence.endsWith('.')) faults.push('must end with a full stop');
  if (!body.endsWith('\n')) faults.push('must end with a line feed');
  const words = sentence.split(/\s+/).length;
  if (words > wordsMax) faults.push(`must have ${wordsMax} words at most, has ${words}`);
  return faults;
}

test('every file below changes/ has the form of its README', () => {
  const files = readdirSync(folder).filter((name) => name !== 'README.md');
  const faults = files.flatMap((name) =>
    faultsOf(name, readFileSync(join(folder, name), 'utf8')).map((fault) => `${name}: ${fault}`),
  );

  expect(faults).toEqual([]);
});

test('the example in changes/README.md has the right form', () => {
  const readme = readFileSync(join(folder, 'README.md'), 'utf8');
  const example = /```md\n([\s\S]*?)```/.exec(readme)?.[1];

  expect(faultsOf('delete-container-acl.md', example!)).toEqual([]);
});

test.each([
  ['Bad_Name.md', 'kind: fixed\nroom: server', 'It works.\n', 'the name must be'],
  ['a.txt', 'kind: fixed\nroom: server', 'It works.\n', 'the name must be'],
  ['a.md', 'kind: repaired\nroom: server', 'It works.\n', 'kind must be one of'],
  ['a.md', 'kind: fixed\nroom: kitchen', 'It works.\n', 'room must be one of'],
  ['a.md', 'room: server', 'It works.\n', 'must begin with ---'],
  ['a.md', 'kind: fixed\nroom: server', 'It works\n', 'must end with a full stop'],
  ['a.md', 'kind: fixed\nroom: server', 'It works.', 'must end with a line feed'],
  ['a.md', 'kind: fixed\nroom: server', 'It works.\n\nSo does this.\n', 'must be one paragraph'],
  ['a.md', 'kind: fixed\nroom: server', '- It works.\n', 'must be plain text'],
  ['a.md', 'kind: fixed\nroom: server', `${'word '.repeat(61)}.\n`, 'must have 60 words at most'],
])('a change file is refused: %s, %j, %j', (name, head, body, fault) => {
  expect(faultsOf(name, `---\n${head}\n---\n\n${body}`)).toEqual([expect.stringContaining(fault)]);
});

test('the changelog is in the form of Keep a Changelog', () => {
  const lines = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split('\n');
  const heads = lines.filter((line) => line.startsWith('## '));
  const sections = lines.filter((line) => line.startsWith('### '));

  expect(lines[0]).toBe('# Changelog');
  expect(heads.length).toBeGreaterThan(0);
  for (const head of heads) {
    expect(head).toMatch(/^## \[\d+\.\d+\.\d+\] - (?:\d{4}-\d{2}-\d{2}|not released)$/);
  }
  for (const section of sections) {
    expect(section).toMatch(
      /^### (?:Added|Changed|Deprecated|Removed|Fixed|Security|Known limits)$/,
    );
  }
  expect(existsSync(join(folder, 'README.md'))).toBe(true);
});
