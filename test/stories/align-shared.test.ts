/** A group that shares its limit with who knows the document's nodes alone, or behaves as the Java program does. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  type AlignOptions,
  align,
  continueAlignment,
  pauseAlignment,
  SeedCoordinator,
} from '../../src/align/index.ts';
import type { Client } from '../../src/client/index.ts';
import { NdjsonSource } from '../../src/kafka/index.ts';
import { JavaMember } from '../align-java-member.ts';
import { startZk, type Zk } from '../zk.ts';

const root = '/kcc';
const minute = 60_000;
let directory: string;
let zk: Zk;
let witness: Client;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'align-shared-'));
  zk = await startZk();
  witness = await zk.witness();
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await zk[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/** A file with a record every half minute. */
async function file(topic: string, partition: number, startMs: number, minutes: number) {
  const lines = Array.from({ length: minutes * 2 }, (_, i) => {
    const timestamp = startMs + (i * minute) / 2;
    return `{"timestamp":${timestamp},"value":"${i / 2}"}\n`;
  });
  await writeFile(join(directory, `${topic}-${partition}.ndjson`), lines.join(''));
}

async function start(options: Partial<AlignOptions>, client?: Client) {
  const on = client ?? (await zk.connect({ renew: true }));
  const source = new NdjsonSource({ directory, follow: false });
  const problems: unknown[] = [];
  const run = align(on, {
    group: 'g',
    source,
    topics: { t: 2 },
    mode: { period: '1m' },
    debounceMs: 10,
    ...options,
  });
  run.on('problem', (...told) => void problems.push(told));
  const minutes: number[] = [];
  const read = async () => {
    for await (const batch of run) {
      minutes.push(...batch.records.map(({ value }) => Number(String(value))));
      await batch.done();
    }
  };
  const loop = read();
  loop.catch(() => {}); // told to who waits for it
  closers.push(async () => {
    await run.close();
    await source.close();
  });
  return { run, loop, minutes, client: on, problems };
}

const text = async (path: string) => (await witness.get(`${root}/${path}`)).data?.toString();
const until = (look: () => void | Promise<void>) => vi.waitFor(look, { timeout: 20_000 });

// The second does not begin where a minute does: periods are counted from the start.
test.each([1_700_000_040_000, 1_700_000_060_000])(
  'ours follows a leader as the Java program is one, from %d on',
  async (startMs) => {
    await file('t', 0, startMs, 4);
    await file('t', 1, startMs, 4);
    const java = new JavaMember(await zk.connect(), {
      root,
      plan: { t: [0, 1, 2] },
      start: startMs / 1_000,
      period: 60,
    });
    await java.start();
    const layout = { kind: 'java', root, startMs, others: { t: [2] } } as const;
    const ours = await start({ layout });
    expect(java.isLeading).toBe(true);

    for (const count of [1, 2, 3]) {
      await until(() => expect(ours.minutes).toHaveLength(count * 4));
      expect(Math.max(...ours.minutes)).toBe(count - 0.5);
      await until(async () => expect(await text('share/progress/t.1')).toBeDefined());
      expect(ours.run.limit?.limitMs).toBe(startMs + count * minute);

      await java.currentPeriodComplete(['t.2']);
      expect(java.currentMaxTimestamp * 1_000).toBe(startMs + (count + 1) * minute);
    }

    await until(() => expect(ours.minutes).toHaveLength(16));
    expect(ours.problems).toEqual([]);
  },
);

const startMs = 1_700_000_040_000;
const plan = { t: [0, 1], u: [0] };
const shared = { kind: 'java', root, startMs, others: { u: [0] } } as const;

async function javaMember(): Promise<JavaMember> {
  const start = startMs / 1_000;
  const member = new JavaMember(await zk.connect(), { root, plan, start, period: 60 });
  await member.start();
  return member;
}

test('members as the Java program has them follow ours', async () => {
  await file('t', 0, startMs, 4);
  await file('t', 1, startMs, 4);
  const ours = await start({ layout: shared });
  await until(async () => expect(await text('share/coordinator')).toBe(String(startMs / 1_000)));
  const java = await javaMember();
  expect(java.isLeading).toBe(false);
  expect(await text('share/topic-partitions')).toBe('t:0,1;u:0;');

  for (const count of [1, 2, 3]) {
    await until(() => expect(ours.minutes).toHaveLength(count * 4));
    expect(Math.max(...ours.minutes)).toBe(count - 0.5);

    await java.currentPeriodComplete(['u.0']);
    expect(java.currentMaxTimestamp * 1_000).toBe(startMs + (count + 1) * minute);
  }
});

