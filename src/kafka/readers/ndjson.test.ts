import { appendFile, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../support/index.ts';
import type { PartitionReader, RecordBatch } from '../reader.ts';
import { type NdjsonOptions, NdjsonSource } from './ndjson.ts';

let directory: string;
const sources: NdjsonSource[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ndjson-'));
});

afterEach(async () => {
  await Promise.all(sources.splice(0).map((source) => source.close()));
  await rm(directory, { recursive: true });
});

const at = { topic: 'logs', partition: '0' };
const file = () => join(directory, 'logs-0.ndjson');
const line = (i: number, timestamp: number | string = i) =>
  `${JSON.stringify({ timestamp, key: `k${i}`, value: `v${i}` })}\n`;
const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => line(from + i)).join('');

function source(options: Partial<NdjsonOptions> = {}): NdjsonSource {
  const made = new NdjsonSource({ directory, follow: false, ...options });
  sources.push(made);
  return made;
}

async function all(reader: PartitionReader): Promise<RecordBatch[]> {
  const batches: RecordBatch[] = [];
  for await (const batch of reader) batches.push(batch);
  return batches;
}

const offsets = (batches: RecordBatch[]) =>
  batches.flatMap(({ records }) => records.map(({ offset }) => Number(offset)));

test('a record is a line: its number, time, key and value', async () => {
  await writeFile(file(), `${line(0)}{"timestamp":"2020-01-01T00:00:00Z","value":{"a":1}}\n`);

  const [batch] = await all(await source().open(at, 'earliest'));

  expect(batch).toEqual({
    ...at,
    nextOffset: 2n,
    highWatermark: 2n,
    timestampsMs: [0, 1577836800000],
    records: [
      { offset: 0n, timestampMs: 0, key: Buffer.from('k0'), value: Buffer.from('v0') },
      { offset: 1n, timestampMs: 1577836800000, key: null, value: Buffer.from('{"a":1}') },
    ],
  });
});

test('batches are bounded by count and by bytes, and leave nothing out', async () => {
  await writeFile(file(), lines(0, 3_000));

  const byCount = await all(await source({ batchRecordsMax: 700 }).open(at, 0n));
  const byBytes = await all(await source({ batchBytesMax: 1_000 }).open(at, 1_234n));

  expect(byCount.map(({ records }) => records.length)).toEqual([700, 700, 700, 700, 200]);
  expect(offsets(byCount)).toEqual([...Array(3_000).keys()]);
  expect(Math.max(...byBytes.map(({ records }) => records.length))).toBeLessThan(30);
  expect(offsets(byBytes)).toEqual([...Array(3_000).keys()].slice(1_234));
});

test('one line may be longer than a batch, and longer than what is read at once', async () => {
  const long = JSON.stringify({ value: 'x'.repeat(200_000) });
  await writeFile(file(), `${line(0)}${long}\n${line(2)}`);

  const batches = await all(await source({ batchBytesMax: 10 }).open(at, 0n));

  expect(offsets(batches)).toEqual([0, 1, 2]);
  expect(batches[1]!.records[0]!.value).toHaveLength(200_000);
});

test('an unended line is not there yet; followed, it comes once it is', async () => {
  await writeFile(file(), `${line(0)}{"value":`);
  const clock = new ManualClock();
  const reader = await source({ follow: true, clock }).open(at, 0n);

  const first = await reader.next();
  const waits = reader.next();
  await expect.poll(() => clock.pending).toBe(1);
  await appendFile(file(), '"late"}\n');
  clock.advance(200);
  const second = await waits;

  expect(first.value!.highWatermark).toBe(1n);
  expect(second.value!.records[0]!.value!.toString()).toBe('late');
  expect([reader.position, reader.highWatermark]).toEqual([2n, 2n]);
});

test('paused it waits, resumed it goes on, moved it begins elsewhere', async () => {
  await writeFile(file(), lines(0, 10));
  const reader = await source({ batchRecordsMax: 2 }).open(at, 0n);
  await reader.next();

  reader.pause();
  const waits = reader.next();
  reader.seek(7n);
  expect([reader.isPaused, reader.position]).toEqual([true, 7n]);
  reader.resume();

  expect(offsets([(await waits).value!])).toEqual([7, 8]);
});

