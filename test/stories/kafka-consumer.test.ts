/** Records of a group, from files: nothing is left out, whoever comes and goes. */

import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ClientOptions } from '../../src/client/index.ts';
import {
  Consumer,
  type ConsumerBatch,
  type ConsumerOptions,
  fixedTopics,
  layout08,
  NdjsonSource,
  NotOwnerError,
  ReaderError,
} from '../../src/kafka/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const group = 'g';
const partitions = 4;
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'consumer-'));
  for (let p = 0; p < partitions; p++) await writeFile(file(p), lines(p, 0, 50));
});

afterEach(() => rm(directory, { recursive: true }));

const file = (partition: number) => join(directory, `t-${partition}.ndjson`);
const lines = (p: number, from: number, to: number) =>
  Array.from(
    { length: to - from },
    (_, i) => `{"timestamp":${from + i},"value":"${p}:${from + i}"}\n`,
  ).join('');
const values = (batch: ConsumerBatch) => batch.records.map(({ value }) => String(value));

async function consumer(
  zk: Zk,
  options: Partial<ConsumerOptions> = {},
  clientOptions: ClientOptions = {},
) {
  const client = await zk.connect({ renew: true, ...clientOptions });
  const source = new NdjsonSource({ directory, pollMs: 20, batchRecordsMax: 10 });
  const made = new Consumer(client, {
    group,
    subscribe: { topics: ['t'] },
    topics: fixedTopics({ t: partitions }),
    source,
    debounceMs: 20,
    ...options,
  });
  return {
    client,
    consumer: made,
    source,
    async [Symbol.asyncDispose]() {
      await made.close();
      await source.close();
    },
  };
}

/** Reads until `enough` says so. */
async function collect(from: AsyncIterable<ConsumerBatch>, enough: (seen: string[]) => boolean) {
  const seen: string[] = [];
  for await (const batch of from) {
    seen.push(...values(batch));
    await batch.commit();
    if (enough(seen)) break;
  }
  return seen;
}

const everything = [...Array(partitions).keys()].flatMap((p) =>
  [...Array(50).keys()].map((i) => `${p}:${i}`),
);

test('every record comes, in order within its partition, and is committed batch by batch', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  await using a = await consumer(zk);

  const seen = await collect(a.consumer, ({ length }) => length === 200);

  expect([...seen].sort()).toEqual([...everything].sort());
  for (let p = 0; p < partitions; p++) {
    const own = seen.filter((value) => value.startsWith(`${p}:`));
    expect(own).toEqual([...Array(50).keys()].map((i) => `${p}:${i}`));
    const path = layout08.offset.at({ group, topic: 't', partition: p });
    expect(String((await witness.get(path)).data)).toBe('50');
  }
});

test('two members read each partition once between them, and go on where the other stopped', async () => {
  await using zk = await startZk();
  const seen: string[] = [];
  const run = async (one: Consumer) => {
    for await (const batch of one) seen.push(...values(batch));
  };
  await using a = await consumer(zk);
  const runs = [run(a.consumer)];
  await vi.waitFor(() => expect(seen.length).toBe(200), 10_000);
  const b = await consumer(zk);
  runs.push(run(b.consumer));
  await Promise.all([a.consumer.settled(), b.consumer.settled()]);
  await vi.waitFor(() => expect(b.consumer.status().partitions).toHaveLength(2), 10_000);

  for (let p = 0; p < partitions; p++) await appendFile(file(p), lines(p, 50, 60));
  await vi.waitFor(() => expect(seen.length).toBe(240), 10_000);
  await b[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(a.consumer.status().partitions).toHaveLength(4), 10_000);
  for (let p = 0; p < partitions; p++) await appendFile(file(p), lines(p, 60, 61));
  await vi.waitFor(() => expect(seen.length).toBe(244), 10_000);
  await a.consumer.close();
  await Promise.all(runs);

  expect(new Set(seen).size).toBe(244); // none twice: each was let go of only after it was committed
});

test('at least once: a batch that a loop left unfinished comes again', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const loop = async () => {
    for await (const batch of a.consumer) {
      if (batch.records[0]!.offset === 20n) throw new Error('no disk');
    }
  };

  await expect(loop()).rejects.toThrow('no disk');
  for await (const batch of a.consumer) {
    expect(batch.records[0]!.offset).toBe(20n);
    break;
  }
  await a.consumer.commit();

  expect(a.consumer.status().partitions[0]!.committed).toBe(20n);
});

