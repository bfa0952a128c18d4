import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Pace, paced, sortInTurns } from './pace.ts';

/** How often others had their turn while it ran. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return turns;
}

const busy = (ms: number) => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

test('a list is sorted as a plain sort would, equals in the order they had', async () => {
  const pair = fc.tuple(fc.nat(20), fc.nat());
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string()), fc.array(pair), async (texts, pairs) => {
      const byFirst = (a: readonly number[], b: readonly number[]) => a[0]! - b[0]!;
      expect(await sortInTurns(texts)).toEqual([...texts].sort());
      expect(await sortInTurns(pairs, byFirst)).toEqual([...pairs].sort(byFirst));
    }),
  );
});

test('longer lists than one stretch are sorted whole, and the list that was given stays as it was', async () => {
  const names = Array.from({ length: 30_000 }, (_, i) => `n${(i * 7919) % 30_000}`);
  const before = [...names];

  expect(await sortInTurns(names)).toEqual([...names].sort());
  expect(names).toEqual(before);
});

test('others have their turn while work goes on in stretches', async () => {
  const pieces = 30;
  const pace = new Pace();
  const turns = await turnsDuring(async () => {
    for (let piece = 0; piece < pieces; piece += 1) {
      busy(3);
      await pace.keep();
    }
  });

  // One for every few pieces, however slow the machine; without a pace there would be none.
  expect(turns).toBeGreaterThanOrEqual(pieces / 4);
});

test('what is there at once is still handed on with turns between', async () => {
  async function* atOnce() {
    for (let at = 0; at < 30; at += 1) yield at;
  }
  const seen: number[] = [];
  const turns = await turnsDuring(async () => {
    for await (const one of paced(atOnce())) {
      busy(3);
      seen.push(one);
    }
  });

  expect(seen).toHaveLength(30);
  expect(turns).toBeGreaterThanOrEqual(7);
});
