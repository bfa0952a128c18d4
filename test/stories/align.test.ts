/** Many partitions, one clock: nobody runs ahead, nothing is lost, whoever comes, goes or falls over. */

import { expect, test, vi } from 'vitest';
import {
  type AlignedBatch,
  alignPaths,
  type Period,
  parseCut,
  parseLimit,
  parseMember,
  setRule,
} from '../../src/align/index.ts';
import { base, minute, type Run, useAlignWorld } from '../align-world.ts';
import { ephemeralsOf, startZk } from '../zk.ts';

const { partitions, append, start } = useAlignWorld();
const paths = alignPaths('g');
const values = ({ records }: AlignedBatch) => records.map(({ value }) => String(value));

async function collect(run: AsyncIterable<AlignedBatch>): Promise<string[]> {
  const seen: string[] = [];
  for await (const batch of run) {
    seen.push(...values(batch));
    expect(await batch.done()).toBe(true);
  }
  return seen;
}

const minuteOf = (value: string) => Number(value.slice(value.indexOf(':') + 1));
/** Minutes never go back in what was seen. */
function expectInStep(seen: readonly string[]): void {
  const minutes = seen.map((value) => Math.floor(minuteOf(value)));
  expect(minutes).toEqual([...minutes].sort((a, b) => a - b));
}

test('two partitions are read minute by minute, to their end, and the loop ends', async () => {
  await partitions([0, 0.5, 1, 2, 3], [0.1, 0.2, 0.3, 1.5, 3.9, 4]);
  await using zk = await startZk();
  const witness = await zk.witness();
  const periods: Period[] = [];
  await using a = await start(zk, 2, { onPeriod: (period) => void periods.push(period) });

  const seen = await collect(a.run);

  expect(seen).toHaveLength(11);
  expectInStep(seen);
  await vi.waitFor(() => expect(periods.at(-1)?.end).toBe(base + 5 * minute));
  expect(periods.map(({ start, end }) => [start, end])).toEqual(
    [1, 2, 3, 4, 5].map((m) => [base + (m - 1) * minute, base + m * minute]),
  );
  expect(Object.fromEntries(periods[0]!.offsets)).toEqual({ 't/0': 2n, 't/1': 3n });
  const limit = parseLimit((await witness.get(paths.limit)).data, paths.limit);
  expect(limit).toMatchObject({ limitMs: base + 5 * minute, isFinished: true });
  const cut = parseCut((await witness.get(paths.cut(limit.cut!.node))).data, paths.limit);
  expect(Object.fromEntries(cut.offsets)).toEqual({ 't/0': 5n, 't/1': 6n });
});

test('two members share the partitions, and neither runs ahead of the other', async () => {
  await partitions([0, 1, 2, 3], [0, 1, 2, 3], [0, 3], [0, 1, 2, 3]);
  await using zk = await startZk();
  await using a = await start(zk, 4);
  await using b = await start(zk, 4);
  const order: string[] = [];
  const read = async ({ run }: Run) => {
    for await (const batch of run) {
      order.push(...values(batch));
      await batch.done();
    }
  };

  await Promise.all([read(a), read(b)]);

  expect([...order].sort()).toHaveLength(14);
  expect(new Set(order).size).toBe(14);
  expectInStep(order);
});

test('a gap of days is one step', async () => {
  const days = 5 * 24 * 60;
  await partitions([0, days], [0.5, days + 0.1]);
  await using zk = await startZk();
  await using a = await start(zk, 2);
  const limits: (number | null)[] = [];
  a.run.on('limit', ({ limitMs }) => limits.push(limitMs));

  const seen = await collect(a.run);

  expect(seen).toHaveLength(4);
  expect([...new Set(limits)].filter((limit) => limit !== null)).toEqual([
    base + minute,
    base + (days + 1) * minute,
  ]);
});