test('a seek while a batch is being read drops that batch', async () => {
  await writeFile(file(), lines(0, 10));
  const reader = await source({ batchRecordsMax: 2 }).open(at, 0n);

  const reading = reader.next();
  reader.seek(4n);

  expect(offsets([(await reading).value!])).toEqual([4, 5]);
});

test('closing ends a next that waits, and leaves no timer', async () => {
  const clock = new ManualClock();
  const reader = await source({ follow: true, clock }).open(at, 'latest');
  const waits = reader.next();
  await expect.poll(() => clock.pending).toBe(1);

  await reader.close();

  expect(await waits).toEqual({ done: true, value: undefined });
  expect(clock.pending).toBe(0);
});

test('earliest, latest and times; what is not there is out of range', async () => {
  await writeFile(file(), [5, 3, 9, 7].map((time, i) => line(i, time)).join(''));
  const from = source();

  expect(await from.bounds(at)).toEqual({ earliest: 0n, latest: 4n });
  expect((await from.open(at, 'latest')).position).toBe(4n);
  expect(await Promise.all([0, 6, 9, 10].map((t) => from.offsetForTime(at, t)))).toEqual([
    0n,
    2n,
    2n,
    4n,
  ]);
  await expect(from.open(at, 5n)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  await expect(from.open(at, -1n)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
});

test('a partition without a file is empty until there is one', async () => {
  const from = source();

  expect(await from.bounds(at)).toEqual({ earliest: 0n, latest: 0n });
  await writeFile(file(), lines(0, 2));
  expect((await from.bounds(at)).latest).toBe(2n);
});

test('garbage is named by file and line, after what stands before it, and stays where it is', async () => {
  await writeFile(file(), `${lines(0, 2)}nonsense\n`);
  const reader = await source().open(at, 0n);

  expect(offsets([(await reader.next()).value!])).toEqual([0, 1]);
  await expect(reader.next()).rejects.toMatchObject({
    code: 'BAD_RECORD',
    message: expect.stringContaining('logs-0.ndjson line 3'),
  });
  expect(reader.position).toBe(2n);
});

test('a file that shrank is an error and not another partition', async () => {
  await writeFile(file(), lines(0, 10));
  const reader = await source({ batchRecordsMax: 2 }).open(at, 0n);
  await reader.next();

  await truncate(file(), 10);

  await expect(reader.next()).rejects.toMatchObject({ code: 'SOURCE_FAILED' });
});

test('a closed source opens nothing and has closed what it opened', async () => {
  await writeFile(file(), lines(0, 2));
  const from = source();
  const reader = await from.open(at, 0n);

  await from.close();

  expect((await reader.next()).done).toBe(true);
  await expect(from.open(at, 0n)).rejects.toMatchObject({ code: 'CLOSED' });
});

test('the last line of a file that is whole needs no newline, and one that grows waits for it', async () => {
  for (const count of [1, 3, 256, 257]) {
    await writeFile(file(), lines(0, count).trimEnd());

    const whole = await all(await source({ batchRecordsMax: 100 }).open(at, 0n));
    const growing = source({ follow: true });

    expect(offsets(whole)).toEqual(Array.from({ length: count }, (_, i) => i));
    expect(await growing.bounds(at)).toMatchObject({ latest: BigInt(count - 1) });
  }
});

test.each([true, false])(
  'what stands before a line that is too long is read, with follow %s',
  async (follow) => {
    await writeFile(file(), `${lines(0, 3)}${'x'.repeat(200_000)}`);
    const reader = await source({ follow, lineBytesMax: 1_000 }).open(at, 'earliest');

    const { value } = await reader.next();

    expect(value!.nextOffset).toBe(3n);
    await expect(reader.next()).rejects.toMatchObject({
      code: 'BAD_RECORD',
      message: expect.stringContaining('line 4'),
    });
    expect(reader.position).toBe(3n);
  },
);

test('a source that is closed while a reader looks ends that reader', async () => {
  await writeFile(file(), lines(0, 3));
  const made = source();
  const reader = await made.open(at, 'earliest');
  const next = reader.next();

  await made.close();

  expect(await next).toEqual({ done: true, value: undefined });
});
