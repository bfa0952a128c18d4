/** Taking watches away again, here and on the server. */

import {
  addWatchModes,
  type EventType,
  isZkError,
  type WatcherType,
  watcherTypes,
  wireOf,
  ZkError,
} from '../protocol/index.ts';
import { ArgumentError } from '../support/index.ts';
import type { Call } from './calls.ts';
import type { CallOptions, Core } from './core.ts';
import { type Listener, serverKinds, type WatchKind } from './watches.ts';

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
  any: serverKinds,
  persistent: ['persistent'],
  persistentRecursive: ['recursive'],
};
/** Those of them that no server keeps. */
const emulatedKindsOf: Record<WatcherType, readonly WatchKind[]> = {
  children: [],
  data: [],
  any: ['emulatedPersistent', 'emulatedRecursive'],
  persistent: ['emulatedPersistent'],
  persistentRecursive: ['emulatedRecursive'],
};

const marshallingError = wireOf('MARSHALLING_ERROR');
const single = ['children', 'data', 'persistent', 'persistentRecursive'] as const;

/** Told to a listener that is taken away, as Java's client tells it. */
const removedEvent: Record<WatchKind, EventType> = {
  data: 'dataWatchRemoved',
  exist: 'dataWatchRemoved',
  child: 'childWatchRemoved',
  persistent: 'persistentWatchRemoved',
  recursive: 'persistentWatchRemoved',
  emulatedPersistent: 'persistentWatchRemoved',
  emulatedRecursive: 'persistentWatchRemoved',
};

interface Removal {
  readonly core: Core;
  /** The caller's, and the server's. */
  readonly path: string;
  readonly full: string;
  readonly wanted: readonly WatchKind[];
  readonly listener: Listener | undefined;
}

export async function removeWatches(
  core: Core,
  path: string,
  { kind = 'any', listener, local = false, ...options }: RemoveOptions,
): Promise<void> {
  if (!Object.hasOwn(kindsOf, kind)) {
    throw new ArgumentError('kind', `one of ${Object.keys(kindsOf).join(', ')} is wanted`);
  }
  const place = { core, path, full: core.toServer(path), listener };
  const removal = { ...place, wanted: kindsOf[kind] };
  // Those that are there now: one that comes meanwhile stays.
  const emulated = listenersThere({ ...place, wanted: emulatedKindsOf[kind] });
  const isNone = () => emulated.length === 0 && kindsThere(removal).length === 0;
  if (isNone()) throw noWatcher(path);
  try {
    if (isContested(removal)) {
      await allAnswered(removal, options);
      if (isNone()) throw noWatcher(path); // it fired meanwhile
    }
    const types = kindsThere(removal).length === 0 ? [] : goingTypes(removal);
    const isAsked = (one: WatchKind) => types.some((type) => kindsOf[type].includes(one));
    forget(removal, (one) => !isAsked(one));
    // All in one breath: a watch that is asked for in between would go with the rest.
    const asked = await Promise.allSettled(types.map((type) => drop(removal, type, options)));
    for (const outcome of asked) if (outcome.status === 'rejected') throw outcome.reason;
  } catch (error) {
    if (!local) throw error;
    forget(removal);
  }
  for (const [one, watcher] of emulated) forget({ ...place, wanted: [one], listener: watcher });
}

function noWatcher(path: string): ZkError {
  return new ZkError('NO_WATCHER', { op: 'removeWatches', path });
}

/** Of those that are to go, those that are there. */
function kindsThere({ core, full, wanted, listener }: Removal): WatchKind[] {
  return wanted.filter((one) => {
    const listeners = core.watches.listeners(one, full);
    return listener === undefined ? listeners.size > 0 : listeners.has(listener);
  });
}

function listenersThere(removal: Removal): (readonly [WatchKind, Listener])[] {
  const { core, full, listener } = removal;
  return kindsThere(removal).flatMap((one) => {
    const all = listener === undefined ? [...core.watches.listeners(one, full)] : [listener];
    return all.map((each) => [one, each] as const);
  });
}

/** Forgets those that are to go, of all kinds or of some, and tells them. */
function forget(removal: Removal, isMeant: (one: WatchKind) => boolean = () => true): void {
  const { core, full, path, listener } = removal;
  for (const one of removal.wanted.filter(isMeant)) {
    const gone = core.watches.remove(one, full, listener);
    core.tell(gone, { type: removedEvent[one], path, zxid: null });
  }
}

/**
 * Whether a watch of this path is asked for and not answered yet that may be another's. The server
 * would set it first, and then take it away with ours.
 */
function isContested(removal: Removal): boolean {
  return [...coming(removal)].some((one) => !goesWhole(removal, one));
}

/** Replies come in order: behind this one it is known who watches. */
async function allAnswered({ core, full, path }: Removal, options: CallOptions): Promise<void> {
  try {
    await core.call('exists', { path: full, watch: false }, path, options);
  } catch (error) {
    if (!isZkError(error, 'NO_NODE', 'NO_AUTH')) throw error;
  }
}

/** Whether all listeners of a kind are to go, whoever they are. */
function goesWhole({ wanted, listener }: Removal, one: WatchKind): boolean {
  return listener === undefined && wanted.includes(one);
}

/** The kinds that are asked for and not answered yet. */
function coming({ core, full }: Removal): Set<WatchKind> {
  const kinds = new Set<WatchKind>();
  for (const call of core.session.asked()) {
    for (const one of setBy(call, full)) kinds.add(one);
  }
  return kinds;
}

/** What a call watches once it is answered. */
function setBy({ op, request }: Call, full: string): readonly WatchKind[] {
  const { path, watch, mode } = request as { path?: string; watch?: boolean; mode?: number };
  if (path !== full) return [];
  if (op === 'addWatch') return [mode === addWatchModes.persistent ? 'persistent' : 'recursive'];
  if (watch !== true) return [];
  if (op === 'getChildren' || op === 'getChildren2') return kindsOf.children;
  return kindsOf.data; // of the two it is the reply that tells which
}

/** A server holds one watch for all listeners of a kind: while others stay or come, so does that one. */
function goingTypes(removal: Removal): WatcherType[] {
  const { core, full, listener } = removal;
  const there = kindsThere(removal);
  const next = coming(removal);
  const goes = (one: WatchKind) => {
    if (goesWhole(removal, one)) return true;
    const own = listener !== undefined && there.includes(one) ? 1 : 0;
    return core.watches.listeners(one, full).size === own && !next.has(one);
  };
  // Where nothing stays, `any` says it in one, and to servers that know no more than that.
  if (kindsOf.any.every(goes)) return ['any'];
  return single.filter(
    (type) => kindsOf[type].some((one) => there.includes(one)) && kindsOf[type].every(goes),
  );
}

/** They are forgotten as the reply is taken off the link: who comes behind it stays. */
async function drop(removal: Removal, type: WatcherType, options: CallOptions): Promise<void> {
  const { core, full, path } = removal;
  const request = { path: full, type: watcherTypes[type] };
  // 3.8 has no words for the kinds that stay. It goes on telling of them, and nobody listens.
  const isNew = type === 'persistent' || type === 'persistentRecursive';
  const forgetThese = () => forget(removal, (one) => kindsOf[type].includes(one));
  try {
    await core.call('removeWatches', request, path, options, (err) => {
      if (err === 0 || (isNew && err === marshallingError)) forgetThese();
    });
  } catch (error) {
    if (isNew && isZkError(error, 'MARSHALLING_ERROR')) return;
    // 3.4 cannot take a watch away at all.
    if (!isZkError(error, 'UNIMPLEMENTED')) throw error;
    forgetThese();
  }
}