test('nothing is handed out before everybody was heard of, and an idle partition holds nobody back', async () => {
  await partitions([0, 1, 2, 3], [0]);
  await using zk = await startZk();
  await using a = await start(zk, 2, { follow: true, idleAfter: 50 });
  const seen: string[] = [];
  const loop = (async () => {
    for await (const batch of a.run) {
      seen.push(...values(batch));
      await batch.done();
    }
  })();

  await vi.waitFor(() => expect(seen).toHaveLength(5), 10_000);
  expect(a.run.status().partitions.find(({ partition }) => partition === '1')?.state).toBe('idle');

  // Back from idle with its first record, also one of long ago.
  await append(1, [1.5, 60]);
  await vi.waitFor(() => expect(seen).toContain('1:60'), 10_000);
  await a.run.close();
  await loop;
});

test('a restart goes on at the last cut, and after a close where it was', async () => {
  await partitions([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]);
  await using zk = await startZk();
  const first = await start(zk, 2);
  const seen: string[] = [];
  for await (const batch of first.run) {
    seen.push(...values(batch));
    await batch.done();
    if (seen.length === 6) break;
  }
  await first[Symbol.asyncDispose]();
  await using second = await start(zk, 2);

  const rest = await collect(second.run);

  expect([...seen, ...rest].sort()).toEqual(
    [0, 1, 2, 3, 4].flatMap((m) => [`0:${m}`, `1:${m}`]).sort(),
  );
});

test('after a crash only what came after the last cut comes again', async () => {
  await partitions([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]);
  await using zk = await startZk();
  const first = await start(zk, 2, {}, { sessionTimeoutMs: 2_000 });
  const seen: string[] = [];
  for await (const batch of first.run) {
    seen.push(...values(batch));
    if (seen.length === 6) break; // the last is not done
    await batch.done();
  }
  await zk.expire(first.client);
  await first.client.close();
  await using second = await start(zk, 2);

  const rest = await collect(second.run);

  expect(new Set([...seen, ...rest]).size).toBe(10);
  // The cut at minute 2 is stored before anything of minute 2 is handed out.
  expect(rest.every((value) => minuteOf(value) >= 2)).toBe(true);
});

test('while nothing changes, nothing is asked of ZooKeeper', async () => {
  await partitions([0, 1], [0]);
  await using zk = await startZk();
  const witness = await zk.witness();
  await using a = await start(zk, 2, { follow: true, idleAfter: 3_600_000 });
  const loop = collect(a.run);
  const folder = () => witness.children(paths.members);
  const report = async () => {
    const path = paths.member((await folder())[0]!);
    return (await witness.get(path)).stat;
  };
  await vi.waitFor(() => expect(a.run.status().records).toBe(2), 10_000);
  const before = await report();

  await append(1, [0.1, 0.2, 0.3]);
  await vi.waitFor(() => expect(a.run.status().records).toBe(5), 10_000);

  // Three more records, and still the same minute: nobody needs to know.
  expect((await report()).version).toBe(before.version);
  await a.run.close();
  await loop;
});

test('the period can be changed, and switched off, while it runs', async () => {
  await partitions([0, 1, 2, 3], [0]);
  await using zk = await startZk();
  const witness = await zk.witness();
  await using a = await start(zk, 2, { follow: true, idleAfter: 3_600_000 });
  const seen: string[] = [];
  const loop = (async () => {
    for await (const batch of a.run) {
      seen.push(...values(batch));
      await batch.done();
    }
  })();
  await vi.waitFor(() => expect(seen).toEqual(['0:0', '1:0']), 10_000);

  await setRule(witness, 'g', { period: '1m', lookAhead: 1 });
  await vi.waitFor(() => expect(seen).toEqual(['0:0', '1:0', '0:1']), 10_000);

  await setRule(witness, 'g', { off: true, step: '1m' });
  await vi.waitFor(() => expect(seen).toContain('0:3'), 10_000);

  // On again: the limit is where it was, and never went back.
  await setRule(witness, 'g', { period: '1m' });
  await append(0, [4]);
  await vi.waitFor(() => expect(a.run.limit?.rule.mode).toBe('period'), 10_000);
  expect(a.run.limit?.limitMs).toBe(base + 2 * minute);
  await append(1, [9]);
  await vi.waitFor(() => expect(seen).toContain('0:4'), 10_000);
  await a.run.close();
  await loop;
});

