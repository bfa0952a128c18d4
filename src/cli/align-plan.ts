/**
 * `drover align plan`: what a run would have to do, before it is done: how many periods there are, how
 * many of them are empty, which partition is the longest, and how far records are out of order.
 *
 * Reads everything once, one partition after the other, and keeps counts alone. Talks to no ZooKeeper.
 */

import {
  type DoubtedRecord,
  durationMs,
  formatDuration,
  type QuarantineReason,
  TimeDoubts,
} from '../align/index.ts';
import type { PartitionId } from '../kafka/index.ts';
import { type AlignInput, fieldOf, openInput, partitionsOf } from './align-input.ts';
import { beliefOf, reasonTexts, type Window, windowOf } from './align-words.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { offsetJson } from './kafka-view.ts';
import { escaped } from './output.ts';
import { thousands } from './status.ts';

export interface PartitionPlanned extends PartitionId {
  readonly records: number;
  /** Null where no record has a time. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  /** In how many periods it has records. */
  readonly periods: number;
  /** The most that a record is earlier than one before it. */
  readonly outOfOrderMs: number;
  /** Records whose time cannot be believed: they count in nothing else here. */
  readonly withoutTime: number;
  /** Why, and the first record of each kind. */
  readonly suspects: readonly Suspects[];
}

/** Records that a run would not believe, all for the same reason. */
export interface Suspects extends PartitionId {
  readonly reason: QuarantineReason;
  readonly count: number;
  /** Of the first of them. */
  readonly offset: bigint;
  /** Null where it has none. */
  readonly timeMs: number | null;
}

export interface Planned {
  readonly partitions: readonly PartitionPlanned[];
  readonly records: number;
  /** From the first record to the last. */
  readonly periods: number;
  readonly emptyPeriods: number;
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  readonly outOfOrderMs: number;
  readonly withoutTime: number;
  readonly suspects: readonly Suspects[];
  /** The one with the most records; null where there are none. */
  readonly slowest: PartitionPlanned | null;
}

/** Sets of periods are kept: more than this, and the period is too small to plan with. */
const periodsMax = 5_000_000;

export async function plan(context: Context, options: OptionValues): Promise<number> {
  const { output, signal } = context;
  const periodMs = periodOf(options);
  const input = await openInput({ ...options, follow: false });
  try {
    const planned = await planOf(input, periodMs, {
      ...windowOf(options),
      ...beliefOf(options),
      signal,
      onProgress: (records) => output.status(`${thousands(records)} records`),
    });
    if (output.isJson) {
      for (const { suspects, ...partition } of planned.partitions) {
        output.record({ ...partition, suspects: suspects.map(suspectsJson) });
      }
      const { partitions, slowest, ...rest } = planned;
      const topics = input.topics.size;
      output.record({
        topics,
        partitions: partitions.length,
        periodMs,
        ...rest,
        suspects: planned.suspects.map(suspectsJson),
        slowest: slowest && nameOf(slowest),
      });
    } else show(context, planned, input, periodMs);
    return exitCodes.ok;
  } finally {
    await input.source.close();
  }
}

export function periodOf(options: OptionValues): number {
  if (options.period === undefined) {
    throw new CommandError('usage', '--period: how far all go together, as 60s or 5m');
  }
  return durationMs('--period', String(options.period));
}

export interface PlanHooks extends Window {
  /** As of a run. */
  readonly futureTolerance?: number;
  readonly maxAhead?: number | false;
  readonly signal?: AbortSignal;
  readonly onProgress?: (records: number) => void;
}

