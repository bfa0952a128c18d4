/** What alignment costs: requests, counted on a server that remembers each. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { align, Coordinator } from '../src/align/index.ts';
import { connect } from '../src/client/index.ts';
import { NdjsonSource } from '../src/kafka/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';
import { fourLetterWord } from './peers/four-letter-word.ts';

const asked = ({ log }: TestServer) => log.filter(({ op }) => op !== 'ping').length;

/** Nobody asks anything while so many pings come and go: time has passed, and was not used. */
async function quiet(server: TestServer): Promise<number> {
  const pings = () => server.log.filter(({ op }) => op === 'ping').length;
  const before = pings();
  await vi.waitFor(() => expect(pings()).toBeGreaterThan(before + 4), { timeout: 15_000 });
  return asked(server);
}

test('who waits for the limit asks nothing, be it the leader or not', {
  timeout: 40_000,
}, async () => {
  await using server = await startTestServer({ tickTimeMs: 100 });
  const partitions = ['0', '1'].map((partition) => ({ topic: 't', partition }));
  const start = async (id: string) => {
    const client = await connect(server.address, { sessionTimeoutMs: 600 });
    const options = { group: 'g', partitions, mode: { period: 60 }, id };
    return { client, coordinator: new Coordinator(client, options) };
  };
  const [a, b] = [await start('a'), await start('b')];
  await Promise.all([
    a.coordinator.currentPeriodComplete([partitions[0]!]),
    b.coordinator.currentPeriodComplete([partitions[1]!]),
  ]);
  const waiting = a.coordinator.currentPeriodComplete([partitions[0]!]);
  await quiet(server);
  const before = asked(server);

  expect(await quiet(server)).toBe(before);

  await b.coordinator.currentPeriodComplete([partitions[1]!]);
  await waiting;
  await a.coordinator.close();
  await b.coordinator.close();
});

test('a period costs a few requests for each member, and one transaction', {
  timeout: 40_000,
}, async () => {
  await using server = await startTestServer({ fourLetterWords: '*' });
  const directory = await mkdtemp(join(tmpdir(), 'align-requests-'));
  const count = 3;
  const periods = 60;
  for (let p = 0; p < 6; p++) {
    const lines = Array.from(
      { length: periods },
      (_, i) => `{"timestamp":${i * 60_000 + p},"value":"x"}\n`,
    );
    await writeFile(join(directory, `t-${p}.ndjson`), lines.join(''));
  }
  const runs = await Promise.all(
    Array.from({ length: count }, async () => {
      const client = await connect(server.address, { renew: true });
      const source = new NdjsonSource({ directory, follow: true, pollMs: 10 });
      const mode = { period: 60_000 };
      const topics = { t: 6 };
      const run = align(client, { group: 'g', source, topics, mode, debounceMs: 10 });
      return { client, run, source };
    }),
  );
  await Promise.all(runs.map(({ run }) => run.settled()));
  let before = 0;
  let seen = 0;
  const loops = runs.map(async ({ run }) => {
    for await (const batch of run) {
      seen += batch.records.length;
      // The first ten are on the house: everybody comes to rest.
      if (seen >= 60 && before === 0) before = server.log.length;
      await batch.done();
    }
  });
  await vi.waitFor(() => expect(seen).toBe(6 * periods), { timeout: 30_000 });
  const counts: Record<string, number> = {};
  for (const { op } of server.log.slice(before)) counts[op] = (counts[op] ?? 0) + 1;

  const perPeriod = (op: string) => (counts[op] ?? 0) / (periods - 10);
  // Each member tells once, and reads the limit once; the leader reads what each has told.
  expect(perPeriod('setData')).toBeLessThan(1.2 * count);
  expect(perPeriod('getData')).toBeLessThan(2.2 * count);
  expect(perPeriod('multi')).toBeLessThan(1.2);
  for (const { run } of runs) await run.close();
  await Promise.all(loops);
  // Nobody watches anything any more, though every client is still there.
  expect((await fourLetterWord(server.port, 'wchp')).trim()).toBe('');
  for (const { source, client } of runs) {
    await source.close();
    await client.close();
  }
  await rm(directory, { recursive: true });
});
