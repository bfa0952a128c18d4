/** Stretches of time as people write them: 250, '250ms', '60s', '5m', '1h', '1d'. Out: milliseconds. */

import { ArgumentError } from '../client/index.ts';

export type Duration = number | string;

// biome-ignore format: a table is read down its columns
const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s:  1_000,
  m:  60_000,
  h:  3_600_000,
  d:  86_400_000,
};

/** Whole milliseconds, at least `minMs`. `argument` is who is blamed. */
export function durationMs(argument: string, input: Duration, minMs = 1): number {
  const ms = typeof input === 'number' ? input : parse(input);
  if (ms === undefined || !Number.isSafeInteger(ms) || ms < minMs) {
    const least = minMs === 0 ? '0 or more' : `${minMs} or more`;
    const wanted = `whole milliseconds, ${least}, or text such as 250ms, 60s, 5m, 1h, 1d`;
    throw new ArgumentError(argument, `${wanted} is wanted, not ${String(input)}`);
  }
  return ms;
}

function parse(text: string): number | undefined {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$/.exec(text);
  if (found === null) return undefined;
  return Math.round(Number(found[1]) * unitsMs[found[2] ?? 'ms']!);
}

/** The largest unit that says it exactly: 90000 is 90s, 86400000 is 1d. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    if (ms >= unitsMs[unit]! && ms % unitsMs[unit]! === 0) return `${ms / unitsMs[unit]!}${unit}`;
  }
  return `${ms}ms`;
}
