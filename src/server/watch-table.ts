/**
 * Who watches which path, both ways round.
 *
 * A link has one entry for each path, with the kinds that it watches by. The entry of a watch that is spent
 * stays with its link, empty: most watch again at once, and with thousands of links on one path
 * an event costs a look at each entry and no more. Of these no link keeps more than twice what it has.
 */

import type { Acl } from '../protocol/index.ts';
import { TextMap } from '../support/index.ts';
import { PathPrefixes } from '../tree/index.ts';

// biome-ignore format: a table is read down its columns
export const watchKinds = {
  oneShot:    1,
  persistent: 2,
  recursive:  4,
} as const;
export const anyKind = 7;

export interface Watcher {
  /** Of the session behind it, for who lists watches. */
  readonly watcherId: bigint;
  /** Set when a one-shot watch of its is spent. */
  hasSpentWatch?: boolean;
  mayRead(acl: readonly Acl[]): boolean;
  deliver(frame: Buffer): void;
}

/** All that one link watches. */
interface Owner {
  readonly watcher: Watcher;
  readonly entries: TextMap<Entry>;
  /** Entries with any kinds. */
  live: number;
  /** What all its entries cost, spent ones included. */
  bytes: number;
}

interface Entry {
  readonly owner: Owner;
  kinds: number;
  /** Its place among those of its path. */
  at: number;
}

/** What an entry takes beside its path (measured on Node 20): itself, and its places in two tables. */
const entryBytes = 200;
/** What a recursive one takes more: it stands among the paths that are found for those below them. */
const recursiveBytes = 700;

/** What the path of a watch takes, as a string of V8, and its entry. */
export function watchBytes(path: string, kind: number): number {
  const bytes = Buffer.byteLength(path);
  const pathBytes = bytes === path.length ? bytes : 2 * path.length;
  return entryBytes + pathBytes + (kind === watchKinds.recursive ? recursiveBytes : 0);
}

/** Below this many it is not looked for empty ones. */
const emptyMin = 16;

export class WatchTable {
  /** Mostly one for a path, so that a list is made only for the second. */
  readonly #byPath = new TextMap<Entry | Entry[]>();
  readonly #byWatcher = new Map<Watcher, Owner>();
  readonly #recursive = new PathPrefixes<Entry>();
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  get pathCount(): number {
    return this.#byPath.size;
  }

