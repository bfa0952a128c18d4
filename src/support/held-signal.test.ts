import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { HeldSignal } from './held-signal.ts';
import { onAbort } from './on-abort.ts';

/** Something that is held until `isOver` is set, which nobody notices before it is looked at. */
function held() {
  const world = { isOver: false, looks: 0 };
  const reason = new Error('over');
  const one: HeldSignal = new HeldSignal(() => {
    world.looks += 1;
    if (world.isOver) one.abort(reason);
  });
  return { world, reason, one, signal: one.signal };
}

test('a signal that was kept tells the truth, though nothing has noticed the end', () => {
  const { world, reason, signal } = held();
  expect(signal.aborted).toBe(false);
  expect(() => signal.throwIfAborted()).not.toThrow();

  world.isOver = true;

  expect(signal.aborted).toBe(true);
  expect(signal.reason).toBe(reason);
  expect(() => signal.throwIfAborted()).toThrow(reason);
});

test.each([
  [
    'throwIfAborted',
    (signal: AbortSignal) => expect(() => signal.throwIfAborted()).toThrow('over'),
  ],
  ['reason', (signal: AbortSignal) => expect(signal.reason).toEqual(new Error('over'))],
])('%s looks by itself, without `aborted` having been asked', (_, ask) => {
  const { world, signal } = held();
  world.isOver = true;

  ask(signal);
});

test('listeners hear of the end once, when it is found by asking', () => {
  const { world, signal } = held();
  const heard = vi.fn();
  signal.addEventListener('abort', heard);
  signal.onabort = heard;

  world.isOver = true;
  void signal.aborted;
  void signal.aborted;

  expect(heard).toHaveBeenCalledTimes(2);
});

test('the owner learns whether it was aborted without a look', () => {
  const { world, one } = held();

  expect(one.isAborted).toBe(false);
  one.abort();
  expect(one.isAborted).toBe(true);
  expect(world.looks).toBe(0);
});

test('it is an AbortSignal to everything that takes one', async () => {
  const { world, reason, signal } = held();
  expect(signal).toBeInstanceOf(AbortSignal);
  world.isOver = true;

  await expect(sleep(60_000, undefined, { signal })).rejects.toMatchObject({ cause: reason });
  await expect(fetch('http://127.0.0.1:1/', { signal })).rejects.toBe(reason);
});

test('a combined signal does not look, and follows when the source is asked', () => {
  const { world, reason, signal } = held();
  const combined = AbortSignal.any([signal, new AbortController().signal]);
  world.isOver = true;

  expect(combined.aborted).toBe(false);
  expect(signal.aborted).toBe(true);
  expect(combined.aborted).toBe(true);
  expect(combined.reason).toBe(reason);
});

test('combined signals can be combined again after an end that nobody has noticed', () => {
  const { world, signal } = held();
  const combined = AbortSignal.any([signal]);
  world.isOver = true;

  const again = AbortSignal.any([combined, new AbortController().signal]);

  expect(signal.aborted).toBe(true);
  expect(again.aborted).toBe(true);
});

test('an abort that follows from the look itself is no endless circle', () => {
  const one: HeldSignal = new HeldSignal(() => {
    if (!one.isAborted) one.abort(new Error('over'));
  });
  const seen: boolean[] = [];
  one.signal.addEventListener('abort', () => seen.push(one.signal.aborted));

  expect(one.signal.aborted).toBe(true);
  expect(seen).toEqual([true]);
});

test.each([
  [
    'a listener',
    (signal: AbortSignal, heard: () => void) => signal.addEventListener('abort', heard),
  ],
  [
    'onabort',
    (signal: AbortSignal, heard: () => void) => {
      signal.onabort = heard;
    },
  ],
  ['onAbort', (signal: AbortSignal, heard: () => void) => void onAbort(signal, heard)],
])('%s that is added after an end that nobody has noticed hears of it', (_, add) => {
  const { world, signal } = held();
  const heard = vi.fn();
  world.isOver = true;

  add(signal, heard);
  void signal.aborted;

  expect(heard).toHaveBeenCalledOnce();
});

test('signals with listeners are not kept in memory after their end', async () => {
  const source = `
    import { HeldSignal } from ${JSON.stringify(new URL('./held-signal.ts', import.meta.url).href)};
    let freed = 0;
    const registry = new FinalizationRegistry(() => (freed += 1));
    for (let i = 0; i < 1_000; i++) {
      const one = new HeldSignal(() => {});
      one.signal.addEventListener('abort', () => {});
      registry.register(one.signal);
      one.abort();
    }
    for (let turns = 0; turns < 100 && freed < 900; turns++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    console.log(freed >= 900 ? 'freed' : freed);`;
  const args = ['--expose-gc', '--import', 'tsx', '--input-type=module', '--eval', source];
  const { stdout } = await promisify(execFile)(process.execPath, args);

  expect(stdout.trim()).toBe('freed');
});
