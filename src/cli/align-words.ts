/** How `drover align` names groups, rules and moments. */

import { durationMs, formatDuration, type QuarantineReason, type Rule } from '../align/index.ts';
import type { OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';

export function groupOf(options: OptionValues, word?: string): string {
  const group = word ?? options.group;
  if (typeof group === 'string' && group !== '') return group;
  throw new CommandError('usage', '--group: who reads together?');
}

export function ruleText(rule: Rule): string {
  const { holdMs } = rule;
  const held = holdMs === undefined ? '' : `, held by hand at ${new Date(holdMs).toISOString()}`;
  return `${paceText(rule)}${held}`;
}

function paceText(rule: Rule): string {
  const step = formatDuration(rule.stepMs);
  if (rule.mode === 'off') return `off, cuts every ${step}`;
  if (rule.mode === 'drift') return `drift of ${formatDuration(rule.driftMs)}, cuts every ${step}`;
  return `period of ${step}${rule.lookAhead > 0 ? `, ${rule.lookAhead} ahead` : ''}`;
}

/** Which times can be believed; only what was given. */
export function beliefOf({ future, maxAhead }: OptionValues) {
  return {
    ...(future !== undefined && { futureTolerance: durationMs('--future', String(future), 0) }),
    ...(maxAhead !== undefined && {
      maxAhead: maxAhead === 'off' ? (false as const) : durationMs('--max-ahead', String(maxAhead)),
    }),
  };
}

/** Why a record is left out, for people. */
export const reasonTexts: Readonly<Record<QuarantineReason, string>> = {
  missing: 'no time',
  negative: 'a time before 1970',
  future: 'a time in the future',
  tooFar: 'a time past what a date can be',
  ahead: 'a time far ahead of the records behind it',
};

export function noGroup(group: string): CommandError {
  return new CommandError(
    'refused',
    `${escaped(group)}: no such group; align run --group makes one`,
  );
}

export function momentOf(flag: string, given: OptionValues[string]): number | null {
  if (given === undefined) return null;
  const text = String(given);
  const ms = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new CommandError('usage', `${flag}: a date, or milliseconds since 1970, is wanted`);
}

/** What of the data counts: from then on, and before then. */
export interface Window {
  readonly fromMs?: number;
  readonly toMs?: number;
}

export function windowOf(options: OptionValues): Window {
  const [fromMs, toMs] = [momentOf('--from', options.from), momentOf('--to', options.to)];
  if (fromMs !== null && toMs !== null && toMs <= fromMs) {
    throw new CommandError('usage', '--to: is not after --from');
  }
  return { ...(fromMs !== null && { fromMs }), ...(toMs !== null && { toMs }) };
}
