import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Queue, QueueError, type QueueItem, type QueueOptions } from '../../src/recipes/index.ts';
import { failureOf, loseReply, loseRequest, opCodes } from '../faults.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const multi = 14;

const failure = failureOf<QueueError>;

const text = ({ data }: { data: Buffer | null }) => String(data);

/** A queue behind a link that can be cut, and one beside it. Both have put and taken before. */
async function pair(zk: Zk, options: QueueOptions & { renew?: boolean } = {}) {
  const { renew = false, ...rest } = options;
  const client = await zk.connect({ renew, backoff: { firstMs: 1, maxMs: 20 } });
  const witness = await zk.witness();
  const [mine, theirs] = [new Queue(client, '/jobs', rest), new Queue(witness, '/jobs', rest)];
  for (const queue of [mine, theirs]) {
    await queue.put('first');
    await (await queue.take()).confirm();
  }
  return { client, witness, mine, theirs };
}

const layouts = ['buckets', 'curator'] as const;

test.for(layouts)('%s: an item whose put lost its reply is in the queue once', async (layout) => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk, { layout });
  loseReply(zk, multi);

  await mine.put('a');

  expect(zk.link.stats.cuts).toBe(1);
  const item = await theirs.take();
  expect(text(item)).toBe('a');
  expect(await theirs.tryTake()).toBeNull();
});

test.for(layouts)('%s: a queue whose making never arrived is made', async (layout) => {
  await using zk = await startZk();
  const client = await zk.connect();
  loseRequest(zk.link, opCodes.create);

  const taken = await new Queue(client, '/jobs', { layout }).tryTake();

  expect(zk.link.stats.cuts).toBe(1);
  expect(taken).toBeNull();
});

test.for(layouts)(
  '%s: a put that lost its reply is not done again, though the item was taken meanwhile',
  async (layout) => {
    await using zk = await startZk();
    const { client, mine, theirs } = await pair(zk, { layout });
    loseReply(zk, multi, { lost: () => zk.link.refuse() });

    const putting = mine.put('a');
    await reached(client, 'suspended');
    await (await theirs.take()).confirm();
    await zk.link.accept();
    await putting;

    expect(await theirs.tryTake()).toBeNull();
  },
);

test('a put of a session that ended is found in the queue, or its outcome is said to be unknown', async () => {
  await using zk = await startZk();
  const { client, mine, theirs } = await pair(zk, { renew: true });
  const put = async (data: string, meanwhile: () => Promise<unknown>) => {
    loseReply(zk, multi, { lost: () => zk.link.refuse() });
    const putting = mine.put(data).then(
      () => 'put',
      (error: QueueError) => error.code,
    );
    await reached(client, 'suspended');
    await meanwhile();
    await zk.expire(client);
    await zk.link.accept();
    return putting;
  };

  expect(await put('stays', async () => {})).toBe('put');
  expect(text(await theirs.take())).toBe('stays');
  expect(await put('taken', async () => (await theirs.take()).confirm())).toBe('OUTCOME_UNKNOWN');
  expect(await mine.put('goes on')).toMatch(/^[0-9a-f]{32}$/);
});

test.for(layouts)(
  '%s: a take that lost its reply has the item, at its first try',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout });
    await theirs.put('a');
    loseReply(zk, multi);

    const item = await mine.take();

    expect(item).toMatchObject({ tries: 1, isHeld: true });
    expect(zk.link.stats.cuts).toBe(1);
    await item.confirm();
    expect(await theirs.size()).toEqual({ waiting: 0, claimed: 0 });
  },
);

test.for(layouts)(
  '%s: who waited takes the item, though its claim never reached the server',
  async (layout) => {
    await using zk = await startZk();
    const { client, mine, theirs } = await pair(zk, { layout });
    const waiting = mine.take();
    await expect.poll(() => client.load.watches).toBeGreaterThan(1);
    loseRequest(zk.link, multi);

    await theirs.put('a');

    expect(text(await waiting)).toBe('a');
    expect(zk.link.stats.cuts).toBe(1);
  },
);

test.for(layouts)(
  '%s: who waited buries what was tried too often, though the request never arrived',
  async (layout) => {
    await using zk = await startZk();
    const { client, mine, theirs } = await pair(zk, { layout, triesMax: 1 });
    const taken = async (data: string) => theirs.put(data).then(() => theirs.take());
    await taken('a').then((item) => item.bury()); // then there is a bucket for the next
    const item = await taken('b');
    const waiting = mine.take();
    await expect.poll(() => client.load.watches).toBeGreaterThan(1);
    loseRequest(zk.link, multi);

    await item.release();

    await expect.poll(() => theirs.dead.size()).toBe(2);
    expect(zk.link.stats.cuts).toBe(1);
    await theirs.put('c');
    expect(text(await waiting)).toBe('c');
  },
);

