import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Assignment,
  type AssignorInput,
  type AssignorName,
  assignors,
  ceil,
  fairShares,
  idleThreads,
  javaHash,
  range,
  roundrobin,
  roundrobin08,
  sticky,
} from './assignors.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => String(i));

function group(
  members: Record<string, Record<string, number>>,
  topics: Record<string, number>,
  held?: Assignment,
): AssignorInput {
  return {
    members: new Map(Object.entries(members).map(([id, of]) => [id, new Map(Object.entries(of))])),
    topics: new Map(Object.entries(topics).map(([topic, count]) => [topic, numbers(count)])),
    ...(held && { held }),
  };
}

/** One topic of P partitions, C consumers with one thread each: how many each has. */
function counts(name: AssignorName, partitions: number, consumers: number): number[] {
  const ids = Array.from({ length: consumers }, (_, i) => `c${i}`);
  const input = group(Object.fromEntries(ids.map((id) => [id, { t: 1 }])), { t: partitions });
  const given = [...assignors[name](input).get('t')!.values()];
  return ids.map((id) => given.filter((thread) => thread === `${id}-0`).length);
}

// biome-ignore format: a table is read down its columns
const vectors: [partitions: number, consumers: number, range: number[], ceil: number[]][] = [
  [4, 3, [2, 1, 1],             [2, 2, 0]],
  [5, 2, [3, 2],                [3, 2]],
  [5, 4, [2, 1, 1, 1],          [2, 2, 1, 0]],
  [6, 4, [2, 2, 1, 1],          [2, 2, 2, 0]],
  [7, 3, [3, 2, 2],             [3, 3, 1]],
  [7, 5, [2, 2, 1, 1, 1],       [2, 2, 2, 1, 0]],
  [9, 4, [3, 2, 2, 2],          [3, 3, 3, 0]],
  [9, 7, [2, 2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 1, 0, 0]],
];

test.for(vectors)('%i partitions for %i consumers', ([partitions, consumers, real, document]) => {
  expect(counts('range', partitions, consumers)).toEqual(real);
  expect(counts('ceil', partitions, consumers)).toEqual(document);
});

test('range and ceil agree where P <= C or P mod C is 0 or C - 1, and nowhere else', () => {
  for (let partitions = 1; partitions <= 30; partitions++) {
    for (let consumers = 1; consumers <= 12; consumers++) {
      const rest = partitions % consumers;
      const agree = partitions <= consumers || rest === 0 || rest === consumers - 1;

      const [real, document] = [range, ceil].map((one) => {
        const ids = Array.from({ length: consumers }, (_, i) => `c${String(i).padStart(2, '0')}`);
        return one(group(Object.fromEntries(ids.map((id) => [id, { t: 1 }])), { t: partitions }));
      });

      expect({ partitions, consumers, agree: sameAs(real!, document!) }).toEqual({
        partitions,
        consumers,
        agree,
      });
    }
  }
});

function sameAs(a: Assignment, b: Assignment): boolean {
  const text = (one: Assignment) => JSON.stringify([...one].map(([t, of]) => [t, [...of].sort()]));
  return text(a) === text(b);
}

test('range gives runs: the document’s four partitions on three nodes', () => {
  const input = group({ n1: { r: 1 }, n2: { r: 1 }, n3: { r: 1 } }, { r: 4 });

  expect([...range(input).get('r')!]).toEqual([
    ['0', 'n1-0'],
    ['1', 'n1-0'],
    ['2', 'n2-0'],
    ['3', 'n3-0'],
  ]);
});

test('with two threads each the third node is idle, and says so', () => {
  const input = group({ n1: { r: 2 }, n2: { r: 2 }, n3: { r: 2 } }, { r: 4 });
  const assignment = range(input);

  expect([...assignment.get('r')!.values()]).toEqual(['n1-0', 'n1-1', 'n2-0', 'n2-1']);
  expect(idleThreads(input, assignment)).toEqual(['n3-0', 'n3-1']);
});

test('threads are sorted as text, so the eleventh stands before the third', () => {
  const input = group({ c: { t: 12 } }, { t: 12 });

  expect([...range(input).get('t')!.values()].slice(0, 4)).toEqual(['c-0', 'c-1', 'c-10', 'c-11']);
});

test('partition names of 0.7 are dealt out in the order handed in', () => {
  const input: AssignorInput = {
    members: new Map([
      ['a', new Map([['t', 1]])],
      ['b', new Map([['t', 1]])],
    ]),
    topics: new Map([['t', ['0-0', '0-1', '0-10', '0-2']]]),
  };

  expect([...range(input).get('t')!]).toEqual([
    ['0-0', 'a-0'],
    ['0-1', 'a-0'],
    ['0-10', 'b-0'],
    ['0-2', 'b-0'],
  ]);
});

