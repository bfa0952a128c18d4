/** Taking watches away again, here and on the server. */

import {
  type EventType,
  isZkError,
  type WatcherType,
  watcherTypes,
  ZkError,
} from '../protocol/index.ts';
import { ArgumentError } from './argument-error.ts';
import type { CallOptions, Core } from './core.ts';
import type { Listener, Watches, WatchKind } from './watches.ts';

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

const single = ['children', 'data', 'persistent', 'persistentRecursive'] as const;

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
  if (!Object.hasOwn(kindsOf, kind)) {
    throw new ArgumentError('kind', `one of ${Object.keys(kindsOf).join(', ')} is wanted`);
  }
  const full = core.toServer(path);
  const { watches } = core;
  const kinds = kindsOf[kind].filter((one) => {
    const listeners = watches.listeners(one, full);
    return listener === undefined ? listeners.size > 0 : listeners.has(listener);
  });
  if (kinds.length === 0) throw new ZkError('NO_WATCHER', { op: 'removeWatches', path });

  try {
    for (const type of goingTypes(watches, full, kinds, listener)) {
      await drop(core, full, path, type, options);
    }
  } catch (error) {
    if (!local) throw error;
  }
  for (const one of kinds) {
    const gone = watches.remove(one, full, listener);
    core.tell(gone, { type: removedEvent[one], path, zxid: null });
  }
}

/** A server holds one watch for all listeners of a kind: while others stay, so does that one. */
function goingTypes(
  watches: Watches,
  full: string,
  kinds: readonly WatchKind[],
  listener: Listener | undefined,
): WatcherType[] {
  const left = (one: WatchKind) => {
    const { size } = watches.listeners(one, full);
    if (!kinds.includes(one)) return size;
    return listener === undefined ? 0 : size - 1;
  };
  // Where nothing stays, `any` says it in one, and to servers that know no more than that.
  if (kindsOf.any.every((one) => left(one) === 0)) return ['any'];
  return single.filter(
    (type) =>
      kindsOf[type].some((one) => kinds.includes(one)) &&
      kindsOf[type].every((one) => left(one) === 0),
  );
}

async function drop(
  core: Core,
  full: string,
  path: string,
  type: WatcherType,
  options: CallOptions,
): Promise<void> {
  try {
    await core.call('removeWatches', { path: full, type: watcherTypes[type] }, path, options);
  } catch (error) {
    // 3.8 has no words for the kinds that stay. It goes on telling of them, and nobody listens.
    const isNew = type === 'persistent' || type === 'persistentRecursive';
    if (!isNew || !isZkError(error, 'MARSHALLING_ERROR')) throw error;
  }
}
