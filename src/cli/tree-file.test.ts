import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readTreeFile, TreeFileWriter } from './tree-file.ts';
import { fileNameOf, nodeNameOf, readTreeFolder, TreeFolderWriter } from './tree-folder.ts';
import type { TreeNode } from './tree-node.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-tree-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function all(nodes: AsyncIterable<TreeNode>): Promise<TreeNode[]> {
  const list: TreeNode[] = [];
  for await (const node of nodes) list.push(node);
  return list;
}

const node = (path: string, data: string | null = null): TreeNode => ({
  path,
  data: data === null ? null : Buffer.from(data),
  mode: 'persistent',
});

test('any bytes come back as they were', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.uint8Array({ maxLength: 300 }))), async (list) => {
      const file = join(dir, 'x.json');
      const writer = await TreeFileWriter.open(file, {});
      for (const [i, bytes] of list.entries()) {
        await writer.node({ ...node(`/n${i}`), data: bytes && Buffer.from(bytes) });
      }
      await writer.commit();

      const back = await all(readTreeFile(file));

      expect(back.map(({ data }) => data?.toString('hex') ?? null)).toEqual(
        list.map((bytes) => bytes && Buffer.from(bytes).toString('hex')),
      );
    }),
    { numRuns: 30 },
  );
});

test('a node of nothing but blanks is read as fast as any other', async () => {
  const file = join(dir, 'x.json');
  const writer = await TreeFileWriter.open(file, {});
  await writer.node(node('/blank', ' '.repeat(250_000)));
  await writer.commit();

  const [blank] = await all(readTreeFile(file));

  expect(blank!.data).toHaveLength(250_000);
});

test.each(['x.json', 'x.json.gz'])('%s that takes no more rejects', async (name) => {
  // Its folder is not there; a disk that is full does the same, later.
  const writer = await TreeFileWriter.open(join(dir, 'nowhere', name), {});
  const fill = async () => {
    for (let i = 0; i < 20; i++) {
      await writer.node({ ...node(`/n${i}`), data: randomBytes(50_000) });
    }
    await writer.commit();
  };

  await expect(fill()).rejects.toMatchObject({ code: 'ENOENT' });
  await writer.abort();
});

test.each(['x.json', 'x.json.gz'])('%s, cut anywhere, is refused', async (name) => {
  const file = join(dir, name);
  const writer = await TreeFileWriter.open(file, {});
  for (let i = 0; i < 5; i++) await writer.node(node(`/n${i}`, `value ${i}`));
  await writer.commit();
  const whole = readFileSync(file);

  for (let at = 0; at < whole.length - 2; at += 7) {
    writeFileSync(file, whole.subarray(0, at));
    await expect(all(readTreeFile(file)), `cut at ${at}`).rejects.toMatchObject({ exitCode: 4 });
  }
});

test('a file that is not there, or is a folder, is told of', async () => {
  for (const path of [join(dir, 'nothing'), dir]) {
    await expect(all(readTreeFile(path))).rejects.toMatchObject({ exitCode: 4 });
  }
});

test('an array that somebody else wrote is read, parents first', async () => {
  const file = join(dir, 'x.json');
  writeFileSync(
    file,
    JSON.stringify(
      [
        { path: '/a/b', data: 'two' },
        { path: '/a', data: { text: 'one' } },
      ],
      null,
      2,
    ),
  );

  const nodes = await all(readTreeFile(file));

  expect(nodes.map(({ path, data }) => [path, data?.toString()])).toEqual([
    ['/a', 'one'],
    ['/a/b', 'two'],
  ]);
});

test.each([
  [{ path: 'a' }],
  [{ path: '/../x' }],
  [{ path: '/a', data: 5 }],
  [{ path: '/a', data: { base64: '!' } }],
  [{ path: '/a', mode: 'x' }],
  [{ path: '/a', acl: [] }],
  [{ path: '/a', acl: [{ scheme: 'world', id: 'anyone', perms: 'xyz' }] }],
  ['text'],
  [null],
])('%j is no node', async (value) => {
  const file = join(dir, 'x.json');
  writeFileSync(file, JSON.stringify([value]));

  await expect(all(readTreeFile(file))).rejects.toMatchObject({ exitCode: 4 });
});

test('a writer that is called off leaves nothing', async () => {
  const writer = await TreeFileWriter.open(join(dir, 'x.json.gz'), {});
  await writer.node(node('/a', 'x'));

  await writer.abort();

  expect(await all(readTreeFolder(dir))).toHaveLength(1);
});

test('every name becomes a file name that is none of ours, and comes back', () => {
  const name = fc.string({ minLength: 1, unit: 'binary' }).filter((text) => !text.includes('/'));
  fc.assert(
    fc.property(name, (text) => {
      const file = fileNameOf(text);

      expect(nodeNameOf(file)).toBe(text);
      expect(file).not.toMatch(/^\.|[\\/\p{Cc}]/u);
    }),
    { numRuns: 50 },
  );
});

test('a node that turns out to have children becomes a folder', async () => {
  const writer = await TreeFolderWriter.open(join(dir, 'tree'));
  await writer.node({ ...node('/'), childCount: 1 });
  await writer.node(node('/a', 'own'));
  await writer.node(node('/a/b', 'below'));
  await writer.commit();

  const nodes = await all(readTreeFolder(join(dir, 'tree')));

  expect(nodes.map(({ path, data }) => [path, data?.toString()])).toEqual([
    ['/', undefined],
    ['/a', 'own'],
    ['/a/b', 'below'],
  ]);
});

test('a node that turns out to have children keeps who may use it, and what it is', async () => {
  const acl = [{ perms: 1, id: { scheme: 'digest', id: 'ann:x=' } }];
  const writer = await TreeFolderWriter.open(join(dir, 'tree'));
  await writer.node({ ...node('/'), childCount: 1 });
  await writer.node({ ...node('/a'), acl, mode: 'container' });
  await writer.node({ ...node('/a/b', 'below'), childCount: 1 });
  await writer.node(node('/a/b/c'));
  await writer.commit();

  const nodes = await all(readTreeFolder(join(dir, 'tree')));

  expect(nodes.map(({ path }) => path)).toEqual(['/', '/a', '/a/b', '/a/b/c']);
  expect(nodes[1]).toMatchObject({ data: null, acl, mode: 'container' });
});

test('folders of plain files may have any name, and what is no text is told of', async () => {
  mkdirSync(join(dir, '100%'));
  mkdirSync(join(dir, '%41'));
  writeFileSync(join(dir, '100%', 'x'), '1');

  const nodes = await all(readTreeFolder(dir));
  writeFileSync(join(dir, 'a%ff'), '2');

  expect(nodes.map(({ path }) => path).sort()).toEqual(['/', '/100%', '/100%/x', '/A']);
  await expect(all(readTreeFolder(dir))).rejects.toMatchObject({ exitCode: 4 });
});

test('a link in a folder is refused: it could lead anywhere', async () => {
  symlinkSync('/etc/passwd', join(dir, 'x'));

  await expect(all(readTreeFolder(dir))).rejects.toThrow(/neither a file nor a folder/);
});
