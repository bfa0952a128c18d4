import { expect, test } from 'vitest';
import { TurnQueue } from './turn-queue.ts';

test('turns are taken one after the other, in order', async () => {
  const queue = new TurnQueue();
  const heard: string[] = [];
  const work = (name: string) => async () => {
    heard.push(`${name} begins`);
    await Promise.resolve();
    heard.push(`${name} ends`);
  };

  queue.put('a', work('a'));
  queue.put('b', work('b'));
  await queue.idle();

  expect(heard).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
});

test('a burst under one key is one turn, and what comes while it runs is one more', async () => {
  const queue = new TurnQueue();
  let runs = 0;
  const work = async () => {
    runs += 1;
    if (runs > 1) return;
    for (let i = 0; i < 100; i++) queue.put('key', work);
  };

  for (let i = 0; i < 100; i++) queue.put('key', work);
  await queue.idle();

  // The first had begun when the second was put; those after it found that one waiting.
  expect(runs).toBe(2);
});

test('what is asked is answered, and dropped with a reason when the queue is cleared', async () => {
  const queue = new TurnQueue();
  const running = queue.ask(async () => 1);
  const waiting = queue.ask(async () => 2);

  queue.clear(new Error('resigned'));

  await expect(waiting).rejects.toThrow('resigned');
  expect(await running).toBe(1);
  await expect(
    queue.ask(async () => {
      throw new Error('its own');
    }),
  ).rejects.toThrow('its own');
});

test('a closed queue takes nothing more and has let what ran end', async () => {
  const queue = new TurnQueue();
  let isDone = false;
  queue.put('slow', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    isDone = true;
  });

  await queue.close(new Error('closed'));
  queue.put('late', async () => {
    throw new Error('ran');
  });

  expect(isDone).toBe(true);
  await expect(queue.ask(async () => 1)).rejects.toThrow('closed');
});
