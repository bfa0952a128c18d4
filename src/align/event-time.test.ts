import { expect, test } from 'vitest';
import type { KafkaRecord } from '../kafka/index.ts';
import { durationMs, formatDuration } from './duration.ts';
import { doubtOf, type EventTime, eventTimeOf } from './event-time.ts';
import { ruleOf } from './rule.ts';

const record = (value: string | null, timestampMs: number | null = null): KafkaRecord => ({
  offset: 0n,
  timestampMs,
  key: null,
  value: value === null ? null : Buffer.from(value),
});

// biome-ignore format: a table is read down its columns
const cases: [string, EventTime, KafkaRecord, number][] = [
  ['the record',                'timestamp',                        record(null, 5),                              5],
  ['a field',                   { field: 'ts' },                    record('{"ts":7}'),                           7],
  ['a field within',            { field: 'meta.at' },               record('{"meta":{"at":"1970-01-01T00:00:01Z"}}'), 1_000],
  ['a field in seconds',        { field: 'ts', unit: 's' },         record('{"ts":3}'),                           3_000],
  ['past 2038 in seconds',      { field: 'ts', unit: 's' },         record('{"ts":4102444800}'),                  4_102_444_800_000],
  ['digits as text',            { field: 'ts' },                    record('{"ts":"12"}'),                        12],
  ['a pattern',                 { pattern: /^\[(.*?)\]/g },         record('[1970-01-01T00:00:02Z] hello'),       2_000],
  ['a function',                (r) => Number(r.value),             record('9'),                                  9],
  ['a function that gives a Date', () => new Date(4),               record(null),                                 4],
  ['no field',                  { field: 'ts' },                    record('{}'),                                 Number.NaN],
  ['no JSON',                   { field: 'ts' },                    record('x'),                                  Number.NaN],
  ['no value',                  { field: 'ts' },                    record(null),                                 Number.NaN],
  ['no timestamp',              'timestamp',                        record(null),                                 Number.NaN],
  ['a function that throws',    () => { throw new Error('no'); },   record(null),                                 Number.NaN],
];

test.for(cases)('the time comes from %s', ([, from, given, expected]) => {
  const read = eventTimeOf(from);

  expect(read(given)).toBe(expected);
  expect(read(given)).toBe(expected);
});

test('what cannot have happened is doubted, and says why', () => {
  const now = { nowMs: 1_000, futureToleranceMs: 100 };

  expect(doubtOf(1_100, now)).toBeNull();
  expect(doubtOf(1_101, now)).toBe('future');
  expect(doubtOf(-1, now)).toBe('negative');
  expect(doubtOf(Number.NaN, now)).toBe('missing');
  expect(doubtOf(Number.POSITIVE_INFINITY, now)).toBe('tooFar');
});

test('durations are read as people write them', () => {
  expect(durationMs('period', '60s')).toBe(60_000);
  expect(durationMs('period', '1.5h')).toBe(5_400_000);
  expect(durationMs('period', 250)).toBe(250);
  expect(formatDuration(90_000)).toBe('90s');
  expect(formatDuration(86_400_000)).toBe('1d');
  expect(formatDuration(1_001)).toBe('1001ms');
  for (const wrong of ['', '5 weeks', '-1s', 0, 1.5, Number.NaN, '0s']) {
    expect(() => durationMs('period', wrong)).toThrow(/^period: /);
  }
});

test('rules that make no sense are refused', () => {
  expect(() => ruleOf({ period: '1m', lookAhead: -1 })).toThrow(/lookAhead/);
  expect(() => ruleOf({ drift: '1m', step: '2m' })).toThrow(/step/);
  expect(() => ruleOf({} as never)).toThrow(/mode/);
  expect(() => eventTimeOf({} as never)).toThrow(/eventTime/);
});
