/**
 * Long work in short stretches: whoever else waits for this process has its turn in between.
 *
 * In: work that is done piece by piece, each short. Out: the same result, a little later. A stretch lasts
 * a few milliseconds; a single piece that lasts longer is not cut.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

const stretchMs = 8;
/** Sorted at once in about a millisecond or two. */
const chunkSize = 4_096;

export class Pace {
  #startMs = performance.now();

  /** Asked after each piece, or after a few of them: waits a turn when the stretch is over. */
  async keep(): Promise<void> {
    if (performance.now() - this.#startMs < stretchMs) return;
    await nextTurn();
    this.#startMs = performance.now();
  }
}

/** What comes, one by one, with a turn for others between stretches: replies may come by the thousand at once. */
export async function* paced<T>(source: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  const pace = new Pace();
  for await (const one of source) {
    yield one;
    await pace.keep();
  }
}

/**
 * A sorted copy; without `compare` of text, by code unit. Equals stand in the order they had. Merges sorted
 * stretches of growing length, as a merge sort does from below.
 */
export function sortInTurns(list: readonly string[]): Promise<string[]>;
export function sortInTurns<T>(list: readonly T[], compare: (a: T, b: T) => number): Promise<T[]>;
export async function sortInTurns<T>(
  list: readonly T[],
  compare?: (a: T, b: T) => number,
): Promise<T[]> {
  const order = compare ?? byCodeUnit;
  const pace = new Pace();
  let from: T[] = [];
  for (let at = 0; at < list.length; at += chunkSize) {
    // Without a function to call for each pair text is sorted faster.
    for (const one of list.slice(at, at + chunkSize).sort(compare)) from.push(one);
    await pace.keep();
  }
  let to = new Array<T>(from.length);
  for (let width = chunkSize; width < from.length; width *= 2) {
    for (let low = 0; low < from.length; low += 2 * width) {
      const middle = Math.min(low + width, from.length);
      const high = Math.min(low + 2 * width, from.length);
      let [left, right] = [low, middle];
      for (let at = low; at < high; at++) {
        const takesLeft = left < middle && (right >= high || order(from[left]!, from[right]!) <= 0);
        to[at] = takesLeft ? from[left++]! : from[right++]!;
        if ((at & 0xfff) === 0) await pace.keep();
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

function byCodeUnit(a: unknown, b: unknown): number {
  return (a as string) < (b as string) ? -1 : (a as string) > (b as string) ? 1 : 0;
}
