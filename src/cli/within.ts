/** Numbers that are given by a flag. Apart from all else, since what serves needs it and little more. */

import type { OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';

/** NaN for what is empty too, a variable that nobody set: JavaScript makes a 0 of it. */
export function numberIn(given: OptionValues[string]): number {
  return typeof given === 'string' && given.trim() !== '' ? Number(given) : Number.NaN;
}

export function within(
  given: OptionValues[string],
  flag: string,
  min: number,
  max: number,
  unless: number,
): number {
  if (given === undefined) return unless;
  const value = numberIn(given);
  if (Number.isFinite(value) && value >= min && value <= max) return value;
  throw new CommandError('usage', `${flag}: a number from ${min} to ${max} is wanted`);
}