test('after a crash the next owner begins where was committed last: twice perhaps, never not', async () => {
  await using zk = await startZk();
  const seen: string[] = [];
  const a = await consumer(zk, { autoCommitMs: false }, { renew: false });
  let batches = 0;
  for await (const batch of a.consumer) {
    seen.push(...values(batch));
    batches += 1;
    if (batches % 3 === 0) await batch.commit();
    if (batches === 10) break;
  }
  await zk.expire(a.client);
  await reached(a.client, 'expired');
  const committed = seen.length;
  await using b = await consumer(zk);

  for await (const batch of b.consumer) {
    seen.push(...values(batch));
    if (new Set(seen).size === 200) break;
  }

  expect(new Set(seen)).toEqual(new Set(everything));
  expect(seen.length).toBeLessThanOrEqual(200 + committed);
  await a[Symbol.asyncDispose]();
});

test('what is done is committed by itself, and before a partition is let go of', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const one = { topics: fixedTopics({ t: 1 }) };
  const path = layout08.offset.at({ group, topic: 't', partition: 0 });
  const a = await consumer(zk, { ...one, autoCommitMs: 20 });
  const loop = a.consumer[Symbol.asyncIterator]();
  await loop.next();
  await loop.next();

  await vi.waitFor(async () => expect(String((await witness.get(path)).data)).toBe('10'), 10_000);
  await loop.return!();
  await a[Symbol.asyncDispose]();
  const b = await consumer(zk, { ...one, autoCommitMs: 60_000 });
  for await (const batch of b.consumer) if (batch.nextOffset === 50n) break;
  await b[Symbol.asyncDispose]();

  expect(String((await witness.get(path)).data)).toBe('40');
});

test('a partition’s next batch comes only when the one before is done, with several loops too', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk);
  const inHand = new Set<string>();
  let seen = 0;
  const work = async () => {
    for await (const batch of a.consumer) {
      expect(inHand.has(batch.partition)).toBe(false);
      inHand.add(batch.partition);
      await new Promise((resolve) => setImmediate(resolve));
      inHand.delete(batch.partition);
      seen += batch.records.length;
      if (seen === 200) void a.consumer.close();
    }
  };

  await Promise.all([work(), work(), work(), work()]);

  expect(seen).toBe(200);
});

test('each thread has its own partitions, and a loop may read one thread alone', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { subscribe: { topics: { t: 2 } } });
  const read = async (thread: number) => {
    const found = new Set<string>();
    let count = 0;
    for await (const batch of a.consumer.thread(thread)) {
      found.add(batch.partition);
      count += batch.records.length;
      if (count === 100) break;
    }
    return [...found].sort();
  };

  expect(await Promise.all([read(0), read(1)])).toEqual([
    ['0', '1'],
    ['2', '3'],
  ]);
});

test('a partition that another thread is to read goes to its loop at once', async () => {
  for (const p of [0, 2, 3]) await writeFile(file(p), '');
  await using zk = await startZk();
  await using a = await consumer(zk, { subscribe: { topics: { t: 2 } }, consumerId: 'a' });
  await a.consumer.settled();
  const isRead = () =>
    a.consumer.status().partitions.find((one) => one.partition === '1')?.position;
  await vi.waitFor(() => expect(isRead()).toBe(10n));
  const loop = a.consumer.thread(1);
  const next = loop.next();

  await using _b = await consumer(zk, { subscribe: { topics: { t: 2 } }, consumerId: 'b' });

  expect((await next).value).toMatchObject({ partition: '1', thread: `${a.consumer.id}-1` });
  await loop.return!();
});

test('a batch of a session that is over says so, and its commit is refused', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const loop = a.consumer[Symbol.asyncIterator]();
  const { value: batch } = await loop.next();

  await zk.expire(a.client);
  await vi.waitFor(() => expect(batch!.signal.aborted).toBe(true), 10_000);

  await expect(batch!.commit()).rejects.toMatchObject({ code: 'NOT_OWNER' });
  const again = await loop.next();
  expect(again.value!.records[0]!.offset).toBe(0n);
  expect(again.value!.epoch > batch!.epoch).toBe(true);
  await loop.return!();
});

test('who holds a batch of a partition that is asked for hears of it, and has time to finish', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { consumerId: 'a', topics: fixedTopics({ t: 2 }) });
  const loop = a.consumer.thread(0);
  let batch: ConsumerBatch | undefined;
  while (batch?.partition !== '1') batch = (await loop.next()).value!;

  await using b = await consumer(zk, { consumerId: 'b', topics: fixedTopics({ t: 2 }) });
  await vi.waitFor(() => expect(batch!.leaving.aborted).toBe(true), 10_000);
  await vi.waitFor(() => expect(b.consumer.status().blocked).toHaveLength(1), 10_000);
  expect(batch.signal.aborted).toBe(false);
  await batch.commit();
  await vi.waitFor(() => expect(b.consumer.status().partitions).toHaveLength(1), 10_000);

  for await (const next of b.consumer) {
    expect([next.partition, next.records[0]!.offset]).toEqual(['1', batch.nextOffset]);
    break;
  }
  await loop.return!();
});

