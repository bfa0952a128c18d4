/** The small numbers of the protocol and what they stand for. Tables, each read both ways. */

/** What happened to a node, or, for the last three, to a watch: those the client makes up itself. */
// biome-ignore format: a table is read down its columns
export const eventTypes = {
  none:                   -1,
  created:                 1,
  deleted:                 2,
  dataChanged:             3,
  childrenChanged:         4,
  dataWatchRemoved:        5,
  childWatchRemoved:       6,
  persistentWatchRemoved:  7,
} as const;
export type EventType = keyof typeof eventTypes;

/** The server's view of the session, as it stands in an event. */
// biome-ignore format: a table is read down its columns
export const keeperStates = {
  disconnected:       0,
  syncConnected:      3,
  authFailed:         4,
  connectedReadOnly:  5,
  saslAuthenticated:  6,
  closed:             7,
  expired:         -112,
} as const;
export type KeeperState = keyof typeof keeperStates;

/** How a node is made: the flags of a create, and the op that carries them. */
// biome-ignore format: a table is read down its columns
export const createModes = {
  persistent:              { flags: 0, ephemeral: false, sequential: false, container: false, ttl: false },
  ephemeral:               { flags: 1, ephemeral: true,  sequential: false, container: false, ttl: false },
  persistentSequential:    { flags: 2, ephemeral: false, sequential: true,  container: false, ttl: false },
  ephemeralSequential:     { flags: 3, ephemeral: true,  sequential: true,  container: false, ttl: false },
  container:               { flags: 4, ephemeral: false, sequential: false, container: true,  ttl: false },
  persistentTtl:           { flags: 5, ephemeral: false, sequential: false, container: false, ttl: true  },
  persistentSequentialTtl: { flags: 6, ephemeral: false, sequential: true,  container: false, ttl: true  },
} as const;
export type CreateMode = keyof typeof createModes;

// biome-ignore format: a table is read down its columns
export const permissions = {
  read:   1,
  write:  2,
  create: 4,
  delete: 8,
  admin: 16,
  all:   31,
} as const;
export type Permission = keyof typeof permissions;

/** Kinds of watch that stay: AddWatchMode. */
export const addWatchModes = { persistent: 0, persistentRecursive: 1 } as const;
export type AddWatchMode = keyof typeof addWatchModes;

/** What removeWatches and checkWatches name: Watcher.WatcherType. */
// biome-ignore format: a table is read down its columns
export const watcherTypes = {
  children:            1,
  data:                2,
  any:                 3,
  persistent:          4,
  persistentRecursive: 5,
} as const;
export type WatcherType = keyof typeof watcherTypes;

/** A table of name to number, read from the number's side. */
export function namesByNumber<N extends string>(
  table: Readonly<Record<N, number>>,
): ReadonlyMap<number, N> {
  return new Map((Object.keys(table) as N[]).map((name) => [table[name], name]));
}

export const eventTypeNames = namesByNumber(eventTypes);
export const keeperStateNames = namesByNumber(keeperStates);
