import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextSlot, nodeAt, noNode, PathIndex, slotOf } from './path-index.ts';

/** All nodes in the slots of this hash, in the order in which who looks for one meets them. */
function found(index: PathIndex, hash: number): number[] {
  const table = index.table(hash);
  const nodes: number[] = [];
  for (let at = slotOf(table, hash); nodeAt(table, at) !== noNode; at = nextSlot(table, at)) {
    if (table[at] === hash) nodes.push(nodeAt(table, at));
  }
  return nodes;
}

/** Few shards and few slots of them, so that many have to make way for each other. */
const crowded = fc
  .tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 6 }), fc.boolean())
  .map(([shard, slot, isHigh]) => shard | (slot << 6) | (isHigh ? 0x80000000 : 0) | 0);
const hashes = fc.oneof(crowded, fc.integer());

test('whatever comes and goes, each node is found by its hash, and no other', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ hash: hashes, removes: fc.nat({ max: 3 }) }), { maxLength: 300 }),
      (steps) => {
        const index = new PathIndex();
        const there: { hash: number; node: number }[] = [];
        for (const [node, { hash, removes }] of steps.entries()) {
          index.add(hash, node);
          there.push({ hash, node });
          if (removes !== 0) continue;
          const [gone] = there.splice((node * 7) % there.length, 1);
          index.remove(gone!.hash, gone!.node);
        }

        for (const hash of new Set(steps.map((step) => step.hash))) {
          const expected = there.filter((entry) => entry.hash === hash).map(({ node }) => node);
          expect(found(index, hash).sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('a table has room left however many come, and takes no more than it needs', () => {
  const index = new PathIndex();
  for (let node = 0; node < 10_000; node++) index.add((node << 6) | 5, node);

  const table = index.table(5);
  const taken = Array.from({ length: table.length / 2 }, (_, slot) => nodeAt(table, slot * 2));

  expect(taken.filter((node) => node !== noNode)).toHaveLength(10_000);
  expect(taken.length).toBeGreaterThanOrEqual(16_000);
  expect(taken.length).toBeLessThanOrEqual(32_768);
});

test('what is not there is not removed, and not looked for without end', () => {
  const index = new PathIndex();
  index.add(7, 1);

  expect(() => index.remove(7, 2)).toThrow('the path index has no node 2');
  expect(() => index.remove(8, 1)).toThrow('the path index has no node 1');
  expect(found(index, 7)).toEqual([1]);
});
