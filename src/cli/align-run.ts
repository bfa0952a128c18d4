/**
 * `drover align run`: reads a share of the group's partitions in step with all the others, and writes what
 * it reads to standard output, or to a file for each period.
 *
 * Any number of such processes with one group share the partitions. It ends when every partition has
 * come to its end and every file is made; Ctrl-C leaves word how far it came, and the next run goes on
 * there. After a crash what came after the last cut is read again: standard output then has it twice,
 * files have it once.
 */

import { hostname } from 'node:os';
import {
  type AlignedBatch,
  type Aligner,
  align,
  alignPaths,
  durationMs,
  formatDuration,
  parseCalled,
  parseLimit,
  parseRule,
  type Rule,
  type StoredLimit,
} from '../align/index.ts';
import { type Client, isZkError } from '../client/index.ts';
import { type KafkaRecord, keyOf, LayoutError, type PartitionId } from '../kafka/index.ts';
import { deferred } from '../support/index.ts';
import { type AlignInput, directoryOf, fieldOf, openInput, partitionsOf } from './align-input.ts';
import { sharedOf } from './align-layout.ts';
import { type OutputRecord, type PeriodFile, PeriodFiles } from './align-output.ts';
import { periodOf } from './align-plan.ts';
import { SkippedRecords } from './align-skipped.ts';
import { type Span, spanOf, writeSpan } from './align-span.ts';
import { beliefOf, groupOf, ruleText, type Window, windowOf } from './align-words.ts';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { offsetJson } from './kafka-view.ts';
import { escaped, foundCode } from './output.ts';
import { thousands } from './status.ts';
import { within } from './within.ts';

const writersAtOnce = 4;

export async function run(context: Context, options: OptionValues): Promise<number> {
  const group = groupOf(options);
  const periodMs = periodOf(options);
  const lookAhead = within(options.lookAhead, '--look-ahead', 0, 1_000, 0);
  const window = windowOf(options);
  const extras = durationsOf(options);
  const input = await openInput(options);
  try {
    return await runWith(context, options, input, { group, periodMs, lookAhead, window, extras });
  } finally {
    await input.source.close(); // Kafka's links would keep the process
  }
}

interface Asked {
  readonly group: string;
  readonly periodMs: number;
  readonly lookAhead: number;
  readonly window: Window;
  readonly extras: ReturnType<typeof durationsOf>;
}

