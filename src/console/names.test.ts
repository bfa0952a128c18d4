import fc from 'fast-check';
import { expect, test } from 'vitest';
import { filterNames, placeIn, sortNames } from './names.ts';

test('names are sorted as a plain sort would, in both directions', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string(), { maxLength: 300 }), async (names) => {
      const plain = [...names].sort();
      expect(await sortNames(names, 'name')).toEqual(plain);
      expect(await sortNames(names, '-name')).toEqual(plain.reverse());
    }),
  );
});

test('more names than one stretch are sorted whole', async () => {
  const names = Array.from({ length: 30_000 }, (_, i) => `n${(i * 7919) % 30_000}`);

  expect(await sortNames(names, 'name')).toEqual([...names].sort());
});

test('sequential nodes sort by their number, whatever stands before it', async () => {
  const names = ['b-0000000002', 'a-0000000010', 'plain', 'c-0000000001'];

  expect(await sortNames(names, 'sequence')).toEqual([
    'plain',
    'c-0000000001',
    'b-0000000002',
    'a-0000000010',
  ]);
});

test('others have their turn while 300,000 names are sorted and filtered', async () => {
  const names = Array.from({ length: 300_000 }, (_, i) => `name-${(i * 7919) % 300_000}`);
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);

  const sorted = await sortNames(names, 'name');
  const sortTurns = turns;
  const found = await filterNames(sorted, 'NAME-29999');
  isOver = true;

  expect(sorted).toHaveLength(300_000);
  expect(found).toEqual(['name-29999', ...Array.from({ length: 10 }, (_, i) => `name-29999${i}`)]);
  // Far fewer than there are: a faster machine needs fewer stretches.
  expect(sortTurns).toBeGreaterThan(5);
});

test('a name is found where it stands, in every order, and one that is not there is not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 200 }),
      fc.constantFrom('name', '-name', 'sequence', '-sequence'),
      fc.string(),
      async (names, order, other) => {
        const sorted = await sortNames(names, order);
        for (const [at, name] of sorted.entries()) expect(placeIn(sorted, name, order)).toBe(at);
        if (!names.includes(other)) expect(placeIn(sorted, other, order)).toBeNull();
      },
    ),
  );
});
