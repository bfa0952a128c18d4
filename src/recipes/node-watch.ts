/**
 * Waiting for the next change of a node, or of its list of children, and leaving no watch behind.
 *
 * In: a client, a path. Out: what is there now, a promise of the next change, and a way to stop.
 * Whoever waits for the same thing on the same client shares one read and one watch, and the watch is
 * taken away from the server with the last of them. Reads and removals of one path never overlap: a
 * removal that overtakes somebody else's read would take the watch which that read has just set.
 *
 * Nothing is watched where there is no node (a watch on a missing node would stay until somebody makes
 * it). `changed` never rejects: the end of the session is an event of type `none`.
 */

import {
  type Client,
  type DataAndStat,
  isZkError,
  type StatView,
  type WatchEvent,
} from '../client/index.ts';
import { deferred } from '../support/index.ts';

export interface Watched<T> {
  /** What the read that set the watch has shown; still so, as long as `changed` is pending. */
  readonly found: T;
  readonly changed: Promise<WatchEvent>;
  /** Waits no longer. The watch goes with the last who waits. Safe to call again. */
  stop(): Promise<void>;
}

type Kind = 'data' | 'children' | 'exists';

interface Shared<T> {
  users: number;
  hasFired: boolean;
  readonly found: Promise<T | null>;
  readonly changed: Promise<WatchEvent>;
  /** Set while the watch is being taken away. */
  ending: Promise<void> | undefined;
  end(): Promise<void>;
}

type Table = Map<string, Shared<unknown>>;
const tables = new WeakMap<Client, Table>();

/** The node's data and Stat; null, and no watch, when there is no such node. */
export function watchNode(client: Client, path: string): Promise<Watched<DataAndStat> | null> {
  return watched(client, 'data', path, (watch) => client.get(path, { watch }));
}

/** The names of the node's children; null, and no watch, when there is no such node. */
export function watchChildren(client: Client, path: string): Promise<Watched<string[]> | null> {
  return watched(client, 'children', path, (watch) => client.children(path, { watch }));
}

/** The node's Stat, or null: then its creation is the next change, and the watch stays until it or `stop`. */
export async function watchExists(
  client: Client,
  path: string,
): Promise<Watched<{ readonly stat: StatView | null }>> {
  const read: Read<{ stat: StatView | null }> = async (watch) => ({
    stat: await client.exists(path, { watch }),
  });
  return (await watched(client, 'exists', path, read))!;
}

type Read<T> = (watch: (event: WatchEvent) => void) => Promise<T>;

async function watched<T>(
  client: Client,
  kind: Kind,
  path: string,
  read: Read<T>,
  isAgain = false,
): Promise<Watched<T> | null> {
  const table: Table = tables.get(client) ?? new Map();
  tables.set(client, table);
  const key = `${kind} ${path}`;
  let shared = table.get(key) as Shared<T> | undefined;
  while (shared?.ending !== undefined) {
    await shared.ending;
    shared = table.get(key) as Shared<T> | undefined;
  }
  const isJoined = shared !== undefined;
  if (shared === undefined) {
    const begun = begin(client, kind, path, read, () => {
      if (table.get(key) === begun) table.delete(key);
    });
    table.set(key, begun);
    shared = begun;
  }
  const mine = shared;
  mine.users += 1;
  const found = await mine.found;
  if (found === null) {
    // A read that others began may have been answered before what we know of, a moment ago: say, that we
    // have made the node. One that begins now was not.
    return isJoined && !isAgain ? watched(client, kind, path, read, true) : null;
  }
  let isStopped = false;
  return {
    found,
    changed: mine.changed,
    async stop() {
      if (!isStopped) {
        isStopped = true;
        mine.users -= 1;
        if (mine.users === 0 && !mine.hasFired) mine.ending ??= mine.end();
      }
      await mine.ending;
    },
  };
}

function begin<T>(
  client: Client,
  kind: Kind,
  path: string,
  read: Read<T>,
  forget: () => void,
): Shared<T> {
  const changed = deferred<WatchEvent>();
  const listener = (event: WatchEvent) => {
    shared.hasFired = true;
    if (shared.ending === undefined) forget();
    changed.resolve(event);
  };
  const shared: Shared<T> = {
    users: 0,
    hasFired: false,
    ending: undefined,
    changed: changed.promise,
    found: read(listener).catch((error: unknown) => {
      forget(); // nothing is watched, so the next to ask reads anew
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }),
    async end() {
      try {
        // `local`: where the session is over there is nobody left to ask, and nothing left to take away.
        await client.removeWatches(path, {
          kind: kind === 'exists' ? 'data' : kind,
          listener,
          local: true,
        });
      } catch (error) {
        if (!isZkError(error, 'NO_WATCHER')) throw error; // it fired in this very moment
      } finally {
        forget();
      }
    },
  };
  return shared;
}
