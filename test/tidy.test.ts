/**
 * The map of the code, as a table that can't go stale: which room may import which, and which may
 * have runtime dependencies. The map with its reasons is in ARCHITECTURE.md.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const source = join(root, 'src');

/** Each room and the rooms it may enter: those named, and whatever those may enter. */
const rooms: Record<string, readonly string[]> = {
  support: [],
  jute: ['support'],
  protocol: ['jute'],
  tree: ['protocol'],
  storage: ['protocol', 'jute', 'support'],
  server: ['storage', 'tree'],
  client: ['protocol', 'jute', 'support'],
  recipes: ['client'],
  kafka: ['recipes'],
  align: ['kafka'],
  console: ['align'],
  cli: ['console', 'server'],
  testing: ['server', 'client'],
};

/** Rooms in which packages from outside may be imported, by name. */
const packages: Record<string, readonly string[]> = {
  cli: ['commander', 'fzf', 'jks-js', 'pino', 'prom-client', 'string-width'],
  console: ['@hono/node-server', 'hono', 'zod'],
};

/** Packages that a room uses when they are there and does without when they are not. */
const optionalPeers: Record<string, readonly string[]> = {
  client: ['kerberos'],
  kafka: ['@confluentinc/kafka-javascript', 'kafkajs'],
};

function reachable(room: string): Set<string> {
  const all = new Set([room]);
  for (const next of rooms[room] ?? []) for (const name of reachable(next)) all.add(name);
  return all;
}

interface Import {
  readonly file: string;
  readonly from: string;
}

function imports(): Import[] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return files.flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8').replace(
      /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm,
      '',
    );
    const found = text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s[^;'"]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s+['"]([^'"]+)['"]/g,
    );
    return [...found].map((match) => ({
      file: file.split(sep).join('/'),
      from: (match[1] ?? match[2] ?? match[3])!,
    }));
  });
}

const all = imports();
const roomOf = (file: string) => file.split('/')[0]!;
const target = ({ file, from }: Import) =>
  relative(source, resolve(source, dirname(file), from))
    .split(sep)
    .join('/');

test('every folder of src is a room of the map', () => {
  const folders = readdirSync(source, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

  expect(folders.filter((folder) => !(folder in rooms))).toEqual([]);
});

test('a room imports only the rooms that the map allows', () => {
  const wrong = all.filter(
    (entry) =>
      entry.from.startsWith('.') &&
      !reachable(roomOf(entry.file)).has(roomOf(target(entry))) &&
      !(entry.file.endsWith('.test.ts') && roomOf(target(entry)) === 'testing'),
  );

  expect(wrong).toEqual([]);
});

test('a room is entered through its index', () => {
  const wrong = all.filter(
    (entry) =>
      entry.from.startsWith('.') &&
      roomOf(target(entry)) !== roomOf(entry.file) &&
      !target(entry).endsWith('/index.ts'),
  );

  expect(wrong).toEqual([]);
});

test('only the rooms that may have runtime dependencies import packages', () => {
  const wrong = all.filter(({ file, from }) => {
    if (from.startsWith('.') || from.startsWith('node:')) return false;
    if (file.endsWith('.test.ts') && ['vitest', 'fast-check'].includes(from)) return false;
    const room = roomOf(file);
    return ![...(packages[room] ?? []), ...(optionalPeers[room] ?? [])].includes(from);
  });

  expect(wrong).toEqual([]);
});

test('built-in modules are named with node:', () => {
  expect(all.filter(({ from }) => builtinModules.includes(from))).toEqual([]);
});

test('the imports were found at all', () => {
  expect(all.length).toBeGreaterThan(20);
});

/** Files that make regular expressions, and of what. Text from outside goes to `support/pattern.ts`. */
const expressionMakers: Record<string, string> = {
  'align/event-time.ts': "the caller's own RegExp, without its memory",
  'console/recipe-kinds.ts': 'constants',
  'kafka/layout.ts': 'paths of our own tables',
  'protocol/digest-md5.ts': 'constants',
  'recipes/queue-names.ts': 'constants',
  'support/pattern-syntax.ts': 'the name of a Unicode property, to see whether it exists',
  'support/pattern.ts': 'one class, which is given one character at a time',
};

test('no file makes a regular expression of text from outside: it could run for ever', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  const makers = files.filter((file) =>
    /\bRegExp\(/.test(readFileSync(join(source, file), 'utf8')),
  );

  expect(makers.sort()).toEqual(Object.keys(expressionMakers));
});
