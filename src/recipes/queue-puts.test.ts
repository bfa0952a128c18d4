import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Client } from '../client/index.ts';
import { Puts } from './queue-puts.ts';
import type { Entry, QueueStore } from './queue-store.ts';

const entry = (id: string): Entry => ({ id, tries: 0, data: null, key: '', dueMs: 0 });

/** A store that takes whatever it is given, at once. */
const store = {
  receiptsPath: '/receipts',
  place: async (entries: readonly Entry[]) => entries.map(({ id }) => id),
} as Partial<QueueStore> as QueueStore;

test('a put that comes in any moment of the one before it is placed', async () => {
  const placed: number[] = [];

  for (let turns = 0; turns < 20; turns++) {
    const puts = new Puts({} as Client, store, '/q', async () => {});
    void puts.put(entry('first')).done;
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    void puts.put(entry('second')).done.then(() => placed.push(turns));
    await setImmediate();
  }

  expect(placed).toEqual(Array.from({ length: 20 }, (_, turns) => turns));
});
