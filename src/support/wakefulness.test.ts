import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { Wakefulness } from './wakefulness.ts';

function start(cores = 2) {
  const clock = new ManualClock();
  const wakefulness = new Wakefulness(clock, cores);
  const sleeps = async () => {
    clock.advance(1);
    await turn();
    await turn();
    return !wakefulness.isAwake;
  };
  /** How many answers it takes until it stays awake again. */
  const touchesUntilAwake = () => {
    for (let touches = 1; ; touches += 1) {
      wakefulness.touch(0.1);
      if (wakefulness.isAwake) return touches;
    }
  };
  return { clock, wakefulness, sleeps, touchesUntilAwake };
}

test('it stays awake while answer follows on answer, and sleeps when none does', async () => {
  const { clock, wakefulness, sleeps } = start();
  for (let i = 0; i < 5; i += 1) {
    wakefulness.touch(0.1);
    clock.advance(0.06);
    await turn();
    expect(wakefulness.isAwake).toBe(true);
  }
  expect(await sleeps()).toBe(true);
});

test('each time that was for nothing makes it rarer, up to a bound; one that was not, common again', async () => {
  const { wakefulness, sleeps, touchesUntilAwake } = start();
  const touches: number[] = [];
  for (let i = 0; i < 12; i += 1) {
    touches.push(touchesUntilAwake());
    expect(await sleeps()).toBe(true);
  }
  expect(touches).toEqual([1, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, 1025]);

  touchesUntilAwake();
  wakefulness.touch(0.1); // somebody did ask again
  expect(await sleeps()).toBe(true);
  expect(touchesUntilAwake()).toBe(3);
});

test('what is expected later is looked for longer, by the next touch alone', async () => {
  const { clock, wakefulness, sleeps } = start();
  const awakeAfter = async (ms: number) => {
    clock.advance(ms);
    await turn();
    return wakefulness.isAwake;
  };
  wakefulness.expect(0.4);
  wakefulness.touch(0.1);
  expect(await awakeAfter(0.3)).toBe(true);
  wakefulness.touch(0.1);
  expect(await awakeAfter(0.2)).toBe(false);
  expect(await sleeps()).toBe(true);
});

test('a clock that stands still does not keep it awake for ever', async () => {
  const { wakefulness } = start();
  wakefulness.touch(0.1);
  await expect.poll(() => wakefulness.isAwake, { interval: 1 }).toBe(false);
});

test('with one core it never stays awake', () => {
  const { wakefulness } = start(1);
  wakefulness.touch(0.1);
  expect(wakefulness.isAwake).toBe(false);
});
