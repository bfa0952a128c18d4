import { expect, test } from 'vitest';
import { limits, type StreamEvents } from './api.ts';
import { Feed } from './feed.ts';

const hello = (run: string): StreamEvents['hello'] => ({
  run,
  link: { state: 'connected', server: null, session: null, sinceMs: 0 },
  nowMs: 0,
});

async function take(stream: ReadableStream<Uint8Array>, count: number): Promise<string[]> {
  const reader = stream.getReader();
  const texts: string[] = [];
  while (texts.length < count) {
    const { value, done } = await reader.read();
    if (done) break;
    texts.push(new TextDecoder().decode(value));
  }
  await reader.cancel();
  return texts;
}

const change = (path: string): StreamEvents['nodes'] => ({
  changes: [{ type: 'created', path, zxid: null, atMs: 0 }],
  zxid: '0x1',
});

test('who comes back is told what it missed, each once and in order', async () => {
  const feed = new Feed();
  for (const name of ['/a', '/b', '/c']) feed.send('nodes', change(name));

  const texts = await take(feed.stream(`${feed.run}-1`, hello(feed.run)), 3);

  expect(texts.map((text) => /"path":"(.*?)"/.exec(text)?.[1])).toEqual([undefined, '/b', '/c']);
});

test('who has seen everything is told nothing twice', async () => {
  const feed = new Feed();
  feed.send('nodes', change('/a'));
  const stream = feed.stream(`${feed.run}-1`, hello(feed.run));
  feed.send('nodes', change('/new'));

  const texts = await take(stream, 2);

  expect(texts[1]).toContain('/new');
});

test('who begins where all stood is told what came since', async () => {
  const feed = new Feed();
  const { lastId } = feed;
  feed.send('nodes', change('/a'));

  const texts = await take(feed.stream(lastId, hello(feed.run)), 2);

  expect(texts[1]).toContain('/a');
});

test('what is not kept any more is a resync, and the last that is kept is not', async () => {
  const feed = new Feed();
  for (let i = 0; i < limits.eventsKept + 10; i++) feed.send('nodes', change(`/${i}`));

  const [, gone] = await take(feed.stream(`${feed.run}-9`, hello(feed.run)), 2);
  const [, kept] = await take(feed.stream(`${feed.run}-10`, hello(feed.run)), 2);

  expect(gone).toContain('event: resync');
  expect(kept).toContain('"/10"');
});

test('a listener that takes nothing is let go, and costs no more', async () => {
  const feed = new Feed();
  const stream = feed.stream(undefined, hello(feed.run));
  const long = change(`/${'x'.repeat(500_000)}`);
  expect(feed.listeners).toBe(1);

  for (let i = 0; i < 20; i++) feed.send('nodes', long);

  expect(feed.listeners).toBe(0);
  const reader = stream.getReader();
  let bytes = 0;
  for (let at = await reader.read(); !at.done; at = await reader.read()) bytes += at.value.length;
  expect(bytes).toBeLessThan(6_000_000);
});

test('a listener that leaves is gone', async () => {
  const feed = new Feed();
  await take(feed.stream(undefined, hello(feed.run)), 1);

  expect(feed.listeners).toBe(0);
});

test('who breaks off between the hello and what it missed is told of it the next time', async () => {
  const feed = new Feed();
  for (const name of ['/a', '/b']) feed.send('nodes', change(name));

  const [first] = await take(feed.stream(`${feed.run}-1`, hello(feed.run)), 1);
  // As a browser does: an event without a number leaves the last one as it is.
  const last = /^id: (.*)$/m.exec(first!)?.[1] ?? `${feed.run}-1`;
  feed.send('nodes', change('/c'));
  const texts = await take(feed.stream(last, hello(feed.run)), 3);

  expect(texts.map((text) => /"path":"(.*?)"/.exec(text)?.[1])).toEqual([undefined, '/b', '/c']);
});
