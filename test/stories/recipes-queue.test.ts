import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  Queue,
  type QueueError,
  type QueueItem,
  type QueueOptions,
} from '../../src/recipes/index.ts';
import { ManualClock } from '../../src/support/index.ts';
import { failureOf } from '../faults.ts';
import { ephemeralsOf, startZk, type Zk } from '../zk.ts';

const layouts = ['buckets', 'curator'] as const;

const text = ({ data }: { data: Buffer | null }) => String(data);

async function drain(queue: Queue): Promise<string[]> {
  const all: string[] = [];
  for (let item = await queue.tryTake(); item !== null; item = await queue.tryTake()) {
    all.push(text(item));
    await item.confirm();
  }
  return all;
}

const failure = failureOf<QueueError>;

/** Two processes: each has a client and a queue of its own. */
async function pair(zk: Zk, options: QueueOptions = {}) {
  const [first, second] = [await zk.connect(), await zk.witness()];
  return {
    clients: [first, second] as [Client, Client],
    mine: new Queue(first, '/jobs', options),
    theirs: new Queue(second, '/jobs', options),
  };
}

test.for(layouts)('%s: what is put is taken in its order, by another process', async (layout) => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { layout });

  await mine.put('a');
  const ids = await mine.putMany(['b', 'c', 'd']);
  await mine.put('e');

  expect(new Set(ids).size).toBe(3);
  expect(await theirs.size()).toEqual({ waiting: 5, claimed: 0 });
  expect(await drain(theirs)).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(await mine.size()).toEqual({ waiting: 0, claimed: 0 });
});

test.for(layouts)(
  '%s: priorities come lowest first, and within one as they were put',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout, order: 'priority' });

    for (const [data, priority] of Object.entries({
      a: 5,
      b: -1,
      c: 5,
      d: 0,
      e: -(2 ** 31),
      f: -1,
    })) {
      await mine.put(data, { priority });
    }

    expect(await drain(theirs)).toEqual(['e', 'b', 'f', 'd', 'a', 'c']);
  },
);

test.for(layouts)('%s: an item waits for its time, and the taker for the item', async (layout) => {
  await using zk = await startZk();
  const clock = new ManualClock(0, Date.now());
  const { mine, theirs } = await pair(zk, { layout, order: 'delay', clock });
  const nowMs = clock.wallMs();
  await mine.put('late', { dueMs: nowMs + 3_600_000 });
  await mine.put('second', { dueMs: nowMs - 1_000 });
  await mine.put('first', { dueMs: nowMs - 100_000 });

  expect(await drain(theirs)).toEqual(['first', 'second']);
  const waiting = theirs.take();
  await mine.put('soon', { delayMs: 300 });
  await vi.waitFor(() => expect(clock.nextDueMs).toBe(300));
  clock.advance(299);
  expect(await mine.tryTake()).toBeNull();
  clock.advance(1);
  const item = await waiting;

  expect(text(item)).toBe('soon');
  await item.confirm();
  expect(await theirs.size()).toEqual({ waiting: 1, claimed: 0 });
});

test.for(layouts)(
  '%s: while one has an item no other gets it, and it comes back when given back',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout });
    const id = await mine.put('a');

    const first = (await mine.tryTake())!;
    expect(await theirs.tryTake()).toBeNull();
    expect(await theirs.size()).toEqual({ waiting: 0, claimed: 1 });
    await first.release();
    const second = (await theirs.tryTake())!;

    expect(first).toMatchObject({ id, tries: 1, isHeld: false });
    expect(second).toMatchObject({ id, tries: 2, isHeld: true });
    expect((await failure(first.confirm())).code).toBe('SETTLED');
    await second.confirm();
    expect(await mine.size()).toEqual({ waiting: 0, claimed: 0 });
  },
);

test.for(layouts)(
  '%s: an item returns when its taker’s session ends, to who waits for it',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs, clients } = await pair(zk, { layout });
    await theirs.putMany(['a', 'b']);
    const lost = await mine.take();
    const next = await theirs.take();

    const waiting = theirs.take();
    await zk.expire(clients[0]);
    const again = await waiting;

    expect([text(lost), text(next), text(again)]).toEqual(['a', 'b', 'a']);
    expect(again).toMatchObject({ id: lost.id, tries: 2 });
    await expect.poll(() => lost.signal.aborted).toBe(true);
    expect((await failure(lost.confirm())).code).toBe('CLAIM_LOST');
    await again.confirm();
  },
);

