import { expect, test } from 'vitest';
import { TermBook } from './term-book.ts';

const ann = { id: 'ann', session: '0x1', epoch: '10' };
const bob = { id: 'bob', session: '0x2', epoch: '20' };
const latch = (at: number, mark = '') => `${mark}latch-${String(at).padStart(10, '0')}`;
const told = (book: TermBook) =>
  book.terms.map(({ id, sinceMs, untilMs }) => [id, sinceMs, untilMs]);

test('the lowest number leads; of the first term nobody knows when it began', () => {
  const book = new TermBook([
    [latch(2), bob],
    [latch(1, '_c_x-'), ann],
  ]);

  book.joined(latch(3), 5);
  book.left(latch(1, '_c_x-'), 10);

  expect(told(book)).toEqual([
    ['ann', null, 10],
    ['bob', 10, null],
  ]);
  expect(book.leader).toMatchObject({ id: 'bob', epoch: '20' });
});

test('who leaves the middle of the line ends no term, and an empty line has no leader', () => {
  const book = new TermBook([[latch(1), ann]]);
  book.joined(latch(2), 1, bob);
  book.left(latch(2), 2);
  expect(told(book)).toEqual([['ann', null, null]]);

  book.left(latch(1), 3);

  expect(book.leader).toBeNull();
  expect(told(book)).toEqual([['ann', null, 3]]);
});

test('after a gap the line is compared: who still leads goes on, who is gone has ended', () => {
  const book = new TermBook([
    [latch(1), ann],
    [latch(2), bob],
  ]);

  book.compare(new Set([latch(1), latch(4)]), 50);
  expect(told(book)).toEqual([['ann', null, null]]);
  book.compare(new Set([latch(4)]), 60);

  expect(told(book)).toEqual([
    ['ann', null, 60],
    [null, 60, null],
  ]);
});

test('what is learned of a leader later is written into its term', () => {
  const book = new TermBook([]);
  book.joined(latch(7), 1);

  book.known(latch(7), ann);
  book.known(latch(8), bob);

  expect(book.terms).toEqual([{ name: latch(7), ...ann, sinceMs: 1, untilMs: null }]);
});

test('it is bounded, and says so', () => {
  const book = new TermBook([]);
  for (let at = 0; at < 250; at++) {
    book.joined(latch(at), at);
    book.left(latch(at), at);
  }

  expect([book.terms.length, book.dropped]).toEqual([200, 50]);
});
