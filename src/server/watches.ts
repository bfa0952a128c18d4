/**
 * Who waits for which change, and telling them.
 *
 * Two tables, as in Apache: `data` (getData, exists, and everything persistent) and `child`
 * (getChildren, and the persistent ones that are not recursive). A link has at most one entry of each
 * kind per path, and each can be removed alone.
 *
 * In: watches as they are set, and the tree's events. Out: one frame for each event, the same bytes
 * for every link that may read the node. What always holds: a one-shot watch is gone once its event
 * came up, whether its link was allowed to hear of it or not.
 */

import { Writer } from '../jute/index.ts';
import { type Acl, eventTypes, keeperStates, specialXids } from '../protocol/index.ts';
import type { TreeEvent } from '../tree/index.ts';
import { Tally } from './stats.ts';

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
  mayRead(acl: readonly Acl[]): boolean;
  deliver(frame: Buffer): void;
}

/** One path's watchers: mostly one, so that a set is made only for the second. */
type Watchers = Watcher | Set<Watcher>;

function* each(watchers: Watchers | undefined): Generator<Watcher, void, void> {
  if (watchers instanceof Set) yield* watchers;
  else if (watchers !== undefined) yield watchers;
}

class WatchTable {
  readonly #byPath = new Map<string, Watchers>();
  /** Kinds by path. Who has none left stays with an empty one until it is gone: most watch again at once. */
  readonly #byWatcher = new Map<Watcher, Map<string, number>>();
  #recursive = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get pathCount(): number {
    return this.#byPath.size;
  }

  countOf(watcher: Watcher): number {
    return this.#byWatcher.get(watcher)?.size ?? 0;
  }

  add(path: string, watcher: Watcher, kind: number): void {
    let paths = this.#byWatcher.get(watcher);
    if (paths === undefined) {
      paths = new Map();
      this.#byWatcher.set(watcher, paths);
    }
    const kinds = paths.get(path) ?? 0;
    if ((kinds & kind) !== 0) return;
    paths.set(path, kinds | kind);
    if (kind === watchKinds.recursive) this.#recursive += 1;
    if (kinds !== 0) return;
    this.#count += 1;
    const there = this.#byPath.get(path);
    if (there === undefined) this.#byPath.set(path, watcher);
    else if (there instanceof Set) there.add(watcher);
    else this.#byPath.set(path, new Set([there, watcher]));
  }

  has(path: string, watcher: Watcher, kinds: number): boolean {
    return ((this.#byWatcher.get(watcher)?.get(path) ?? 0) & kinds) !== 0;
  }

  /** True when there was one of these kinds. */
  remove(path: string, watcher: Watcher, kinds: number): boolean {
    const paths = this.#byWatcher.get(watcher);
    const known = paths?.get(path) ?? 0;
    if (paths === undefined || (known & kinds) === 0) return false;
    const left = known & ~kinds;
    if ((known & kinds & watchKinds.recursive) !== 0) this.#recursive -= 1;
    if (left !== 0) {
      paths.set(path, left);
      return true;
    }
    paths.delete(path);
    this.#count -= 1;
    const there = this.#byPath.get(path);
    if (there instanceof Set && there.size > 1) there.delete(watcher);
    else this.#byPath.delete(path);
    return true;
  }

  removeAll(watcher: Watcher): void {
    const paths = this.#byWatcher.get(watcher);
    if (paths === undefined) return;
    for (const path of [...paths.keys()]) this.remove(path, watcher, anyKind);
    this.#byWatcher.delete(watcher);
  }

  /** Those whom a change at `path` concerns, each once. Takes the one-shot watches away. */
  trigger(path: string): readonly Watcher[] {
    if (this.#count === 0) return [];
    const here = this.#take(path);
    if (this.#recursive === 0) return here;
    const told = new Set(here);
    for (let above = up(path); above !== undefined; above = up(above)) {
      for (const watcher of each(this.#byPath.get(above))) {
        if (this.has(above, watcher, watchKinds.recursive)) told.add(watcher);
      }
    }
    return [...told];
  }

  /** Those who watch `path`. Their one-shot watches go, all in one: there may be thousands. */
  #take(path: string): readonly Watcher[] {
    const here = this.#byPath.get(path);
    if (here === undefined) return [];
    const told = here instanceof Set ? [...here] : [here];
    const left: Watcher[] = [];
    for (const watcher of told) {
      const paths = this.#byWatcher.get(watcher)!;
      const kinds = paths.get(path)!;
      if (kinds === watchKinds.oneShot) {
        paths.delete(path);
      } else {
        left.push(watcher);
        if ((kinds & watchKinds.oneShot) !== 0) paths.set(path, kinds & ~watchKinds.oneShot);
      }
    }
    if (left.length === told.length) return told;
    this.#count -= told.length - left.length;
    if (left.length === 0) this.#byPath.delete(path);
    else this.#byPath.set(path, left.length === 1 ? left[0]! : new Set(left));
    return told;
  }

  paths(): IterableIterator<[path: string, watchers: Watchers]> {
    return this.#byPath.entries();
  }

  pathsOf(watcher: Watcher): readonly string[] {
    return [...(this.#byWatcher.get(watcher)?.keys() ?? [])];
  }

  *watchers(): Generator<Watcher, void, void> {
    for (const [watcher, paths] of this.#byWatcher) if (paths.size > 0) yield watcher;
  }
}

function up(path: string): string | undefined {
  if (path === '/' || path === '') return undefined;
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

const builder = new Writer(256);

/** A notification. `zxid` is the txn's, or -1 for an event that a setWatches brought to light. */
export function eventFrame(type: TreeEvent['type'], path: string, zxid: number): Buffer {
  builder.truncate(0);
  const start = builder.beginFrame();
  builder.int(specialXids.notification);
  builder.longHalves(Math.floor(zxid / 0x1_0000_0000), zxid >>> 0);
  builder.int(0);
  builder.int(eventTypes[type]);
  builder.int(keeperStates.syncConnected);
  builder.ustring(path);
  builder.endFrame(start);
  return Buffer.from(builder.written());
}

export class Watches {
  readonly data = new WatchTable();
  readonly child = new WatchTable();
  /** Events told since the start, to how many links. */
  toldCount = 0;
  toldBytes = 0;
  /** How many waited for each event that somebody waited for. */
  readonly told: { readonly [T in TreeEvent['type']]: Tally } = {
    created: new Tally(),
    deleted: new Tally(),
    dataChanged: new Tally(),
    childrenChanged: new Tally(),
  };

  /** As Apache counts: a persistent watch stands in both tables. */
  get count(): number {
    return this.data.count + this.child.count;
  }

  get isEmpty(): boolean {
    return this.data.count === 0 && this.child.count === 0;
  }

  countOf(watcher: Watcher): number {
    return this.data.countOf(watcher) + this.child.countOf(watcher);
  }

  addPersistent(path: string, watcher: Watcher, recursive: boolean): void {
    if (recursive) {
      this.data.add(path, watcher, watchKinds.recursive);
      return;
    }
    this.data.add(path, watcher, watchKinds.persistent);
    this.child.add(path, watcher, watchKinds.persistent);
  }

  removeAll(watcher: Watcher): void {
    this.data.removeAll(watcher);
    this.child.removeAll(watcher);
  }

  notify(events: readonly TreeEvent[], zxid: number): void {
    for (const event of events) {
      if (event.type === 'childrenChanged') {
        this.#tell(event, zxid, this.child.trigger(event.path));
        continue;
      }
      const told = this.data.trigger(event.path);
      this.#tell(event, zxid, told);
      if (event.type !== 'deleted') continue;
      // A child watch on the node itself ends too; who had both hears of it once.
      const childTold = this.child.trigger(event.path);
      if (childTold.length > 0) {
        const already = new Set(told);
        this.#tell(
          event,
          zxid,
          childTold.filter((watcher) => !already.has(watcher)),
        );
      }
    }
  }

  #tell(event: TreeEvent, zxid: number, watchers: readonly Watcher[]): void {
    if (watchers.length === 0) return;
    this.told[event.type].add(watchers.length);
    const frame = eventFrame(event.type, event.path, zxid);
    for (const watcher of watchers) {
      if (!watcher.mayRead(event.acl)) continue;
      this.toldCount += 1;
      this.toldBytes += frame.length;
      watcher.deliver(frame);
    }
  }
}
