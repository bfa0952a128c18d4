/**
 * A batch as it was read, made ready to be handed out: every record with its event time, and what
 * becomes of those that have none that can be believed, or lie outside what was asked for. Pure.
 */

import type { KafkaRecord, PartitionId, RecordBatch } from '../kafka/index.ts';
import { doubtOf, type QuarantineReason, type ReadTime, timestampOf } from './event-time.ts';

export type QuarantinePolicy =
  /** Told, and left out. It counts as done, and moves no clock. */
  | 'skip'
  /** The partition stops there, and holds everybody back until somebody looks. */
  | 'stop'
  /** Handed out as if it had happened when the latest before it did. */
  | 'clamp'
  /** Handed out in its place; it moves no clock. */
  | 'deliver';

export interface JudgeOptions {
  readonly readTime: ReadTime;
  readonly allowanceMs: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly quarantine: QuarantinePolicy;
  readonly futureToleranceMs: number;
  /** A record that lies further beyond the limit is not believed before others confirm it. */
  readonly maxAheadMs: number;
}

/** In place of a time: leave this record out. */
export const leaveOut = Number.NEGATIVE_INFINITY;

export interface Judged {
  /** Cut short at the end that was asked for, or before a record that stops the partition. */
  readonly batch: RecordBatch;
  /** NaN: hand it out, it moves no clock. `leaveOut`: do not. */
  readonly times: readonly number[];
  /** Every record is to be handed out, and has a time; and the latest of these. */
  readonly isPlain: boolean;
  readonly latestMs: number;
  /** The end that was asked for lies in it. */
  readonly isAtEnd: boolean;
  readonly error: QuarantineError | undefined;
}

export function judge(
  batch: RecordBatch,
  options: JudgeOptions,
  known: { readonly nowMs: number; readonly latestMs: number },
  onQuarantined: (record: KafkaRecord, reason: QuarantineReason) => void,
): Judged {
  const { readTime, futureToleranceMs, allowanceMs, quarantine } = options;
  const { nowMs } = known;
  const fromMs = options.fromMs ?? 0;
  const toMs = options.toMs ?? Number.POSITIVE_INFINITY;
  const plainMs = Math.min(nowMs + futureToleranceMs, toMs - 1);
  const { records: all } = batch;
  // A reader that has just seen them saves us a look at every record.
  const ready = readTime === timestampOf ? batch.timestampsMs : undefined;
  const times: number[] = [];
  let { latestMs } = known;
  let isPlain = true;
  let isAtEnd = false;
  let error: QuarantineError | undefined;
  for (let i = 0; i < all.length; i++) {
    const timeMs = ready === undefined ? readTime(all[i]!) : ready[i]!;
    if (timeMs >= fromMs && timeMs <= plainMs) {
      times.push(timeMs);
      if (timeMs > latestMs) latestMs = timeMs;
      continue;
    }
    isPlain = false;
    const reason = doubtOf(timeMs, { nowMs, futureToleranceMs });
    if (reason === null) {
      isAtEnd = timeMs >= toMs + allowanceMs;
      if (isAtEnd) break;
      times.push(leaveOut);
      continue;
    }
    onQuarantined(all[i]!, reason);
    if (quarantine === 'stop') {
      error = new QuarantineError(batch, all[i]!, reason);
      break;
    }
    times.push(standIn(quarantine, latestMs));
  }
  const isWhole = times.length === batch.records.length;
  const records = isWhole ? batch.records : batch.records.slice(0, times.length);
  const nextOffset = isWhole ? batch.nextOffset : batch.records[times.length]!.offset;
  return { batch: { ...batch, records, nextOffset }, times, isPlain, latestMs, isAtEnd, error };
}

/** What a record counts as whose time cannot be believed. */
export function standIn(quarantine: QuarantinePolicy, latestMs: number): number {
  if (quarantine === 'deliver') return Number.NaN;
  return quarantine === 'clamp' ? latestMs : leaveOut; // nothing to clamp to: left out too
}

/** A record's event time cannot be believed, and the policy is to stop there. */
export class QuarantineError extends Error {
  override readonly name = 'QuarantineError';
  readonly code = 'QUARANTINED';
  readonly reason: QuarantineReason;

  constructor({ topic, partition }: PartitionId, record: KafkaRecord, reason: QuarantineReason) {
    super(
      `QUARANTINED: ${topic}/${partition} stops at offset ${record.offset}: its event time is ${meanings[reason]}; set quarantine to skip, clamp or deliver, or mend the record`,
    );
    this.reason = reason;
  }
}

const meanings: Readonly<Record<QuarantineReason, string>> = {
  missing: 'missing',
  negative: 'before 1970',
  future: 'in the future',
  tooFar: 'past what a date can be',
  ahead: 'far ahead of the group, and of the records behind it',
};
