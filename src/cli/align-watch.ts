/**
 * `drover align watch G`: where the group is, how fast it goes, who holds it back and why.
 *
 * On a terminal frame by frame until Ctrl-C; elsewhere once, or `--count` times. Speed is that of the
 * limit between the first look and this one, at most a minute back, so it needs two looks; the time that
 * is left is counted up to `--to`, up to the end of the files that are read, or else up to now: when it
 * will have caught up.
 */

import { frames } from './align-frames.ts';
import { readSpan, type Span } from './align-span.ts';
import { type Alignment, readGroup, type ShownPartition, type ShownState } from './align-view.ts';
import { momentOf, noGroup, ruleText } from './align-words.ts';
import type { Context, OptionValues } from './command.ts';
import { ageText, offsetJson, type View } from './kafka-view.ts';
import { escaped } from './output.ts';
import { thousands } from './status.ts';

export interface Sample {
  readonly alignment: Alignment;
  /** On a clock that only goes forward, and by the calendar. */
  readonly atMs: number;
  readonly wallMs: number;
}

/** How far back the speed looks. */
const windowMs = 60_000;

export async function watch(
  context: Context,
  group: string,
  options: OptionValues,
): Promise<number> {
  const toMs = momentOf('--to', options.to);
  const client = await context.client();
  const samples: Sample[] = [];
  return frames(context, options, async () => {
    const alignment = await readGroup(client, group);
    if (alignment === null) throw noGroup(group);
    const span = await readSpan(client, group);
    const sample = { alignment, atMs: performance.now(), wallMs: Date.now() };
    samples.push(sample);
    while (sample.atMs - samples[0]!.atMs > windowMs) samples.shift();
    return viewOf(samples[0]!, sample, span, toMs ?? span?.endMs ?? null);
  });
}

/** What changed from one look to another. Null where there is nothing to tell it by. */
export interface Pace {
  /** Milliseconds of event time in a second. */
  readonly eventMsPerSecond: number | null;
  readonly recordsPerSecond: number | null;
  /** Until the limit is at the target. */
  readonly etaMs: number | null;
}

export function paceOf(first: Sample, last: Sample, toMs: number | null): Pace {
  const seconds = (last.atMs - first.atMs) / 1_000;
  const none = { eventMsPerSecond: null, recordsPerSecond: null, etaMs: null };
  const [before, now] = [first.alignment.limit?.limitMs, last.alignment.limit?.limitMs];
  if (seconds <= 0 || before == null || now == null) return none;
  const eventMsPerSecond = (now - before) / seconds;
  const records = (alignment: Alignment) =>
    alignment.members.reduce((sum, one) => sum + one.records, 0);
  const more = records(last.alignment) - records(first.alignment);
  // Up to now the target itself moves, by a second each second.
  const [target, targetPace] = toMs === null ? [last.wallMs, 1_000] : [toMs, 0];
  const left = Math.max(0, target - now);
  const closing = eventMsPerSecond - targetPace;
  const isFinished = last.alignment.limit?.isFinished === true;
  const etaMs = left === 0 || isFinished ? 0 : closing > 0 ? (1_000 * left) / closing : null;
  // Who left took its count along.
  return { eventMsPerSecond, recordsPerSecond: more < 0 ? null : more / seconds, etaMs };
}

/** Why everybody waits for it. */
export function reasonOf({ state }: ShownPartition): string {
  const reasons: Readonly<Record<ShownState, string>> = {
    reading: 'it is being read',
    paused: 'it waits for the limit to move',
    idle: 'it has nothing to read',
    ahead: 'its next record is far ahead of the others, and not believed yet',
    finished: 'it has come to its end',
    stopped: 'it has stopped at a record, and somebody has to look',
    opening: 'its owner has not said yet where it is',
    unowned: 'nobody has it',
  };
  return reasons[state];
}

