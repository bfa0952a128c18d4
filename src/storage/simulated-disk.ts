/**
 * A disk for tests: a file system in memory that knows what a real one would lose.
 *
 *   cache   what programs see: every write at once
 *   disk    what a power cut leaves: what was synced, and of the rest any sectors, in any mixture
 *
 * Strict by POSIX: of writes not synced each 512-byte sector may be there or not, a file's new length may
 * be there or not, and so may each name made, renamed or removed since its folder's last sync. A sync
 * that fails leaves the cache as it is and forgets what should have been written, as Linux does.
 */

import { dirname } from 'node:path';
import type { FileStatus, FileSystem, StoredFile } from './file-system.ts';

const sectorBytes = 512;

interface Inode {
  cache: Buffer;
  disk: Buffer;
  /** Sectors written since the last sync. */
  readonly dirty: Set<number>;
}

type NameChange = (names: Map<string, Inode>) => void;

/** Called before each operation. What it throws, the operation throws; 'short' writes half and then fails. */
export type Fault = (call: {
  readonly nth: number;
  readonly op: string;
  readonly path: string;
}) => 'short' | undefined;

export class SimulatedDisk implements FileSystem {
  readonly #names: Map<string, Inode>;
  readonly #diskNames: Map<string, Inode>;
  readonly #folders: Set<string>;
  readonly #changes: { folder: string; change: NameChange }[] = [];
  /** Operations so far that change something or open a file. */
  calls = 0;
  fault: Fault = () => undefined;

  constructor(names = new Map<string, Inode>(), folders = new Set<string>()) {
    this.#names = names;
    this.#diskNames = new Map(names);
    this.#folders = folders;
  }

