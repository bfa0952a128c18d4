/**
 * Records from files, one file a partition, one JSON object a line: for tests, replays, examples, and
 * wherever there is no Kafka.
 *
 *   <directory>/<topic>-<partition>.ndjson
 *
 * The offset is the number of the line, from 0. `timestamp` (milliseconds, or a date as text), `key`
 * and `value` are taken from the object; a value that is not text comes as JSON. `parse` reads other
 * lines. With `follow` a reader waits for more at the end of the file, else it ends there, and what
 * stands behind the last newline is a line as well.
 *
 * Nothing is fetched ahead: a reader holds one batch at most. A line that cannot be read is a
 * BAD_RECORD with file and line; the reader stays before it.
 */

import { join } from 'node:path';
import { ArgumentError } from '../../client/index.ts';
import {
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  type OptionTable,
  optionKinds,
  systemClock,
  type Timer,
} from '../../support/index.ts';
import { keyOf, type PartitionId } from '../partition.ts';
import {
  type KafkaRecord,
  type OffsetBounds,
  type PartitionReader,
  ReaderError,
  type RecordBatch,
  type RecordSource,
  type StartOffset,
} from '../reader.ts';
import { NdjsonFile } from './ndjson-file.ts';

export interface NdjsonOptions {
  /** Where the files stand, or which file is which partition. */
  readonly directory: string | ((partition: PartitionId) => string);
  /** Wait for more at the end of a file. True. */
  readonly follow?: boolean;
  /** How often to look for more. 200 ms. */
  readonly pollMs?: number;
  readonly batchRecordsMax?: number;
  readonly batchBytesMax?: number;
  readonly lineBytesMax?: number;
  /** What a line means; throws where it means nothing. */
  readonly parse?: (line: string) => Omit<KafkaRecord, 'offset'>;
  readonly clock?: Clock;
}

const { text, flag, number, callback, clock, either } = optionKinds;
const ndjsonTable = {
  directory: either(text, callback),
  follow: flag,
  pollMs: number,
  batchRecordsMax: number,
  batchBytesMax: number,
  lineBytesMax: number,
  parse: callback,
  clock,
} satisfies OptionTable<NdjsonOptions>;

type Settings = Required<Omit<NdjsonOptions, 'directory'>>;

export class NdjsonSource implements RecordSource {
  readonly #pathOf: (partition: PartitionId) => string;
  readonly #settings: Settings;
  readonly #files = new Map<string, NdjsonFile>();
  readonly #readers = new Set<NdjsonReader>();
  #isClosed = false;

