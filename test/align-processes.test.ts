/**
 * Real processes that read in step, killed and stopped at random: what they wrote, cut by period, is what
 * one process would have made by sorting. Longer by hand: ALIGN_ROUNDS=40 ALIGN_SEED=5 npx vitest run
 * --project unit test/align-processes.test.ts
 */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../src/client/index.ts';
import { startTestServer } from '../src/testing/index.ts';
import { byStart, makeData, readPeriods } from './align-data.ts';
import { AlignProcess, linesOf, runRounds } from './align-processes.ts';

const rounds = Number(process.env.ALIGN_ROUNDS ?? 4);
const seed = Number(process.env.ALIGN_SEED ?? 1);
const periodMs = 60_000;
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-processes-'));
});

afterEach(() => rm(dir, { recursive: true, force: true }));

test(
  `4 processes over 12 partitions lose nothing through kill -9 and SIGSTOP (seed ${seed})`,
  async () => {
    await using server = await startTestServer({ tickTimeMs: 500 });
    await using client = await connect(server.address);
    const topics = { orders: 6, payments: 4, clicks: 2 };
    const data = await makeData(join(dir, 'all'), {
      topics,
      records: 1_500 * rounds,
      startMs: 1_700_000_040_000,
      spanMs: 8 * rounds * periodMs,
      seed,
    });
    const lines = await linesOf(join(dir, 'all'), topics);

    const result = await runRounds({
      address: server.address,
      client,
      dir,
      lines,
      periodMs,
      processes: 4,
      rounds,
      seed,
      sessionTimeoutMs: 2_000,
    });

    if (process.env.ALIGN_ROUNDS) {
      console.info(`${result.faults.join(', ')}; ${result.twice} records were read twice`);
    }
    expect([result.lastCode, result.lastErr]).toEqual([0, expect.anything()]);
    expect(byStart(await readPeriods(result.out))).toEqual(byStart(data.expected(periodMs)));
    expect(result.tooEarly).toEqual([]);
    expect(result.compared).toBeGreaterThan(0);
    expect(result.faults).toHaveLength(rounds - 1);
  },
  60_000 + rounds * 60_000,
);

test('who was stopped until all was over ends as well, and spoils nothing', async () => {
  await using server = await startTestServer({ tickTimeMs: 500 });
  const data = await makeData(join(dir, 'in'), {
    topics: { orders: 8, clicks: 4 },
    records: 20_000,
    startMs: 1_700_000_040_000,
    spanMs: 60 * periodMs,
    seed,
  });
  const out = join(dir, 'out');
  const args = [
    ...['--server', server.address, '--group', 'g', '--event-time', 'ts', '--period', '60s'],
    ...['--session-timeout', '2000', '--out', out, ...data.inputs],
  ];
  const all = ['killed', 'stopped', 'one', 'two'].map((name) => new AlignProcess(name, args));
  const [killed, stopped, ...others] = all as [AlignProcess, AlignProcess, ...AlignProcess[]];
  try {
    await expect
      .poll(async () => (await readdir(out).catch(() => [])).length, { timeout: 60_000 })
      .toBeGreaterThan(2);
    stopped.child.kill('SIGSTOP');
    killed.child.kill('SIGKILL');
    const codes = await Promise.all(others.map((each) => each.ended()));
    const before = await readPeriods(out);
    stopped.child.kill('SIGCONT');
    const last = await stopped.ended();

    expect([...codes, last], all.map(({ name, err }) => `${name}: ${err}`).join('')).toEqual([
      0, 0, 0,
    ]);
    expect((await readdir(out)).filter((name) => !/^\d+\.ndjson$/.test(name))).toEqual([]);
    expect(byStart(before)).toEqual(byStart(data.expected(periodMs)));
    expect(byStart(await readPeriods(out))).toEqual(byStart(data.expected(periodMs)));
  } finally {
    await Promise.all(all.map((each) => each.end('SIGKILL')));
  }
}, 180_000);
