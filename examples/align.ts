/**
 * Reading in step with nothing installed: three partitions in files, one of them with ten times the
 * records of the others, one with a hole of an hour. Two members share them, and nobody is handed a
 * record of the next minute before everybody is done with this one.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'drover';
import { align } from 'drover/align';
import { NdjsonSource } from 'drover/kafka';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const directory = await mkdtemp(join(tmpdir(), 'align-'));
const begin = Date.parse('2026-11-01T00:00:00Z');

/** One line a record; `at` is when it happened. */
async function write(partition: number, secondsOfRecords: readonly number[]): Promise<void> {
  const lines = secondsOfRecords.map((second) =>
    JSON.stringify({ value: { at: begin + second * 1_000, sensor: partition } }),
  );
  await writeFile(join(directory, `readings-${partition}.ndjson`), `${lines.join('\n')}\n`);
}
const every = (stepS: number, untilS: number) =>
  Array.from({ length: untilS / stepS }, (_, i) => i * stepS);
await write(0, every(1, 300)); // one a second for five minutes
await write(1, every(10, 300));
await write(2, [5, 70, 3_700, 3_710]); // nothing for an hour

const clock = (ms: number) => new Date(ms).toISOString().slice(11, 19);

async function member(name: string): Promise<number> {
  await using zk = await connect(servers, { renew: true });
  await using source = new NdjsonSource({ directory, follow: false });
  await using run = align(zk, {
    group: 'replay',
    source,
    topics: { readings: 3 },
    mode: { period: '1m' },
    eventTime: { field: 'at' },
    outOfOrder: '5s',
    consumerId: name,
    onPeriod: ({ start, end }) =>
      console.log(`${clock(start)} to ${clock(end)}: everybody is done`),
  });
  let records = 0;
  for await (const batch of run) {
    records += batch.records.length; // the work
    await batch.done();
  }
  return records;
}

const counts = await Promise.all([member('a'), member('b')]);
console.log(`a read ${counts[0]} records, b read ${counts[1]}`);
await rm(directory, { recursive: true });
