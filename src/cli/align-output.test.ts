import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type OutputRecord, PeriodFiles, rowOf } from './align-output.ts';

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-out-'));
});

afterEach(() => rm(dir, { recursive: true, force: true }));

const [a, b] = [
  { topic: 'a', partition: '0' },
  { topic: 'b.c', partition: '1' },
] as const;
const record = (offset: number, timeMs: number | null): OutputRecord => ({
  offset: BigInt(offset),
  timeMs,
  line: Buffer.from(`{"t":${timeMs},"o":${offset}}`),
});
const text = (name: string) => readFile(join(dir, `${name}.ndjson`), 'utf8');
const offsets = async (name: string) =>
  (await text(name))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line).o as number);
const shown = async () => (await readdir(dir)).filter((name) => !name.startsWith('.')).sort();

test('files come when the group is past a period, by time, and not before', async () => {
  const files = await PeriodFiles.open(dir, 60);
  await files.write(a, 1n, [record(0, 10), record(1, 70), record(2, 20)]);
  await files.write(b, 1n, [record(7, 15), record(8, 130)]);
  expect(await shown()).toEqual([]);

  const made = await files.complete(0, 120);

  expect(made.map(({ start, records }) => [start, records])).toEqual([
    [0, 3],
    [60, 1],
  ]);
  expect(await shown()).toEqual(['0.ndjson', '60.ndjson']);
  expect(await offsets('0')).toEqual([0, 7, 2]);
  expect(await files.complete(120, 180)).toHaveLength(1);
});

test('what two owners have read is there once, and what was cut short is there by its next owner', async () => {
  const files = await PeriodFiles.open(dir, 60);
  await files.write(a, 1n, [record(0, 1), record(1, 2)]);
  await appendFile(join(dir, '.drover/0/a-0.1.part'), '2 3 17 {"t":3,"o"');
  await files.write(a, 9n, [record(1, 2), record(2, 3)]);

  await files.complete(null, 60);

  expect(await offsets('0')).toEqual([0, 1, 2]);
});

test('a leader that died on its way is followed by one that makes the same files', async () => {
  const one = await PeriodFiles.open(dir, 60);
  await one.write(a, 1n, [record(0, 1), record(1, 61)]);
  await one.complete(0, 60);
  const before = await text('0');

  const two = await PeriodFiles.open(dir, 60);
  await two.complete(60, 120); // it had said it was done with 0, and may have died before 60

  expect(await text('0')).toBe(before);
  expect(await offsets('60')).toEqual([1]);
  expect(await two.complete(0, 120)).toEqual([]);
});

test('a late record gets into the file of its period', async () => {
  const [leader, other] = [await PeriodFiles.open(dir, 60), await PeriodFiles.open(dir, 60)];
  await other.write(a, 1n, [record(0, 1), record(1, 61)]);
  await other.passed(a, 60);
  await leader.complete(0, 60);

  await other.write(a, 1n, [record(2, 5)]);
  await leader.complete(60, 120);

  expect(await offsets('0')).toEqual([0, 2]);
  expect(await offsets('60')).toEqual([1]);
});

test('records without a time have a file of their own', async () => {
  const files = await PeriodFiles.open(dir, 60);
  await files.write(a, 1n, [record(0, null), record(1, 5)]);

  await files.complete(0, 60);

  expect(await offsets('quarantine')).toEqual([0]);
  expect(await offsets('0')).toEqual([1]);
});

test('a file that was there before keeps what it has, however often it is made again', async () => {
  await writeFile(join(dir, '0.ndjson'), '{"o":99}');
  for (const epoch of [1n, 2n]) {
    const files = await PeriodFiles.open(dir, 60);
    await files.write(a, epoch, [record(0, 1), record(Number(epoch), 2)]);
    await files.complete(0, 60);
  }

  expect(await offsets('0')).toEqual([99, 0, 1, 2]);
});

test('after tidying, what comes late is added', async () => {
  const one = await PeriodFiles.open(dir, 60);
  await one.write(a, 1n, [record(0, 1)]);
  await one.complete(0, 60);
  await one.tidy();
  expect(await readdir(dir)).toEqual(['0.ndjson']);

  const two = await PeriodFiles.open(dir, 60);
  await two.write(a, 2n, [record(1, 2)]);
  await two.complete(0, 60);

  expect(await offsets('0')).toEqual([0, 1]);
});

test('who wakes up when the others are done adds nothing to their files', async () => {
  const [one, stopped] = [await PeriodFiles.open(dir, 60), await PeriodFiles.open(dir, 60)];
  await one.write(a, 2n, [record(0, 1)]);
  await one.complete(0, 60);
  await one.tidy();

  for (const late of [record(0, 1), record(1, null)]) {
    const write = stopped.write(a, 1n, [late], () => false);
    await expect(write).rejects.toMatchObject({ code: 'ENOENT' });
  }
  await stopped.tidy();

  expect(await readdir(dir)).toEqual(['0.ndjson']);
  expect(await offsets('0')).toEqual([0]);
});

test('several who tidy at once leave every file whole', async () => {
  for (let round = 0; round < 20; round++) {
    const all = await Promise.all([1, 2, 3].map(() => PeriodFiles.open(dir, 60)));
    const start = round * 600;
    for (const [i, files] of all.entries()) {
      const id = { topic: 'a', partition: String(i) };
      await files.write(id, 1n, [record(i, start), record(i + 3, start + 60)]);
      await files.complete(start, start); // each of them has led once
    }

    await Promise.all(all.map((files) => files.tidy()));

    const both = [start, start + 60].map(async (name) => (await offsets(String(name))).sort());
    expect(await Promise.all(both)).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect((await readdir(dir)).filter((name) => name.startsWith('.'))).toEqual([]);
  }
});

test('two leaders at once make a file with every record once', async () => {
  for (let round = 0; round < 20; round++) {
    const [one, two] = [await PeriodFiles.open(dir, 60), await PeriodFiles.open(dir, 60)];
    const start = round * 60;
    await one.write(a, 1n, [record(0, start), record(1, start)]);

    await Promise.all([one, two].map((files) => files.complete(start, start + 60)));
    await two.write(a, 2n, [record(2, start)]);
    await Promise.all([one, two].map((files) => files.complete(start, start + 60)));

    expect(await offsets(String(start))).toEqual([0, 1, 2]);
  }
});

test('a folder begun with another period is refused', async () => {
  await PeriodFiles.open(dir, 60);

  await expect(PeriodFiles.open(dir, 90)).rejects.toThrow(/begun with a period of 60 ms/);
});

test('a line that was cut anywhere is no line', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.nat(),
      fc.string({ minLength: 1 }),
      fc.nat(),
      (offset, time, text, cut) => {
        const line = Buffer.from(text.replaceAll('\n', ' '));
        const whole = Buffer.concat([Buffer.from(`${offset} ${time} ${line.length} `), line]);

        expect(rowOf('x', whole)).toMatchObject({ offset: BigInt(offset), timeMs: time, line });
        expect(rowOf('x', whole.subarray(0, cut % whole.length))).toBeNull();
      },
    ),
  );
});
