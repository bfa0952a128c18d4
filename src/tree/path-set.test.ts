import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PathSet } from './path-set.ts';

test('it holds what a set of its own would', () => {
  const path = fc.constantFrom(...Array.from({ length: 40 }, (_, i) => `/é${i}`));
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), path)), (steps) => {
      const paths = new PathSet();
      const expected = new Set<string>();
      for (const [isAdded, one] of steps) {
        if (isAdded) {
          paths.add(one);
          expected.add(one);
        } else {
          paths.delete(one);
          expected.delete(one);
        }
        expect(paths.has(one)).toBe(isAdded);
      }
      expect(paths.size).toBe(expected.size);
      expect([...paths].sort()).toEqual([...expected].sort());
    }),
  );
});

test('what is there throughout is met once, whatever comes and goes meanwhile', () => {
  const paths = new PathSet();
  const stays = Array.from({ length: 1_000 }, (_, i) => `/stays${i}`);
  for (const path of stays) paths.add(path);
  const met: string[] = [];
  for (const path of paths) {
    if (path.startsWith('/stays')) met.push(path);
    if (met.length % 3 === 0) paths.add(`/other${met.length}`);
    else paths.delete(`/other${met.length - 1}`);
  }

  expect(met.sort()).toEqual(stays.sort());
});
