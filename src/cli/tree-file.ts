/**
 * A tree in a file: JSON that any tool reads, with one node on each line so that it need not be read at once.
 *
 *   [
 *   {"format":"drover-tree","version":1,…what the writer says of it…},
 *   {"path":"/a","data":{"text":"hi"},"mode":"persistent","acl":[{"scheme":…,"id":…,"perms":"cdrwa"}],"stat":{…}},
 *   {"end":true,"nodes":1,"sha256":"…","…":…}
 *   ]
 *
 * Data that is not UTF-8 is {"base64":"…"}; null is a node without data. Parents come before children.
 * The sum is over all lines before the last: a file that was cut short or changed is refused. A name
 * that ends in .gz is compressed. A file appears under its name only when it is whole.
 *
 * Arrays that others wrote, over lines as they please, are read too, up to `looseBytesMax`.
 */

import { isUtf8 } from 'node:buffer';
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { pathFault, permsOf, permsText } from '../protocol/index.ts';
import { refuseSpecialFile } from '../support/index.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import type { NodeMode, StatRecord, TreeNode } from './tree-node.ts';

export const treeFormat = 'drover-tree';
/** For a line too: six bytes of JSON for each byte of a node, and nodes of several MiB. */
const looseBytesMax = 64 * 1024 * 1024;
const modes: readonly NodeMode[] = ['persistent', 'container', 'persistentTtl', 'ephemeral'];

// ── out ───────────────────────────────────────────────────────────────────────────────────────────

export class TreeFileWriter {
  readonly #path: string;
  readonly #temporary: string;
  readonly #file: Writable;
  /** The file, or what compresses on the way to it. */
  readonly #out: Writable;
  readonly #done: Promise<void>;
  readonly #hash: Hash = createHash('sha256');
  #nodes = 0;
  #failure: Error | undefined;

  private constructor(path: string, temporary: string) {
    this.#path = path;
    this.#temporary = temporary;
    // What is in it may be secret, as in the server's own files.
    const stream = createWriteStream(temporary, { flags: 'wx', mode: 0o600, flush: true });
    this.#file = stream;
    this.#done = finished(stream).catch((error) => {
      throw unwritable(path, error);
    });
    this.#done.catch((error: Error) => {
      this.#failure = error;
      this.#out.destroy(); // what compresses would wait for ever for a file that takes no more
    });
    if (path.endsWith('.gz')) {
      const gzip = createGzip();
      gzip.pipe(stream);
      this.#out = gzip;
    } else this.#out = stream;
  }

  static async open(path: string, about: object): Promise<TreeFileWriter> {
    const temporary = `${path}.${randomBytes(4).toString('hex')}.new`;
    const writer = new TreeFileWriter(path, temporary);
    await writer.#line('[\n');
    await writer.#line(`${JSON.stringify({ format: treeFormat, version: 1, ...about })},\n`);
    return writer;
  }

  async node(node: TreeNode): Promise<void> {
    await this.line(nodeLine(node));
  }

  /** A node as `nodeLine` made it. */
  async line(text: string): Promise<void> {
    this.#nodes += 1;
    await this.#line(`${text},\n`);
  }

  /** Puts the file in its place. */
  async commit(about: object = {}): Promise<void> {
    const sha256 = this.#hash.digest('hex');
    const end = { end: true, nodes: this.#nodes, sha256, ...about };
    this.#out.end(`${JSON.stringify(end)}\n]\n`);
    await this.#done;
    await rename(this.#temporary, this.#path);
  }

  /** Leaves nothing behind. */
  async abort(): Promise<void> {
    this.#out.destroy();
    this.#file.destroy();
    await this.#done.catch(() => {});
    await rm(this.#temporary, { force: true });
  }

  async #line(text: string): Promise<void> {
    if (this.#failure) throw this.#failure;
    this.#hash.update(text);
    if (this.#out.write(text)) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        this.#out.off('drain', go);
        this.#out.off('close', go);
        resolve();
      };
      this.#out.on('drain', go);
      this.#out.on('close', go);
    });
  }
}