  /**
   * The disk after a power cut. `choose` picks from so many possibilities, by number; 0 always means
   * that what was not synced is lost.
   */
  afterPowerCut(choose: (possibilities: number) => number): SimulatedDisk {
    const names = new Map(this.#diskNames);
    for (const { change } of this.#changes) if (choose(2) === 1) change(names);
    const survivors = new Map<Inode, Inode>();
    for (const inode of new Set(names.values())) survivors.set(inode, survivor(inode, choose));
    const found = [...names].map(([path, inode]) => [path, survivors.get(inode)!] as const);
    return new SimulatedDisk(new Map(found), new Set(this.#folders));
  }

  /** The disk as the next process sees it when this one is killed: the cache survives. */
  afterKill(): SimulatedDisk {
    const next = new SimulatedDisk(this.#names, this.#folders);
    next.#diskNames.clear();
    for (const [path, inode] of this.#diskNames) next.#diskNames.set(path, inode);
    next.#changes.push(...this.#changes);
    return next;
  }

  /** A copy of every file as programs see it, to be damaged and put back. */
  contents(): Map<string, Buffer> {
    return new Map([...this.#names].map(([path, { cache }]) => [path, Buffer.from(cache)]));
  }

  static of(contents: ReadonlyMap<string, Buffer>, folders: readonly string[]): SimulatedDisk {
    const names = [...contents].map(([path, bytes]) => [path, inodeOf(bytes)] as const);
    return new SimulatedDisk(new Map(names), new Set(folders));
  }

  async open(path: string, how: 'read' | 'write' | 'create'): Promise<StoredFile> {
    this.call(`open ${how}`, path);
    let inode = this.#names.get(path);
    if (how === 'create') {
      if (inode !== undefined) throw errno('EEXIST', path);
      const made = inodeOf(Buffer.alloc(0));
      inode = made;
      this.#change(path, (names) => names.set(path, made));
    }
    if (inode === undefined) throw errno('ENOENT', path);
    return new SimulatedFile(this, path, inode);
  }

  async rename(from: string, to: string): Promise<void> {
    this.call('rename', from);
    const inode = this.#names.get(from);
    if (inode === undefined) throw errno('ENOENT', from);
    this.#change(to, (names) => {
      names.delete(from);
      names.set(to, inode);
    });
  }

  async remove(path: string): Promise<void> {
    this.call('remove', path);
    if (!this.#names.has(path)) throw errno('ENOENT', path);
    this.#change(path, (names) => names.delete(path));
  }

  async list(folder: string): Promise<string[]> {
    const inside = [...this.#names.keys()].filter((path) => dirname(path) === folder);
    return inside.map((path) => path.slice(folder.length + 1));
  }

  async status(path: string): Promise<FileStatus | null> {
    const bytes = this.#names.get(path)?.cache.length;
    const isFolder = this.#folders.has(path);
    if (bytes === undefined && !isFolder) return null;
    return { bytes: bytes ?? 0, isFolder, mode: isFolder ? 0o700 : 0o600, modifiedMs: 0 };
  }

  async realPath(path: string): Promise<string> {
    return path;
  }

  async makeFolder(path: string): Promise<void> {
    this.call('makeFolder', path);
    this.#folders.add(path);
  }

  async syncFolder(path: string): Promise<void> {
    this.call('syncFolder', path);
    for (let i = 0; i < this.#changes.length; ) {
      if (this.#changes[i]!.folder !== path) i++;
      else this.#changes.splice(i, 1)[0]!.change(this.#diskNames);
    }
  }

  call(op: string, path: string): 'short' | undefined {
    this.calls += 1;
    return this.fault({ nth: this.calls, op, path });
  }

  #change(path: string, change: NameChange): void {
    change(this.#names);
    this.#changes.push({ folder: dirname(path), change });
  }
}

class SimulatedFile implements StoredFile {
  readonly #disk: SimulatedDisk;
  readonly #path: string;
  readonly #inode: Inode;

  constructor(disk: SimulatedDisk, path: string, inode: Inode) {
    this.#disk = disk;
    this.#path = path;
    this.#inode = inode;
  }

  async read(target: Buffer, position: number): Promise<number> {
    return this.#inode.cache.copy(target, 0, position);
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    this.writeNow(bytes, position);
  }

  writeNow(bytes: Uint8Array, position: number): boolean {
    const isShort = this.#disk.call('write', this.#path) === 'short';
    const taken = isShort ? bytes.subarray(0, bytes.length >> 1) : bytes;
    const inode = this.#inode;
    const end = position + taken.length;
    if (end > inode.cache.length) inode.cache = resized(inode.cache, end);
    inode.cache.set(taken, position);
    for (let at = position - (position % sectorBytes); at < end; at += sectorBytes) {
      inode.dirty.add(at);
    }
    if (isShort) throw errno('ENOSPC', this.#path);
    return true;
  }

  async allocate(from: number, to: number): Promise<void> {
    await this.write(Buffer.alloc(to - from), from);
  }

  async truncate(bytes: number): Promise<void> {
    this.#disk.call('truncate', this.#path);
    this.#inode.cache = resized(this.#inode.cache, bytes);
    for (const at of this.#inode.dirty) if (at >= bytes) this.#inode.dirty.delete(at);
  }

  async sync(): Promise<void> {
    try {
      this.#disk.call('sync', this.#path);
    } catch (error) {
      this.#inode.dirty.clear(); // the pages are called clean, and never written
      throw error;
    }
    const { dirty, cache } = this.#inode;
    this.#inode.disk = resized(this.#inode.disk, cache.length);
    for (const at of dirty) putSector(this.#inode.disk, cache, at);
    dirty.clear();
  }

  async size(): Promise<number> {
    return this.#inode.cache.length;
  }

  async close(): Promise<void> {}
}

function inodeOf(bytes: Buffer): Inode {
  return { cache: Buffer.from(bytes), disk: Buffer.from(bytes), dirty: new Set() };
}

function survivor({ cache, disk, dirty }: Inode, choose: (n: number) => number): Inode {
  const isLengthKept = cache.length !== disk.length && choose(2) === 1;
  const found = resized(disk, isLengthKept ? cache.length : disk.length);
  for (const at of dirty) if (at < found.length && choose(2) === 1) putSector(found, cache, at);
  return inodeOf(found);
}

function putSector(target: Buffer, source: Buffer, at: number): void {
  source.copy(target, at, at, Math.min(at + sectorBytes, source.length));
}

function resized(bytes: Buffer, length: number): Buffer {
  const next = Buffer.alloc(length);
  bytes.copy(next, 0, 0, Math.min(length, bytes.length));
  return next;
}

export function errno(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, '${path}'`), { code });
}
