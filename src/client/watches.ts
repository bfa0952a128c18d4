/**
 * Who listens to what: the client's side of every watch that a server holds for this session.
 *
 * In: listeners by kind and path, notifications off the link. Out: calls of the listeners, and after
 * a reconnect the requests that set all watches again. A server keeps one watch for each kind and
 * path of a link, however many listeners stand behind it here.
 */

import {
  type EventType,
  parentOf,
  type SetWatches2,
  setWatchesBytesMax,
} from '../protocol/index.ts';

export interface WatchEvent {
  readonly type: EventType;
  readonly path: string;
  /**
   * The transaction that caused it, where the server says so (3.9 and later), else null. A persistent
   * watch on a server before 3.6 finds it out; of a deletion it says the last that it can have been.
   */
  readonly zxid: bigint | null;
}

/** A change that a watch stream tells of. */
export interface Change {
  readonly type: 'created' | 'deleted' | 'dataChanged' | 'childrenChanged';
  readonly path: string;
  /** The transaction, where it is known: a deletion that was missed has none, nor have live events before 3.9. */
  readonly zxid: bigint | null;
  /** Found by comparing after a gap, and not told by the server as it happened. */
  readonly late: boolean;
}

/** The reader or the tree was too much for the limits that were set. */
export class WatchOverflowError extends Error {
  override readonly name = 'WatchOverflowError';
  readonly code = 'WATCH_OVERFLOW';
}

export function tooManyNodes({ path, nodesMax }: { path: string; nodesMax: number }): Error {
  const why = `more than ${nodesMax} nodes; watch less of the tree, or set nodesMax`;
  return new WatchOverflowError(`watch ${path}: ${why}`);
}

/** How many nodes a recursive watch may span by default, where the client has to know them all. */
export const watchedNodesMax = 1_000_000;

export type Listener = (event: WatchEvent) => void;

/** What a request that sets watches again takes beside them: its header, the zxid, the length of each list. */
const aroundBytes = 8 + 8 + 5 * 4;

/** Each of them: its path, and how long that is. */
function watchBytes(path: string): number {
  return 4 + Buffer.byteLength(path);
}

/** What it takes to set a watch again, on a link of its own if need be. */
export function resetBytes(path: string): number {
  return aroundBytes + watchBytes(path);
}

/** Kinds of which a server forgets the watch as it fires. */
export const oneShotKinds = ['data', 'exist', 'child'] as const;
/** Kinds that stay, on servers of 3.6 and later. */
const persistentKinds = ['persistent', 'recursive'] as const;
/** What a server holds, and is told of again on a new connection. */
export const serverKinds = [...oneShotKinds, ...persistentKinds] as const;
/** The kinds that stay where no server keeps them: no event is for them, `EmulatedWatch` tells them. */
const emulatedKinds = ['emulatedPersistent', 'emulatedRecursive'] as const;
const watchKinds = [...serverKinds, ...emulatedKinds] as const;
export type WatchKind = (typeof watchKinds)[number];
type ServerKind = (typeof serverKinds)[number];

/** Which kinds hear of what happened to the very node they watch. */
const heardBy: Partial<Record<EventType, readonly WatchKind[]>> = {
  created: ['data', 'exist', 'persistent'],
  dataChanged: ['data', 'exist', 'persistent'],
  deleted: ['data', 'exist', 'child', 'persistent'],
  childrenChanged: ['child', 'persistent'],
};

