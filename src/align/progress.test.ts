import { expect, test } from 'vitest';
import type { PartitionState } from './group-clock.ts';
import type { Lane } from './lane.ts';
import { Progress } from './progress.ts';

const step = 60;

/** Lanes by name: where each is. */
function setUp(positions: Record<string, number | null>) {
  const lanes = new Map<string, Lane>();
  const fakes: Record<string, { state: PartitionState; positionMs: number | null }> = {};
  for (const [key, positionMs] of Object.entries(positions)) {
    const fake = { state: 'reading' as PartitionState, positionMs, owned: { epoch: 1n } };
    fakes[key] = fake;
    const report = () => ({ ...fake, epoch: 1n, offset: 0n, reached: [] });
    lanes.set(key, Object.assign(fake, { report }) as unknown as Lane);
  }
  const progress = new Progress(lanes);
  const isNews = (key: string) => progress.isNews(key, lanes.get(key)!);
  const move = (key: string, positionMs: number | null) => {
    fakes[key]!.positionMs = positionMs;
    return isNews(key);
  };
  return { lanes, fakes, progress, isNews, move };
}

test('what was never told is news, and then only the slowest’s boundaries are', () => {
  const { progress, isNews, move } = setUp({ a: 10, b: 20 });
  expect(isNews('a')).toBe(true);
  progress.take(step, 60);

  expect([move('a', 50), move('b', 70), move('b', 130)]).toEqual([false, false, false]);
  expect(move('a', 65)).toBe(true);
  progress.take(step, 120);
  expect([move('a', 119), move('a', 120)]).toEqual([false, true]);
});

test('a limit that is no boundary is news as well, once all have reached it', () => {
  const { progress, move } = setUp({ a: 10, b: 20 });
  progress.take(step, 40);

  expect([move('a', 39), move('a', 45), move('b', 40)]).toEqual([false, false, true]);
  progress.take(step, 40);
  expect(move('a', 50)).toBe(false);

  expect(progress.measure(step, 48)).toBe(false);
  expect([move('a', 50), move('b', 48)]).toEqual([false, true]);
});

test('a new state, a first time, and a partition that went are news', () => {
  const { lanes, fakes, progress, isNews, move } = setUp({ a: 10, b: null, c: 5 });
  progress.take(step, 60);
  expect(move('b', 3)).toBe(true);
  progress.take(step, 60);

  fakes.c!.state = 'idle';
  expect(isNews('c')).toBe(true);
  progress.take(step, 60);
  expect(isNews('c')).toBe(false);
  const c = lanes.get('c')!;
  lanes.delete('c');
  expect(progress.isNews('c', c)).toBe(true);
});
