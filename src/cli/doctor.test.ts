import { expect, test } from 'vitest';
import { findingsOf } from './doctor.ts';
import type { ServerRow } from './server-facts.ts';
import { quorumOf } from './status.ts';

const row = (name: string, facts: Partial<ServerRow> = {}): ServerRow => ({
  server: { host: name, port: 2181, name },
  answerMs: 1,
  values: {},
  role: 'follower',
  version: '3.9.5',
  ...facts,
});
const down = (name: string): ServerRow => ({
  server: { host: name, port: 2181, name },
  answerMs: 1,
  values: {},
  error: 'nobody listens there',
});
const well = [row('a', { role: 'leader' }), row('b'), row('c')];

test('an ensemble that is well has nothing to find fault with', () => {
  expect(findingsOf(well)).toEqual([]);
  expect(quorumOf(well).hasQuorum).toBe(true);
});

test('the worst is said first', () => {
  const rows = [row('a', { role: 'leader', p99Ms: 500 }), row('b', { behind: 5_000 }), row('c')];

  expect(findingsOf(rows).map(({ severity, server }) => [severity, server])).toEqual([
    ['critical', 'b'],
    ['warning', 'a'],
  ]);
});

test('a majority that is lost is critical', () => {
  const rows = [row('a'), down('b'), down('c')];

  expect(findingsOf(rows)[0]!.what).toContain('no majority');
  expect(quorumOf(rows).hasQuorum).toBe(false);
});

test('two leaders, or servers that run alone under one address, are found', () => {
  const two = [row('a', { role: 'leader' }), row('b', { role: 'leader' }), row('c')];
  const alone = [row('a', { role: 'standalone' }), row('b', { role: 'standalone' })];

  expect(findingsOf(two)[0]!.what).toContain('more than one says it leads');
  expect(findingsOf(alone)[0]!.what).toContain('runs alone');
});

test.each<[string, Partial<ServerRow>, string]>([
  ['requests that wait', { outstanding: 20 }, 'requests waiting'],
  ['a slow disk', { fsyncP99Ms: 300 }, 'disk'],
  ['few files left', { openFiles: 900, openFilesMax: 1_000 }, 'files open'],
  ['a tree that is too big', { nodes: 2_000_000 }, 'nodes'],
  ['data that is too much', { dataBytes: 2 ** 30 }, 'MiB'],
  ['watches without end', { watches: 5_000_000 }, 'watches'],
  ['another version', { version: '3.8.0' }, 'different versions'],
  ['an answer that takes long', { answerMs: 3_000 }, 'took 3000 ms'],
])('%s is found', (_, facts, words) => {
  const found = findingsOf([well[0]!, well[1]!, row('c', facts)]);

  expect(found).toHaveLength(1);
  expect(found[0]!.what).toContain(words);
  expect(found[0]!.more).toMatch(/^drover /);
});

test('an even number of voters is remarked on', () => {
  expect(
    findingsOf([...well, row('d')])
      .map(({ what }) => what)
      .join(),
  ).toContain('even number');
});
