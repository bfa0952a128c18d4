import { expect, test } from 'vitest';
import { Feed } from './feed.ts';

async function all<T>(feed: Feed<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of feed) values.push(value);
  return values;
}

test('what was told before the end is read, in its order', async () => {
  const feed = new Feed<number>({ of: 'numbers' });
  const early = feed.next();
  for (const value of [1, 2, 3]) feed.push(value);
  feed.end();

  expect(await early).toEqual({ done: false, value: 1 });
  expect(await all(feed)).toEqual([2, 3]);
});

test('an error is thrown once, after what came before it', async () => {
  const feed = new Feed<number>({ of: 'numbers' });
  feed.push(1);
  feed.end(new Error('no more'));
  feed.end(new Error('ignored'));

  expect(await feed.next()).toEqual({ done: false, value: 1 });
  await expect(feed.next()).rejects.toThrow('no more');
  expect(await feed.next()).toEqual({ done: true, value: undefined });
});

test('a reader that waits is told of the end', async () => {
  const feed = new Feed<number>({ of: 'numbers' });
  const [first, second] = [feed.next(), feed.next()];

  feed.end(new Error('gone'));

  await expect(first).rejects.toThrow('gone');
  expect(await second).toEqual({ done: true, value: undefined });
});

test('a reader that is too slow hears of it, and nothing is dropped in silence', async () => {
  const feed = new Feed<number>({ of: '/path', bufferMax: 2 });
  for (const value of [1, 2, 3]) feed.push(value);

  await expect(feed.next()).rejects.toMatchObject({
    code: 'WATCH_OVERFLOW',
    message: '/path: more than 2 changes wait to be read; read faster, or set bufferMax',
  });
});

test('leaving the loop ends the feed and tells its source', async () => {
  let left = 0;
  const feed = new Feed<number>({ of: 'numbers', onReturn: async () => void left++ });
  feed.push(1);
  feed.push(2);

  for await (const value of feed) {
    expect(value).toBe(1);
    break;
  }
  feed.push(3);

  expect(left).toBe(1);
  expect(await all(feed)).toEqual([]);
});
