import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ElectionStrategy,
  elect,
  firstState,
  reassignTo,
  targetOf,
} from './controller-election.ts';
import { type ReplicaSet, steady } from './layout-topic.ts';

interface Given {
  readonly set?: ReplicaSet;
  readonly leader?: number;
  readonly isr?: number[];
  readonly live?: number[];
  readonly leaving?: number[];
}

function run(strategy: ElectionStrategy, { set = steady([1, 2, 3]), ...given }: Given) {
  const { leader = 1, isr = [1, 2, 3], live = [1, 2, 3], leaving = [] } = given;
  const state = { leader, leaderEpoch: 4, controllerEpoch: 1, isr, isRecovering: false };
  return elect(strategy, { set, state, live: new Set(live), leaving: new Set(leaving) });
}

const cases: [ElectionStrategy, string, Given, object | null][] = [
  [
    'offline',
    'the first live one of the ISR, by assignment',
    { isr: [3, 2], live: [2, 3] },
    { leader: 2, isr: [3, 2] },
  ],
  ['offline', 'the dead leave the ISR', { live: [2, 3] }, { leader: 2, isr: [2, 3] }],
  ['offline', 'nobody when the ISR is dead', { isr: [1], live: [2, 3] }, null],
  [
    'unclean',
    'as offline while the ISR lives',
    { live: [3] },
    { leader: 3, isr: [3], isRecovering: false },
  ],
  [
    'unclean',
    'anybody when it is dead, alone in sync and recovering',
    { isr: [1], live: [3, 2] },
    { leader: 2, isr: [2], isRecovering: true },
  ],
  ['unclean', 'nobody when all are dead', { live: [] }, null],
  [
    'reassign',
    'the first of the new ones that is in sync',
    { set: reassignTo(steady([1, 2]), [4, 3]), isr: [1, 2, 3], live: [1, 2, 3, 4] },
    { leader: 3, isr: [1, 2, 3] },
  ],
  [
    'reassign',
    'nobody when none of them is',
    { set: reassignTo(steady([1, 2]), [4, 3]), isr: [1, 2], live: [1, 2, 3, 4] },
    null,
  ],
  [
    'preferred',
    'the first of the assignment',
    { leader: 2, isr: [2, 1] },
    { leader: 1, isr: [2, 1] },
  ],
  ['preferred', 'not when it is out of sync', { leader: 2, isr: [2, 3] }, null],
  ['preferred', 'not when it is dead', { leader: 2, live: [2, 3] }, null],
  [
    'controlledShutdown',
    'the next in sync, and who leaves is out of the ISR',
    { live: [2, 3], leaving: [1] },
    { leader: 2, isr: [2, 3] },
  ],
  [
    'controlledShutdown',
    'nobody when only who leaves is in sync',
    { isr: [1], live: [2, 3], leaving: [1] },
    null,
  ],
];

test.for(cases)('%s: %s', ([strategy, , given, expected]) => {
  const state = run(strategy, given);

  if (expected === null) expect(state).toBeNull();
  else expect(state).toMatchObject({ ...expected, leaderEpoch: 5 });
});

test('whoever is elected lives, and unless the election is unclean was in sync', () => {
  const ids = fc.subarray([1, 2, 3, 4, 5]);
  const strategies = ['offline', 'unclean', 'reassign', 'preferred', 'controlledShutdown'] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...strategies),
      ids,
      ids,
      ids,
      ids,
      (strategy, from, to, isr, live) => {
        const set = reassignTo(steady(from), to);

        const state = run(strategy, { set, isr, live });

        if (state === null) return;
        expect(live).toContain(state.leader);
        expect(set.replicas).toContain(state.leader);
        if (strategy !== 'unclean') expect(isr).toContain(state.leader);
        if (strategy !== 'unclean') expect(state.isr).toContain(state.leader);
      },
    ),
  );
});

test('a new partition is led by the first that lives, and all who live are in sync', () => {
  expect(firstState(steady([3, 1, 2]), new Set([1, 2]))).toMatchObject({
    leader: 1,
    isr: [1, 2],
    leaderEpoch: 0,
  });
  expect(firstState(steady([3]), new Set([1, 2]))).toBeNull();
});

test('a reassignment holds old and new until it is done, and can be turned round', () => {
  const moving = reassignTo(steady([1, 2, 3]), [4, 5, 6]);

  expect(moving).toEqual({ replicas: [4, 5, 6, 1, 2, 3], adding: [4, 5, 6], removing: [1, 2, 3] });
  expect(targetOf(moving)).toEqual([4, 5, 6]);
  expect(reassignTo(moving, [1, 2, 3])).toEqual({ replicas: [1, 2, 3], adding: [], removing: [] });
  expect(reassignTo(moving, [1, 7])).toEqual({
    replicas: [1, 7, 2, 3],
    adding: [7],
    removing: [2, 3],
  });
});
