/**
 * How much a browser loads before it shows a page: at most 60 KB, packed, whichever page comes first, its
 * charts included and the editor not. Counted over the built files.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';

const firstLoadBytesMax = 60 * 1024;
const editorBytesMax = 150 * 1024;
const root = resolve(import.meta.dirname, '..');
let folder: string;
const files = new Map<string, { readonly text: string; readonly packedBytes: number }>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drover-web-'));
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', 'web', '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn'];
  await promisify(execFile)(process.execPath, args, { cwd: root });
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = await readFile(join(entry.parentPath, entry.name));
    files.set(entry.name, { text: bytes.toString(), packedBytes: gzipSync(bytes).length });
  }
}, 120_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

const isEditor = (name: string) => name.startsWith('editor-');
const sum = (names: readonly string[]) =>
  names.reduce((total, name) => total + files.get(name)!.packedBytes, 0);

/** Files that a file loads together with itself. */
const named = /(?:src|href)="\/(?:assets\/)?([^"]+)"|(?:from|import)\s*"\.\/([^"]+)"/g;

function closure(start: readonly string[]): string[] {
  const found = new Set(start);
  for (const name of found) {
    for (const match of files.get(name)!.text.matchAll(named)) {
      const next = (match[1] ?? match[2])!;
      if (files.has(next)) found.add(next);
    }
  }
  return [...found];
}

const shell = () => closure(['index.html']);
const chunkOf = (page: string) => {
  const names = [...files.keys()].filter(
    (name) => name.startsWith(`${page}-`) && name.endsWith('.js'),
  );
  expect(names, page).toHaveLength(1);
  return names[0]!;
};

const pages = readdirSync(join(root, 'web/src/pages')).map((file) => file.replace('.tsx', ''));

test('the shell of the page is at most 30 KB packed, with no page, chart or editor in it', () => {
  const names = shell();

  expect(names.some((name) => name.endsWith('.js'))).toBe(true);
  expect(names.some((name) => name.endsWith('.css'))).toBe(true);
  expect(names.filter((name) => /^(editor|uplot|tree)/i.test(name))).toEqual([]);
  expect(sum(names)).toBeLessThan(30 * 1024);
});

test.each(pages)('the first load at /%s is at most 60 KB packed, its charts included', (page) => {
  const names = closure([...shell(), chunkOf(page)]);
  const charts = names.some((name) => name.startsWith('chart-'))
    ? [...files.keys()].filter((name) => /^uplot/i.test(name))
    : [];

  expect(names.length).toBeGreaterThan(shell().length);
  expect(sum([...names, ...charts])).toBeLessThan(firstLoadBytesMax);
});

test('only metrics and alignment load charts, and the editor is a chunk of at most 150 KB', () => {
  const editors = [...files.keys()].filter(isEditor);

  expect(editors).toHaveLength(1);
  expect(sum(editors)).toBeLessThan(editorBytesMax);
  const drawing = pages.filter((page) =>
    closure([chunkOf(page)]).some((name) => name.startsWith('chart-')),
  );
  expect(drawing).toEqual(['alignment', 'metrics']);
});

test('nothing stands inline in the page, and nothing is loaded from elsewhere', () => {
  const { text } = files.get('index.html')!;

  expect(text).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=/);
  expect(
    [...text.matchAll(/(?:src|href)="([^"]+)"/g)].every((match) => match[1]!.startsWith('/')),
  ).toBe(true);
  for (const [name, file] of files) {
    if (name.endsWith('.css')) expect(file.text).not.toMatch(/url\((?!["']?data:)|@import/);
  }
});
