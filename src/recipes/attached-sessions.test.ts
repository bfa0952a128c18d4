import { expect, test } from 'vitest';
import { sessionsOf } from './attached-sessions.ts';

test('an answer that a server made to keep us busy is no answer, and is read at once', () => {
  const n = 20_000;
  const line = ` /a${'('.repeat(n)}${')'.repeat(n)}${' '.repeat(n)}x`;

  expect(sessionsOf(line)).toBeNull();
  expect(sessionsOf(` /127.0.0.1:4711[1](queued=0,sid=0x1f)\n`)).toEqual([0x1fn]);
});
