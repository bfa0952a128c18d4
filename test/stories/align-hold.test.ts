/** A replay is held by hand, let on period by period, and let go: while it runs, and from wherever. */

import { expect, test, vi } from 'vitest';
import {
  type AlignOptions,
  Coordinator,
  continueAlignment,
  pauseAlignment,
  readAlignment,
  type SeenPartition,
  setRule,
  stepAlignment,
} from '../../src/align/index.ts';
import type { Client } from '../../src/client/index.ts';
import { base, minute, type Run, useAlignWorld } from '../align-world.ts';
import { startZk, type Zk } from '../zk.ts';

const world = useAlignWorld();
const { partitions } = world;
const at = (minutes: number) => base + minutes * minute;
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000, interval: 20 });

const upTo = (count: number, by = 0.5) => Array.from({ length: count }, (_, i) => i * by);

interface Reader extends Run {
  /** Minutes as they were handed out. */
  readonly seen: number[];
  readonly ended: Promise<void>;
  /** No batch is handed out before this is opened. */
  open(): void;
}

/** Reads on only once it is opened, so that a pause can come before anything else. */
async function start(
  zk: Zk,
  count: number,
  options: Partial<AlignOptions> & { follow?: boolean; isShut?: boolean } = {},
): Promise<Reader> {
  const { isShut = false, ...rest } = options;
  const member = await world.start(zk, count, rest);
  const { run } = member;
  const seen: number[] = [];
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  if (!isShut) open();
  const read = async () => {
    await gate;
    for await (const batch of run) {
      seen.push(...batch.records.map(({ value }) => Number(String(value).split(':')[1])));
      await batch.done();
    }
  };
  const ended = read();
  return {
    ...{ ...member, seen, ended, open },
    async [Symbol.asyncDispose]() {
      open();
      await run.close();
      await ended;
      await member[Symbol.asyncDispose]();
    },
  };
}

const hasLimit = (client: Client) =>
  until(async () => expect((await readAlignment(client, 'g'))?.limit?.limitMs).toEqual(at(1)));
/** From here on nobody of them goes further. */
const hasHeard = ({ run }: Reader, minutes: number) =>
  until(() => expect(run.limit?.rule.holdMs).toBe(at(minutes)));
/** Everybody has come to where the group is held. */
const heldAt = (client: Client, minutes: number) =>
  until(async () => {
    const seen = await readAlignment(client, 'g');
    expect(seen).toMatchObject({ isPaused: true, limit: { limitMs: at(minutes) } });
    const isAtRest = ({ state, isWaiting }: SeenPartition) =>
      isWaiting || state === 'idle' || state === 'finished';
    const busy = seen?.partitions.filter((one) => !isAtRest(one));
    expect(busy).toEqual([]);
  });

test('a group that is paused reads up to its limit and waits there; step by step it goes on; let go, it comes to its end', async () => {
  await partitions(upTo(20), upTo(20));
  await using zk = await startZk();
  const people = await zk.witness();
  const ends: number[] = [];
  await using a = await start(zk, 2, {
    isShut: true,
    onPeriod: ({ end }) => void ends.push(end),
  });
  await hasLimit(people);

  expect(await pauseAlignment(people, 'g')).toMatchObject({ rule: { holdMs: at(1) } });
  await hasHeard(a, 1);
  a.open();
  await heldAt(people, 1);
  expect([...a.seen].sort()).toEqual([0, 0, 0.5, 0.5]);
  expect(a.run.status().isPaused).toBe(true);
  expect((await pauseAlignment(people, 'g')).rule.holdMs).toBe(at(1)); // as it was

  await stepAlignment(people, 'g');
  await heldAt(people, 2);
  expect(Math.max(...a.seen)).toBe(1.5);
  await stepAlignment(people, 'g', { periods: 3 });
  await heldAt(people, 5);
  expect(Math.max(...a.seen)).toBe(4.5);
  await until(() => expect(ends.at(-1)).toBe(at(5)));

  expect(await continueAlignment(people, 'g')).toMatchObject({ before: { holdMs: at(5) } });
  await a.ended;
  expect(a.seen).toHaveLength(40);
  await until(() => expect(ends.at(-1)).toBe(at(10)));
});

test('a step goes over a gap to the next record, and not through it period by period', async () => {
  await partitions([0, 600.5, 601.5], [0.5, 600.1]);
  await using zk = await startZk();
  const people = await zk.witness();
  await using a = await start(zk, 2, { isShut: true });
  await hasLimit(people);
  await pauseAlignment(people, 'g');
  await hasHeard(a, 1);
  a.open();
  await heldAt(people, 1);

  await stepAlignment(people, 'g');

  await heldAt(people, 601);
  expect([...a.seen].sort()).toEqual([0, 0.5, 600.1, 600.5]);
});