test.for(layouts)(
  '%s: what is done to an item is done once, though the reply is lost',
  async (layout) => {
    await using zk = await startZk();
    const { mine, theirs } = await pair(zk, { layout });
    const acts: [string, (item: QueueItem) => Promise<void>][] = [
      ['confirm', (item) => item.confirm()],
      ['release', (item) => item.release()],
      ['requeue', (item) => item.requeue()],
      ['bury', (item) => item.bury()],
    ];
    const left: Record<string, unknown> = {};
    for (const [name, act] of acts) {
      await theirs.put(name);
      const item = await mine.take();
      zk.link.onFrame = undefined;
      const { cuts } = zk.link.stats;
      loseReply(zk, multi);

      await act(item);

      expect(zk.link.stats.cuts).toBe(cuts + 1);
      left[name] = { ...(await theirs.size()), dead: await theirs.dead.size() };
      const again = await theirs.tryTake();
      await again?.confirm();
    }

    expect(left).toEqual({
      confirm: { waiting: 0, claimed: 0, dead: 0 },
      release: { waiting: 1, claimed: 0, dead: 0 },
      requeue: { waiting: 1, claimed: 0, dead: 0 },
      bury: { waiting: 0, claimed: 0, dead: 1 },
    });
  },
);

test('a put of which nothing arrived is made on the next link', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk);
  zk.link.cutAfter({ toServer: 10 });

  await mine.put('a');

  expect(text(await theirs.take())).toBe('a');
  expect(await theirs.tryTake()).toBeNull();
});

test('a taker that waits hears of an item that comes while its link is away', async () => {
  await using zk = await startZk();
  const { client, mine, theirs } = await pair(zk);
  const waiting = mine.take();
  await expect.poll(() => client.load.watches).toBeGreaterThan(1);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await theirs.put('a');
  await zk.link.accept();

  expect(text(await waiting)).toBe('a');
});

test('without renew, a take fails when its session ends, and the next in line goes on', async () => {
  await using zk = await startZk();
  const { client, mine, theirs } = await pair(zk);
  const lost = failure(mine.take());
  await expect.poll(() => client.load.watches).toBeGreaterThan(1);
  const waiting = theirs.take();

  await zk.expire(client);
  await theirs.put('a');

  expect(['SESSION_EXPIRED', 'NOT_HELD']).toContain((await lost).code);
  expect(text(await waiting)).toBe('a');
});

test('100,000 items wait, no list of them fits into a frame, and they come in their order', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [new Queue(client, '/jobs'), new Queue(witness, '/jobs')];
  const all = Array.from({ length: 100_000 }, (_, i) => `${i}`);

  await mine.putMany(all);
  const taken: string[] = [];
  while (taken.length < 1_200) {
    const items = await theirs.takeMany(200);
    taken.push(...items.map(text));
    await Promise.all(items.map((item) => item.confirm()));
  }

  expect(taken).toEqual(all.slice(0, taken.length));
  expect(await mine.size()).toEqual({ waiting: all.length - taken.length, claimed: 0 });
  const buckets = await witness.children('/jobs/items');
  expect(buckets.length).toBeGreaterThan(190);
}, 180_000);

interface Attempt {
  readonly id: string;
  readonly tries: number;
  readonly data: string;
}

/** Puts for as long as there is something to put, through whatever happens. */
async function produce(queue: Queue, from: number, to: number) {
  const [put, unknown]: [string[], string[]] = [[], []];
  for (let i = from; i < to; i++) {
    try {
      await queue.put(`${i}`);
      put.push(`${i}`);
    } catch (error) {
      if (!(error instanceof QueueError) || error.code !== 'OUTCOME_UNKNOWN') throw error;
      unknown.push(`${i}`);
    }
  }
  return { put, unknown };
}

/** Takes and confirms until told to stop. Says of each try what became of it. */
async function consume(queue: Queue, signal: AbortSignal, attempts: Attempt[], done: string[]) {
  while (!signal.aborted) {
    try {
      const item = await queue.take({ signal });
      attempts.push({ id: item.id, tries: item.tries, data: text(item) });
      await item.confirm();
      done.push(text(item));
    } catch (error) {
      if (signal.aborted) return;
      const { code } = error as QueueError;
      // All else is a fault of the queue. These are what it says when a session or a link is gone.
      const known = ['CLAIM_LOST', 'SESSION_EXPIRED', 'NOT_HELD', 'CONNECTION_LOSS', 'CONTENTION'];
      if (!known.includes(code)) throw error;
      await setImmediate(); // a client that begins anew says no at once
    }
  }
}

