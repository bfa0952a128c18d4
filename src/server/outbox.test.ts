import { expect, test } from 'vitest';
import type { Connection } from './connection.ts';
import { Outbox } from './outbox.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Links that note when they are flushed. */
function outboxWith(flush: (name: string) => void = () => {}) {
  const sent: string[] = [];
  const failures: Error[] = [];
  const outbox = new Outbox({
    flushed: () => {},
    failed: (error) => failures.push(error),
  });
  const link = (name: string) =>
    ({
      inFlight: 0,
      flush: () => {
        flush(name);
        sent.push(name);
      },
    }) as unknown as Connection;
  /** A chunk of this link comes in at that moment, and is answered. */
  const chunk = (name: string, ms = 0) => {
    outbox.chunkBegun(ms);
    outbox.add(link(name));
    outbox.chunkDone(ms);
  };
  return { outbox, sent, failures, chunk };
}

test('where one link speaks at a time, each is answered at once', async () => {
  const { sent, chunk } = outboxWith();
  chunk('a');
  expect(sent).toEqual([]); // it is not yet known that nobody else speaks
  await turn();
  expect(sent).toEqual(['a']);

  chunk('b');
  expect(sent).toEqual(['a', 'b']);
});

test('where several speak at once, all are read before the first is answered', async () => {
  const { sent, chunk } = outboxWith();
  for (let i = 0; i < 3; i++) {
    chunk('a');
    chunk('b');
    expect(sent).toEqual([]);
    await turn();
    expect(sent.sort()).toEqual(['a', 'b']);
    sent.length = 0;
  }
});

test('that others have begun to speak is seen after a while', async () => {
  const { sent, chunk } = outboxWith();
  chunk('a');
  await turn();
  let together = 0;
  for (let i = 0; i < 100; i++) {
    sent.length = 0;
    chunk('a');
    chunk('b');
    if (sent.length === 0) together += 1;
    await turn();
    expect(sent).toHaveLength(2);
  }
  expect(together).toBeGreaterThan(50);
});

test('a turn that takes long answers what it has so far', async () => {
  const { sent, chunk } = outboxWith();
  chunk('a', 0);
  chunk('b', 1.4);
  expect(sent).toEqual([]);
  chunk('c', 1.6);
  expect(sent).toEqual(['b', 'a']);
  await turn();
  expect(sent).toEqual(['b', 'a', 'c']);
});

test('a turn that took long goes on as it began: not one by one', async () => {
  const { sent, chunk } = outboxWith();
  chunk('a', 0);
  chunk('b', 1.6); // a leaves, and that takes a while
  expect(sent).toEqual(['a']);
  chunk('c', 3);
  chunk('d', 4.4);
  expect(sent).toEqual(['a']);
  chunk('e', 4.6);
  expect(sent).toEqual(['a', 'd', 'c', 'b']);
  await turn();
  expect(sent).toEqual(['a', 'd', 'c', 'b', 'e']);
});

test('what is to be said at the end of a batch does not wait for the end of the turn', async () => {
  const { outbox, sent, chunk } = outboxWith();
  chunk('a');
  outbox.flush();
  expect(sent).toEqual(['a']);
  await turn();
  expect(sent).toEqual(['a']);
});

test('a bug at the end of a turn is told of', async () => {
  const { failures, chunk } = outboxWith(() => {
    throw new Error('we are wrong');
  });
  chunk('a');
  await turn();
  expect(failures.map(({ message }) => message)).toEqual(['we are wrong']);
});
