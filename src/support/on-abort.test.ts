import { expect, test } from 'vitest';
import { onAbort } from './on-abort.ts';

test('everyone who waits hears of it, once', () => {
  const source = new AbortController();
  const heard: number[] = [];
  for (let i = 0; i < 100; i++) onAbort(source.signal, () => heard.push(i));

  source.abort();
  source.abort();

  expect(heard).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

test('who took it back hears nothing, and with the last the listener goes', () => {
  const source = new AbortController();
  const { signal } = source;
  let added = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = ((...args: Parameters<typeof add>) => {
    added += 1;
    add(...args);
  }) as typeof add;
  signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
    added -= 1;
    remove(...args);
  }) as typeof remove;
  const heard: string[] = [];

  const first = onAbort(signal, () => heard.push('first'));
  const second = onAbort(signal, () => heard.push('second'));
  expect(added).toBe(1);
  first();
  first();
  expect(added).toBe(1);
  second();
  expect(added).toBe(0);
  source.abort();

  expect(heard).toEqual([]);
});

test('the same function may wait twice', () => {
  const source = new AbortController();
  let heard = 0;
  const hear = () => {
    heard += 1;
  };
  const first = onAbort(source.signal, hear);
  onAbort(source.signal, hear);

  first();
  source.abort();

  expect(heard).toBe(1);
});
