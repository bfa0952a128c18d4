/** Taking watches away again, here and on the server. */

import { type EventType, type WatcherType, watcherTypes, ZkError } from '../protocol/index.ts';
import type { CallOptions, Core } from './core.ts';
import type { Listener, WatchKind } from './watches.ts';

export interface RemoveOptions extends CallOptions {
  /** Any kind unless said. */
  readonly kind?: WatcherType;
  /** This listener alone. All unless said. */
  readonly listener?: Listener;
  /** Forget them here even when the server cannot be asked: what it still sends is ignored. */
  readonly local?: boolean;
}

const kindsOf: Record<WatcherType, readonly WatchKind[]> = {
  children: ['child'],
  data: ['data', 'exist'],
  any: ['data', 'exist', 'child', 'persistent', 'recursive'],
  persistent: ['persistent'],
  persistentRecursive: ['recursive'],
};

/** Told to a listener that is taken away, as Java's client tells it. */
const removedEvent: Record<WatchKind, EventType> = {
  data: 'dataWatchRemoved',
  exist: 'dataWatchRemoved',
  child: 'childWatchRemoved',
  persistent: 'persistentWatchRemoved',
  recursive: 'persistentWatchRemoved',
};

export async function removeWatches(
  core: Core,
  path: string,
  { kind = 'any', listener, local = false, ...options }: RemoveOptions,
): Promise<void> {
  const full = core.toServer(path);
  const { watches } = core;
  const kinds = kindsOf[kind].filter((one) => {
    const listeners = watches.listeners(one, full);
    return listener === undefined ? listeners.size > 0 : listeners.has(listener);
  });
  if (kinds.length === 0) throw new ZkError('NO_WATCHER', { op: 'removeWatches', path });

  // The server holds one watch for all listeners of a kind: while others stay, so does that one.
  const sole = kinds.filter(
    (one) => listener === undefined || watches.listeners(one, full).size === 1,
  );
  try {
    for (const type of serverTypes(kind, sole)) {
      await core.call('removeWatches', { path: full, type }, path, options);
    }
  } catch (error) {
    if (!local) throw error;
  }
  for (const one of kinds) {
    const gone = watches.remove(one, full, listener);
    core.tell(gone, { type: removedEvent[one], path, zxid: null });
  }
}

/** What to ask of the server: the kind as asked, where all of it goes, else kind by kind. */
function serverTypes(kind: WatcherType, sole: readonly WatchKind[]): number[] {
  if (sole.length === 0) return [];
  const all = kindsOf[kind];
  if (kind !== 'any' || sole.length === all.length) return [watcherTypes[kind]];
  const types = new Set<number>();
  for (const [name, kinds] of Object.entries(kindsOf)) {
    if (name !== 'any' && kinds.some((one) => sole.includes(one))) {
      types.add(watcherTypes[name as WatcherType]);
    }
  }
  return [...types];
}
