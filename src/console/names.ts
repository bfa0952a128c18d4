/**
 * Names of children, sorted and filtered, a little at a time: 300,000 of them must not hold up
 * everybody else who waits for this process.
 *
 * In: a list that the server gave, in no order. Out: a new list. Between stretches of a few
 * milliseconds the event loop has its turn.
 */

import { Pace, sortInTurns } from '../support/index.ts';

export type NameOrder = 'name' | '-name' | 'sequence' | '-sequence';

/** By code unit, which is the same everywhere and fast; by the number at the end where there is one. */
const comparisons: Readonly<Record<NameOrder, (a: string, b: string) => number>> = {
  name: byName,
  '-name': (a, b) => byName(b, a),
  sequence: bySequence,
  '-sequence': (a, b) => bySequence(b, a),
};

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function bySequence(a: string, b: string): number {
  return sequenceOf(a) - sequenceOf(b) || byName(a, b);
}

/** ZooKeeper's ten digits, a minus among them once they ran over; names without come first. */
function sequenceOf(name: string): number {
  let value = 0;
  let unit = 1;
  let at = name.length - 1;
  for (let digits = 0; digits < 10; digits += 1, at -= 1, unit *= 10) {
    const digit = at < 0 ? -1 : name.charCodeAt(at) - 48;
    if (digit >= 0 && digit <= 9) value += digit * unit;
    else if (digits === 9 && (at < 0 || name[at] === '-')) return at < 0 ? value : -value;
    else return Number.NEGATIVE_INFINITY;
  }
  return value;
}

export async function sortNames(names: readonly string[], order: NameOrder): Promise<string[]> {
  // Without a function to call for each pair, and in the same order: by code unit.
  return order === 'name' ? sortInTurns(names) : sortInTurns(names, comparisons[order]);
}

/** Where a name stands in a list that `sortNames` gave; null where it does not. */
export function placeIn(names: readonly string[], wanted: string, order: NameOrder): number | null {
  const compare = comparisons[order];
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(names[middle]!, wanted) < 0) low = middle + 1;
    else high = middle;
  }
  return names[low] === wanted ? low : null;
}

/** The letters of `wanted` in order, somewhere in `name`: 0 is no match, more is better. */
export function likeness(name: string, wanted: string): number {
  if (wanted === '') return 1;
  if (name === wanted) return 3_000;
  const hay = name.toLowerCase();
  const needle = wanted.toLowerCase();
  const found = hay.indexOf(needle);
  if (found === 0) return 2_000 - hay.length / 100;
  if (found > 0) return 1_000 - found - hay.length / 100;
  let from = 0;
  let gaps = 0;
  for (const letter of needle) {
    const next = hay.indexOf(letter, from);
    if (next === -1) return 0;
    gaps += next - from;
    from = next + letter.length;
  }
  return Math.max(1, 500 - gaps);
}

/** Those most like the text, the best first; of equals the first in order. */
export async function likeNames(
  names: readonly string[],
  wanted: string,
  most: number,
): Promise<{ readonly name: string; readonly points: number }[]> {
  const pace = new Pace();
  let best: { name: string; points: number }[] = [];
  for (const [at, name] of names.entries()) {
    const points = likeness(name, wanted);
    if (points > 0) best.push({ name, points });
    if (best.length >= 4 * most + 64) best = top(best, most);
    if ((at & 0xfff) === 0) await pace.keep();
  }
  return top(best, most);
}

function top<T extends { readonly points: number }>(found: readonly T[], most: number): T[] {
  return found.toSorted((a, b) => b.points - a.points).slice(0, most);
}

/** Those that hold the text, whatever the case. */
export async function filterNames(names: readonly string[], text: string): Promise<string[]> {
  const wanted = text.toLowerCase();
  const pace = new Pace();
  const found: string[] = [];
  for (const [at, name] of names.entries()) {
    if (name.toLowerCase().includes(wanted)) found.push(name);
    if ((at & 0xfff) === 0) await pace.keep();
  }
  return found;
}
