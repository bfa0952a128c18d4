/** `drover align --layout`: beside who keeps the earlier nodes alone, on ours and on Apache's. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SeedCoordinator } from '../../src/align/index.ts';
import { runInProcess } from '../cli-run.ts';
import { startZk, type Zk } from '../zk.ts';

const startMs = 1_700_000_040_000;
const minute = 60_000;
let dir: string;
let zk: Zk;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-align-layout-'));
  zk = await startZk();
  for (const topic of ['orders', 'clicks']) {
    await mkdir(join(dir, topic));
    for (const partition of [0, 1]) {
      const times = Array.from({ length: 8 }, (_, i) => startMs + partition + (i * minute) / 2);
      const lines = times.map((ts) => `${JSON.stringify({ ts })}\n`);
      await writeFile(join(dir, topic, `${partition}.ndjson`), lines.join(''));
    }
  }
});

afterEach(async () => {
  await zk[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

const align = (...words: string[]) => runInProcess(zk.address, ['align', ...words]);
const run = (...more: string[]) => [
  ...['run', '--group', 'g', '--input', `orders=${join(dir, 'orders')}`, '--event-time', 'ts'],
  ...['--period', '60s', ...more],
];
const iso = (minutes: number) => new Date(startMs + minutes * minute).toISOString();

test.for(['seed', 'java'] as const)(
  'a run in the %s layout keeps its nodes, and waits for who reads the rest',
  { timeout: 60_000 },
  async (layout) => {
    const root = ['--layout', layout, '--layout-root', '/kcc'];
    const none = await align('watch', ...root);
    const other = await SeedCoordinator.open(await zk.connect(), {
      ...{ layout, root: '/kcc', startMs, period: '60s' },
      topicPartitions: { orders: [0, 1], clicks: [0] },
    });
    let printed = '';
    const end = new AbortController();
    const running = runInProcess(
      zk.address,
      ['align', ...run(...root, '--layout-start', iso(0), '--others', 'clicks=0')],
      {
        signal: end.signal,
        onOut: (all) => {
          printed = all;
        },
      },
    );
    const count = () => printed.split('\n').length - 1;
    const seen = async () => (await align('watch', ...root, '--json')).records.at(-1);
    await expect
      .poll(async () => (await seen())?.partitions, { timeout: 15_000 })
      .toMatchObject([{ isWaiting: true }, { isWaiting: true }, { isWaiting: false }]);

    const text = await align('watch', ...root);
    const before = count();
    await other.currentPeriodComplete([{ topic: 'clicks', partition: '0' }]);
    await expect.poll(count, { timeout: 15_000 }).toBe(8);
    other.finish([{ topic: 'clicks', partition: '0' }]);
    await expect.poll(count, { timeout: 15_000 }).toBe(16);
    end.abort();

    expect((await running).code).toBe(130);
    expect([none.code, none.err]).toEqual([6, expect.stringContaining('--layout-root')]);
    expect(before).toBe(4);
    const witness = await zk.witness();
    const plan = layout === 'java' ? '/kcc/share/topic-partitions' : '/kcc/topic-partitions';
    expect(String((await witness.get(plan)).data)).toContain('orders:0,1;');
    expect(text.out).toContain('2 of 3 partitions have reached it');
    expect(text.out).toContain('held back by clicks-0\n');
    expect(text.out).toMatch(/electing\d+ leads/);
    await other.close();
  },
);

test('a run that is alone in the layout takes its start from the first record, and comes to its end', async () => {
  const done = await align(...run('--layout', 'java'));

  expect([done.code, done.lines.length]).toEqual([0, 16]);
  const witness = await zk.witness();
  const limit = await witness.get('/kafka-consumer-coordinator/share/coordinator');
  expect(Number(String(limit.data)) * 1_000).toBeGreaterThanOrEqual(startMs + 4 * minute);
});

test('what makes no sense with a layout is said', async () => {
  const say = async (...words: string[]) => {
    const { code, err } = await align(...words);
    return [code, err];
  };

  expect(await say(...run('--layout', 'other'))).toEqual([2, expect.stringContaining('--layout')]);
  expect(await say(...run('--others', 'clicks=0'))).toEqual([
    ...[2, expect.stringContaining('--layout: seed or java')],
  ]);
  expect(await say(...run('--layout', 'java', '--others', 'clicks'))).toEqual([
    ...[2, expect.stringContaining('TOPIC=0,1')],
  ]);
  expect(await say(...run('--layout', 'java', '--look-ahead', '2'))).toEqual([
    ...[2, expect.stringContaining('without look-ahead')],
  ]);
});