test('it stays paused under another leader, with nobody there at all, and with another period', async () => {
  await partitions(upTo(20), upTo(20));
  await using zk = await startZk();
  const people = await zk.witness();
  const a = await start(zk, 2, { isShut: true });
  await hasLimit(people);
  await pauseAlignment(people, 'g');
  await hasHeard(a, 1);
  a.open();
  await heldAt(people, 1);
  await using b = await start(zk, 2);
  await until(async () =>
    expect((await readAlignment(people, 'g'))?.members.map(({ id }) => id)).toHaveLength(2),
  );

  await a[Symbol.asyncDispose](); // it led
  await until(() => expect(b.run.isLeading).toBe(true));
  await heldAt(people, 1);
  await b.run.close();
  expect((await pauseAlignment(people, 'g')).rule.holdMs).toBe(at(1));

  await using c = await start(zk, 2);
  await heldAt(people, 1);
  await setRule(people, 'g', { period: '2m' });
  await until(async () =>
    expect((await readAlignment(people, 'g'))?.limit?.rule).toMatchObject({
      ...{ mode: 'period', stepMs: 2 * minute, holdMs: at(1) },
    }),
  );
  expect([...a.seen, ...b.seen, ...c.seen].every((m) => m < 1)).toBe(true);

  await stepAlignment(people, 'g');
  const next = Math.floor(at(1) / (2 * minute)) * 2 * minute + 2 * minute;
  await heldAt(people, (next - base) / minute);
  await continueAlignment(people, 'g');
  await c.ended;
  expect(new Set([...a.seen, ...b.seen, ...c.seen]).size).toBe(20);
});

test('a group that has read all there is does not end while it is held', async () => {
  await partitions([0, 0.5], [0.2]);
  await using zk = await startZk();
  const people = await zk.witness();
  await using a = await start(zk, 2, { isShut: true });
  await hasLimit(people);
  await pauseAlignment(people, 'g');
  await hasHeard(a, 1);
  a.open();
  await until(async () => {
    const seen = await readAlignment(people, 'g');
    expect(seen?.partitions.map(({ state }) => state)).toEqual(['finished', 'finished']);
    expect(seen?.limit).toMatchObject({ cut: { end: at(1) }, isFinished: false });
  });

  await continueAlignment(people, 'g');

  await a.ended;
  expect((await readAlignment(people, 'g'))?.limit?.isFinished).toBe(true);
  await expect(pauseAlignment(people, 'g')).rejects.toThrow(/come to its end/);
});

test('a group of which nobody is there is paused too, and begins so', async () => {
  await partitions(upTo(20));
  await using zk = await startZk();
  const people = await zk.witness();
  const a = await start(zk, 1, { isShut: true });
  await hasLimit(people);
  await a.run.close();

  await pauseAlignment(people, 'g');
  expect(await readAlignment(people, 'g')).toMatchObject({ isPaused: true, holdMs: at(1) });
  await a[Symbol.asyncDispose]();
  await using b = await start(zk, 1);

  await heldAt(people, 1);
  expect(b.seen).toEqual([0, 0.5]);
});

test('who reads by other means waits too, and is let on', async () => {
  await using zk = await startZk();
  const people = await zk.witness();
  const all = [{ topic: 't', partition: '0' }];
  await using coordinator = new Coordinator(await zk.connect(), {
    ...{ group: 'g', partitions: all, mode: { period: '1m' }, startMs: base },
  });
  expect(await coordinator.currentPeriodComplete(all)).toBe(at(1));
  await pauseAlignment(people, 'g');
  await until(async () => expect((await readAlignment(people, 'g'))?.isPaused).toBe(true));

  const waiting = coordinator.currentPeriodComplete(all);
  await heldAt(people, 1);
  expect(coordinator.checkLimit(at(1))).toBe(false);
  await stepAlignment(people, 'g');

  expect(await waiting).toBe(at(2));
});

test('where nobody waits for anybody, a pause still stops all of them', async () => {
  await partitions(upTo(40), [0]);
  await using zk = await startZk();
  const people = await zk.witness();
  const mode = { off: true, step: '1m' } as const;
  await using a = await start(zk, 2, { isShut: true, follow: true, mode });
  await hasLimit(people);
  await stepAlignment(people, 'g', { periods: 4 });
  await hasHeard(a, 5);
  a.open();

  await until(() => expect(a.seen).toContain(4.5));
  await until(() =>
    expect(a.run.status().partitions.find(({ partition }) => partition === '0')).toMatchObject({
      isHeldBack: true,
      positionMs: at(5),
    }),
  );
  expect(Math.max(...a.seen)).toBe(4.5);
});

test('what cannot be held is refused, and says why; two who change it at once both count', async () => {
  await partitions(upTo(20));
  await using zk = await startZk();
  const people = await zk.witness();
  for (const change of [pauseAlignment, stepAlignment, continueAlignment]) {
    await expect(change(people, 'none')).rejects.toThrow(/no group none/);
  }
  await setRule(people, 'young', { period: '1m' });
  await expect(pauseAlignment(people, 'young')).rejects.toThrow(/no limit yet/);
  await expect(stepAlignment(people, 'g', { periods: 0 })).rejects.toThrow(/from 1 to/);

  await using a = await start(zk, 1, { isShut: true });
  await hasLimit(people);
  await pauseAlignment(people, 'g');
  await hasHeard(a, 1);
  a.open();
  await heldAt(people, 1);
  const others = await zk.connect();
  await Promise.all([
    ...[stepAlignment(people, 'g'), stepAlignment(others, 'g')],
    setRule(others, 'g', { period: '1m', lookAhead: 2 }),
  ]);

  await heldAt(people, 3);
  expect((await readAlignment(people, 'g'))?.limit?.rule).toMatchObject({ lookAhead: 2 });
});
