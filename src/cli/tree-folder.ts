/**
 * A tree as a folder of plain files, to look at, to edit and to keep under version control.
 *
 *   config/            a node with children
 *     .data            its own data, where it has any
 *     db               a node without children: the file is its data, byte for byte
 *     .nodes.ndjson    what files can't say, a line for each node that has it: ACL, mode, no data
 *   .drover-tree       says that this folder is such a tree, and may be replaced by a newer one
 *
 * A name that begins with a dot, and a `%`, a backslash or a control character in one, is written `%2e…`.
 * A folder is written beside its place and put there when it is whole. Links are refused, in and out.
 */

import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import {
  appendFile,
  lstat,
  mkdir,
  opendir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { childOf, nameOf, parentOf, pathFault, permsOf, permsText } from '../protocol/index.ts';
import { CommandError } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';
import { escaped } from './output.ts';
import { unwritable } from './tree-file.ts';
import { isOpen, type NodeMode, type TreeNode } from './tree-node.ts';

const markName = '.drover-tree';
const dataName = '.data';
const factsName = '.nodes.ndjson';
const dataBytesMax = 64 * 1024 * 1024;

export function fileNameOf(name: string): string {
  const special = /[%\\\p{Cc}]/gu;
  const hex = (text: string) =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return name.replace(special, hex).replace(/^\.+/, hex);
}

export function nodeNameOf(fileName: string): string {
  return decodeURIComponent(fileName.replace(/%(?![0-9a-fA-F]{2})/g, '%25'));
}

function fileOf(root: string, path: string): string {
  return path === '/' ? root : join(root, ...path.slice(1).split('/').map(fileNameOf));
}

interface Facts {
  readonly name: string;
  readonly isNull?: boolean;
  readonly mode?: NodeMode;
  readonly ttlMs?: number;
  readonly acl?: readonly { scheme: string; id: string; perms: string }[];
}

// ── out ───────────────────────────────────────────────────────────────────────────────────────────

export class TreeFolderWriter {
  readonly #place: string;
  readonly #temporary: string;

  private constructor(place: string, temporary: string) {
    this.#place = place;
    this.#temporary = temporary;
  }

  static async open(folder: string): Promise<TreeFolderWriter> {
    const place = resolve(folder);
    await checkReplaceable(place);
    const temporary = join(dirname(place), `.${randomBytes(4).toString('hex')}.drover-new`);
    await makeFolders(temporary, 0o700);
    await writeFile(join(temporary, markName), 'a tree of ZooKeeper nodes, written by drover cp\n');
    return new TreeFolderWriter(place, temporary);
  }

  async node({ path, data, acl, mode, ttlMs, childCount = 0 }: TreeNode): Promise<void> {
    const file = fileOf(this.#temporary, path);
    const isFolder = path === '/' || childCount > 0;
    await this.#parentBecomesFolder(path);
    try {
      if (isFolder && path !== '/') await mkdir(file);
      const place = isFolder ? join(file, dataName) : file;
      if (data !== null || !isFolder) await writeFile(place, data ?? '', { flag: 'wx' });
    } catch (error) {
      throw nameFault(path, unwritable(this.#place, error as NodeJS.ErrnoException));
    }
    const facts = {
      name: isFolder ? '.' : nameOf(path),
      ...(!isFolder && data === null ? { isNull: true } : {}),
      ...(mode === 'persistent' ? {} : { mode }),
      ...(ttlMs === undefined ? {} : { ttlMs }),
      ...(isOpen(acl)
        ? {}
        : { acl: acl!.map(({ perms, id }) => ({ ...id, perms: permsText(perms) })) }),
    } satisfies Facts;
    if (Object.keys(facts).length === 1) return;
    const folder = isFolder ? file : dirname(file);
    await appendFile(join(folder, factsName), `${JSON.stringify(facts)}\n`);
  }

  async commit(): Promise<void> {
    await checkReplaceable(this.#place);
    const old = `${this.#temporary}.old`;
    const hadOne = await rename(this.#place, old).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return false;
        throw error;
      },
    );
    await rename(this.#temporary, this.#place);
    if (hadOne) await rm(old, { recursive: true, force: true });
  }

  async abort(): Promise<void> {
    await rm(this.#temporary, { recursive: true, force: true });
  }

  /** Where nobody said that it has children, it was taken for a file. */
  async #parentBecomesFolder(path: string): Promise<void> {
    const parent = parentOf(path);
    if (parent === null || parent === '/') return;
    const file = fileOf(this.#temporary, parent);
    const status = await stat(file).catch(() => undefined);
    if (status?.isDirectory()) return;
    if (status === undefined)
      throw new CommandError('data', `${escaped(parent)} is missing above ${escaped(path)}`);
    const known = (await readFacts(dirname(file))).get(nameOf(parent));
    await rename(file, `${this.#temporary}.data`);
    await mkdir(file);
    if (known?.isNull) await rm(`${this.#temporary}.data`);
    else await rename(`${this.#temporary}.data`, join(file, dataName));
    if (known === undefined) return;
    // As of a folder they stand in it; those of the file are nobody's any more.
    const { isNull: _, ...facts } = known;
    await appendFile(join(file, factsName), `${JSON.stringify({ ...facts, name: '.' })}\n`);
  }
}

function nameFault(path: string, error: Error & { readonly code?: string }): Error {
  const why =
    error.code === 'ENAMETOOLONG'
      ? 'its name is too long for a file'
      : error.code === 'EEXIST'
        ? 'its name is taken, perhaps by one that differs in upper and lower case'
        : undefined;
  if (why === undefined) return error;
  return new CommandError('data', `${escaped(path)}: ${why}; copy to a json:// file instead`);
}

/** Only an empty folder, or one that drover wrote, is ever replaced. */
async function checkReplaceable(place: string): Promise<void> {
  const status = await lstat(place).catch(() => undefined);
  if (status === undefined) return;
  if (!status.isDirectory()) throw new CommandError('data', `${escaped(place)} is no folder`);
  const names = await readdir(place);
  if (names.length === 0 || names.includes(markName)) return;
  const message = `${escaped(place)} holds something else than a tree of drover's, and is not replaced`;
  throw new CommandError('data', message);
}

// ── in ────────────────────────────────────────────────────────────────────────────────────────────

/** Level by level, parents first. A folder of plain files that nobody marked is as good. */
export async function* readTreeFolder(
  folder: string,
  signal?: AbortSignal,
): AsyncGenerator<TreeNode, void, undefined> {
  const root = resolve(folder);
  const status = await lstat(root).catch(() => undefined);
  if (!status?.isDirectory()) throw new CommandError('data', `${escaped(root)} is no folder`);
  let level = [{ path: '/', here: root }];
  while (level.length > 0) {
    const below: typeof level = [];
    for (const { path, here } of level) {
      signal?.throwIfAborted();
      const facts = await readFacts(here);
      yield await folderNode(path, here, facts.get('.'));
      for await (const entry of await opendir(here)) {
        if (entry.name.startsWith('.')) continue; // ours, or an editor's
        const file = join(here, entry.name);
        const child = childOf(path, nodeNameOr(entry.name, file));
        const fault = pathFault(child);
        if (fault !== null)
          throw new CommandError('data', `${escaped(child)} is not a path: ${fault}`);
        if (entry.isDirectory()) below.push({ path: child, here: file });
        else if (entry.isFile()) yield await leaf(child, file, facts);
        else throw new CommandError('data', `${escaped(file)} is neither a file nor a folder`);
      }
    }
    level = below;
  }
}

function nodeNameOr(name: string, file: string): string {
  try {
    return nodeNameOf(name);
  } catch (cause) {
    const message = `${escaped(file)}: what its %… stand for is no text; a % itself is written %25`;
    throw new CommandError('data', message, { cause });
  }
}

async function folderNode(path: string, here: string, facts: Facts | undefined): Promise<TreeNode> {
  const data = await dataOf(join(here, dataName)).catch((error) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return { path, data, ...known(facts), childCount: 1 };
}

async function leaf(
  path: string,
  file: string,
  all: ReadonlyMap<string, Facts>,
): Promise<TreeNode> {
  const facts = all.get(nameOf(path));
  const data = facts?.isNull ? null : await dataOf(file);
  return { path, data, ...known(facts), childCount: 0 };
}

async function dataOf(file: string): Promise<Buffer> {
  const status = await lstat(file);
  if (!status.isFile()) throw new CommandError('data', `${escaped(file)} is no file`);
  if (status.size > dataBytesMax)
    throw new CommandError('data', `${escaped(file)} is too long for a node`);
  return readFile(file);
}

function known(facts: Facts | undefined): Pick<TreeNode, 'mode' | 'ttlMs' | 'acl'> {
  return {
    mode: facts?.mode ?? 'persistent',
    ttlMs: facts?.ttlMs,
    acl: facts?.acl?.map(({ scheme, id, perms }) => ({
      perms: permsOf(String(perms)) ?? 0,
      id: { scheme: String(scheme), id: String(id) },
    })),
  };
}

async function readFacts(folder: string): Promise<Map<string, Facts>> {
  const all = new Map<string, Facts>();
  const path = join(folder, factsName);
  const status = await lstat(path).catch(() => undefined);
  if (!status?.isFile()) return all;
  const lines = createInterface({
    input: createReadStream(path),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) {
    if (line.trim() === '') continue;
    try {
      const facts = JSON.parse(line) as Facts;
      all.set(String(facts.name), facts);
    } catch (error) {
      throw new CommandError('data', `${escaped(path)} can't be read: ${(error as Error).message}`);
    }
  }
  return all;
}
