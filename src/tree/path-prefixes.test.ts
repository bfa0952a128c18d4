import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PathPrefixes } from './path-prefixes.ts';

const names = fc.constantFrom('a', 'b', 'ab', 'abc', 'é', 'n-0000000001');
const paths = fc.array(names, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`);

function isAtOrAbove(above: string, path: string): boolean {
  return above === '/' || above === path || path.startsWith(`${above}/`);
}

test('whatever comes and goes, the items of a path and of all above it are found, the deepest first', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ path: paths, adds: fc.boolean() }), { maxLength: 40 }),
      fc.array(paths, { minLength: 5, maxLength: 10 }),
      (steps, looked) => {
        const prefixes = new PathPrefixes<string>();
        const there = new Set<string>();
        for (const { path, adds } of steps) {
          if (adds) prefixes.add(path, path);
          else prefixes.delete(path, path);
          if (adds) there.add(path);
          else there.delete(path);
        }

        expect(prefixes.isEmpty).toBe(there.size === 0);
        for (const path of [...looked, ...steps.map((step) => step.path)]) {
          const above = [...there].filter((one) => isAtOrAbove(one, path));
          expect(prefixes.find(path)).toEqual(above.sort((a, b) => b.length - a.length));
        }
        for (const path of there) prefixes.delete(path, path);
        expect(prefixes.isEmpty).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
});

test('two items at one path come and go each alone', () => {
  const prefixes = new PathPrefixes<number>();
  prefixes.add('/a/b', 1);
  prefixes.add('/a/b', 2);
  prefixes.add('/a/b', 2);

  expect(prefixes.find('/a/b/c').sort()).toEqual([1, 2]);
  prefixes.delete('/a/b', 1);
  expect(prefixes.find('/a/b/c')).toEqual([2]);
  prefixes.delete('/a/b', 1);
  prefixes.delete('/a', 2);
  expect(prefixes.find('/a/b')).toEqual([2]);
});