/** What the system says when it can't write on, as on a full disk, names no file. */
export function unwritable(path: string, error: NodeJS.ErrnoException): Error {
  if (error.syscall === undefined || error.path !== undefined) return error;
  const message = `${escaped(path)} can't be written: ${error.message}`;
  return new CommandError('data', message, { cause: error });
}

export function nodeLine({ path, data, acl, mode, ttlMs, stat }: TreeNode): string {
  return JSON.stringify({
    path,
    data: dataRecord(data),
    mode,
    ...(ttlMs === undefined ? {} : { ttlMs }),
    ...(acl && { acl: acl.map(({ perms, id }) => ({ ...id, perms: permsText(perms) })) }),
    ...(stat && { stat }),
  });
}

function dataRecord(data: Buffer | null): { text: string } | { base64: string } | null {
  if (data === null) return null;
  return isUtf8(data) ? { text: data.toString('utf8') } : { base64: data.toString('base64') };
}

// ── in ────────────────────────────────────────────────────────────────────────────────────────────

export interface TreeFileEnd {
  readonly nodes: number;
  readonly [key: string]: unknown;
}

export interface TreeFileHandlers {
  /** What the file says of itself in front, before the first node. */
  readonly head?: (about: Readonly<Record<string, unknown>>) => void;
  readonly end?: (about: TreeFileEnd) => void;
}

/** The nodes of a file, checked one by one; the end of a file of ours is checked too. */
export async function* readTreeFile(
  path: string,
  handlers: TreeFileHandlers = {},
  signal?: AbortSignal,
): AsyncGenerator<TreeNode, void, undefined> {
  const wrong = (what: string) => new CommandError('data', `${escaped(path)}: ${what}`);
  const hash = createHash('sha256');
  let nodes = 0;
  let state: 'start' | 'head' | 'nodes' | 'end' | 'done' = 'start';
  for await (const line of linesOf(path, signal)) {
    if (state === 'done') {
      if (line.trim() !== '') throw wrong('there is something behind its end');
      continue;
    }
    const text = withoutComma(line);
    if (state === 'start') {
      if (text !== '[') {
        yield* looseNodes(path, signal);
        return;
      }
      state = 'head';
    } else if (state === 'end') {
      if (text !== ']') throw wrong('it goes on behind its last line');
      state = 'done';
      continue;
    } else {
      const value = parsed(text, state === 'head' ? null : wrong);
      if (state === 'head') {
        if (value?.format !== treeFormat) {
          yield* looseNodes(path, signal);
          return;
        }
        if (value.version !== 1)
          throw wrong(`version ${escaped(String(value.version))} is not known here`);
        handlers.head?.(value);
        state = 'nodes';
      } else if (value?.end === true) {
        const sum = hash.copy().digest('hex');
        if (value.nodes !== nodes)
          throw wrong(`${nodes} nodes, and ${String(value.nodes)} were written`);
        if (value.sha256 !== sum)
          throw wrong('it was changed since it was written: its sum differs');
        handlers.end?.(value as unknown as TreeFileEnd);
        state = 'end';
        continue;
      } else {
        yield nodeOf(value, wrong);
        nodes += 1;
      }
    }
    hash.update(`${line}\n`);
  }
  if (state !== 'done') throw wrong(`it was cut short, after ${nodes} nodes`);
}

/** Without a pattern: one that looks for blanks at the end begins anew at each of a million in the data. */
function withoutComma(line: string): string {
  const text = line.trimEnd();
  return text.endsWith(',') ? text.slice(0, -1) : text;
}

function parsed(
  text: string,
  wrong: ((what: string) => Error) | null,
): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // as below
  }
  if (wrong === null) return null;
  throw wrong(`no node: ${escaped(text.slice(0, 80))}`);
}

