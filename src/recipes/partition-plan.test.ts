import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyPlan, formatPlan, nextPlan, type Plan, parsePlan, spread } from './partition-plan.ts';

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const asMembers = (list: readonly string[]) => list.map((name) => ({ name, node: `${name}-node` }));
const sharesOf = (plan: Plan) => [...plan.members.values()].map(({ shards }) => shards.length);

test('shards are divided evenly, each to one member', () => {
  const plan = nextPlan(emptyPlan, names('s', 7), asMembers(['a', 'b', 'c']), spread);

  expect(plan.generation).toBe(1);
  expect(sharesOf(plan)).toEqual([3, 2, 2]);
  expect([...plan.members.values()].flatMap(({ shards }) => shards).sort()).toEqual(names('s', 7));
});

test('whoever joins takes only its share, and nobody else moves', () => {
  const before = nextPlan(emptyPlan, names('s', 6), asMembers(['a', 'b']), spread);

  const after = nextPlan(before, names('s', 6), asMembers(['a', 'b', 'c']), spread);

  for (const name of ['a', 'b']) {
    const [had, has] = [before, after].map((plan) => plan.members.get(name)!.shards);
    expect(had).toEqual(expect.arrayContaining([...has!]));
    expect(has).toHaveLength(2);
  }
});

test('a member that came back under its name has what it had', () => {
  const before = nextPlan(emptyPlan, names('s', 6), asMembers(['a', 'b']), spread);
  const members = [
    { name: 'b', node: 'b-node' },
    { name: 'a', node: 'a-node-2' },
  ];

  const after = nextPlan(before, names('s', 6), members, spread);

  expect(after.members.get('a')).toEqual({
    node: 'a-node-2',
    shards: before.members.get('a')!.shards,
  });
  expect(after.members.get('b')).toEqual(before.members.get('b'));
});

test('when nothing changed the plan is the same one', () => {
  const plan = nextPlan(emptyPlan, names('s', 5), asMembers(['a', 'b']), spread);

  expect(nextPlan(plan, names('s', 5).reverse(), asMembers(['b', 'a']), spread)).toBe(plan);
});

test('of two members with one name the first gets shards', () => {
  const twice = [...asMembers(['a']), { name: 'a', node: 'other' }];

  expect(nextPlan(emptyPlan, ['s'], twice, spread).members).toEqual(
    new Map([['a', { node: 'a-node', shards: ['s'] }]]),
  );
});

test('however members and shards come and go: each shard once, even, and no needless move', () => {
  const step = fc.record({ members: fc.subarray(names('m', 8)), shards: fc.nat({ max: 20 }) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      let plan: Plan = emptyPlan;
      for (const { members, shards: count } of steps) {
        const shards = names('s', count);
        const before = plan;
        plan = nextPlan(plan, shards, asMembers(members), spread);
        const all = [...plan.members.values()].flatMap((one) => one.shards);
        expect(all.sort()).toEqual(members.length > 0 ? [...shards].sort() : []);
        const shares = sharesOf(plan);
        if (shares.length > 0) {
          expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        }
        const floor = Math.floor(count / Math.max(1, members.length));
        for (const [name, { shards: has }] of plan.members) {
          const had = (before.members.get(name)?.shards ?? []).filter((it) => shards.includes(it));
          const given = has.filter((shard) => !had.includes(shard));
          const taken = had.filter((shard) => !has.includes(shard));
          // Nobody gives a shard away and gets another, and nobody below its share gives any.
          expect(Math.min(given.length, taken.length)).toBe(0);
          if (had.length <= floor) expect(taken).toEqual([]);
        }
      }
    }),
  );
});

test('a plan is read back as it was written, and garbage is no plan', () => {
  const plan = nextPlan(emptyPlan, names('s', 3), asMembers(['a', 'b/c']), spread);

  expect(parsePlan(Buffer.from(formatPlan(plan)))).toEqual(plan);
  for (const text of ['', '{', '[]', '{"generation":1}', '{"generation":"x","members":{}}']) {
    expect(parsePlan(Buffer.from(text))).toBe(emptyPlan);
  }
  expect(parsePlan(null)).toBe(emptyPlan);
});
