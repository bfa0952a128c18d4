/**
 * What has gone wrong elsewhere: in the coordinator that this one is after, and in stream processors.
 * Each is a story with a good end.
 */

import { expect, test, vi } from 'vitest';
import {
  type AlignedBatch,
  type Aligner,
  type AlignOptions,
  align,
  alignPaths,
  type Period,
  parseLimit,
  readAlignment,
  rewindAlignment,
  setRule,
} from '../../src/align/index.ts';
import type { ClientOptions } from '../../src/client/index.ts';
import { NdjsonSource, NotOwnerError, type TopicDirectory } from '../../src/kafka/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { base, minute, useAlignWorld } from '../align-world.ts';
import { startZk, type Zk } from '../zk.ts';

const world = useAlignWorld();
const { partitions, append } = world;
const paths = alignPaths('g');

async function start(
  zk: Zk,
  count: number,
  options: Partial<AlignOptions> & { follow?: boolean } = {},
  clientOptions: ClientOptions = {},
) {
  const member = await world.start(zk, count, options, clientOptions);
  const seen: string[] = [];
  const loop = read(member.run, seen);
  loop.catch(() => {}); // told to who waits for it
  return { ...member, seen, loop };
}

async function read(run: Aligner, seen: string[]): Promise<void> {
  for await (const batch of run) {
    seen.push(...batch.records.map(({ value }) => String(value)));
    await batch.done();
  }
}

const until = (look: () => void | Promise<void>) => vi.waitFor(look, { timeout: 15_000 });
const minutesOf = (count: number) => Array.from({ length: count }, (_, i) => i);

test('the limit and the plan outlive whoever made them', async () => {
  await partitions([0, 1, 2, 3], [0, 1, 2, 3]);
  await using zk = await startZk();
  const witness = await zk.witness();
  const first = await start(zk, 2, { follow: true });
  await until(() => expect(first.seen.length).toBeGreaterThanOrEqual(6));
  await using second = await start(zk, 2);

  await first[Symbol.asyncDispose]();
  await second.loop;

  const { limitMs } = parseLimit((await witness.get(paths.limit)).data, paths.limit);
  expect(limitMs).toBe(base + 4 * minute);
  expect(await witness.exists(paths.plan)).toMatchObject({ ephemeralOwner: 0n });
  expect(new Set([...first.seen, ...second.seen]).size).toBe(8);
});

test('a member that comes again under its old name, before its old session is over, takes part', async () => {
  await partitions(minutesOf(4), minutesOf(4));
  await using zk = await startZk();
  const old = await start(zk, 2, { follow: true, consumerId: 'a' });
  await until(() => expect(old.seen.length).toBeGreaterThan(2));
  await using again = await start(zk, 2, { consumerId: 'a' });

  await zk.expire(old.client);
  await old.client.close();
  await again.loop;

  expect(new Set([...old.seen, ...again.seen]).size).toBe(8);
  await old.run.close();
});

test('a member whose session expires joins again by itself, and goes on', async () => {
  await partitions(minutesOf(6), minutesOf(6));
  await using zk = await startZk();
  const witness = await zk.witness();
  await using a = await start(zk, 2, { follow: true, idleAfter: 100 });
  await until(() => expect(a.seen.length).toBeGreaterThan(3));

  await zk.expire(a.client);
  await until(() => expect(new Set(a.seen).size).toBe(12));
  await append(0, [9]);
  await until(() => expect(a.seen).toContain('0:9'));

  await until(async () => expect(await witness.children(paths.members)).toHaveLength(1));
  await a.run.close();
  await a.loop;
});

test('members without a partition hold nobody back, also where one of them leads', async () => {
  await partitions(minutesOf(5));
  await using zk = await startZk();
  await using leader = await start(zk, 1);
  await until(() => expect(leader.run.isLeading).toBe(true));
  await using b = await start(zk, 1);
  await using c = await start(zk, 1);

  await Promise.all([leader.loop, b.loop, c.loop]);

  const seen = [leader, b, c].map((one) => one.seen);
  expect(seen.flat().sort()).toEqual(minutesOf(5).map((m) => `0:${m}`));
  expect(seen.filter(({ length }) => length === 0).length).toBeGreaterThan(0);
});

test('one loop reads a fast and a slow partition, and neither waits for itself', async () => {
  await partitions(minutesOf(10), [0, 0.1, 0.2, 0.3, 9]);
  await using zk = await startZk();
  await using a = await start(zk, 2);

  await a.loop;

  expect(a.seen).toHaveLength(15);
});