async function* looseNodes(path: string, signal: AbortSignal | undefined) {
  const wrong = (what: string) => new CommandError('data', `${escaped(path)}: ${what}`);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of bytesOf(path, signal)) {
    bytes += chunk.length;
    if (bytes > looseBytesMax)
      throw wrong(`more than ${looseBytesMax} bytes that drover did not write`);
    chunks.push(chunk);
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw wrong(`it is no JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  if (!Array.isArray(value)) throw wrong('an array of nodes is wanted, [{"path":"/a","data":…},…]');
  const nodes = value.filter((each) => each?.format === undefined && each?.end === undefined);
  const all = nodes.map((each) => nodeOf(each, wrong));
  yield* all.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function nodeOf(value: unknown, wrong: (what: string) => Error): TreeNode {
  if (typeof value !== 'object' || value === null) throw wrong('a node is an object');
  const { path, data, mode = 'persistent', ttlMs, acl, stat } = value as Record<string, unknown>;
  if (typeof path !== 'string') throw wrong('a node has no path');
  const fault = pathFault(path);
  if (fault !== null) throw wrong(`${escaped(path)} is not a path: ${fault}`);
  const at = (what: string) => wrong(`${escaped(path)}: ${what}`);
  if (!modes.includes(mode as NodeMode)) throw at(`mode is one of ${modes.join(', ')}`);
  if (ttlMs !== undefined && !Number.isSafeInteger(ttlMs)) throw at('ttlMs is a number');
  const record = typeof stat === 'object' && stat !== null ? (stat as StatRecord) : undefined;
  return {
    path,
    data: bytesFrom(data, at),
    mode: mode as NodeMode,
    ttlMs: ttlMs as number | undefined,
    acl: acl === undefined ? undefined : aclFrom(acl, at),
    stat: record,
    childCount: typeof record?.numChildren === 'number' ? record.numChildren : undefined,
  };
}

function bytesFrom(data: unknown, at: (what: string) => Error): Buffer | null {
  if (data === null || data === undefined) return null;
  if (typeof data === 'string') return Buffer.from(data);
  const { text, base64 } = data as { text?: unknown; base64?: unknown };
  if (typeof text === 'string') return Buffer.from(text);
  if (typeof base64 === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(base64)) {
    return Buffer.from(base64, 'base64');
  }
  throw at('data is null, {"text":…} or {"base64":…}');
}

function aclFrom(acl: unknown, at: (what: string) => Error): TreeNode['acl'] {
  if (!Array.isArray(acl) || acl.length === 0) throw at('acl is a list of at least one entry');
  return acl.map((entry) => {
    const { scheme, id, perms } = (entry ?? {}) as Record<string, unknown>;
    const bits = typeof perms === 'string' ? permsOf(perms) : null;
    if (typeof scheme !== 'string' || typeof id !== 'string' || bits === null) {
      throw at('an entry of an acl is {"scheme":…,"id":…,"perms":"cdrwa"}');
    }
    return { perms: bits, id: { scheme, id } };
  });
}

async function* bytesOf(path: string, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
  await refuseSpecialFile(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return; // reading it says so
    throw new CommandError('data', `${escaped(path)} can't be read: ${cause.message}`, { cause });
  });
  const file = createReadStream(path, signal ? { signal } : {});
  const gunzip = path.endsWith('.gz') ? createGunzip() : undefined;
  if (gunzip !== undefined) {
    file.on('error', (error) => gunzip.destroy(error));
    gunzip.on('close', () => file.destroy());
    file.pipe(gunzip);
  }
  try {
    yield* (gunzip ?? file) as AsyncIterable<Buffer>;
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof CommandError) throw cause;
    const why = (cause as Error).message;
    throw new CommandError('data', `${escaped(path)} can't be read: ${why}`, { cause });
  }
}

/** Lines without their ends, each bounded. */
async function* linesOf(path: string, signal: AbortSignal | undefined): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of bytesOf(path, signal)) {
    let start = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      rest.push(chunk.subarray(start, at));
      yield Buffer.concat(rest).toString('utf8');
      rest = [];
      restBytes = 0;
      start = at + 1;
    }
    rest.push(chunk.subarray(start));
    restBytes += chunk.length - start;
    if (restBytes > looseBytesMax) {
      throw new CommandError(
        'data',
        `${escaped(path)}: a line of more than ${looseBytesMax} bytes`,
      );
    }
  }
  if (restBytes > 0) yield Buffer.concat(rest).toString('utf8');
}