test.for(layouts)(
  '%s: an item that is tried too often becomes a dead letter, and can be revived',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout, triesMax: 2 });
    await mine.putMany(['poison', 'good']);

    for (const queue of [mine, theirs]) await (await queue.take()).release();
    const item = await mine.take();

    expect(text(item)).toBe('good');
    await item.confirm();
    expect(await theirs.tryTake()).toBeNull();
    const letters = await theirs.dead.list();
    expect(letters).toMatchObject([{ tries: 2 }]);
    expect(String(letters[0]!.parts![0])).toBe('poison');
    expect([await theirs.dead.revive(letters[0]!), await theirs.dead.size()]).toEqual([true, 0]);
    expect(await theirs.dead.revive(letters[0]!)).toBe(false);
    expect(await mine.take()).toMatchObject({ tries: 1 });
  },
);

test.for(layouts)(
  '%s: an item can be buried at once, or go to the end of the queue',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout });
    await mine.putMany(['a', 'b', 'c']);

    await (await mine.take()).requeue();
    await (await mine.take()).bury();

    expect(await drain(theirs)).toEqual(['c', 'a']);
    expect(await theirs.dead.size()).toBe(1);
  },
);

test('requeued in buckets, an item keeps its id, its priority and its tries', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { order: 'priority' });
  const id = await mine.put('a', { priority: -3 });
  await mine.put('b', { priority: 1 });

  await (await mine.take()).requeue();
  const again = await theirs.take();

  expect(again).toMatchObject({ id, tries: 2 });
  await again.requeue({ priority: 7 });
  expect(await drain(mine)).toEqual(['b', 'a']);
});

test.for(layouts)('%s: several are taken at once, as many as there are', async (layout) => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { layout });
  await mine.putMany(['a', 'b', 'c']);

  const two = await theirs.takeMany(2);
  const rest = await theirs.takeMany(2);

  expect([two.map(text), rest.map(text)]).toEqual([['a', 'b'], ['c']]);
  await Promise.all([...two, ...rest].map((item) => item.confirm()));
  expect(await mine.size()).toEqual({ waiting: 0, claimed: 0 });
});

test.for(layouts)(
  '%s: a wait that is called off leaves no node, no watch and no claim',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs, clients } = await pair(zk, { layout });
    const [client, witness] = clients;
    await mine.put('a');
    await (await mine.take()).confirm();
    const abort = new AbortController();

    const takes = [
      failure(mine.take({ signal: abort.signal })),
      failure(mine.take({ timeoutMs: 100 })),
      failure(mine.take()),
    ];
    await expect.poll(() => client.load.watches).toBeGreaterThan(0);
    abort.abort(new Error('enough'));
    const [aborted, late] = [await takes[0]!, await takes[1]!];
    await mine.close();

    expect([aborted.message, late.code, (await takes[2]!).code]).toEqual([
      'enough',
      'TIMEOUT',
      'CLOSED',
    ]);
    await expect.poll(() => client.load.watches).toBe(0);
    await expect.poll(() => ephemeralsOf(client, '/jobs')).toEqual([]);
    await theirs.put('b');
    expect(await theirs.size()).toEqual({ waiting: 1, claimed: 0 });
    expect((await failure(mine.tryTake())).code).toBe('CLOSED');
    void witness;
  },
);

test('a taker that is closed can still confirm what it has', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk);
  await mine.put('a');
  const item = await mine.take();

  await mine.close();
  await item.confirm();

  expect(await theirs.size()).toEqual({ waiting: 0, claimed: 0 });
});

test('a loop over the queue ends when it is closed', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk);
  await theirs.putMany(['a', 'b']);
  const seen: string[] = [];

  for await (const item of mine) {
    seen.push(text(item));
    await item.confirm();
    if (seen.length === 2) void mine.close();
  }

  expect(seen).toEqual(['a', 'b']);
});

test('work that throws is tried again, after the others, and given up in the end', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { triesMax: 3 });
  await theirs.putMany(['bad', 'good', 'fine']);
  const seen: string[] = [];
  const stop = new AbortController();
  const errors: unknown[] = [];

  await mine.work(
    async (item) => {
      seen.push(text(item));
      if (seen.length === 5) stop.abort();
      if (text(item) === 'bad') throw new Error(`try ${item.tries}`);
    },
    { signal: stop.signal, onError: (error) => errors.push((error as Error).message) },
  );

  expect(seen).toEqual(['bad', 'good', 'fine', 'bad', 'bad']);
  expect(errors).toEqual(['try 1', 'try 2', 'try 3']);
  expect(await mine.tryTake()).toBeNull();
  expect(await theirs.dead.size()).toBe(1);
});