export async function planOf(
  { source, topics, timeOf }: AlignInput,
  periodMs: number,
  hooks: PlanHooks = {},
): Promise<Planned> {
  const { fromMs = 0, toMs = Number.POSITIVE_INFINITY } = hooks;
  const all = new Set<number>();
  const partitions: PartitionPlanned[] = [];
  let total = 0;
  for (const id of partitionsOf(topics)) {
    const own = new Set<number>();
    const suspects = new Map<QuarantineReason, Suspects>();
    let [records, outOfOrderMs] = [0, 0];
    let [firstMs, lastMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    let leftOut = 0;
    const believe = (timeMs: number) => {
      if (timeMs < fromMs || timeMs >= toMs) {
        leftOut += 1;
        return;
      }
      if (timeMs < lastMs) outOfOrderMs = Math.max(outOfOrderMs, lastMs - timeMs);
      firstMs = Math.min(firstMs, timeMs);
      lastMs = Math.max(lastMs, timeMs);
      own.add(Math.floor(timeMs / periodMs));
    };
    const doubt = ({ offset, timeMs, reason }: DoubtedRecord) => {
      const before = suspects.get(reason);
      const time = Number.isFinite(timeMs) ? timeMs : null;
      if (before !== undefined) suspects.set(reason, { ...before, count: before.count + 1 });
      else suspects.set(reason, { ...id, reason, count: 1, offset, timeMs: time });
    };
    const doubts = new TimeDoubts(hooks, believe, doubt);
    const reader = await source.open(id, 'earliest', hooks.signal ? { signal: hooks.signal } : {});
    for await (const batch of reader) {
      hooks.signal?.throwIfAborted();
      for (const record of batch.records) doubts.add(record.offset, timeOf(record));
      records += batch.records.length;
      total += batch.records.length;
      if (own.size > periodsMax) throw tooMany(periodMs);
      hooks.onProgress?.(total);
    }
    doubts.end();
    for (const period of own) all.add(period);
    if (all.size > periodsMax) throw tooMany(periodMs);
    const isTimed = own.size > 0;
    partitions.push({
      ...id,
      records: records - leftOut,
      firstMs: isTimed ? firstMs : null,
      lastMs: isTimed ? lastMs : null,
      periods: own.size,
      outOfOrderMs,
      withoutTime: [...suspects.values()].reduce((sum, { count }) => sum + count, 0),
      suspects: [...suspects.values()],
    });
  }
  return summed(partitions, all.size, periodMs);
}

function summed(
  partitions: readonly PartitionPlanned[],
  filled: number,
  periodMs: number,
): Planned {
  const timed = partitions.filter(({ firstMs }) => firstMs !== null);
  const firstMs = timed.reduce((least, each) => Math.min(least, each.firstMs!), Infinity);
  const lastMs = timed.reduce((most, each) => Math.max(most, each.lastMs!), 0);
  const periods =
    timed.length === 0 ? 0 : Math.floor(lastMs / periodMs) - Math.floor(firstMs / periodMs) + 1;
  const sum = (of: (one: PartitionPlanned) => number) =>
    partitions.reduce((all, one) => all + of(one), 0);
  const longest = partitions.reduce<PartitionPlanned | null>(
    (most, one) => (one.records > (most?.records ?? 0) ? one : most),
    null,
  );
  return {
    partitions,
    records: sum(({ records }) => records),
    periods,
    emptyPeriods: periods - filled,
    firstMs: timed.length === 0 ? null : firstMs,
    lastMs: timed.length === 0 ? null : lastMs,
    outOfOrderMs: Math.max(0, ...partitions.map((one) => one.outOfOrderMs)),
    withoutTime: sum(({ withoutTime }) => withoutTime),
    suspects: suspectsOf(partitions),
    slowest: longest,
  };
}

/** Of all partitions together, each with the first that was found. */
function suspectsOf(partitions: readonly PartitionPlanned[]): Suspects[] {
  const all = new Map<QuarantineReason, Suspects>();
  for (const one of partitions.flatMap(({ suspects }) => suspects)) {
    const before = all.get(one.reason);
    all.set(one.reason, before ? { ...before, count: before.count + one.count } : one);
  }
  return [...all.values()];
}

function suspectsJson({ topic, partition, offset, reason, count, timeMs }: Suspects): object {
  return { reason, count, topic, partition, offset: offsetJson(offset), timeMs };
}

function tooMany(periodMs: number): CommandError {
  const why = `more than ${thousands(periodsMax)} periods of ${formatDuration(periodMs)} hold records`;
  return new CommandError('usage', `${why}: is --unit right? Else give a longer --period`);
}

const nameOf = ({ topic, partition }: PartitionId) => `${topic}-${partition}`;

function show(context: Context, planned: Planned, input: AlignInput, periodMs: number): void {
  const { output } = context;
  const { partitions, records, periods, emptyPeriods, slowest, firstMs, lastMs } = planned;
  const share = (one: PartitionPlanned) =>
    records === 0 ? '-' : `${Math.round((100 * one.records) / records)} %`;
  const time = (ms: number | null) => (ms === null ? '-' : new Date(ms).toISOString());
  const columns = new Columns(
    output,
    'PARTITION',
    'RECORDS',
    'SHARE',
    'FIRST',
    'LAST',
    'PERIODS',
    'OUT OF ORDER',
    'NO TIME',
  );
  for (const one of partitions) {
    columns.row(
      escaped(nameOf(one)),
      thousands(one.records),
      share(one),
      time(one.firstMs),
      time(one.lastMs),
      thousands(one.periods),
      one.outOfOrderMs === 0 ? '-' : formatDuration(one.outOfOrderMs),
      one.withoutTime === 0 ? '-' : thousands(one.withoutTime),
    );
  }
  columns.end();
  const parts = [
    `${input.topics.size} topics`,
    `${partitions.length} partitions`,
    `${thousands(records)} records`,
    ...(slowest === null ? [] : [`slowest: ${escaped(nameOf(slowest))} (${share(slowest)})`]),
    `${thousands(periods)} periods of ${formatDuration(periodMs)}`,
    `${thousands(emptyPeriods)} empty, will be skipped`,
  ];
  output.line(parts.join(' · '));
  if (firstMs !== null) output.line(`from ${time(firstMs)} to ${time(lastMs)}`);
  if (planned.outOfOrderMs > 0) {
    const far = formatDuration(planned.outOfOrderMs);
    output.line(`! records come up to ${far} out of order; --out-of-order ${far} waits for them`);
  }
  for (const one of planned.suspects) output.line(`! ${suspectsText(one, fieldOf(input))}`);
}

/** What is wrong, where it was first found, and what to look at. */
function suspectsText(one: Suspects, field: string): string {
  const { reason, count, offset, timeMs } = one;
  const what = count === 1 ? 'a record has' : `${thousands(count)} records have`;
  const at = timeMs === null || timeMs > 8.64e15 ? timeMs : new Date(timeMs).toISOString();
  const where = `${escaped(nameOf(one))} offset ${offset}${at === null ? '' : `, ${at}`}`;
  const question = {
    missing: 'is --event-time right?',
    negative: 'is --unit right?',
    future: 'are --event-time and --unit right? --future says how late a time can be believed',
    tooFar: 'is --unit right?',
    ahead: '--max-ahead says how far ahead a time can be believed',
  }[reason];
  return `${what} ${reasonTexts[reason]} in ${escaped(field)} (first: ${where}); a run does as --quarantine says. ${question}`;
}
