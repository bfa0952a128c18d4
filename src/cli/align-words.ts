/** How `drover align` names groups and rules. */

import { formatDuration, type Rule } from '../align/index.ts';
import type { OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';

export function groupOf(options: OptionValues, word?: string): string {
  const group = word ?? options.group;
  if (typeof group === 'string' && group !== '') return group;
  throw new CommandError('usage', '--group: who reads together?');
}

export function ruleText(rule: Rule): string {
  const step = formatDuration(rule.stepMs);
  if (rule.mode === 'off') return `off, cuts every ${step}`;
  if (rule.mode === 'drift') return `drift of ${formatDuration(rule.driftMs)}, cuts every ${step}`;
  return `period of ${step}${rule.lookAhead > 0 ? `, ${rule.lookAhead} ahead` : ''}`;
}

export function noGroup(group: string): CommandError {
  return new CommandError(
    'refused',
    `${escaped(group)}: no such group; align run --group makes one`,
  );
}
