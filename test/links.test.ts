/** Every relative link in the Markdown files of the repository, and every anchor, leads somewhere. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const skipped = new Set(['node_modules', 'dist', 'coverage', '.git', '.results']);

function filesBelow(folder: string, ending: RegExp): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : filesBelow(path, ending);
    return entry.isFile() && ending.test(entry.name) ? [path] : [];
  });
}

const nameOf = (file: string) => relative(root, file).split(sep).join('/');
const read = (file: string) => readFileSync(file, 'utf8');

/** A page without its code blocks: what looks like a link there is not one. */
const withoutBlocks = (text: string) =>
  text.replace(/^(\s*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\s*\2\s*$/gm, '');
const withoutCode = (text: string) =>
  withoutBlocks(text).replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, '');

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading] of withoutBlocks(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = heading!
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${slug}-${i}`;
    anchors.add(anchor);
  }
  for (const [, id] of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(id!);
  return anchors;
}

function linksOf(text: string): string[] {
  const prose = withoutCode(text);
  return [
    ...prose.matchAll(/\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g),
    ...prose.matchAll(/^\s*\[[^\]]+\]:\s+(\S+)/gm),
    ...prose.matchAll(/<(?:img|a|source)\b[^>]*?\s(?:src|srcset|href)="([^"]+)"/g),
  ].map((match) => match[1]!);
}

/** Whether a file is there under exactly this name: some file systems do not tell upper from lower case. */
function isThere(path: string): boolean {
  if (!existsSync(path)) return false;
  return path === root || readdirSync(dirname(path)).includes(path.split(sep).at(-1)!);
}

/** What is wrong with a link of a file; undefined when it leads somewhere, or out of the repository. */
function faultOf(file: string, link: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return undefined;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : resolve(dirname(file), decodeURIComponent(path));
  if (!target.startsWith(root)) return 'leaves the repository';
  if (!isThere(target)) return `${nameOf(target)} does not exist`;
  if (anchor === undefined) return undefined;
  if (statSync(target).isDirectory() || !target.endsWith('.md')) {
    return `${nameOf(target)} has no headings that an anchor could name`;
  }
  return anchorsOf(read(target)).has(decodeURIComponent(anchor))
    ? undefined
    : `${nameOf(target)} has no heading for #${anchor}`;
}

const pages = filesBelow(root, /\.md$/);

test('every relative link and every anchor in a Markdown file leads somewhere', () => {
  const broken = pages.flatMap((file) =>
    linksOf(read(file)).flatMap((link) => {
      const fault = faultOf(file, link);
      return fault === undefined ? [] : [`${nameOf(file)}: (${link}): ${fault}`];
    }),
  );

  expect(broken).toEqual([]);
});

test('every guide that code, a test or a script names exists', () => {
  const files = ['src', 'web/src', 'test', 'scripts', 'examples', 'bench'].flatMap((folder) =>
    filesBelow(join(root, folder), /\.(?:ts|tsx|js|mjs|cjs)$/),
  );
  const missing = files.flatMap((file) =>
    [...new Set(read(file).match(/\b(?:docs|test\/evidence)\/[\w-]+\.md\b/g))]
      .filter((page) => !existsSync(join(root, page)))
      .map((page) => `${nameOf(file)}: ${page}`),
  );

  expect(missing).toEqual([]);
});

test('the index of the guides names every guide', () => {
  const index = join(root, 'docs/README.md');
  const named = new Set(linksOf(read(index)).map((link) => resolve(dirname(index), link)));
  const guides = filesBelow(join(root, 'docs'), /\.md$/).filter((file) => file !== index);

  expect(guides.filter((file) => !named.has(file)).map(nameOf)).toEqual([]);
});

test('the link check finds a missing file, a missing heading and a wrong case', () => {
  const here = join(root, 'SECURITY.md');

  expect(faultOf(here, 'no-such-guide.md')).toBe('no-such-guide.md does not exist');
  expect(faultOf(here, 'readme.md')).toBe('readme.md does not exist');
  expect(faultOf(here, 'docs/client.md#no-such-heading')).toMatch(/has no heading/);
  expect(faultOf(here, '#reporting')).toBeUndefined();
  expect(faultOf(here, 'https://example.org/no-such-page')).toBeUndefined();
  expect(linksOf('`[a](b.md)` and [c](d.md)\n\n```\n[e](f.md)\n```\n')).toEqual(['d.md']);
  expect(anchorsOf('## `ls`, and more\n## Twice\n## Twice')).toEqual(
    new Set(['ls-and-more', 'twice', 'twice-1']),
  );
});