test('when one member has read all of its own, the others are told of new limits all the same', async () => {
  await partitions([0], minutesOf(8));
  await using zk = await startZk();
  await using a = await start(zk, 2);
  await using b = await start(zk, 2);

  await Promise.all([a.loop, b.loop]);

  expect([...a.seen, ...b.seen]).toHaveLength(9);
});

test('a partition that is added under way is waited for, and enters where the group is', async () => {
  await partitions(minutesOf(3), minutesOf(3));
  await using zk = await startZk();
  let count = 1;
  const heard = new Set<() => void>();
  const growing: TopicDirectory = {
    list: async () => ['t'],
    partitions: async () => minutesOf(count).map(String),
    onChange: (listener) => {
      heard.add(listener);
      return () => heard.delete(listener);
    },
    forget() {},
    async close() {},
  };
  await using a = await start(zk, 1, { follow: true, directory: growing, idleAfter: 3_600_000 });
  await until(() => expect(a.seen).toHaveLength(3));

  count = 2;
  for (const one of heard) one();
  await until(() => expect(a.seen).toHaveLength(6));

  const snapshot = await readAlignment(await zk.witness(), 'g');
  expect(snapshot?.partitions.map(({ key }) => key)).toEqual(['t/0', 't/1']);
  await a.run.close();
  await a.loop;
});

test('four that start at the same moment on an empty server agree on one of everything', async () => {
  await partitions(...minutesOf(8).map(() => minutesOf(3)));
  await using zk = await startZk();
  const all = await Promise.all(minutesOf(4).map(() => start(zk, 8)));

  await Promise.all(all.map(({ loop }) => loop));

  const seen = all.flatMap((one) => one.seen);
  expect(new Set(seen).size).toBe(24);
  const witness = await zk.witness();
  expect((await witness.get(paths.config)).stat.version).toBe(0);
  await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
});

test('a restart at the end of everything is not stalled by what it never read itself', async () => {
  await partitions([0, 1], [0]);
  await using zk = await startZk();
  const first = await start(zk, 2, { follow: true, idleAfter: 50 });
  await until(() => expect(first.seen).toHaveLength(3));
  await first[Symbol.asyncDispose]();
  await first.loop;
  await using second = await start(zk, 2, { follow: true, idleAfter: 50 });
  await until(() =>
    expect(second.run.status().partitions.map(({ state }) => state)).toEqual(['idle', 'idle']),
  );

  await append(0, [5]);
  await until(() => expect(second.seen).toEqual(['0:5']));
  await second.run.close();
  await second.loop;
});

test.each([0, 90_000])(
  'who takes over a partition that is at its end adds no period (out of order: %d ms)',
  async (outOfOrder) => {
    await partitions([0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]);
    await using zk = await startZk();
    const witness = await zk.witness();
    const ends: number[] = [];
    const options = { outOfOrder, onPeriod: ({ end }: Period) => void ends.push(end) };
    await using a = await start(zk, 4, options);
    await using b = await start(zk, 4, options);
    await Promise.all([a.loop, b.loop]);

    await b.run.close();
    const finished = { state: 'finished', member: a.run.id };
    await until(async () => {
      const seen = await readAlignment(witness, 'g');
      expect(seen?.partitions.map(({ state, member }) => ({ state, member }))).toEqual(
        Array.from({ length: 4 }, () => finished),
      );
    });
    // Another change that the leader tells of: what was reported before it was looked at by then.
    await setRule(witness, 'g', { period: '1m', lookAhead: 1 });
    await until(async () => {
      expect((await readAlignment(witness, 'g'))?.limit?.rule).toMatchObject({ lookAhead: 1 });
    });

    expect(ends.at(-1)).toBe(base + 3 * minute);
    expect(new Set(ends).size).toBe(ends.length);
  },
);

test('one far behind starves nobody of memory: the others hold one batch each, and wait', async () => {
  await partitions([0], minutesOf(2_000));
  await using zk = await startZk();
  await using a = await start(zk, 2, { follow: true, idleAfter: 3_600_000 });
  await until(() => expect(a.seen).toHaveLength(2));

  const { partitions: lanes } = a.run.status();

  expect(lanes.find(({ partition }) => partition === '1')).toMatchObject({ isHeldBack: true });
  expect(lanes.find(({ partition }) => partition === '0')).toMatchObject({ isHeldBack: false });
  await a.run.close();
  await a.loop;
});

