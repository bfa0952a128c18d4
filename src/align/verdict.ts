/**
 * Whether a time that lies far ahead is wrong, or whether there was a gap: the records behind it tell. Pure.
 */

import { leaveOut } from './judge.ts';

/** What the records behind a record that lies far ahead say of it. */
export type Verdict =
  /** It does not lie far ahead, or those behind it are as far: there was a gap. */
  | 'fits'
  /** Those behind it are back where the partition was: its time is wrong. */
  | 'odd'
  /** Too few are known. */
  | 'unclear';

/** So many records behind it decide. */
const witnessesMax = 3;
/** So many are searched for them: others may have no time at all. */
const searchedMax = 1_000;

/** Of the record at `at`, where it lies at `farMs` or later. Records without a time say nothing. */
export function verdictOf(times: readonly number[], at: number, farMs: number): Verdict {
  if (!(times[at]! >= farMs)) return 'fits';
  const end = Math.min(times.length, at + 1 + searchedMax);
  let [back, far] = [0, 0];
  for (let behind = at + 1; behind < end && back + far < witnessesMax; behind++) {
    const timeMs = times[behind]!;
    if (timeMs >= farMs) far += 1;
    else if (timeMs > leaveOut) back += 1;
  }
  if (back > 0 && back >= far) return 'odd';
  const isKnown = back + far === witnessesMax || end < times.length;
  return isKnown ? 'fits' : 'unclear';
}
