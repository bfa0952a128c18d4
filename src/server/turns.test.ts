import { expect, test } from 'vitest';
import { type Frame, type Turn, Turns } from './turns.ts';

const frame = (name: string, { writes = false, replyBytes = 0 } = {}): Frame => ({
  kind: 'frame',
  bytes: Buffer.from(name),
  ids: [],
  startMs: 0,
  replyBytes,
  work: 0,
  writes,
});
const nameOf = (turn: Turn | undefined) =>
  turn?.kind === 'frame' ? String(turn.bytes) : (turn?.kind ?? 'none');

test('the first comes first, however many there were, and weighs what it is', () => {
  const turns = new Turns();
  const met: string[] = [];
  for (let i = 0; i < 5_000; i++) turns.add(frame(String(i).padStart(4, '0'), { replyBytes: 10 }));
  expect([turns.length, turns.bytes, turns.owedBytes]).toEqual([5_000, 20_000, 50_000]);

  while (turns.length > 0) {
    met.push(nameOf(turns.head));
    turns.shift();
    if (met.length === 3_000) turns.add(frame('late'));
  }

  expect(met.slice(0, -1)).toEqual([...met.slice(0, -1)].sort());
  expect(met.at(-1)).toBe('late');
  expect([turns.bytes, turns.owedBytes, turns.head]).toEqual([0, 0, undefined]);
});

test('what comes of a write that was held back stands in its place; what comes of none is nothing', () => {
  const turns = new Turns();
  for (const name of ['w1', 'w2', 'w3']) turns.add(frame(name, { writes: true }));
  turns.add(frame('read'));
  turns.add(frame('w4', { writes: true }));
  const handed: string[] = [];
  expect(turns.holdsWrites).toBe(true);

  turns.handOn((write) => {
    handed.push(nameOf(write));
    expect(turns.isHanding).toBe(true);
    if (nameOf(write) !== 'w2') turns.add({ kind: 'barrier', zxid: handed.length });
    return true;
  });

  expect(handed).toEqual(['w1', 'w2', 'w3']);
  expect([turns.isHanding, turns.holdsWrites, turns.length]).toEqual([false, true, 5]);
  const left: string[] = [];
  for (; turns.length > 0; turns.shift()) left.push(nameOf(turns.head));
  expect(left).toEqual(['barrier', 'answer', 'barrier', 'read', 'w4']);
  expect(turns.holdsWrites).toBe(false);
});

test('a link that ends while a write is handed on leaves nothing behind', () => {
  const turns = new Turns();
  for (const name of ['w1', 'w2']) turns.add(frame(name, { writes: true }));

  turns.handOn(() => {
    turns.clear();
    return false;
  });

  expect([turns.length, turns.bytes, turns.isHanding, turns.holdsWrites]).toEqual([
    ...[0, 0],
    ...[false, false],
  ]);
});
