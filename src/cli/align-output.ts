/**
 * A file for each period, written by many processes, right through crashes.
 *
 *   OUT/1700000040000.ndjson                        whole, in the order of event time, each record once
 *   OUT/.drover/period                              60000: what a file spans; the same for everybody
 *   OUT/.drover/1700000040000/orders-3.41.part      what owner 41 of orders-3 has read of that period
 *   OUT/.drover/1700000040000/made                  the parts, with their sizes, that the file was made from
 *   OUT/.drover/1700000040000/base                  a file that was there when the period was begun
 *
 * Each owner of a partition writes to parts of its own, named by the epoch of its ownership, so no two
 * processes write to one file, also if one of them was stopped and thinks that it still owns something.
 * When the group has come past a period, its leader makes the file from all parts and renames it into
 * place. A line of a part is `offset time bytes record`: what was read twice is found by its offset and
 * written once, and what a crash cut short is found by its length and left out; its next owner has it.
 * Making a file again from the same parts makes the same file.
 *
 * A record that comes after its period was closed goes into that period's file all the same, which is
 * then made again; `late` holds the names of such periods. Where a file was there already when a period
 * began, its lines stay at the front of it.
 */

import { randomUUID } from 'node:crypto';
import {
  access,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { PartitionId } from '../kafka/index.ts';
import { CommandError } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';
import { escaped } from './output.ts';

export interface OutputRecord {
  readonly offset: bigint;
  /** Null: quarantined; kept in a file of its own. */
  readonly timeMs: number | null;
  /** Without its newline. */
  readonly line: Buffer;
}

export interface PeriodFile {
  readonly start: number | null;
  readonly path: string;
  readonly records: number;
}

const hidden = '.drover';
/** Where records go whose time cannot be believed. */
const noPeriod = 'quarantine';
const newline = Buffer.from('\n');
/** A period with more than this is put together partition by partition, and not sorted by time. */
const sortBytesMax = 256 * 1024 * 1024;

export class PeriodFiles {
  readonly directory: string;
  readonly #periodMs: number;
  /** Parts that were written since they were last synced, by partition. */
  readonly #unsynced = new Map<string, Set<string>>();
  readonly #folders = new Set<string>();
  /** What each partition of ours has come past. */
  readonly #passedMs = new Map<string, number>();
  #hasSwept = false;

  private constructor(directory: string, periodMs: number) {
    this.directory = directory;
    this.#periodMs = periodMs;
  }

  static async open(directory: string, periodMs: number): Promise<PeriodFiles> {
    try {
      await makeFolders(join(directory, hidden));
    } catch (cause) {
      const reason = (cause as NodeJS.ErrnoException).code;
      const where = `--out: ${escaped(directory)}`;
      throw new CommandError('output', `${where} cannot be made (${reason})`, { cause });
    }
    const path = join(directory, hidden, 'period');
    // Linked into place, so that nobody reads it half written.
    const made = join(directory, hidden, `period.${randomUUID()}`);
    await writeFile(made, String(periodMs));
    await link(made, path).catch(unless('EEXIST'));
    await rm(made, { force: true });
    const stored = Number(await readFile(path, 'utf8'));
    if (stored !== periodMs) {
      const why = `${escaped(directory)} was begun with a period of ${stored} ms`;
      throw new CommandError('usage', `--out: ${why}; give the same, or another folder`);
    }
    return new PeriodFiles(directory, periodMs);
  }

  /**
   * Appends to the parts. `epoch` is that of the ownership. When what files are made from is gone, the
   * others came to the end meanwhile: what is not ours any more is then in the files already, and it rejects
   * with ENOENT.
   */
  async write(
    id: PartitionId,
    epoch: bigint,
    records: readonly OutputRecord[],
    isOurs: () => boolean = () => true,
  ): Promise<void> {
    const chunks = new Map<string, Buffer[]>();
    const late = new Set<string>();
    const key = nameOf(id);
    const passedMs = this.#passedMs.get(key) ?? Number.NEGATIVE_INFINITY;
    for (const { offset, timeMs, line } of records) {
      const start = timeMs === null ? null : Math.floor(timeMs / this.#periodMs) * this.#periodMs;
      const name = start === null ? noPeriod : String(start);
      if (start === null || start + this.#periodMs <= passedMs) late.add(name);
      const into = chunks.get(name) ?? [];
      chunks.set(name, into);
      into.push(Buffer.from(`${offset} ${timeMs ?? 0} ${line.length} `), line, newline);
    }
    const unsynced = this.#unsynced.get(key) ?? new Set();
    this.#unsynced.set(key, unsynced);
    for (const [name, pieces] of chunks) {
      const path = join(await this.#folder(name, isOurs), `${key}.${epoch}.part`);
      await append(path, Buffer.concat(pieces));
      unsynced.add(path);
      if (await isThere(join(this.directory, `${name}.ndjson`))) late.add(name);
    }
    if (late.size === 0) return;
    const folder = join(this.directory, hidden, 'late');
    await makeFolder(folder, isOurs);
    for (const name of late) await writeFile(join(folder, name), '');
  }

  /**
   * A period's folder. It comes into being whole, with the file that is there already in it, so that
   * nobody takes one that we made for one that was there before.
   */
  async #folder(name: string, isOurs: () => boolean): Promise<string> {
    const path = join(this.directory, hidden, name);
    if (this.#folders.has(name)) return path;
    const made = join(this.directory, hidden, `new.${randomUUID()}`);
    await makeFolder(made, isOurs);
    await writeFile(join(made, 'begun'), ''); // so that a rename onto it fails
    const file = join(this.directory, `${name}.ndjson`);
    await link(file, join(made, 'base')).catch(unless('ENOENT'));
    try {
      await rename(made, path);
    } catch (error) {
      await rm(made, { recursive: true, force: true });
      unless('ENOTEMPTY', 'EEXIST')(error as NodeJS.ErrnoException); // somebody was first
    }
    this.#folders.add(name);
    return path;
  }

  /** What the partition has written is on the disk when this resolves: then the group may rely on it. */
  async passed(id: PartitionId, end: number): Promise<void> {
    const key = nameOf(id);
    this.#passedMs.set(key, end);
    const paths = this.#unsynced.get(key) ?? [];
    this.#unsynced.delete(key);
    // Gone already where the others came to the end, and tidied up, while we were stopped.
    for (const path of paths) await synced(path).catch(unless('ENOENT'));
  }

  /**
   * The group is past `end`: makes the files of the periods since `start`, and those to which something
   * was added later. The first time all are looked at, for who led before may not have come so far.
   */
  async complete(start: number | null, end: number, signal?: AbortSignal): Promise<PeriodFile[]> {
    const names = await this.#names(this.#hasSwept ? start : null, end);
    const late = await readdir(join(this.directory, hidden, 'late')).catch(unless('ENOENT'));
    for (const name of late ?? []) {
      await rm(join(this.directory, hidden, 'late', name), { force: true });
      if (this.#isPast(name, end)) names.add(name);
    }
    const made: PeriodFile[] = [];
    for (const name of [...names].sort((a, b) => Number(a) - Number(b))) {
      signal?.throwIfAborted();
      const file = await this.#assemble(name, signal);
      if (file !== null) made.push(file);
    }
    this.#hasSwept = true;
    return made;
  }

  /** Periods with parts that end up to `end`, and begin at `start` or later. */
  async #names(start: number | null, end: number): Promise<Set<string>> {
    if (start !== null && (end - start) / this.#periodMs < 1_000) {
      const first = Math.floor(start / this.#periodMs);
      const count = Math.floor(end / this.#periodMs) - first;
      return new Set(Array.from({ length: count }, (_, i) => String((first + i) * this.#periodMs)));
    }
    const all = await readdir(join(this.directory, hidden)).catch(unless('ENOENT'));
    return new Set(
      (all ?? []).filter(
        (name) => this.#isPast(name, end) && (start === null || Number(name) >= start),
      ),
    );
  }

  #isPast(name: string, end: number): boolean {
    return name === noPeriod || (/^\d+$/.test(name) && Number(name) + this.#periodMs <= end);
  }

  async #assemble(name: string, signal: AbortSignal | undefined): Promise<PeriodFile | null> {
    const folder = join(this.directory, hidden, name);
    const path = join(this.directory, `${name}.ndjson`);
    const parts = await partsOf(folder);
    if (parts.size === 0) return null;
    const made = join(folder, 'made');
    const before = await readFile(made, 'utf8').catch(unless('ENOENT'));
    const sizes = JSON.stringify(Object.fromEntries(parts));
    if (before === sizes) return null;
    const temporary = join(folder, `${randomUUID()}.tmp`);
    const records = await put(temporary, folder, [...parts.keys()], parts);
    signal?.throwIfAborted();
    await rename(temporary, path);
    await writeFile(made, sizes);
    return { start: name === noPeriod ? null : Number(name), path, records };
  }

  /**
   * Everything has been read: makes what is still to be made, and takes away what files were made from.
   * By who has led, or leads (where no period was over nobody has made anything); anybody else only takes
   * away what is empty. Several may do so at once: what is to go
   * is moved out of the way in one step, so that nobody makes a file from half of it.
   */
  async tidy(isLeading = false): Promise<PeriodFile[]> {
    if (!this.#hasSwept && !isLeading && !(await this.#isEmpty())) return [];
    this.#hasSwept = false;
    const made = await this.complete(null, Number.POSITIVE_INFINITY).catch(unless('ENOENT'));
    const gone = join(this.directory, `${hidden}.${randomUUID()}`);
    await rename(join(this.directory, hidden), gone).catch(unless('ENOENT'));
    await rm(gone, { recursive: true, force: true });
    return made ?? [];
  }

  async #isEmpty(): Promise<boolean> {
    const names = await readdir(join(this.directory, hidden)).catch(unless('ENOENT'));
    return (names ?? []).every((name) => name === 'period');
  }
}

const nameOf = ({ topic, partition }: PartitionId) => `${topic}-${partition}`;

function unless(...codes: string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
}

/** A folder that may be there. What is above it is made only for who is still an owner. */
async function makeFolder(path: string, isOurs: () => boolean): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    unless('EEXIST', 'ENOENT')(error as NodeJS.ErrnoException);
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    if (!isOurs()) throw error;
    await makeFolders(path);
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error) => unless('ENOENT')(error) ?? false,
  );
}

async function append(path: string, bytes: Buffer): Promise<void> {
  const handle = await open(path, 'a');
  try {
    await handle.appendFile(bytes);
  } finally {
    await handle.close();
  }
}

async function synced(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** Names and sizes, in the order of the names. */
async function partsOf(folder: string): Promise<Map<string, number>> {
  const names = await readdir(folder).catch(unless('ENOENT'));
  const parts = new Map<string, number>();
  for (const name of (names ?? []).filter((each) => each.endsWith('.part')).sort()) {
    const handle = await open(join(folder, name), 'r');
    try {
      parts.set(name, (await handle.stat()).size);
    } finally {
      await handle.close();
    }
  }
  return parts;
}

interface Row {
  readonly name: string;
  readonly offset: bigint;
  readonly timeMs: number;
  readonly line: Buffer;
}

/** Writes the base, then all records of the parts, once each. Resolves with how many. */
async function put(
  path: string,
  folder: string,
  parts: readonly string[],
  sizes: ReadonlyMap<string, number>,
): Promise<number> {
  const byPartition = new Map<string, string[]>();
  for (const part of parts) {
    const name = part.replace(/\.\d+\.part$/, '');
    byPartition.set(name, [...(byPartition.get(name) ?? []), part]);
  }
  const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const handle = await open(path, 'w');
  let records = 0;
  try {
    const base = await readFile(join(folder, 'base')).catch(unless('ENOENT'));
    if (base !== undefined && base.length > 0) {
      await handle.appendFile(base);
      if (base.at(-1) !== newline[0]) await handle.appendFile(newline);
    }
    const held: Row[] = [];
    for (const [name, files] of byPartition) {
      const rows = await rowsOf(name, folder, files, sizes);
      records += rows.length;
      if (total > sortBytesMax) await writeRows(handle, rows);
      else held.push(...rows);
    }
    held.sort(byTime);
    await writeRows(handle, held);
    await handle.datasync();
  } finally {
    await handle.close();
  }
  return records;
}

function byTime(a: Row, b: Row): number {
  if (a.timeMs !== b.timeMs) return a.timeMs - b.timeMs;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.offset < b.offset ? -1 : 1;
}

async function writeRows(
  handle: { appendFile(bytes: Buffer): Promise<unknown> },
  rows: readonly Row[],
): Promise<void> {
  const atOnce = 10_000;
  for (let at = 0; at < rows.length; at += atOnce) {
    const pieces = rows.slice(at, at + atOnce).flatMap(({ line }) => [line, newline]);
    await handle.appendFile(Buffer.concat(pieces));
  }
}

/** All records of a partition, in the order of their offsets, each once. */
async function rowsOf(
  name: string,
  folder: string,
  files: readonly string[],
  sizes: ReadonlyMap<string, number>,
): Promise<Row[]> {
  const found = new Map<bigint, Row>();
  for (const file of files) {
    // No more than what was seen when it was listed: what `made` says is what the file holds.
    const bytes = (await readFile(join(folder, file))).subarray(0, sizes.get(file));
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(newline, at);
      const row = rowOf(name, bytes.subarray(at, end === -1 ? bytes.length : end));
      if (row !== null) found.set(row.offset, row);
      if (end === -1) break;
      at = end + 1;
    }
  }
  return [...found.values()].sort((a, b) => (a.offset < b.offset ? -1 : 1));
}

/** Null for a line that was cut short. */
export function rowOf(name: string, bytes: Buffer): Row | null {
  const head = /^(\d+) (\d+(?:\.\d+)?) (\d+) /.exec(bytes.subarray(0, 80).toString('latin1'));
  if (head === null) return null;
  const line = bytes.subarray(head[0].length);
  if (line.length !== Number(head[3])) return null;
  return { name, offset: BigInt(head[1]!), timeMs: Number(head[2]), line };
}