async function runWith(
  context: Context,
  options: OptionValues,
  input: AlignInput,
  { group, periodMs, lookAhead, window, extras }: Asked,
): Promise<number> {
  const shared = await sharedOf(options, input, periodMs);
  const isFolder = typeof options.out === 'string';
  const sink: Sink = isFolder
    ? new FileSink(context, await PeriodFiles.open(String(options.out), periodMs))
    : new PrintSink(context);
  const client = await context.connect(undefined, { renew: true });
  const { signal, output } = context;
  const allowed = within(options.allowSkipped, '--allow-skipped', 0, Number.MAX_SAFE_INTEGER, 0);
  if (options.follow !== true && options.brokers === undefined) {
    const span = await spanOf(input);
    if (span !== null) await writeSpan(client, group, clipped(span, window));
  }
  const stored = await storedOf(client, group);
  const skipped = new SkippedRecords({
    field: fieldOf(input),
    isSkipping: (extras.quarantine ?? 'skip') === 'skip',
    tell: (line) => output.tell(line),
    startOf: (id) => startOf(runner, id),
    keep: (id, record) => {
      const { sessionSignal } = client;
      sink.quarantine(id, record, () => !sessionSignal.aborted);
    },
    onHopeless: (error) => {
      isHopeless = true;
      hopeless.reject(error);
      // Nothing of this may count as read, so it does not leave word how far it came.
      void client.close();
    },
  });
  let isHopeless = false;
  const hopeless = deferred<never>();
  hopeless.promise.catch(() => {}); // told below
  const runner: Aligner = align(client, {
    group,
    source: input.source,
    topics: Object.fromEntries([...input.topics].map(([topic, all]) => [topic, all.length])),
    directory: directoryOf(input.topics),
    mode: { period: periodMs, lookAhead },
    eventTime: input.eventTime,
    consumerId: nameOf(options),
    ...extras,
    ...(window.fromMs !== undefined && { from: window.fromMs }),
    ...(window.toMs !== undefined && { to: window.toMs }),
    ...(shared && { layout: shared }),
    ...(isFolder && {
      onPartitionPeriod: (id, { end }) => {
        skipped.release(id);
        return sink.passed(id, end);
      },
      onPeriod: ({ start, end, signal: term }) => sink.complete(start, end, term),
    }),
    onQuarantine: (id, record, reason) => skipped.add(id, record, reason),
    signal,
  });
  runner.on('problem', (where, error) => {
    if (isHopeless) return; // our own end of the session
    output.tell(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  });
  runner.on('assigned', (owned) => sink.assigned(owned, owned.epoch));
  runner.on('limit', () => tellProgress(context, runner));
  runner.on('ahead', (id, record, timeMs) => {
    const when = new Date(timeMs).toISOString();
    const what = `${keyOf(id)} offset ${record.offset} is far ahead of the others (${when})`;
    output.tell(`${what}: it waits until records behind it, or the others, have come as far`);
  });
  tellStart(context, { group, input, periodMs, stored, options });
  try {
    // To a disk several partitions can write at once; a reader of standard output is one.
    const loops = isFolder ? writersAtOnce : 1;
    const each = Array.from({ length: loops }, () =>
      consume(context, runner, sink, (id) => skipped.release(id)),
    );
    await Promise.race([Promise.all(each), hopeless.promise]);
    signal.throwIfAborted();
    if (isFolder) await called(client, group, signal);
    const { records, isLeading } = runner.status();
    skipped.releaseAll();
    await runner.close(); // no callback runs any more
    await sink.end(isLeading);
    output.tell(`${group} has come to its end; ${thousands(records)} records here`);
    if (records + skipped.count === 0) tellNothing(context, group, stored);
    return skipped.count > allowed ? foundCode : exitCodes.ok;
  } finally {
    await runner.close();
    await sink.flush();
    await client.close();
    const { summary } = skipped;
    if (summary !== null && !isHopeless)
      output.tell(`${group}: ${summary}${acceptedOf(skipped.count, allowed)}`);
  }
}

function acceptedOf(count: number, allowed: number): string {
  if (count <= allowed) return '';
  return allowed === 0
    ? '; accept them with --allow-skipped'
    : `; --allow-skipped accepts ${thousands(allowed)}`;
}

function startOf(runner: Aligner, { topic, partition }: PartitionId): bigint | null {
  const lane = runner
    .status()
    .partitions.find((one) => one.topic === topic && one.partition === partition);
  return lane?.offset ?? null;
}

/** What an earlier run of the group has left. */
interface Stored {
  readonly rule: Rule | null;
  readonly limit: StoredLimit | null;
}

async function storedOf(client: Client, group: string): Promise<Stored> {
  const paths = alignPaths(group);
  const read = async <T>(path: string, parse: (data: Buffer | null, path: string) => T) => {
    try {
      return parse((await client.get(path)).data, path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE') || error instanceof LayoutError) return null;
      throw error;
    }
  };
  return { rule: await read(paths.config, parseRule), limit: await read(paths.limit, parseLimit) };
}

function clipped({ startMs, endMs }: Span, { fromMs, toMs }: Window): Span {
  return { startMs: Math.max(startMs, fromMs ?? 0), endMs: Math.min(endMs, toMs ?? endMs) };
}

/** What the library checks by itself; only what was given is handed on. */
function durationsOf(options: OptionValues) {
  const { outOfOrder, idleAfter, quarantine } = options;
  return {
    ...(outOfOrder !== undefined && {
      outOfOrder: durationMs('--out-of-order', String(outOfOrder), 0),
    }),
    ...(idleAfter !== undefined && { idleAfter: durationMs('--idle-after', String(idleAfter)) }),
    ...beliefOf(options),
    ...(quarantine !== undefined && { quarantine: quarantine as 'skip' }),
  };
}

/** Who we are to the group; another after each restart, since the one before may not be gone yet. */
function nameOf({ name }: OptionValues): string {
  const who = typeof name === 'string' ? name : `${hostname()}-${process.pid}`;
  return `${who.replace(/[^\w.-]/g, '_')}-${Date.now().toString(36)}`;
}

interface Start {
  readonly group: string;
  readonly input: AlignInput;
  readonly periodMs: number;
  readonly stored: Stored;
  readonly options: OptionValues;
}

/** What is read, by which period, and whether the group has read everything before. */
function tellStart({ output }: Context, { group, input, periodMs, stored, options }: Start): void {
  const { rule, limit } = stored;
  const count = partitionsOf(input.topics).length;
  const what = `${count} partitions of ${[...input.topics.keys()].join(', ')}`;
  const given = formatDuration(periodMs);
  const isSame = rule === null || isAsked(rule, periodMs, options.lookAhead);
  if (isSame) output.tell(`${group}: ${what}, ${given} at a time`);
  else {
    const files = options.out === undefined ? '' : `; the files of --out span ${given}`;
    output.tell(`${group}: ${what}, by the stored rule: ${ruleText(rule)}`);
    const asked =
      options.lookAhead === undefined
        ? `--period ${given} does not count`
        : `--period ${given} and --look-ahead ${Number(options.lookAhead)} do not count`;
    output.tell(
      `${asked}, as the group has a rule already${files}; to change it: drover align set-period ${group} ${given}`,
    );
  }
  if (limit?.isFinished !== true) return;
  output.tell(`${group} has come to its end in an earlier run: only what was added since is read`);
}

/** Whether the rule is the one that was asked for. */
function isAsked(rule: Rule, periodMs: number, lookAhead: OptionValues[string]): boolean {
  if (rule.mode !== 'period' || rule.stepMs !== periodMs) return false;
  return lookAhead === undefined || Number(lookAhead) === rule.lookAhead;
}

function tellNothing({ output }: Context, group: string, { limit }: Stored): void {
  if (limit?.cut == null) return;
  const until = new Date(limit.cut.end).toISOString();
  output.tell(
    `nothing was left to read: earlier runs have read everything, up to ${until}; to begin anew: drover align forget ${escaped(group)}`,
  );
}

async function consume(
  context: Context,
  runner: Aligner,
  sink: Sink,
  onRecords: (id: PartitionId) => void,
): Promise<void> {
  for await (const batch of runner) {
    onRecords(batch);
    const isOurs = () => !batch.signal.aborted;
    if (!isOurs()) continue;
    try {
      await sink.write(batch, isOurs);
    } catch (error) {
      // Who was stopped for long finds even the folder gone: the others came to the end without it.
      if (isOurs()) throw error;
    }
    await batch.done();
    tellProgress(context, runner);
  }
}

function tellProgress({ output }: Context, runner: Aligner): void {
  output.status(() => {
    const { records, limit, isPaused } = runner.status();
    const at = limit?.limitMs == null ? '-' : new Date(limit.limitMs).toISOString();
    return `${thousands(records)} records, limit ${at}${isPaused ? ', paused by hand' : ''}`;
  });
}

/** Resolves once the last period was dealt with, by us or by whoever leads. */
async function called(client: Client, group: string, signal: AbortSignal): Promise<void> {
  const paths = alignPaths(group);
  const changes = client.watch(paths.called, { signal });
  try {
    await changes.ready;
    for (;;) {
      const limit = await limitOf(client, paths.limit, signal);
      if (limit === null || limit.cut === null || limit.cut.start === null) return;
      try {
        const { data } = await client.get(paths.called, { signal });
        if (parseCalled(data, paths.called) >= limit.cut.end) return;
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
      }
      if ((await changes.next()).done) return;
    }
  } finally {
    await changes.return?.();
  }
}

/** Null where nobody has moved it yet, and so no period was ever open. */
async function limitOf(client: Client, path: string, signal: AbortSignal) {
  try {
    return parseLimit((await client.get(path, { signal })).data, path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

// ── where records go ────────────────────────────────────────────────────────────────────────────

interface Sink {
  assigned(id: PartitionId, epoch: bigint): void;
  write(batch: AlignedBatch, isOurs: () => boolean): Promise<void>;
  quarantine(id: PartitionId, record: KafkaRecord, isOurs: () => boolean): void;
  passed(id: PartitionId, end: number): Promise<void>;
  complete(start: number | null, end: number, signal: AbortSignal): Promise<void>;
  flush(): Promise<void>;
  /** `isLeading`: what nobody else does is done by this one. */
  end(isLeading: boolean): Promise<void>;
}

class PrintSink implements Sink {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  async write({ topic, partition, records, timesMs }: AlignedBatch): Promise<void> {
    const { output } = this.#context;
    for (const [i, record] of records.entries()) {
      if (output.isJson)
        output.record(recordJson({ topic, partition }, record, timesMs[i] ?? null));
      else output.write(`${lineOf(record).toString('utf8')}\n`);
    }
    await output.drained();
  }

  assigned(): void {}
  quarantine(): void {}
  async passed(): Promise<void> {}
  async complete(): Promise<void> {}
  async flush(): Promise<void> {}
  async end(): Promise<void> {}
}

class FileSink implements Sink {
  readonly #context: Context;
  readonly #files: PeriodFiles;
  readonly #epochs = new Map<string, bigint>();
  /** Quarantined records on their way to the disk. */
  #writing: Promise<void> = Promise.resolve();

  constructor(context: Context, files: PeriodFiles) {
    this.#context = context;
    this.#files = files;
  }

  assigned(id: PartitionId, epoch: bigint): void {
    this.#epochs.set(keyOf(id), epoch);
  }

  async write(batch: AlignedBatch, isOurs: () => boolean): Promise<void> {
    const { topic, partition, epoch, records, timesMs } = batch;
    const lines = records.map(
      (record, i): OutputRecord => ({
        offset: record.offset,
        timeMs: timesMs[i] ?? null,
        line: lineOf(record),
      }),
    );
    await this.#files.write({ topic, partition }, epoch, lines, isOurs);
  }

  quarantine(id: PartitionId, record: KafkaRecord, isOurs: () => boolean): void {
    const epoch = this.#epochs.get(keyOf(id)) ?? 0n;
    const line = { offset: record.offset, timeMs: null, line: lineOf(record) };
    this.#writing = this.#writing.then(async () => {
      try {
        await this.#files.write(id, epoch, [line], isOurs);
      } catch (error) {
        if (isOurs()) throw error; // else the others have it, and may have come to the end already
      }
    });
    this.#writing.catch(() => {}); // told by `flush`, which everybody awaits
  }

  async passed(id: PartitionId, end: number): Promise<void> {
    await this.#writing;
    await this.#files.passed(id, end);
  }

  async complete(start: number | null, end: number, signal: AbortSignal): Promise<void> {
    this.#tell(await this.#files.complete(start, end, signal));
    await this.#context.output.drained();
  }

  async flush(): Promise<void> {
    await this.#writing;
  }

  async end(isLeading: boolean): Promise<void> {
    await this.flush();
    this.#tell(await this.#files.tidy(isLeading));
  }

  #tell(made: readonly PeriodFile[]): void {
    const { output } = this.#context;
    for (const { start, path, records } of made) {
      if (output.isJson) output.record({ period: start, file: path, records });
      else output.line(`${path} ${records}`);
    }
  }
}

/** One line, whatever it holds. */
function lineOf({ value }: KafkaRecord): Buffer {
  if (value === null) return Buffer.from('null');
  const line = value.at(-1) === 0x0d ? value.subarray(0, -1) : value;
  return line.includes(0x0a) ? Buffer.from(JSON.stringify(line.toString('utf8'))) : line;
}

function recordJson(id: PartitionId, record: KafkaRecord, timeMs: number | null): object {
  const { offset, key, value } = record;
  const text = (bytes: Buffer | null) => bytes?.toString('utf8') ?? null;
  return { ...id, offset: offsetJson(offset), timeMs, key: text(key), value: text(value) };
}
