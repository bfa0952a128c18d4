import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { Feed } from './feed.ts';
import { MetricRing } from './metric-ring.ts';
import { Metrics } from './metrics.ts';
import type { ConsoleSources, ServersSeen } from './sources.ts';

function seen(received: number, p99Ms: number | null = 3): ServersSeen {
  const server = { server: 'a:1', answerMs: 1, isBrief: false, zxid: null, received, p99Ms };
  return {
    servers: [server as never],
    findings: [],
    quorum: { hasQuorum: true, sentence: '' },
  };
}

function start(answers: () => Promise<ServersSeen>, more: Partial<ConsoleSources> = {}) {
  const clock = new ManualClock();
  const sources = { lookAtServers: answers, ...more } as unknown as ConsoleSources;
  const metrics = new Metrics(sources, new Feed(), clock, new AbortController().signal);
  return { clock, metrics };
}

test('counters become rates, and one that went back makes a gap instead of a number', async () => {
  const counts = [100, 300, 50, 150];
  const { clock, metrics } = start(async () => seen(counts.shift()!));

  for (let i = 0; i < 4; i++) {
    await metrics.look();
    clock.advance(2_000);
  }
  metrics.close();

  const rates = (await metrics.view('1m')).points.map(({ values }) => values.received);
  expect(rates).toEqual([undefined, 100, undefined, 50]);
});

test('rings keep what they are for, and no more', async () => {
  const { clock, metrics } = start(async () => seen(0));

  for (let i = 0; i < 200; i++) {
    await metrics.look();
    clock.advance(2_000);
  }
  metrics.close();

  expect((await metrics.view('1m')).points).toHaveLength(31);
  expect((await metrics.view('15m')).points.length).toBeLessThan(35);
  expect((await metrics.view('6h')).points.length).toBeLessThan(5);
});

test('what nobody tells is no series, and a failure is said', async () => {
  let fails = false;
  const { metrics } = start(async () => {
    if (fails) throw new Error('nobody listens there');
    return seen(1, null);
  });

  await metrics.look();
  fails = true;
  await metrics.look();
  metrics.close();

  const { series, unknown } = await metrics.view('1m');
  expect(series.map(({ name }) => name)).not.toContain('p99');
  expect(unknown).toEqual([
    'latency and throughput by op: only the console of drover serve tells them apart',
    'the servers could not be asked: nobody listens there',
  ]);
});

test('our own server tells latency and throughput op by op, over the stretch of each ring', async () => {
  let gets = 0;
  const opTimes = () => ({
    boundsMs: [1, 10],
    ops: [{ op: 'getData', maxMs: 8, buckets: [gets, gets > 100 ? 5 : 0, 0] }],
  });
  const nothing = () => new Map();
  const ownServer = {
    opTimes,
    values: () => ({}),
    expiries: nothing,
    watchKinds: nothing,
    expire: () => false,
  };
  const { clock, metrics } = start(async () => seen(0), { ownServer });

  for (let i = 0; i < 40; i++) {
    await metrics.look();
    gets += 20;
    clock.advance(2_000);
  }
  metrics.close();

  const minute = await metrics.view('1m');
  expect(minute.points.at(-1)?.values).toMatchObject({
    'op.getData.rate': 10,
    'op.getData.p50': 0.5,
  });
  expect(minute.series.map(({ name }) => name)).toContain('op.getData.p99');
  // The five slow ones came more than a minute ago.
  expect(minute.ops).toMatchObject([{ op: 'getData', p50Ms: 0.5, ratePerS: 10 }]);
  const [longer] = (await metrics.view('15m')).ops!;
  expect(longer!.count).toBe(805);
  expect(longer!.p999Ms).toBeGreaterThan(1);
});

test('a peak between two points of a coarse ring is not lost', async () => {
  const answers = [1, 1, 1, 90, 1, 1, 1, 1, 1];
  const { clock, metrics } = start(async () => seen(0, answers.shift()!));

  for (let i = 0; i < 9; i++) {
    await metrics.look();
    clock.advance(2_000);
  }
  metrics.close();

  expect((await metrics.view('15m')).points.map(({ values }) => values.p99)).toEqual([1, 90]);
  expect((await metrics.view('1m')).points.filter(({ values }) => values.p99 === 90)).toHaveLength(
    1,
  );
});

test('a server that does not answer for a moment makes a gap, and no peak when it is back', async () => {
  const row = (server: string, received: number | null) =>
    ({
      server,
      error: received === null ? 'no answer' : null,
      answerMs: 9,
      zxid: null,
      received,
    }) as never;
  const looks = [
    [1_000, 5_000],
    [1_010, 5_010],
    [1_020, null],
    [1_030, null],
    [1_040, 5_040],
    [1_050, 5_050],
  ] as const;
  const left = [...looks];
  const { clock, metrics } = start(async () => {
    const [a, b] = left.shift()!;
    return { ...seen(0), servers: [row('a:1', a), row('b:1', b)] };
  });

  for (const _ of looks) {
    await metrics.look();
    clock.advance(2_000);
  }
  metrics.close();

  const rates = (await metrics.view('1m')).points.map(({ values }) => values.received);
  expect(rates).toEqual([undefined, 10, undefined, 5, undefined, 10]);
});

test('who does not answer has no answer time', async () => {
  const server = {
    server: 'a:1',
    error: 'nobody listens there',
    answerMs: 0.1,
    zxid: null,
  } as never;
  const { metrics } = start(async () => ({ ...seen(0), servers: [server] }));

  await metrics.look();
  metrics.close();

  expect((await metrics.view('1m')).points[0]!.values.answer).toBeUndefined();
});

test('points go on though the clock of the machine was set back, and their rates are true', () => {
  const ring = new MetricRing({ everyMs: 2_000, keptMs: 60_000 });
  const hourMs = 3_600_000;
  const take = (nowMs: number, wallMs: number) => {
    const value = nowMs / 10;
    const reading = { name: 'received', how: 'rate', isPeak: false, value, from: 'a:1' } as const;
    const bucket = { op: 'getData', maxMs: 1, buckets: [nowMs / 10] };
    return ring.take(wallMs, nowMs, [reading], { boundsMs: [1], ops: [bucket] });
  };
  take(0, 2 * hourMs);
  take(2_000, 2 * hourMs + 2_000);

  const point = take(4_000, hourMs + 4_000);

  expect(point?.values).toMatchObject({ received: 100, 'op.getData.rate': 100 });
  for (let i = 3; i < 100; i++) take(i * 2_000, hourMs + i * 2_000);
  expect(ring.points).toHaveLength(31);
});
