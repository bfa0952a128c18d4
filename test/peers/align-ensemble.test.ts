/** Processes that read in step on three real servers, while they are killed and the ensemble's leader is. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { byStart, makeData, readPeriods } from '../align-data.ts';
import { linesOf, runRounds } from '../align-processes.ts';
import { findZooKeepers, startEnsemble } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-ensemble-'));
});

afterEach(() => rm(dir, { recursive: true, force: true }));

const rounds = Number(process.env.ALIGN_ROUNDS ?? 3);
const seed = Number(process.env.ALIGN_SEED ?? 1);
const periodMs = 60_000;

describe.each(found.slice(0, 1))('$name', { timeout: 120_000 + rounds * 60_000 }, (peer) => {
  test(`nothing is lost when consumers and the ensemble’s leader are killed (seed ${seed})`, async () => {
    await using ensemble = await startEnsemble(peer, 3, { tickTimeMs: 500 });
    await using client = await connect(ensemble.address, { sessionTimeoutMs: 20_000 });
    const topics = { orders: 6, payments: 4, clicks: 2 };
    const data = await makeData(join(dir, 'all'), {
      topics,
      records: 1_000 * rounds,
      startMs: 1_700_000_040_000,
      spanMs: 6 * rounds * periodMs,
      seed,
    });
    let down: number | undefined;

    const result = await runRounds({
      address: ensemble.address,
      client,
      dir,
      lines: await linesOf(join(dir, 'all'), topics),
      periodMs,
      processes: 4,
      rounds,
      seed,
      sessionTimeoutMs: 6_000,
      onRound: async () => {
        if (down !== undefined) await ensemble.start(down);
        down = await ensemble.leader();
        await ensemble.kill(down);
      },
    });

    expect([result.lastCode, result.lastErr]).toEqual([0, expect.anything()]);
    expect(byStart(await readPeriods(result.out))).toEqual(byStart(data.expected(periodMs)));
    expect(result.tooEarly).toEqual([]);
    expect(result.compared).toBeGreaterThan(0);
  });
});