test('a callback that throws ends the run of who called, and the next leader calls again', async () => {
  await partitions(minutesOf(3), minutesOf(3));
  await using zk = await startZk();
  const calls: number[] = [];
  const failing = await start(zk, 2, {
    onPeriod: () => {
      throw new Error('disk full');
    },
  });
  await expect(failing.loop).rejects.toThrow('disk full');
  await failing[Symbol.asyncDispose]();

  await using second = await start(zk, 2, {
    onPeriod: ({ end }) => void calls.push((end - base) / minute),
  });
  await second.loop;

  expect(calls[0]).toBe(1);
  expect(calls.at(-1)).toBe(3);
});

test('without a link it goes on up to the limit it knows, and then waits; nothing is lost', async () => {
  await partitions(minutesOf(30), minutesOf(30));
  await using zk = await startZk();
  let cut = false;
  const seen: string[] = [];
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 10_000 });
  const source = new NdjsonSource({
    directory: world.directory,
    follow: false,
    batchRecordsMax: 3,
  });
  const mode = { period: '1m', lookAhead: 5 } as const;
  const run = align(client, { group: 'g', source, topics: { t: 2 }, mode, debounceMs: 10 });
  const check = ({ timesMs }: AlignedBatch) => {
    for (const timeMs of timesMs) expect(timeMs!).toBeLessThan(run.limit!.limitMs!);
  };
  const loop = (async () => {
    for await (const batch of run) {
      check(batch);
      seen.push(...batch.records.map(({ value }) => String(value)));
      await batch.done();
      if (!cut && seen.length > 10) {
        cut = true;
        zk.link.refuse();
        zk.link.cut();
      }
    }
  })();
  await until(() =>
    expect(cut && run.status().partitions.every((one) => one.isHeldBack)).toBe(true),
  );

  await zk.link.accept();
  await loop;

  expect(new Set(seen).size).toBe(60);
  await run.close();
  await source.close();
});

test('a batch whose session ends between the hand-out and the loop comes again, under the next owner', async () => {
  await partitions(minutesOf(30));
  await using zk = await startZk();
  const clock = new MovableClock();
  const options = { mode: { period: '1h' }, batchRecordsMax: 10, clock } as const;
  await using member = await world.start(zk, 1, options, { clock, sessionTimeoutMs: 1_000 });
  const loop = member.run[Symbol.asyncIterator]();
  const { value: first } = await loop.next();
  await first!.done();

  const next = loop.next();
  clock.advance(2_000);
  const { value: second } = await next;

  expect(second!.signal.aborted).toBe(false);
  expect(second!.epoch).toBeGreaterThan(first!.epoch);
  await loop.return!();
});

test('iterating over an aligned batch throws before the first record after the session', async () => {
  await partitions(minutesOf(30));
  await using zk = await startZk();
  const clock = new MovableClock();
  await using member = await world.start(
    zk,
    1,
    { mode: { period: '1h' }, clock },
    { clock, sessionTimeoutMs: 1_000 },
  );
  const { value: batch } = await member.run[Symbol.asyncIterator]().next();
  const seen: string[] = [];

  const work = () => {
    for (const { value } of batch!) {
      seen.push(String(value));
      if (seen.length === 3) clock.advance(2_000);
    }
  };

  expect(work).toThrow(NotOwnerError);
  expect(seen).toEqual(['0:0', '0:1', '0:2']);
  expect(await batch!.done()).toBe(false);
});

/** 500 days later, and still in the past. */
const farAhead = 720_000;

test('one record far ahead does not carry the limit away while the others have nothing to read', async () => {
  await partitions([0, 1, farAhead], [0, 1]);
  await using zk = await startZk();
  const ahead: number[] = [];
  await using a = await start(zk, 2, { follow: true, idleAfter: 100 });
  a.run.on('ahead', (_, __, timeMs) => ahead.push((timeMs - base) / minute));
  const states = () => a.run.status().partitions.map(({ state }) => state);
  await until(() => expect(a.seen).toHaveLength(4));
  await until(() => expect(states()).toEqual(['idle', 'idle']));

  expect(a.run.limit!.limitMs).toBe(base + 2 * minute);
  expect(ahead).toEqual([farAhead]);

  await append(1, [2, 3, 4]);
  await until(() => expect(a.seen).toHaveLength(7));
  expect(a.run.limit!.limitMs).toBe(base + 5 * minute);
  await append(0, [5]);
  await until(() => expect(a.seen).toContain('0:5'));
  expect(a.run.status().quarantined).toBe(1);
  await a.run.close();
  await a.loop;
});

