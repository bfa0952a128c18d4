import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Acl, Client } from '../client/index.ts';
import { Puts } from './queue-puts.ts';
import type { Entry, QueueStore } from './queue-store.ts';

const entry = (id: string): Entry => ({ id, tries: 0, data: null, key: '', dueMs: 0 });

/** One that makes every receipt. */
const clientAt = (chroot: string) =>
  ({ chroot, create: async () => ({ stat: {} }) }) as unknown as Client;
const client = clientAt('');

/** A store that takes whatever it is given, at once. */
const store = {
  receiptsPath: '/receipts',
  fitting: async (entries: readonly Entry[]) => entries.length,
  place: async (entries: readonly Entry[]) => entries.map(({ id }) => id),
} as Partial<QueueStore> as QueueStore;

test('a put that comes in any moment of the one before it is placed', async () => {
  const placed: number[] = [];

  for (let turns = 0; turns < 60; turns++) {
    const puts = new Puts(client, store, '/q', async () => {});
    void puts.put(entry('first')).done;
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    void puts.put(entry('second')).done.then(() => placed.push(turns));
    await setImmediate();
  }

  expect(placed).toEqual(Array.from({ length: 60 }, (_, turns) => turns));
});

/** How many of 500 puts go in each multi. */
async function batchesOf500(path: string, acl?: readonly Acl[], chroot = ''): Promise<number[]> {
  const sizes: number[] = [];
  const counting = {
    ...store,
    place: async (entries: readonly Entry[]) => {
      sizes.push(entries.length);
      return entries.map(({ id }) => id);
    },
  } as QueueStore;
  const puts = new Puts(clientAt(chroot), counting, path, async () => {}, acl);
  await Promise.all(Array.from({ length: 500 }, (_, i) => puts.put(entry(`${i}`)).done));
  return sizes;
}

test('a batch of puts is smaller where each takes more: a long path, a long ACL', async () => {
  const acl: Acl[] = Array.from({ length: 40 }, () => ({
    perms: 31,
    id: { scheme: 'digest', id: `somebody:${'k'.repeat(40)}` },
  }));
  const long = `/${'p'.repeat(2_200)}`;

  expect(await batchesOf500('/q')).toEqual([500]);
  for (const sizes of [
    await batchesOf500(long),
    await batchesOf500('/q', undefined, long),
    await batchesOf500('/q', acl),
  ]) {
    expect(Math.max(...sizes)).toBeLessThan(250);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(500);
  }
});