test('work without a listener for errors ends with the first, and the item is not lost', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk);
  await theirs.put('bad');

  const error = await failure(
    mine.work(async () => {
      throw new Error('no');
    }),
  );

  expect(error.message).toBe('no');
  expect(await theirs.size()).toEqual({ waiting: 1, claimed: 0 });
});

test('buckets are sealed when they are full and go when they are drained', async () => {
  await using zk = await startZk();
  const { mine, theirs, clients } = await pair(zk, { bucketItemsMax: 4, readAhead: 0 });
  const all = Array.from({ length: 30 }, (_, i) => `${i}`);

  for (const data of all) await mine.put(data);
  const before = await clients[1].children('/jobs/items');
  const taken = await drain(theirs);

  expect(before.length).toBeGreaterThanOrEqual(7);
  expect(taken).toEqual(all);
  expect((await clients[1].children('/jobs/items')).length).toBe(1);
});

test('two producers keep the order of what one of them knows to be there before it puts', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { bucketItemsMax: 3 });
  const all = Array.from({ length: 40 }, (_, i) => `${i}`);

  for (const [i, data] of all.entries()) await (i % 3 === 0 ? mine : theirs).put(data);

  expect(await drain(mine)).toEqual(all);
});

test('a path that holds another kind of queue is refused', async () => {
  await using zk = await startZk();
  const { mine, clients } = await pair(zk);
  await mine.put('a');

  const error = await failure(new Queue(clients[1], '/jobs', { order: 'priority' }).put('b'));

  expect(error.code).toBe('WRONG_LAYOUT');
  expect(error.message).toContain('"order":"fifo"');
});

test('what cannot be put is refused before it is', async () => {
  await using zk = await startZk();
  const { mine, clients } = await pair(zk);

  for (const [put, argument] of [
    [mine.put(Buffer.alloc(0xfffff)), 'data'],
    [mine.put('a', { priority: 1 }), 'priority'],
    [mine.put('a', { delayMs: 1 }), 'delayMs'],
    [mine.takeMany(0), 'max'],
  ] as const) {
    expect(await failure(put)).toMatchObject({ code: 'INVALID_ARGUMENT', argument });
  }
  expect(() => new Queue(clients[0], '/q', { triesMax: 0 })).toThrow('triesMax');
  expect(() => new Queue(clients[0], '/q', { order: 'lifo' as 'fifo' })).toThrow('order');
});

test('a large item goes in, is taken and confirmed', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { triesMax: 1 });
  const data = Buffer.alloc(0xfffff - 8 * 1024, 7);
  await mine.put(data);

  const item = await theirs.take();
  expect(item.data?.equals(data)).toBe(true);
  await item.release();

  expect(await mine.tryTake()).toBeNull();
  expect(await mine.dead.size()).toBe(1);
});

test('a flat list that would not fit into a reply is refused before it is asked for', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { layout: 'curator', listBytesMax: 1_024 + 21 * 10 });
  await mine.putMany(Array.from({ length: 9 }, (_, i) => `${i}`)); // the tenth is left for who puts at the same time

  const error = await failure(mine.put('one too many'));
  const item = (await theirs.tryTake())!;
  await item.confirm();

  expect(error.code).toBe('LIST_TOO_LONG');
  expect(error.message).toContain('10 items are more than the 9');
  expect(await theirs.put('fits again')).toMatch(/^queue-/);
});

test('bytes that are not Curator’s go to the dead letters, and do not stop the queue', async () => {
  await using zk = await startZk();
  const { mine, theirs, clients } = await pair(zk, { layout: 'curator' });
  await mine.put('a');
  await (await mine.take()).confirm();
  await clients[1].create('/jobs/queue-', 'plain', { mode: 'persistentSequential' });
  await clients[1].create('/jobs/foreign');
  await theirs.put('b');

  expect(await drain(theirs)).toEqual(['b']);
  expect(await mine.dead.list()).toMatchObject([{ parts: null }]);
  expect(await clients[1].exists('/jobs/foreign')).not.toBeNull();
});

test('a queue that somebody deletes is made again', async () => {
  await using zk = await startZk();
  const { mine, theirs, clients } = await pair(zk);
  await mine.put('a');
  const waiting = theirs.takeMany(5);
  await (await waiting)[0]!.confirm();

  await clients[1].deleteRecursive('/jobs');
  await mine.put('b');

  const items: QueueItem[] = await theirs.takeMany(5);
  expect(items.map(text)).toEqual(['b']);
});
