/**
 * What `drover align` reads: folders with a file a partition, or Kafka.
 *
 *   --input orders=data/orders      data/orders/0.ndjson, data/orders/1.ndjson, …
 *   --input orders=data             data/orders-0.ndjson, …; files of other topics are left alone
 *
 * The number that a file's name ends with is its partition. Where names end with none, or two end with
 * the same, they are counted in the order of their names, from 0: then a file that is added moves the
 * others, so a group that is stopped and started again needs numbers.
 *
 * A record is its line as it stands, whatever is in it. Without `--follow` a partition ends where it
 * ended when it was opened.
 */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type EventTime, eventTimeOf } from '../align/index.ts';
import {
  type KafkaRecord,
  keyOf,
  NdjsonSource,
  openKafkaJsSource,
  type PartitionId,
  ReaderError,
  type RecordSource,
  type TopicDirectory,
  topicNameFault,
} from '../kafka/index.ts';
import type { OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { sentenceOf } from './kafka-lag.ts';
import { escaped } from './output.ts';

export interface AlignInput {
  readonly source: RecordSource;
  /** Partitions by topic, in order. */
  readonly topics: ReadonlyMap<string, readonly string[]>;
  readonly eventTime: EventTime;
  readonly timeOf: ReturnType<typeof eventTimeOf>;
}

const lineBytesMax = 16 * 1024 * 1024;

export async function openInput(options: OptionValues): Promise<AlignInput> {
  const isKafka = options.brokers !== undefined;
  const eventTime = eventTimeFrom(options, isKafka);
  const timeOf = eventTimeOf(eventTime);
  const given = isKafka ? await fromKafka(options) : await fromFolders(options);
  return { ...given, eventTime, timeOf };
}

export function partitionsOf(topics: AlignInput['topics']): PartitionId[] {
  return [...topics].flatMap(([topic, all]) => all.map((partition) => ({ topic, partition })));
}

/** The topics as a group wants them: they do not change while it runs. */
export function directoryOf(topics: AlignInput['topics']): TopicDirectory {
  return {
    list: async () => [...topics.keys()],
    partitions: async (topic) => topics.get(topic) ?? [],
    onChange: () => () => {},
    forget() {},
    async close() {},
  };
}

function eventTimeFrom(options: OptionValues, isKafka: boolean): EventTime {
  const { eventTime, unit = 'ms' } = options;
  if (unit !== 'ms' && unit !== 's') throw new CommandError('usage', '--unit: ms or s is wanted');
  if (eventTime === undefined && isKafka) return 'timestamp';
  return { field: String(eventTime ?? 'timestamp'), unit };
}

/** Where the event time is, for people. */
export function fieldOf({ eventTime }: AlignInput): string {
  if (typeof eventTime === 'object' && 'field' in eventTime) return `field ${eventTime.field}`;
  return 'the timestamp of the record';
}

// ── folders ─────────────────────────────────────────────────────────────────────────────────────

async function fromFolders(options: OptionValues): Promise<Pick<AlignInput, 'source' | 'topics'>> {
  const inputs = (options.input ?? []) as readonly string[];
  if (inputs.length === 0) {
    const wanted = '--input TOPIC=DIR for each topic, or --brokers and --topics for Kafka';
    throw new CommandError('usage', `what is to be read? ${wanted}`);
  }
  const topics = new Map<string, readonly string[]>();
  const files = new Map<string, string>();
  for (const input of inputs) {
    const [topic, directory] = topicAndFolder(input);
    if (topics.has(topic)) {
      throw new CommandError('usage', `--input: ${escaped(topic)} is given twice`);
    }
    const found = await partitionFiles(topic, directory);
    topics.set(topic, [...found.keys()]);
    for (const [partition, file] of found) {
      files.set(keyOf({ topic, partition }), join(directory, file));
    }
  }
  const source = new NdjsonSource({
    directory: (partition) => files.get(keyOf(partition)) ?? '',
    follow: options.follow === true,
    lineBytesMax,
    parse: wholeLine,
  });
  return { source, topics };
}

function wholeLine(line: string): Omit<KafkaRecord, 'offset'> {
  return { timestampMs: null, key: null, value: Buffer.from(line) };
}

function topicAndFolder(input: string): [string, string] {
  const at = input.indexOf('=');
  const [topic, directory] = [input.slice(0, Math.max(0, at)), input.slice(at + 1)];
  const fault = at === -1 ? 'TOPIC=DIR is wanted' : topicNameFault(topic);
  if (fault === null && directory !== '') return [topic, directory];
  throw new CommandError('usage', `--input ${escaped(input)}: ${fault ?? 'the folder is missing'}`);
}

/** File names by partition, partitions in the order of their numbers. */
export async function partitionFiles(
  topic: string,
  directory: string,
): Promise<Map<string, string>> {
  let names: string[];
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code;
    throw new CommandError('usage', `--input: ${escaped(directory)} cannot be read (${reason})`, {
      cause,
    });
  }
  const shown = names.filter((name) => !name.startsWith('.'));
  const lines = shown.filter((name) => /\.(ndjson|jsonl)$/i.test(name));
  const candidates = lines.length > 0 ? lines : shown;
  const own = candidates.filter((name) => name.startsWith(`${topic}-`) && numberIn(name) !== null);
  const files = numbered(own.length > 0 ? own : candidates);
  if (files.size > 0) return files;
  throw new CommandError('usage', `--input: ${escaped(directory)} holds no file of lines`);
}

function numbered(names: readonly string[]): Map<string, string> {
  const numbers = names.map(numberIn);
  const isByNumber = !numbers.includes(null) && new Set(numbers).size === numbers.length;
  const inOrder = [...names].sort();
  const entries = isByNumber
    ? names.map((name, i) => [numbers[i]!, name] as const).sort(([a], [b]) => a - b)
    : inOrder.map((name, i) => [i, name] as const);
  return new Map(entries.map(([number, name]) => [String(number), name]));
}

/** `orders-07.ndjson` is 7. */
function numberIn(name: string): number | null {
  const digits = /(\d{1,9})$/.exec(name.replace(/(\.\w+)$/, ''))?.[1];
  return digits === undefined ? null : Number(digits);
}

// ── Kafka ───────────────────────────────────────────────────────────────────────────────────────

async function fromKafka(options: OptionValues): Promise<Pick<AlignInput, 'source' | 'topics'>> {
  const listed = (value: unknown) =>
    String(value ?? '')
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '');
  const [brokers, names] = [listed(options.brokers), listed(options.topics)];
  if (names.length === 0) {
    throw new CommandError('usage', '--topics: which? As --topics orders,payments');
  }
  const isBounded = options.follow !== true;
  const opened = await openKafkaJsSource(brokers, names, { isBounded }).catch(orUnreachable);
  if (opened === null) {
    throw new CommandError('usage', '--brokers needs kafkajs: npm install kafkajs');
  }
  return opened;
}

/** A topic that is not there is a refusal; a broker that is not there is none. */
function orUnreachable(error: unknown): never {
  if (!(error instanceof ReaderError)) throw error;
  for (let { cause } = error as { cause?: unknown }; cause instanceof Error; cause = cause.cause) {
    if (!cause.name.startsWith('KafkaJSConnection')) continue;
    throw new CommandError('unreachable', sentenceOf(error), { cause: error });
  }
  throw error;
}