export function viewOf(first: Sample, last: Sample, span: Span | null, toMs: number | null): View {
  const { alignment, wallMs } = last;
  const { limit, members, slowest, leader, holdMs } = alignment;
  const pace = paceOf(first, last, toMs);
  const time = (ms: number | null | undefined) => (ms == null ? '-' : new Date(ms).toISOString());
  const counts = countsOf(alignment);
  const waiting =
    members.length === 0
      ? null
      : members.reduce((sum, one) => sum + one.waitingShare, 0) / members.length;
  const behindMs =
    slowest?.positionMs == null || limit?.limitMs == null
      ? null
      : Math.max(0, limit.limitMs - slowest.positionMs);
  const isHeld = slowest !== null && limit?.isFinished !== true;
  const { eventMsPerSecond, recordsPerSecond, etaMs } = pace;
  const share = shareOf(limit?.limitMs ?? null, span);
  const line = [
    `limit ${time(limit?.limitMs)}`,
    ...(share === null ? [] : [`${Math.floor(100 * share)} %`]),
    ...(limit?.isFinished ? ['finished'] : []),
    ...(eventMsPerSecond === null ? [] : [`${ageText(eventMsPerSecond)} a second`]),
    ...(recordsPerSecond === null ? [] : [`${thousands(Math.round(recordsPerSecond))} rec/s`]),
    `ETA ${etaMs === null ? '-' : ageText(etaMs)}`,
    ...(waiting === null ? [] : [`waiting ${Math.round(100 * waiting)} % of the time`]),
  ];
  const cut = limit?.cut
    ? `cut ${time(limit.cut.end)}, ${ageText(wallMs - limit.movedAtMs)} ago`
    : 'no cut yet';
  const stands =
    limit?.limitMs == null ? '' : ` · limit moved ${ageText(wallMs - limit.movedAtMs)} ago`;
  const states = Object.entries(counts).map(([state, count]) => `${state} ${count}`);
  return {
    parts: [
      line.join(' · '),
      ...(holdMs === null ? [] : [holdText(alignment, holdMs)]),
      // Where people hold it, who is at the limit is not in anybody's way.
      ...(isHeld && (holdMs === null || behindMs !== 0)
        ? [`${heldText(slowest, behindMs)}${stands}`]
        : []),
      [...states, cut, ...(limit ? [ruleText(limit.rule)] : [])].join(' · '),
      {
        heads: ['PARTITION', 'STATE', 'POSITION', 'OFFSET', 'OWNER'],
        rows: alignment.partitions.map((one) => [
          escaped(`${one.topic}-${one.partition}`),
          one.state,
          time(one.positionMs),
          one.offset === null ? '-' : String(one.offset),
          escaped(one.member ?? '-'),
        ]),
      },
      {
        heads: ['MEMBER', 'PARTITIONS', 'RECORDS', 'WAITING'],
        rows: members.map((one) => [
          `${escaped(one.id)}${one.id === leader ? '*' : ''}`,
          String(one.partitions),
          thousands(one.records),
          `${Math.round(100 * one.waitingShare)} %`,
        ]),
      },
    ],
    records: [
      {
        group: alignment.group,
        limitMs: limit?.limitMs ?? null,
        isFinished: limit?.isFinished ?? false,
        rule: limit?.rule ?? null,
        isPaused: alignment.isPaused,
        holdMs,
        epoch: limit === null ? null : String(limit.epoch),
        cutMs: limit?.cut?.end ?? null,
        calledMs: alignment.calledMs,
        movedAtMs: limit?.movedAtMs ?? null,
        share,
        ...pace,
        waitingShare: waiting,
        states: counts,
        heldBackBy: isHeld
          ? { ...partitionJson(slowest), behindMs, reason: reasonOf(slowest) }
          : null,
        leader,
        partitions: alignment.partitions.map(partitionJson),
        members,
      },
    ],
  };
}

function shareOf(limitMs: number | null, span: Span | null): number | null {
  if (limitMs === null || span === null) return null;
  const whole = Math.max(1, span.endMs - span.startMs);
  return Math.max(0, Math.min(1, (limitMs - span.startMs) / whole));
}

/** That it stands still, or will, because somebody wants it to. */
function holdText({ group, isPaused, limit }: Alignment, holdMs: number): string {
  // The limit may have been beyond the hold when that came.
  const at = new Date(Math.max(holdMs, limit?.limitMs ?? holdMs)).toISOString();
  const how = `align step ${escaped(group)}, align continue ${escaped(group)}`;
  return isPaused
    ? `paused by hand at ${at} · ${how}`
    : `goes on up to ${at}, held there by hand · ${how}`;
}

function heldText(slowest: ShownPartition, behindMs: number | null): string {
  const behind = behindMs === null ? [] : [`${ageText(behindMs)} before the limit`];
  const who = slowest.member === null ? [] : [escaped(slowest.member)];
  const name = escaped(`${slowest.topic}-${slowest.partition}`);
  return `held back by ${[name, ...who, ...behind, reasonOf(slowest)].join(' · ')}`;
}

function countsOf({ partitions }: Alignment): Record<string, number> {
  const counts: Record<string, number> = { paused: 0, reading: 0, idle: 0, finished: 0 };
  for (const { state } of partitions) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

function partitionJson({ offset, ...one }: ShownPartition): object {
  return { ...one, offset: offsetJson(offset) };
}
