import { expect, test } from 'vitest';
import type { Contender } from './contenders.ts';
import { LockTimeoutError } from './lock-timeout-error.ts';

const holder = (data: string, ageMs = 12_400): Contender => ({
  path: '/l/x',
  name: 'x',
  sessionId: 0x1000n,
  data: Buffer.from(data),
  ageMs,
  fencingToken: 1n,
});
const message = (holders: Contender[], waiting: number | undefined) =>
  new LockTimeoutError('/l', 50, holders, waiting).message;

test('says who holds it, for how long, and how many wait', () => {
  expect(message([holder('host-a:4711')], 3)).toBe(
    '/l held by host-a:4711 (session 0x1000) for 12.4 s, 3 waiting; gave up after 50 ms',
  );
  expect(
    message(
      ['a', 'b', 'c', 'd', 'e'].map((who) => holder(who)),
      1,
    ),
  ).toMatch(/c \(.* and 2 more, 1 waiting/);
  expect(message([holder('')], 1)).toMatch(/held by somebody who left no name \(session 0x1000\)/);
});

test('says so when nobody holds it, or nobody could be asked', () => {
  expect(message([], 1)).toMatch(/^\/l is held by nobody at this moment, 1 waiting/);
  expect(message([], undefined)).toMatch(/no server could be asked/);
});

test('what another process wrote is printed as text that does no harm', () => {
  expect(message([holder('\u001b[2J\n')], 1)).toContain('\\u001b[2J\\u000a');
});