test('latest begins at the end, earliest at the start, none asks', async () => {
  await using zk = await startZk();
  const one = { topics: fixedTopics({ t: 1 }) };
  const latest = await consumer(zk, { ...one, group: 'latest', startFrom: 'latest' });
  await vi.waitFor(
    () => expect(latest.consumer.status().partitions[0]?.position).toBe(50n),
    10_000,
  );
  await appendFile(file(0), lines(0, 50, 51));
  const { value } = await latest.consumer[Symbol.asyncIterator]().next();
  expect(value!.records[0]!.offset).toBe(50n);
  await using none = await consumer(zk, { ...one, group: 'none', startFrom: 'none' });
  const loop = none.consumer[Symbol.asyncIterator]();

  await expect(loop.next()).rejects.toMatchObject({ code: 'NO_OFFSET' });
  none.consumer.seek({ topic: 't', partition: '0' }, 30n);
  expect((await loop.next()).value!.records[0]!.offset).toBe(30n);
  await loop.return!();
  await latest.consumer[Symbol.asyncIterator]().return!();
});

test('an offset that is gone is reported, and reading begins where startFrom says', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const path = layout08.offset.at({ group, topic: 't', partition: 0 });
  await witness.create(path, '5000', { parents: true });
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const problems: string[] = [];
  a.consumer.on('problem', ({ why }) => problems.push(why));

  for await (const batch of a.consumer) {
    expect(batch.records[0]!.offset).toBe(0n);
    break;
  }

  expect(problems.join()).toMatch(/OFFSET_OUT_OF_RANGE/);
});

test('a record that cannot be read is told to the loop, and can be passed over', async () => {
  await using zk = await startZk();
  await writeFile(file(0), `${lines(0, 0, 2)}garbage\n${lines(0, 3, 5)}`);
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const loop = a.consumer[Symbol.asyncIterator]();
  expect((await loop.next()).value!.records).toHaveLength(2);

  await expect(loop.next()).rejects.toMatchObject({ code: 'BAD_RECORD' });
  a.consumer.seek({ topic: 't', partition: '0' }, 3n);

  expect((await loop.next()).value!.records[0]!.offset).toBe(3n);
  await loop.return!();
});

test('a paused partition is not handed out; the others are', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 2 }) });
  await a.consumer.settled();
  a.consumer.pause({ topic: 't', partition: '0' });

  const first = await collect(a.consumer, ({ length }) => length === 50);
  a.consumer.resume({ topic: 't', partition: '0' });
  const second = await collect(a.consumer, ({ length }) => length === 50);

  expect([first[0], second[0]]).toEqual(['1:0', '0:0']);
});

test('a partition that is paused while its batch waits to be asked for does not hold up the others', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 2 }) });
  const loop = a.consumer[Symbol.asyncIterator]();
  const first = (await loop.next()).value!;
  const read = () => a.consumer.status().partitions.map(({ position }) => position);
  await vi.waitFor(() => expect(read()).toEqual(expect.arrayContaining([10n, 20n])), 10_000);

  // One is in hand, with its next behind it; the other has one ready, and is paused.
  const other = first.partition === '0' ? '1' : '0';
  a.consumer.pause({ topic: 't', partition: other });
  const next = (await loop.next()).value!;

  expect([next.partition, next.records[0]!.offset]).toEqual([first.partition, 10n]);
  await loop.return!();
});

test('a seek counts from the moment a partition is assigned, and also if the source fails then', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  let isDown = true;
  const open = a.source.open.bind(a.source);
  a.source.open = async (...asked) => {
    if (!isDown) return open(...asked);
    isDown = false;
    throw new ReaderError('SOURCE_FAILED', 'no broker can be reached');
  };
  a.consumer.on('assigned', (owned) => a.consumer.seek(owned, 30n));

  for await (const batch of a.consumer) {
    expect(batch.records[0]!.offset).toBe(30n);
    break;
  }

  expect(isDown).toBe(false);
});