test('when the leader of ours dies its next one tells what had gone with it, and Java’s go on', async () => {
  await file('t', 0, startMs, 6);
  await file('t', 1, startMs, 6);
  const java = await javaMember();
  const [one, two] = [await start({ layout: shared }), await start({ layout: shared })];
  await java.currentPeriodComplete(['u.0']);
  await java.currentPeriodComplete(['u.0']);
  await until(() => expect(new Set([...one.minutes, ...two.minutes]).size).toBe(6));

  const [leader, other] = one.run.isLeading ? [one, two] : [two, one];
  await leader.client.close(); // and with it its nodes of progress
  await java.currentPeriodComplete(['u.0']);
  await java.currentPeriodComplete(['u.0']);

  await until(() => expect(new Set([...one.minutes, ...two.minutes]).size).toBe(10));
  expect(other.run.limit?.limitMs).toBe(startMs + 5 * minute);
  await until(async () => expect(await witness.children(`${root}/leader`)).toHaveLength(2));
});

test('two groups share one limit by the document’s nodes, and a group alone comes to its end', async () => {
  await file('t', 0, startMs, 3);
  await file('t', 1, startMs, 3);
  await file('u', 0, startMs, 3);
  const common = { kind: 'seed', root, startMs } as const;
  const a = await start({ layout: { ...common, others: { u: [0] } } });
  await until(() => expect(a.minutes).toHaveLength(4));
  await until(async () => expect(await text('progress')).toBe('t.0:1700000100;t.1:1700000100;'));

  const b = await start({
    group: 'h',
    topics: { u: 1 },
    layout: { ...common, others: { t: [0, 1] } },
  });
  await until(() => expect([a.minutes.length, b.minutes.length]).toEqual([12, 6]));
  expect(await text('topic-partitions')).toMatch(/^[tu]:/);

  const alone = await start({
    group: 'alone',
    from: startMs,
    layout: { kind: 'seed', root: '/alone' },
  });
  await alone.loop;
  expect(alone.minutes).toHaveLength(12);
  const { data } = await witness.get('/alone/coordinator');
  expect(Number(data) * 1_000).toBe(startMs + 3 * minute);
});

test('what the layout cannot say is refused, and says which', async () => {
  const layout = { kind: 'java', startMs: 0 } as const;

  await expect(start({ layout, mode: { drift: '1m' } })).rejects.toThrow(/mode.*period/);
  await expect(start({ layout, mode: { period: '1m', lookAhead: 1 } })).rejects.toThrow(
    /look-ahead/,
  );
  await expect(start({ layout, mode: { period: '1500ms' } })).rejects.toThrow(/whole seconds/);
  await expect(start({ layout: 'seed' })).rejects.toThrow(/startMs, or from/);
  await expect(start({ layout: 'other' as 'seed' })).rejects.toThrow(/one of seed, java/);
});

test('held by hand, ours holds those with whom it shares its limit', async () => {
  await file('t', 0, startMs, 4);
  await file('t', 1, startMs, 4);
  const other = await SeedCoordinator.open(await zk.connect(), {
    ...{ layout: 'java', root, startMs, period: '1m', topicPartitions: plan },
  });
  closers.push(() => other.close());
  const ours = await start({ layout: shared });
  await until(() => expect(ours.minutes).toHaveLength(4));
  await pauseAlignment(witness, 'g');
  await until(() => expect(ours.run.status().isPaused).toBe(true));
  const mine = [{ topic: 'u', partition: '0' }];

  // Everybody has reached the first, and ours goes no further: so nobody gets to the third.
  expect(await other.currentPeriodComplete(mine)).toBe(startMs + 2 * minute);
  const third = other.currentPeriodComplete(mine);
  await until(async () =>
    expect(await text('share/progress/u.0')).toBe(String((startMs + 2 * minute) / 1_000)),
  );
  expect(other.limitMs).toBe(startMs + 2 * minute);
  expect(ours.minutes).toHaveLength(4);

  await continueAlignment(witness, 'g');
  expect(await third).toBe(startMs + 3 * minute);
  await until(() => expect(ours.minutes.length).toBeGreaterThan(8));
});
