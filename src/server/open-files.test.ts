import { expect, test } from 'vitest';
import { roomForLinks } from './open-files.ts';

test.each([
  ['of many files a few hundred are kept', 20_000, 24, 19_976 - 256],
  ['of few files a quarter is', 128, 28, 75],
  ['where none is left there is no room', 20, 24, 0],
  ['where the system does not say there is no end', -1, -1, Infinity],
])('%s', (_, most, open, room) => {
  expect(roomForLinks(most, open)).toBe(room);
});