test('what was read ahead of a source that fails is not read twice, though it fails again', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const loop = a.consumer[Symbol.asyncIterator]();
  const failing = { next: 1, open: 1 };
  const open = a.source.open.bind(a.source);
  a.source.open = async (...asked) => {
    if (asked[1] !== 'earliest' && failing.open-- > 0) throw new ReaderError('SOURCE_FAILED', '');
    const reader = await open(...asked);
    const next = reader.next.bind(reader);
    reader.next = async () => {
      if (reader.position === 10n && failing.next-- > 0) throw new ReaderError('SOURCE_FAILED', '');
      return next();
    };
    return reader;
  };

  expect((await loop.next()).value!.records[0]!.offset).toBe(0n);
  await vi.waitFor(() => expect(failing.open).toBeLessThan(1), 10_000);
  await vi.waitFor(
    () => expect(a.consumer.status().partitions[0]!.position).not.toBeNull(),
    10_000,
  );

  expect((await loop.next()).value!.records[0]!.offset).toBe(10n);
  await loop.return!();
});

test('a reader that can not even be closed is told of, and reading goes on', async () => {
  await using zk = await startZk();
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }) });
  const problems: string[] = [];
  a.consumer.on('problem', ({ why }) => void problems.push(why));
  const open = a.source.open.bind(a.source);
  let isDown = true;
  a.source.open = async (...asked) => {
    const reader = await open(...asked);
    if (!isDown) return reader;
    isDown = false;
    reader.next = async () => {
      throw new ReaderError('SOURCE_FAILED', 'the link is lost');
    };
    const close = reader.close.bind(reader);
    reader.close = async () => {
      await close();
      throw new Error('not even to say goodbye');
    };
    return reader;
  };

  for await (const batch of a.consumer) {
    expect(batch.records[0]!.offset).toBe(0n);
    break;
  }

  expect(problems).toEqual(['SOURCE_FAILED: the link is lost', 'not even to say goodbye']);
});

test('at the end of a source, too, a batch that a loop left unfinished comes again', async () => {
  await using zk = await startZk();
  await using source = new NdjsonSource({ directory, follow: false });
  const open = source.open.bind(source);
  const ended = new Promise<void>((resolve) => {
    source.open = async (...asked) => {
      const reader = await open(...asked);
      const next = reader.next.bind(reader);
      reader.next = async () => {
        const result = await next();
        if (result.done) setImmediate(resolve);
        return result;
      };
      return reader;
    };
  });
  await using a = await consumer(zk, { topics: fixedTopics({ t: 1 }), source });
  const loop = a.consumer[Symbol.asyncIterator]();
  expect((await loop.next()).value!.records).toHaveLength(50);

  await ended;
  await loop.return!();

  for await (const batch of a.consumer) {
    expect(batch.records[0]!.offset).toBe(0n);
    break;
  }
});

test('closed, it leaves nothing behind: no node, no watch, and its loops end', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await consumer(zk);
  await a.consumer.settled();
  const waiting = (async () => {
    let count = 0;
    for await (const batch of a.consumer) count += batch.records.length;
    return count;
  })();
  await vi.waitFor(
    () => expect(a.consumer.status().partitions.map(({ lag }) => lag)).toEqual([0n, 0n, 0n, 0n]),
    10_000,
  );

  await a[Symbol.asyncDispose]();

  expect(await waiting).toBe(200);
  expect(await witness.children(layout08.consumerIds.at({ group }))).toEqual([]);
  expect(await witness.children(layout08.owners.at({ group, topic: 't' }))).toEqual([]);
  expect(a.client.load.watches).toBe(0);
  expect(a.client.listenerCount('state')).toBe(0);
});

test('iterating over a batch ends with a NotOwnerError before the first record after the session', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  await using a = await consumer(
    zk,
    { topics: fixedTopics({ t: 1 }), clock },
    { clock, sessionTimeoutMs: 1_000 },
  );
  const { value: batch } = await a.consumer[Symbol.asyncIterator]().next();
  const seen: string[] = [];

  const work = () => {
    for (const { value } of batch!) {
      seen.push(String(value));
      if (seen.length === 3) clock.advance(2_000);
    }
  };

  expect(work).toThrow(NotOwnerError);
  expect(seen).toEqual(['0:0', '0:1', '0:2']);
});

test('a batch whose session ends between the hand-out and the loop comes again, under the next owner', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const topics = fixedTopics({ t: 1 });
  await using a = await consumer(
    zk,
    { topics, clock, autoCommitMs: false },
    { clock, sessionTimeoutMs: 1_000 },
  );
  const loop = a.consumer[Symbol.asyncIterator]();
  const { value: first } = await loop.next();
  await first!.commit();
  await vi.waitFor(() => expect(a.consumer.status().partitions[0]!.position).toBe(20n));

  const next = loop.next();
  clock.advance(2_000);
  const { value: second } = await next;

  expect(second!.signal.aborted).toBe(false);
  expect(second!.epoch).toBeGreaterThan(first!.epoch);
  expect(second!.records[0]!.offset).toBe(10n);
  await loop.return!();
});