  constructor(options: NdjsonOptions) {
    checkOptions('NdjsonSource', options, ndjsonTable);
    const { directory, ...rest } = options;
    this.#pathOf =
      typeof directory === 'string'
        ? ({ topic, partition }) => join(directory, `${topic}-${partition}.ndjson`)
        : directory;
    this.#settings = {
      follow: true,
      pollMs: 200,
      batchRecordsMax: 500,
      batchBytesMax: 1024 * 1024,
      lineBytesMax: 1024 * 1024,
      parse: parseLine,
      clock: systemClock,
      ...rest,
    };
    for (const name of ['pollMs', 'batchRecordsMax', 'batchBytesMax', 'lineBytesMax'] as const) {
      const value = this.#settings[name];
      if (!(value > 0)) throw new ArgumentError(name, `more than 0 is wanted, not ${value}`);
    }
  }

  async open(
    partition: PartitionId,
    from: StartOffset,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<PartitionReader> {
    signal?.throwIfAborted();
    const file = this.#fileOf(partition);
    const latest = BigInt(await file.count());
    signal?.throwIfAborted();
    this.#refuseClosed();
    const at = from === 'earliest' ? 0n : from === 'latest' ? latest : from;
    if (at < 0n || at > latest) throw outOfRange(file, at, latest);
    const reader = new NdjsonReader(partition, file, at, this.#settings, () =>
      this.#readers.delete(reader),
    );
    this.#readers.add(reader);
    return reader;
  }

  async bounds(partition: PartitionId): Promise<OffsetBounds> {
    return { earliest: 0n, latest: BigInt(await this.#fileOf(partition).count()) };
  }

  /** Reads the file from its start: timestamps need not be in order. */
  async offsetForTime(partition: PartitionId, timestampMs: number): Promise<bigint> {
    const file = this.#fileOf(partition);
    const count = await file.count();
    const { batchRecordsMax, batchBytesMax, parse } = this.#settings;
    for (let at = 0; at < count; ) {
      const { lines } = await file.read(at, batchRecordsMax, batchBytesMax);
      if (lines.length === 0) break;
      for (const line of lines) {
        const record = recordOf(file, at, line, parse);
        if (record.timestampMs !== null && record.timestampMs >= timestampMs) return BigInt(at);
        at += 1;
      }
    }
    return BigInt(count);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#readers].map((reader) => reader.close()));
    await Promise.all([...this.#files.values()].map((file) => file.close()));
    this.#files.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #fileOf(partition: PartitionId): NdjsonFile {
    this.#refuseClosed();
    const key = keyOf(partition);
    let file = this.#files.get(key);
    if (file === undefined) {
      const { lineBytesMax, follow } = this.#settings;
      file = new NdjsonFile(this.#pathOf(partition), lineBytesMax, !follow);
      this.#files.set(key, file);
    }
    return file;
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ReaderError('CLOSED', 'the source was closed');
  }
}

class NdjsonReader implements PartitionReader {
  readonly topic: string;
  readonly partition: string;
  readonly #file: NdjsonFile;
  readonly #settings: Settings;
  readonly #onClose: () => void;
  #position: bigint;
  #highWatermark: bigint | null = null;
  #isPaused = false;
  #isClosed = false;
  /** Set while `next` waits: for `resume`, for more lines, or for the end. */
  #waiting: { readonly woken: Deferred<void>; readonly timer: Timer | undefined } | undefined;

  constructor(
    { topic, partition }: PartitionId,
    file: NdjsonFile,
    position: bigint,
    settings: Settings,
    onClose: () => void,
  ) {
    this.topic = topic;
    this.partition = partition;
    this.#file = file;
    this.#position = position;
    this.#settings = settings;
    this.#onClose = onClose;
  }

  get position(): bigint {
    return this.#position;
  }

  get highWatermark(): bigint | null {
    return this.#highWatermark;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    while (!this.#isClosed) {
      if (this.#isPaused) {
        await this.#wait();
        continue;
      }
      const from = this.#position;
      const count = BigInt(await this.#file.count());
      this.#highWatermark = count;
      if (from > count) throw outOfRange(this.#file, from, count);
      if (from === count) {
        if (this.#file.trouble !== undefined) throw this.#file.trouble;
        if (!this.#settings.follow) break;
        await this.#wait(this.#settings.pollMs);
        continue;
      }
      const batch = await this.#read(from, count).catch((error: unknown) => {
        if (this.#position === from && !this.#isClosed) throw error;
      });
      // It was moved, paused or closed meanwhile: what was read is not what is wanted.
      if (this.#position !== from || this.#isPaused || this.#isClosed) continue;
      if (batch === undefined) continue;
      this.#position = batch.nextOffset;
      return { done: false, value: batch };
    }
    return { done: true, value: undefined };
  }

  async #read(from: bigint, highWatermark: bigint): Promise<RecordBatch> {
    const { batchRecordsMax, batchBytesMax, parse } = this.#settings;
    const { lines } = await this.#file.read(Number(from), batchRecordsMax, batchBytesMax);
    const records: KafkaRecord[] = [];
    const timestampsMs: number[] = [];
    for (const [i, line] of lines.entries()) {
      try {
        const record = recordOf(this.#file, Number(from) + i, line, parse);
        records.push(record);
        timestampsMs.push(record.timestampMs ?? Number.NaN);
      } catch (error) {
        if (records.length === 0) throw error;
        break; // told when it is the first of its batch
      }
    }
    const nextOffset = from + BigInt(records.length);
    const { topic, partition } = this;
    return { topic, partition, records, timestampsMs, nextOffset, highWatermark };
  }

  async #wait(forMs?: number): Promise<void> {
    const woken = deferred();
    const timer =
      forMs === undefined ? undefined : this.#settings.clock.after(forMs, () => woken.resolve());
    this.#waiting = { woken, timer };
    await woken.promise;
    timer?.cancel();
    this.#waiting = undefined;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#waiting?.woken.resolve();
  }

  seek(offset: bigint): void {
    if (offset < 0n) throw new ArgumentError('offset', `0 or more is wanted, not ${offset}`);
    this.#position = offset;
    this.#waiting?.woken.resolve();
  }

  async return(): Promise<IteratorResult<RecordBatch, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting?.woken.resolve();
    this.#onClose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function outOfRange(file: NdjsonFile, at: bigint, latest: bigint): ReaderError {
  return new ReaderError('OFFSET_OUT_OF_RANGE', `${file.path} has lines 0 to ${latest}, not ${at}`);
}

function recordOf(
  file: NdjsonFile,
  offset: number,
  line: Buffer,
  parse: Settings['parse'],
): KafkaRecord {
  try {
    return { ...parse(line.toString('utf8')), offset: BigInt(offset) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReaderError('BAD_RECORD', `${file.path} line ${offset + 1}: ${why}`, { cause });
  }
}

/** What a line means unless the caller knows better. */
export function parseLine(line: string): Omit<KafkaRecord, 'offset'> {
  const json: unknown = JSON.parse(line);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new Error('a JSON object is wanted');
  }
  const { timestamp, key, value } = json as Record<string, unknown>;
  return { timestampMs: timeOf(timestamp), key: bytesOf(key), value: bytesOf(value) };
}

function timeOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  const ms = typeof value === 'number' ? value : Date.parse(String(value));
  if (!Number.isFinite(ms)) throw new Error('timestamp: milliseconds or a date is wanted');
  return ms;
}

function bytesOf(value: unknown): Buffer | null {
  if (value === undefined || value === null) return null;
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
}