test('a record in the far future is told and left out, and freezes nobody', async () => {
  await partitions([0, 1e9, 1], [0, 1]);
  await using zk = await startZk();
  const told: string[] = [];
  await using a = await start(zk, 2, {
    onQuarantine: ({ partition }, record, reason) =>
      void told.push(`${partition} ${record.value} ${reason}`),
  });

  const seen = await collect(a.run);

  expect(seen.sort()).toEqual(['0:0', '0:1', '1:0', '1:1']);
  expect(told).toEqual(['0 0:1000000000 future']);
});

test('records out of order within the allowance wait for nobody and move nothing back', async () => {
  await partitions([0, 1.2, 0.9, 1.8, 3], [0, 1, 2, 3]);
  await using zk = await startZk();
  await using a = await start(zk, 2, { outOfOrder: '30s' });
  const limits: number[] = [];

  for await (const batch of a.run) {
    const limitMs = a.run.limit!.limitMs!;
    limits.push(limitMs);
    for (const timeMs of batch.timesMs) expect(timeMs!).toBeLessThan(limitMs + 30_000);
    await batch.done();
  }

  expect(a.run.status().records).toBe(9);
  expect(limits).toEqual([...limits].sort((x, y) => x - y));
});

test('the callback of a partition comes before that of the group', async () => {
  await partitions([0, 1, 2], [0, 1, 2]);
  await using zk = await startZk();
  const calls: string[] = [];
  await using a = await start(zk, 2, {
    onPartitionPeriod: async ({ partition }, { end }) => {
      await Promise.resolve();
      calls.push(`${partition} ${(end - base) / minute}`);
    },
    onPeriod: ({ end }) => void calls.push(`all ${(end - base) / minute}`),
  });

  await collect(a.run);

  await vi.waitFor(() => expect(calls).toContain('all 3'), 10_000);
  for (const end of [1, 2]) {
    const at = calls.indexOf(`all ${end}`);
    expect(calls.slice(0, at)).toEqual(expect.arrayContaining([`0 ${end}`, `1 ${end}`]));
  }
});

test('closing leaves nothing behind but what a restart needs', async () => {
  await partitions([0, 1, 2], [0]);
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await start(zk, 2, { follow: true });
  const loop = collect(a.run);
  await vi.waitFor(() => expect(a.run.status().records).toBe(2), 10_000);

  await a[Symbol.asyncDispose]();
  await loop;

  expect(await witness.children(paths.members)).toEqual([]);
  expect(await witness.children(paths.election)).toEqual([]);
  expect(await ephemeralsOf(a.client)).toEqual([]);
  expect((await witness.children(paths.base)).sort()).toEqual([
    'config',
    'cuts',
    'election',
    'handovers',
    'limit',
    'members',
    'plan',
  ]);
});

test('what a member reports can be read by anybody', async () => {
  await partitions([0, 1, 2], [0]);
  await using zk = await startZk();
  const witness = await zk.witness();
  await using a = await start(zk, 2, { follow: true, idleAfter: 3_600_000 });
  const loop = collect(a.run);
  await vi.waitFor(() => expect(a.run.status().records).toBe(2), 10_000);

  const [name] = await witness.children(paths.members);
  const path = paths.member(name!);
  const member = parseMember((await witness.get(path)).data, path);

  expect(member.id).toBe(a.run.id);
  expect(member.partitions.get('t/0')).toMatchObject({ state: 'reading' });
  await a.run.close();
  await loop;
});

test('a signal closes it, and the loop ends', async () => {
  await partitions([0], [0]);
  await using zk = await startZk();
  const stop = new AbortController();
  await using a = await start(zk, 2, { follow: true, signal: stop.signal });
  const loop = collect(a.run);
  await vi.waitFor(() => expect(a.run.status().records).toBe(2), 10_000);

  stop.abort();

  expect((await loop).sort()).toEqual(['0:0', '1:0']);
});