export class Watches {
  readonly #onRemoved: (kind: WatchKind, path: string, listener: Listener) => void;
  readonly #byKind: Record<WatchKind, Map<string, Set<Listener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
    persistent: new Map(),
    recursive: new Map(),
    emulatedPersistent: new Map(),
    emulatedRecursive: new Map(),
  };

  /** `onRemoved`: a listener was taken away by name, and not by an event or with its session. */
  constructor(onRemoved: (kind: WatchKind, path: string, listener: Listener) => void = () => {}) {
    this.#onRemoved = onRemoved;
  }

  /** Those that a server holds. */
  get size(): number {
    return serverKinds.reduce((sum, kind) => sum + this.#byKind[kind].size, 0);
  }

  add(kind: WatchKind, path: string, listener: Listener): void {
    const paths = this.#byKind[kind];
    const listeners = paths.get(path);
    if (listeners === undefined) paths.set(path, new Set([listener]));
    else listeners.add(listener);
  }

  has(kind: WatchKind, path: string): boolean {
    return this.#byKind[kind].has(path);
  }

  listeners(kind: WatchKind, path: string): ReadonlySet<Listener> {
    return this.#byKind[kind].get(path) ?? new Set();
  }

  /** Takes one listener away, or all. Returns those that were there. */
  remove(kind: WatchKind, path: string, listener?: Listener): Listener[] {
    const listeners = this.#byKind[kind].get(path);
    if (listeners === undefined) return [];
    const gone =
      listener === undefined ? [...listeners] : listeners.has(listener) ? [listener] : [];
    for (const one of gone) listeners.delete(one);
    if (listeners.size === 0) this.#byKind[kind].delete(path);
    for (const one of gone) this.#onRemoved(kind, path, one);
    return gone;
  }

  /** The watches that stay on the server: kind, path and listener of each. */
  persistent(): (readonly [(typeof persistentKinds)[number], string, Listener])[] {
    return persistentKinds.flatMap((kind) =>
      [...this.#byKind[kind]].flatMap(([path, listeners]) =>
        [...listeners].map((listener) => [kind, path, listener] as const),
      ),
    );
  }

  /** Every listener, once, that this event is for. Those of one-shot watches are let go of. */
  take(type: EventType, path: string): Set<Listener> {
    const found = new Set<Listener>();
    for (const kind of heardBy[type] ?? []) {
      for (const listener of this.#byKind[kind].get(path) ?? []) found.add(listener);
      if ((oneShotKinds as readonly WatchKind[]).includes(kind)) this.#byKind[kind].delete(path);
    }
    // The recursive kind hears of nodes below it, and never of a change in a list of children.
    const isBelow = path.startsWith('/') && type !== 'childrenChanged' && type !== 'none';
    if (isBelow && this.#byKind.recursive.size > 0) {
      for (let at: string | null = path; at !== null; at = parentOf(at)) {
        for (const listener of this.#byKind.recursive.get(at) ?? []) found.add(listener);
      }
    }
    return found;
  }

  /** Every listener there is, once; all are let go of. */
  takeAll(): Set<Listener> {
    const found = new Set<Listener>();
    for (const kind of watchKinds) {
      for (const listeners of this.#byKind[kind].values()) {
        for (const listener of listeners) found.add(listener);
      }
      this.#byKind[kind].clear();
    }
    return found;
  }

  /**
   * What sets all watches again on a new link, in requests that each stay well below what a server
   * takes: one that is too long would be refused, on every new link, for ever (ZOOKEEPER-706). A path
   * that fits none has no watch: `Calls` refuses to set it.
   */
  *requests(
    relativeZxid: bigint,
    requestBytesMax: number,
    kinds: readonly ServerKind[] = serverKinds,
  ): Generator<SetWatches2> {
    const bytesMax = Math.min(setWatchesBytesMax, requestBytesMax - aroundBytes);
    let chunk = emptyChunk(relativeZxid);
    let bytes = 0;
    for (const kind of kinds) {
      for (const path of this.#byKind[kind].keys()) {
        const size = watchBytes(path);
        if (bytes > 0 && bytes + size > bytesMax) {
          yield chunk;
          chunk = emptyChunk(relativeZxid);
          bytes = 0;
        }
        chunk[listOf[kind]].push(path);
        bytes += size;
      }
    }
    if (bytes > 0) yield chunk;
  }
}

const listOf = {
  data: 'dataWatches',
  exist: 'existWatches',
  child: 'childWatches',
  persistent: 'persistentWatches',
  recursive: 'persistentRecursiveWatches',
} as const;

function emptyChunk(relativeZxid: bigint): SetWatches2 {
  return {
    relativeZxid,
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };
}