test('nothing that was put is lost, and no try has two takers, while links break and sessions end', async () => {
  await using zk = await startZk();
  const seed = Date.now() % 1_000_000;
  const options = { renew: true, backoff: { firstMs: 1, maxMs: 10 } };
  const clients: Client[] = [];
  for (let i = 0; i < 4; i++) clients.push(await zk.connect(options));
  const queues = clients.map(
    (client) => new Queue(client, '/jobs', { triesMax: 1_000, bucketItemsMax: 20 }),
  );
  let replies = seed % 50;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 61 === 0 ? 'cut' : 'pass';
  const stop = new AbortController();
  const attempts: Attempt[] = [];
  const done: string[] = [];

  const consumers = queues.slice(2).map((queue) => consume(queue, stop.signal, attempts, done));
  const producing = Promise.all([produce(queues[0]!, 0, 150), produce(queues[1]!, 150, 300)]);
  const witness = new Queue(await zk.witness(), '/jobs');
  const isDrained = async () => {
    const { waiting, claimed } = await witness.size();
    return waiting + claimed;
  };
  const run = async () => {
    for (let i = 0; i < 6; i++) {
      const victim = clients[i % 4]!;
      await expect.poll(() => attempts.length, { timeout: 30_000 }).toBeGreaterThan(i * 20);
      if (victim.identity) await zk.expire(victim);
      await reached(victim, 'connected');
    }
    const produced = await producing;
    zk.link.onFrame = undefined;
    await expect.poll(isDrained, { timeout: 60_000 }).toBe(0);
    return produced;
  };
  const [first, second] = await run().finally(() => stop.abort());
  await Promise.all(consumers);

  const put = [...first.put, ...second.put];
  const maybe = new Set([...first.unknown, ...second.unknown]);
  const taken = new Set(attempts.map(({ data }) => data));
  expect({ seed, lost: put.filter((data) => !taken.has(data)) }).toEqual({ seed, lost: [] });
  const invented = [...taken].filter((data) => !put.includes(data) && !maybe.has(data));
  expect({ seed, invented }).toEqual({ seed, invented: [] });
  const tries = attempts.map(({ id, tries }) => `${id} ${tries}`);
  expect({ seed, tries: tries.length }).toEqual({ seed, tries: new Set(tries).size });
  expect({ seed, twice: done.length - new Set(done).size }).toEqual({ seed, twice: 0 });
  const ids = new Map(attempts.map(({ id, data }) => [data, id]));
  expect({ seed, doubled: attempts.filter(({ id, data }) => ids.get(data) !== id) }).toEqual({
    seed,
    doubled: [],
  });
  expect(zk.link.stats.cuts).toBeGreaterThan(10);
}, 120_000);

test('what is done to an item is done, though the request never arrived', async () => {
  await using zk = await startZk();
  const { mine, theirs } = await pair(zk);
  await theirs.put('a');
  const item = await mine.take();
  let hasCut = false;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    const isMulti = direction === 'toServer' && index > 0 && bytes.readInt32BE(4) === multi;
    if (!isMulti || hasCut) return 'pass';
    hasCut = true;
    return 'cut';
  };

  await item.confirm();

  expect(hasCut).toBe(true);
  expect(await theirs.size()).toEqual({ waiting: 0, claimed: 0 });
});

test('a taker that looked before another had the item takes it as it is now', async () => {
  await using zk = await startZk();
  const { client, mine, theirs } = await pair(zk);
  await theirs.put('a');
  const get = client.get.bind(client);
  client.get = async (path, options) => {
    const found = await get(path, options);
    client.get = get;
    await (await theirs.take()).release();
    return found;
  };

  const item = (await mine.tryTake())!;

  expect(item).toMatchObject({ tries: 2, isHeld: true });
  await item.confirm();
  expect(await theirs.size()).toEqual({ waiting: 0, claimed: 0 });
});

test.for(layouts)(
  '%s: who goes on in a new session does not take what the next taker did for its own',
  async (layout) => {
    await using zk = await startZk();
    const { client, mine, theirs } = await pair(zk, { layout, renew: true });
    const acts: [string, (item: QueueItem) => Promise<void>][] = [
      ['confirm', (item) => item.confirm()],
      ['requeue', (item) => item.requeue()],
      ['bury', (item) => item.bury()],
    ];
    const outcomes: unknown[] = [];
    for (const [name, act] of acts) {
      await theirs.put(name);
      const item = await mine.take();
      const session = client.sessionId;
      await zk.expire(client);
      await expect.poll(() => client.sessionId ?? session).not.toBe(session);
      const next = await theirs.take();
      await next.confirm();
      // What it asks is refused by the server, and the refusal does not arrive.
      loseReply(zk, multi);
      const acting = failure(act(item));
      const { code } = await acting;
      outcomes.push([name, code, item.isHeld, next.tries]);
      zk.link.onFrame = undefined;
    }

    expect(outcomes).toEqual([
      ['confirm', 'CLAIM_LOST', false, 2],
      ['requeue', 'CLAIM_LOST', false, 2],
      ['bury', 'CLAIM_LOST', false, 2],
    ]);
    expect(await theirs.size()).toEqual({ waiting: 0, claimed: 0 });
    expect(await theirs.dead.size()).toBe(0);
  },
);