  /** Entries of watches that are spent. */
  get emptyCount(): number {
    let count = 0;
    for (const { entries, live } of this.#byWatcher.values()) count += entries.size - live;
    return count;
  }

  /** What all entries cost. */
  get bytes(): number {
    return this.#bytes;
  }

  bytesOf(watcher: Watcher): number {
    return this.#byWatcher.get(watcher)?.bytes ?? 0;
  }

  countOf(watcher: Watcher): number {
    return this.#byWatcher.get(watcher)?.live ?? 0;
  }

  add(path: string, watcher: Watcher, kind: number): void {
    let owner = this.#byWatcher.get(watcher);
    if (owner === undefined) {
      owner = { watcher, entries: new TextMap(), live: 0, bytes: 0 };
      this.#byWatcher.set(watcher, owner);
    }
    const entry = owner.entries.get(path) ?? this.#newEntry(owner, path);
    const { kinds } = entry;
    if ((kinds & kind) !== 0) return;
    entry.kinds = kinds | kind;
    if (kind === watchKinds.recursive) {
      this.#recursive.add(path, entry);
      this.#weigh(owner, recursiveBytes);
    }
    if (kinds === 0) this.#list(path, entry);
  }

  has(path: string, watcher: Watcher, kinds: number): boolean {
    return ((this.#byWatcher.get(watcher)?.entries.get(path)?.kinds ?? 0) & kinds) !== 0;
  }

  /** True when there was one of these kinds. */
  remove(path: string, watcher: Watcher, kinds: number): boolean {
    const owner = this.#byWatcher.get(watcher);
    const entry = owner?.entries.get(path);
    if (owner === undefined || entry === undefined || (entry.kinds & kinds) === 0) return false;
    if ((entry.kinds & kinds & watchKinds.recursive) !== 0) {
      this.#recursive.delete(path, entry);
      this.#weigh(owner, -recursiveBytes);
    }
    entry.kinds &= ~kinds;
    if (entry.kinds !== 0) return true;
    this.#forget(owner, path);
    this.#unlist(path, entry);
    return true;
  }

  removeAll(watcher: Watcher): void {
    const paths = this.#byWatcher.get(watcher)?.entries.keys();
    if (paths === undefined) return;
    this.forgetSpent(watcher);
    for (const path of [...paths]) this.remove(path, watcher, anyKind);
    this.#byWatcher.delete(watcher);
  }

  /** Takes the entries away that are kept for watches to come. */
  forgetSpent(watcher: Watcher): void {
    const owner = this.#byWatcher.get(watcher);
    if (owner === undefined || owner.entries.size === owner.live) return;
    for (const [path, { kinds }] of owner.entries) if (kinds === 0) this.#forget(owner, path);
  }

  /** Those whom a change at `path` concerns, each once. Takes the one-shot watches away. */
  trigger(path: string): readonly Watcher[] {
    if (this.#count === 0) return [];
    const here = this.#take(path);
    if (this.#recursive.isEmpty) return here;
    const told = new Set(here);
    for (const { owner } of this.#recursive.find(path)) told.add(owner.watcher);
    return [...told];
  }

  /** Those who watch `path`. Their one-shot watches go, all in one: there may be thousands. */
  #take(path: string): readonly Watcher[] {
    const here = listOf(this.#byPath.get(path));
    const told: Watcher[] = [];
    const left: Entry[] = [];
    for (const entry of here) {
      const { owner } = entry;
      told.push(owner.watcher);
      if ((entry.kinds & watchKinds.oneShot) !== 0) owner.watcher.hasSpentWatch = true;
      entry.kinds &= ~watchKinds.oneShot;
      if (entry.kinds === 0) owner.live -= 1;
      else entry.at = left.push(entry) - 1;
    }
    if (left.length === here.length) return told;
    this.#count -= here.length - left.length;
    if (left.length === 0) this.#byPath.delete(path);
    else this.#byPath.set(path, left);
    return told;
  }

  *paths(): Generator<[path: string, watchers: readonly Watcher[]], void, void> {
    for (const [path, here] of this.#byPath) {
      yield [path, listOf(here).map(({ owner }) => owner.watcher)];
    }
  }

  pathsOf(watcher: Watcher): readonly string[] {
    const all = [...(this.#byWatcher.get(watcher)?.entries ?? [])];
    return all.filter(([, { kinds }]) => kinds !== 0).map(([path]) => path);
  }

  *watchers(): Generator<Watcher, void, void> {
    for (const { watcher, live } of this.#byWatcher.values()) if (live > 0) yield watcher;
  }

  #newEntry(owner: Owner, path: string): Entry {
    const { entries, live } = owner;
    if (entries.size > 2 * live + emptyMin) this.forgetSpent(owner.watcher);
    const entry = { owner, kinds: 0, at: 0 };
    entries.set(path, entry);
    this.#weigh(owner, watchBytes(path, 0));
    return entry;
  }

  #forget(owner: Owner, path: string): void {
    owner.entries.delete(path);
    this.#weigh(owner, -watchBytes(path, 0));
  }

  #weigh(owner: Owner, bytes: number): void {
    owner.bytes += bytes;
    this.#bytes += bytes;
  }

  #list(path: string, entry: Entry): void {
    this.#count += 1;
    entry.owner.live += 1;
    const here = this.#byPath.get(path);
    if (Array.isArray(here)) {
      entry.at = here.push(entry) - 1;
    } else if (here === undefined) {
      entry.at = 0;
      this.#byPath.set(path, entry);
    } else {
      entry.at = 1;
      this.#byPath.set(path, [here, entry]);
    }
  }

  /** The last of its path takes its place. */
  #unlist(path: string, entry: Entry): void {
    this.#count -= 1;
    entry.owner.live -= 1;
    const here = this.#byPath.get(path);
    if (!Array.isArray(here) || here.length === 1) {
      this.#byPath.delete(path);
      return;
    }
    const last = here.pop()!;
    if (last === entry) return;
    here[entry.at] = last;
    last.at = entry.at;
  }
}

function listOf(here: Entry | Entry[] | undefined): readonly Entry[] {
  if (here === undefined) return [];
  return Array.isArray(here) ? here : [here];
}
