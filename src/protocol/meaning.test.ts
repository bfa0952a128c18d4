import { expect, test } from 'vitest';
import {
  addWatchModes,
  createModes,
  eventTypeNames,
  eventTypes,
  keeperStateNames,
  keeperStates,
  permissions,
  watcherTypes,
} from './meaning.ts';

test('event types are those of Watcher.Event.EventType', () => {
  expect(eventTypes).toEqual({
    none: -1,
    created: 1,
    deleted: 2,
    dataChanged: 3,
    childrenChanged: 4,
    dataWatchRemoved: 5,
    childWatchRemoved: 6,
    persistentWatchRemoved: 7,
  });
});

test('states are those of Watcher.Event.KeeperState, without the two it no longer uses', () => {
  expect(keeperStates).toEqual({
    disconnected: 0,
    syncConnected: 3,
    authFailed: 4,
    connectedReadOnly: 5,
    saslAuthenticated: 6,
    closed: 7,
    expired: -112,
  });
});

test('create modes carry the flags of CreateMode, and each says what its flags mean there', () => {
  expect(Object.entries(createModes).map(([name, { flags }]) => [name, flags])).toEqual([
    ['persistent', 0],
    ['ephemeral', 1],
    ['persistentSequential', 2],
    ['ephemeralSequential', 3],
    ['container', 4],
    ['persistentTtl', 5],
    ['persistentSequentialTtl', 6],
  ]);
  for (const [name, mode] of Object.entries(createModes)) {
    expect(mode.ephemeral).toBe(name.startsWith('ephemeral'));
    expect(mode.sequential).toBe(name.includes('Sequential'));
    expect(mode.container).toBe(name === 'container');
    expect(mode.ttl).toBe(name.endsWith('Ttl'));
  }
});

test('permissions are one bit each, and all of them is all bits', () => {
  const { all, ...single } = permissions;

  expect(single).toEqual({ read: 1, write: 2, create: 4, delete: 8, admin: 16 });
  expect(Object.values(single).reduce((sum, bit) => sum | bit, 0)).toBe(all);
});

test('kinds of watch are those of AddWatchMode and Watcher.WatcherType', () => {
  expect(addWatchModes).toEqual({ persistent: 0, persistentRecursive: 1 });
  expect(watcherTypes).toEqual({
    children: 1,
    data: 2,
    any: 3,
    persistent: 4,
    persistentRecursive: 5,
  });
});

test('numbers lead back to names', () => {
  expect(eventTypeNames.get(3)).toBe('dataChanged');
  expect(keeperStateNames.get(-112)).toBe('expired');
  expect(eventTypeNames.get(99)).toBeUndefined();
  expect([eventTypeNames.size, keeperStateNames.size]).toEqual([8, 7]);
});