test('a limit that was carried away can be set back to a cut, and the group goes on from there', async () => {
  await partitions([0, 1, farAhead], [0, 1]);
  await using zk = await startZk();
  const witness = await zk.witness();
  const calls: number[] = [];
  const onPeriod = ({ end }: Period) => void calls.push((end - base) / minute);
  const first = await start(zk, 2, { follow: true, idleAfter: 100, maxAhead: false, onPeriod });
  await until(() => expect(first.seen).toHaveLength(5));
  await until(() => expect(calls.at(-1)).toBe(farAhead));
  const running = rewindAlignment(witness, 'g');
  await expect(running).rejects.toThrow(/g is running: .*stop them first/);
  await first[Symbol.asyncDispose]();
  await first.loop;

  const back = await rewindAlignment(witness, 'g', { toMs: base + 10 * minute });

  expect(back).toMatchObject({
    before: { limitMs: base + (farAhead + 1) * minute },
    limitMs: base + minute,
  });
  await append(1, [2, 3]);
  calls.length = 0;
  await using second = await start(zk, 2, { follow: true, idleAfter: 100, onPeriod });
  await until(() => expect(second.seen.toSorted()).toEqual(['0:1', '1:1', '1:2', '1:3']));
  await append(0, [4]);
  await until(() => expect(second.seen).toContain('0:4'));
  await until(() => expect(calls).toContain(4));
  expect(second.run.limit!.limitMs).toBe(base + 5 * minute);
  expect(calls).toEqual([...new Set(calls)].sort((a, b) => a - b));
  await second.run.close();
  await second.loop;
});

test('a group goes back a cut at a time, as far as cuts are kept', async () => {
  await partitions(minutesOf(5), minutesOf(5));
  await using zk = await startZk();
  const witness = await zk.witness();
  await expect(rewindAlignment(witness, 'g')).rejects.toThrow('there is no group g');
  const first = await start(zk, 2);
  await first.loop;
  await first[Symbol.asyncDispose]();
  const { limit } = (await readAlignment(witness, 'g'))!;
  expect(limit).toMatchObject({ isFinished: true, limitMs: base + 5 * minute });

  const { limitMs: last } = await rewindAlignment(witness, 'g');
  const { limitMs: next, earlier } = await rewindAlignment(witness, 'g');

  expect([last, next]).toEqual([base + 4 * minute, base + 3 * minute]);
  expect(earlier.at(-1)).toBe(base + 2 * minute);
  await expect(rewindAlignment(witness, 'g', { toMs: 5 })).rejects.toThrow(/no cut that early/);
  expect((await witness.children(paths.cuts)).length).toBe(earlier.length + 1);
  await using second = await start(zk, 2);
  await second.loop;
  expect(second.seen.toSorted()).toEqual(['0:3', '0:4', '1:3', '1:4']);
});

test('a gap in which nobody has anything is gone over, however long it is', async () => {
  await partitions([0, farAhead], [0, farAhead + 1]);
  await using zk = await startZk();
  await using a = await start(zk, 2, { follow: true, idleAfter: 100 });

  await until(() => expect(a.seen).toHaveLength(4));

  await a.run.close();
  await a.loop;
});

test('records of a clock that runs fast are counted, and warned of where nothing listens for them', async () => {
  const future = (Date.now() - base) / minute + 60;
  await partitions([0, future, future + 1], [0]);
  await using zk = await startZk();
  const warned: string[] = [];
  const hear = (warning: Error) => warned.push(`${warning.name} ${warning.message}`);
  process.on('warning', hear);
  try {
    await using a = await start(zk, 2);
    await a.loop;

    expect(a.run.status().quarantined).toBe(2);
    await until(() => expect(warned).toHaveLength(2)); // at once, and when the run is over
    expect(warned[0]).toMatch(
      /^DroverWarning align g: a record was left out.*t\/0 offset 1 \(future\)/,
    );
  } finally {
    process.off('warning', hear);
  }
});

test('a callback for doubted records that throws ends the run, and the source is not tried again', async () => {
  await partitions([0, -30_000_000], [0]);
  await using zk = await startZk();
  let calls = 0;
  const onQuarantine = () => {
    calls += 1;
    throw new Error('no room in the dead letter queue');
  };
  await using a = await start(zk, 2, { onQuarantine });

  await expect(a.loop).rejects.toThrow('no room in the dead letter queue');
  expect(calls).toBe(1);
});
