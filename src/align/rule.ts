/**
 * The rule by which the limit moves, and the boundaries at which the group is in step.
 *
 *   period   limit = end of the period that the slowest is in, and `lookAhead` periods more
 *   drift    limit = where the slowest is, and `driftMs` more
 *   off      no limit; cuts are still made
 *
 *          0        P       2P       3P       4P          boundaries: multiples of the step, from 1970 on
 *          |--------|--------|--------|--------|
 *   slowest ─────────────^            |                   period, lookAhead 0: limit 2P
 *                            ^ limit                      period, lookAhead 1: limit 3P
 *
 * Beside each of them a hold, set by people: the limit goes up to there and no further, and nothing is
 * cut or called beyond it, nor is the group ever at its end, until it is lifted. A limit that lies beyond
 * a hold stays where it is.
 *
 * Pure. In: the rule, where the slowest is. Out: a limit. Whoever applies it never lets it go back.
 */

import { ArgumentError } from '../client/index.ts';
import { type Duration, durationMs } from './duration.ts';

export type Rule = Pace & {
  /** Nobody goes beyond this moment of event time. None: nobody holds it by hand. */
  readonly holdMs?: number;
};

export type Pace =
  | { readonly mode: 'period'; readonly stepMs: number; readonly lookAhead: number }
  | { readonly mode: 'drift'; readonly stepMs: number; readonly driftMs: number }
  | { readonly mode: 'off'; readonly stepMs: number };

export type RuleInput =
  /** Everybody waits at the end of a period, or `lookAhead` periods later. 0 unless said. */
  | { readonly period: Duration; readonly lookAhead?: number }
  /** Nobody is ahead of the slowest by more. Cuts are made every `step`: a quarter unless said. */
  | { readonly drift: Duration; readonly step?: Duration }
  /** Nobody waits. Cuts are made every `step`. */
  | { readonly off: true; readonly step: Duration };

export function ruleOf(input: RuleInput): Pace {
  if ('period' in input) {
    const { lookAhead = 0 } = input;
    if (!Number.isInteger(lookAhead) || lookAhead < 0 || lookAhead > lookAheadMax) {
      const wanted = `a whole number from 0 to ${lookAheadMax} is wanted`;
      throw new ArgumentError('lookAhead', `${wanted}, not ${lookAhead}`);
    }
    return { mode: 'period', stepMs: durationMs('period', input.period), lookAhead };
  }
  if ('drift' in input) {
    const driftMs = durationMs('drift', input.drift);
    const quarter = Math.max(1, Math.floor(driftMs / 4));
    const stepMs = input.step === undefined ? quarter : durationMs('step', input.step);
    if (stepMs > driftMs) throw new ArgumentError('step', 'is longer than drift');
    return { mode: 'drift', stepMs, driftMs };
  }
  if ('off' in input) return { mode: 'off', stepMs: durationMs('step', input.step) };
  throw new ArgumentError('mode', 'one of { period }, { drift }, { off } is wanted');
}

/** Each period that is open costs an offset for each partition. */
const lookAheadMax = 1_000;

/** The last boundary that is not after this moment. */
export function boundaryAt(stepMs: number, timeMs: number): number {
  return Math.floor(timeMs / stepMs) * stepMs;
}

/** The next boundary after this moment: the end of the period that it is in. */
export function boundaryAfter(stepMs: number, timeMs: number): number {
  return boundaryAt(stepMs, timeMs) + stepMs;
}

/** The rule with this hold in place of its own, or with none. */
export function withHold(rule: Rule, holdMs: number | null): Rule {
  const { holdMs: _, ...pace } = rule;
  return holdMs === null ? pace : { ...pace, holdMs };
}

/** How far the limit may go at all, where it stands at `limitMs`: a hold takes nothing back. */
export function ceilingOf({ holdMs }: Rule, limitMs: number | null): number {
  if (holdMs === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(holdMs, limitMs ?? Number.NEGATIVE_INFINITY);
}

/** Whether the limit has come to where people hold it. */
export function isPaused({ holdMs }: Rule, limitMs: number | null): boolean {
  return holdMs !== undefined && limitMs !== null && limitMs >= holdMs;
}

/** What the rule allows when the slowest stands here, but for a hold. */
export function limitFor(rule: Rule, slowestMs: number): number {
  if (rule.mode === 'drift') return slowestMs + rule.driftMs;
  const lookAhead = rule.mode === 'period' ? rule.lookAhead : 0;
  return boundaryAfter(rule.stepMs, slowestMs) + lookAhead * rule.stepMs;
}