describe('round robin', () => {
  test('hashes are Java’s', () => {
    expect(javaHash('[t1,0]')).toBe(-1581082495);
    expect(javaHash('t1-0')).toBe(3504288);
  });

  test('the order is that of the label’s hash, in both forms', () => {
    const input = group({ c: { t1: 1, t2: 1 } }, { t1: 12, t2: 12 });
    const many = group({ c: { t1: 24, t2: 24 } }, { t1: 12, t2: 12 });
    const threads = [...Array(24).keys()].map((i) => `c-${i}`).sort();
    const order = (assignment: Assignment) =>
      [...assignment]
        .flatMap(([topic, of]) => [...of].map(([p, thread]) => [`${topic}-${p}`, thread] as const))
        .sort((a, b) => threads.indexOf(a[1]) - threads.indexOf(b[1]))
        .map(([label]) => label);
    const single = (topic: string) => numbers(10).map((p) => `${topic}-${p}`);
    const double = ['t1-10', 't1-11', 't2-10', 't2-11'];

    expect(order(roundrobin08(many))).toEqual([...double, ...single('t1'), ...single('t2')]);
    expect(order(roundrobin(many))).toEqual([...single('t1'), ...single('t2'), ...double]);
    expect([...roundrobin(input).get('t1')!.values()]).toEqual(Array(12).fill('c-0'));
  });

  test('with unequal subscriptions the old form refuses, and the new one skips who cannot', () => {
    const input = group({ a: { t1: 1, t2: 1 }, b: { t1: 1 } }, { t1: 2, t2: 2 });

    expect(() => roundrobin08(input)).toThrow(/use roundrobin/);
    expect([...roundrobin(input).get('t2')!.values()]).toEqual(['a-0', 'a-0']);
    expect([...roundrobin(input).get('t1')!.values()].sort()).toEqual(['a-0', 'b-0']);
  });
});

const groups = fc
  .record({
    topics: fc.dictionary(fc.constantFrom('t1', 't2', 't3', 't4'), fc.integer({ min: 0, max: 40 })),
    members: fc.dictionary(
      fc.stringMatching(/^[a-e][0-9]?$/),
      fc.dictionary(fc.constantFrom('t1', 't2', 't3', 't4'), fc.integer({ min: 1, max: 3 })),
    ),
  })
  .map(({ topics, members }) => group(members, topics));

test.for(['range', 'roundrobin', 'ceil', 'sticky'] as const)(
  '%s gives every partition to exactly one thread that reads its topic, whoever computes it',
  (name) => {
    fc.assert(
      fc.property(groups, (input) => {
        const assignment = assignors[name](input);
        const shuffled = {
          ...input,
          members: new Map([...input.members].reverse()),
          topics: new Map([...input.topics].reverse()),
        };

        for (const [topic, partitions] of input.topics) {
          const readers = [...input.members].filter(([, of]) => of.has(topic));
          const given = assignment.get(topic) ?? new Map();
          expect([...given.keys()].sort()).toEqual(readers.length ? [...partitions].sort() : []);
          for (const thread of given.values()) {
            const [id, number] = [thread.slice(0, -2), Number(thread.slice(-1))];
            expect(number).toBeLessThan(input.members.get(id)!.get(topic)!);
          }
        }
        expect(sameAs(assignors[name](shuffled), assignment)).toBe(true);
      }),
    );
  },
);

describe('sticky', () => {
  const members = (...ids: string[]) => Object.fromEntries(ids.map((id) => [id, { t: 1 }]));
  const moves = (before: Assignment, after: Assignment) =>
    [...after].flatMap(([topic, of]) =>
      [...of].filter(([p, thread]) => before.get(topic)?.get(p) !== thread),
    ).length;

  test('who joins gets a fair share, and nothing else moves', () => {
    const before = sticky(group(members('a', 'b', 'c'), { t: 12 }));
    const after = sticky(group(members('a', 'b', 'c', 'd'), { t: 12 }, before));

    expect(moves(before, after)).toBe(3);
    expect([...after.get('t')!.values()].filter((thread) => thread === 'd-0')).toHaveLength(3);
  });

  test('who leaves gives up what it had, and nothing else moves', () => {
    const before = sticky(group(members('a', 'b', 'c', 'd'), { t: 12 }));
    const after = sticky(group(members('a', 'b', 'd'), { t: 12 }, before));

    expect(moves(before, after)).toBe(3);
  });

  test('a change moves no more than it must: what the gone had, and what the new are due', () => {
    const threads = (input: AssignorInput, topic: string) =>
      [...fairShares(input).get(topic)!.keys()].length;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 }),
        (partitions, first, second) => {
          const ids = (list: number[]) => members(...list.map((i) => `m${i}`));
          const before = sticky(group(ids(first), { t: partitions }));
          const input = group(ids(second), { t: partitions }, before);

          const after = sticky(input);

          const stay = first.filter((i) => second.includes(i)).map((i) => `m${i}-0`);
          const have = new Map(stay.map((thread) => [thread, 0]));
          for (const thread of before.get('t')!.values()) {
            if (have.has(thread)) have.set(thread, have.get(thread)! + 1);
          }
          // The best anyone could do: keep up to the fair share, the remainder where it helps most.
          const each = Math.floor(partitions / threads(input, 't'));
          let extra = partitions % threads(input, 't');
          let kept = 0;
          for (const count of have.values()) {
            kept += Math.min(count, each);
            if (count > each && extra > 0) {
              kept += 1;
              extra -= 1;
            }
          }
          expect(moves(before, after)).toBe(partitions - kept);
          const loads = second.map(
            (i) => [...after.get('t')!.values()].filter((thread) => thread === `m${i}-0`).length,
          );
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test('remainders of many topics spread over the threads', () => {
    const topics = Object.fromEntries([...Array(6).keys()].map((i) => [`t${i}`, 1]));
    const input = group(
      Object.fromEntries(
        ['a', 'b', 'c'].map((id) => [
          id,
          Object.fromEntries(Object.keys(topics).map((t) => [t, 1])),
        ]),
      ),
      topics,
    );

    const loads = new Map<string, number>();
    for (const of of sticky(input).values()) {
      for (const thread of of.values()) loads.set(thread, (loads.get(thread) ?? 0) + 1);
    }

    expect(Object.fromEntries(loads)).toEqual({ 'a-0': 2, 'b-0': 2, 'c-0': 2 });
  });
});
