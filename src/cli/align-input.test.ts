import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ReaderError } from '../kafka/index.ts';
import { openInput, partitionFiles } from './align-input.ts';
import { exitCodes } from './exit-codes.ts';

const kafka = vi.hoisted(() => ({ refusal: undefined as unknown }));
vi.mock('../kafka/readers/kafkajs-open.ts', () => ({
  openKafkaJsSource: async () => {
    throw kafka.refusal;
  },
}));

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'drover-input-'));
});

afterEach(() => rm(dir, { recursive: true, force: true }));

// biome-ignore format: a table is read down its columns
test.each<[string, string[], Record<string, string>]>([
  ['numbers alone',            ['10.ndjson', '2.ndjson'],                    { 2: '2.ndjson', 10: '10.ndjson' }],
  ['numbers at the end',       ['part-01.jsonl', 'part-00.jsonl'],           { 0: 'part-00.jsonl', 1: 'part-01.jsonl' }],
  ['names without numbers',    ['b.ndjson', 'a.ndjson'],                     { 0: 'a.ndjson', 1: 'b.ndjson' }],
  ['a number that comes twice', ['a-1.ndjson', 'b-1.ndjson'],                { 0: 'a-1.ndjson', 1: 'b-1.ndjson' }],
  ['files of other topics',    ['t-0.ndjson', 't-1.ndjson', 'u-0.ndjson'],   { 0: 't-0.ndjson', 1: 't-1.ndjson' }],
  ['other files',              ['0.ndjson', 'README.md', '.hidden'],         { 0: '0.ndjson' }],
  ['no suffix at all',         ['0', '1'],                                   { 0: '0', 1: '1' }],
])('%s: which file is which partition', async (_, names, wanted) => {
  for (const name of names) await writeFile(join(dir, name), '');

  const found = await partitionFiles('t', dir);

  expect(Object.fromEntries(found)).toEqual(wanted);
  expect([...found.keys()].map(Number)).toEqual(Object.keys(wanted).map(Number).sort((a, b) => a - b));
});

test('a folder with nothing in it is refused', async () => {
  await expect(partitionFiles('t', dir)).rejects.toThrow(/holds no file of lines/);
});

test('brokers that can not be reached are no refusal', async () => {
  const options = { brokers: '127.0.0.1:1', topics: 'orders' };
  const failed = (cause: Error) => new ReaderError('SOURCE_FAILED', 'cannot be asked', { cause });
  const link = Object.assign(new Error('ECONNREFUSED'), { name: 'KafkaJSConnectionError' });
  const tried = Object.assign(new Error('too often', { cause: link }), {
    name: 'KafkaJSNumberOfRetriesExceeded',
  });

  kafka.refusal = failed(tried);
  await expect(openInput(options)).rejects.toMatchObject({
    exitCode: exitCodes.unreachable,
    message: 'cannot be asked',
  });

  const refusal = failed(new Error('no such topic'));
  kafka.refusal = refusal;
  await expect(openInput(options)).rejects.toBe(refusal);
});
