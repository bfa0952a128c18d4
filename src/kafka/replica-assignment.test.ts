import fc from 'fast-check';
import { expect, test } from 'vitest';
import { alternate, assignReplicas } from './replica-assignment.ts';

const plain = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

test('without racks, replicas go as Kafka places them', () => {
  const placed = assignReplicas(plain(5), { partitions: 10, replicationFactor: 3, startIndex: 0 });

  expect(Object.fromEntries(placed)).toEqual({
    0: [0, 1, 2],
    1: [1, 2, 3],
    2: [2, 3, 4],
    3: [3, 4, 0],
    4: [4, 0, 1],
    5: [0, 2, 3],
    6: [1, 3, 4],
    7: [2, 4, 0],
    8: [3, 0, 1],
    9: [4, 1, 2],
  });
});

test('a topic that grows goes on where it would have gone on', () => {
  const whole = assignReplicas(plain(5), { partitions: 9, replicationFactor: 3, startIndex: 2 });

  const grown = assignReplicas(plain(5), {
    partitions: 2,
    replicationFactor: 3,
    startIndex: 2,
    firstPartition: 3,
  });

  expect([...grown]).toEqual([...whole].slice(3, 5));
});

const racks = ['rack1', 'rack3', 'rack3', 'rack2', 'rack2', 'rack1'];

test('with racks, brokers alternate between them and replicas spread over them', () => {
  const brokers = racks.map((rack, id) => ({ id, rack }));

  const placed = assignReplicas(brokers, { partitions: 7, replicationFactor: 3, startIndex: 0 });

  expect(alternate(new Map(racks.map((rack, id) => [id, rack])))).toEqual([0, 3, 1, 5, 4, 2]);
  expect(alternate(new Map(racks.slice(0, 5).map((rack, id) => [id, rack])))).toEqual([
    0, 3, 1, 4, 2,
  ]);
  expect(Object.fromEntries(placed)).toEqual({
    0: [0, 3, 1],
    1: [3, 1, 5],
    2: [1, 5, 4],
    3: [5, 4, 2],
    4: [4, 2, 0],
    5: [2, 0, 3],
    6: [0, 4, 2],
  });
});

test('no broker holds a partition twice, no broker leads two more than another, racks are covered', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 0, max: 4 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.integer({ min: 1, max: 12 }),
      (count, partitions, rackCount, luck, wanted) => {
        const replicationFactor = Math.min(wanted, count);
        const rackOf = (id: number) => (rackCount === 0 ? null : `r${id % rackCount}`);
        const brokers = plain(count).map(({ id }) => ({ id, rack: rackOf(id) }));

        const placed = assignReplicas(brokers, {
          partitions,
          replicationFactor,
          random: () => luck,
        });

        const leads = new Map(brokers.map(({ id }) => [id, 0]));
        for (const replicas of placed.values()) {
          expect(new Set(replicas).size).toBe(replicationFactor);
          leads.set(replicas[0]!, leads.get(replicas[0]!)! + 1);
          const used = new Set(replicas.map(rackOf)).size;
          const there = new Set(brokers.map(({ rack }) => rack)).size;
          expect(used).toBe(rackCount === 0 ? 1 : Math.min(there, replicationFactor));
        }
        const counts = [...leads.values()];
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

test('what cannot be placed is refused with the argument that is wrong', () => {
  const place = (options: object) => () =>
    assignReplicas(plain(2), { partitions: 1, replicationFactor: 1, ...options });

  expect(place({ replicationFactor: 3 })).toThrow(/replicationFactor: 3 replicas .* there are 2/);
  expect(place({ partitions: 0 })).toThrow(/partitions: a whole number/);
  expect(() =>
    assignReplicas([{ id: 0, rack: 'a' }, { id: 1 }], { partitions: 1, replicationFactor: 1 }),
  ).toThrow(/brokers: all have a rack or none: 1 have none/);
});
