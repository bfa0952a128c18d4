/**
 * When a record's event happened: from the record's own timestamp, a field of its JSON, a part of its
 * text, or a function of the caller's. And whether that can be believed.
 *
 * In: a record. Out: milliseconds since 1970, or why there is none. The calendar is asked for one thing
 * here: what is later than now and a tolerance cannot have happened, and would stop its partition until
 * the rest of the world has got there.
 */

import { ArgumentError } from '../client/index.ts';
import type { KafkaRecord } from '../kafka/index.ts';

export type EventTime =
  /** As the producer or the broker wrote it. */
  | 'timestamp'
  /** A field of the value, which is JSON: `ts`, or `meta.ts`. Numbers are milliseconds unless `unit` says. */
  | { readonly field: string; readonly unit?: 'ms' | 's' }
  /** The first group of a pattern in the value's text: a number, or a date. */
  | { readonly pattern: RegExp; readonly unit?: 'ms' | 's' }
  | ((record: KafkaRecord) => number | Date | string | null | undefined);

export type QuarantineReason =
  /** There is none, or it is no time. */
  | 'missing'
  /** Before 1970. */
  | 'negative'
  /** Later than now and the tolerance. */
  | 'future'
  /** Past what a date can be. */
  | 'tooFar'
  /** Further ahead of the group than `maxAhead`, while the records behind it in its partition are not. */
  | 'ahead';

/** `NaN` where there is none. Never throws: what the caller's function throws counts as none. */
export type ReadTime = (record: KafkaRecord) => number;

/** The record's own. */
export const timestampOf: ReadTime = ({ timestampMs }) => timestampMs ?? Number.NaN;

export function eventTimeOf(from: EventTime): ReadTime {
  if (from === 'timestamp') return timestampOf;
  if (typeof from === 'function') return guarded((record) => timeOf(from(record), 1));
  const wanted = "'timestamp', { field }, { pattern } or a function is wanted";
  if (typeof from !== 'object' || from === null) throw new ArgumentError('eventTime', wanted);
  const scale = from.unit === 's' ? 1_000 : 1;
  if ('field' in from && typeof from.field === 'string' && from.field !== '') {
    const names = from.field.split('.');
    return guarded(({ value }) => {
      let at: unknown = value === null ? null : JSON.parse(value.toString('utf8'));
      for (const name of names) at = (at as Record<string, unknown> | null | undefined)?.[name];
      return timeOf(at, scale);
    });
  }
  if ('pattern' in from && from.pattern instanceof RegExp) {
    // A pattern that remembers where it stopped would miss every other line.
    const pattern = new RegExp(from.pattern.source, from.pattern.flags.replace(/[gy]/g, ''));
    return guarded(({ value }) => timeOf(pattern.exec(value?.toString('utf8') ?? '')?.[1], scale));
  }
  throw new ArgumentError('eventTime', wanted);
}

function guarded(read: ReadTime): ReadTime {
  return (record) => {
    try {
      return read(record);
    } catch {
      return Number.NaN; // quarantined as missing, which tells the record and so the reason
    }
  };
}

function timeOf(value: unknown, scale: number): number {
  if (typeof value === 'number') return value * scale;
  if (typeof value === 'bigint') return Number(value) * scale;
  if (value instanceof Date) return value.getTime();
  if (typeof value !== 'string' || value.trim() === '') return Number.NaN;
  const number = Number(value);
  return Number.isFinite(number) ? number * scale : Date.parse(value);
}

/** The last moment that a Date can be. */
const timeMaxMs = 8.64e15;

/** Why a time cannot be believed; null when it can. */
export function doubtOf(
  timeMs: number,
  { nowMs, futureToleranceMs }: { readonly nowMs: number; readonly futureToleranceMs: number },
): QuarantineReason | null {
  if (Number.isNaN(timeMs)) return 'missing';
  if (timeMs < 0) return 'negative';
  if (timeMs > timeMaxMs) return 'tooFar';
  return timeMs > nowMs + futureToleranceMs ? 'future' : null;
}
