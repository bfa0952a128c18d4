/**
 * Every recipe under faults: links cut, replies lost, sessions expired, processes stopped past their
 * session, the server killed. A sample of what `npx tsx test/recipes-faults/run.ts` does by hand.
 * `DROVER_SEED` gives a run again, `DROVER_FAULTS` makes it longer.
 */

import { expect, test } from 'vitest';
import { campaign } from './recipes-faults/campaign.ts';
import { pausedHolders } from './recipes-faults/paused-holders.ts';
import { workloads } from './recipes-faults/workloads.ts';

const seed = Number(process.env.DROVER_SEED ?? Math.floor(Date.now() / 86_400_000));
const faults = Number(process.env.DROVER_FAULTS ?? 50);

test(
  `${faults} faults break no promise of any recipe, and after them all get on (DROVER_SEED=${seed})`,
  async () => {
    const { broken, rounds } = await campaign({ seed, faults });

    expect(broken).toEqual([]);
    expect(Object.values(rounds).every((count) => count > 0)).toBe(true);
  },
  240_000 + faults * 2_000,
);

test('a holder that was stopped past its session writes nothing, and knows that it has lost the lock', async () => {
  const report = await pausedHolders({ pauses: 100 });

  expect(report).toEqual({ pauses: 100, refused: 100, broken: [] });
}, 120_000);

// ── what the judges find ────────────────────────────────────────────────────────────────────────

type Step = readonly ['ask' | 'tell', worker: string, what: string, ...args: unknown[]];

function brokenBy(recipe: string, steps: readonly Step[]): string {
  const judge = workloads[recipe]!.judge();
  for (const [how, worker, what, ...args] of steps) {
    if (how === 'ask') void judge.answer({ worker, what, args });
    else judge.hear({ worker, what, args });
  }
  return judge.broken.join();
}

test.each<[what: string, recipe: string, steps: Step[], why: string]>([
  [
    'a token that two have',
    'lock',
    [
      ['ask', 'a', 'enter', 1n],
      ['ask', 'b', 'enter', 1n],
    ],
    'given before',
  ],
  [
    'an update that is lost',
    'lock',
    [
      ['ask', 'a', 'enter', 1n],
      ['ask', 'a', 'write', 1n, 0],
      ['ask', 'b', 'enter', 2n],
      ['ask', 'b', 'write', 2n, 0],
    ],
    'not alone',
  ],
  [
    'a reader beside a writer',
    'readWriteLock',
    [
      ['ask', 'a', 'enter', 1n],
      ['ask', 'b', 'enterToRead', 2n],
      ['ask', 'c', 'enter', 3n],
      ['ask', 'c', 'write', 3n, 0],
      ['ask', 'd', 'enterToRead', 4n],
      ['ask', 'd', 'readAgain', 4n, 0],
    ],
    'not alone',
  ],
  [
    'one who is in too early',
    'doubleBarrier',
    [
      ['ask', 'a', 'entering', 0],
      ['ask', 'b', 'entering', 0],
      ['ask', 'a', 'entered', 0],
    ],
    'when 2 have come',
  ],
  [
    'a member of two groups',
    'gatheringQueue',
    [
      ['tell', 'a', 'gathered', 'x', ['x', 'y', 'z']],
      ['tell', 'b', 'gathered', 'y', ['y', 'z', 'v']],
    ],
    'in two groups',
  ],
  [
    'an id that two have',
    'ids',
    [
      ['tell', 'a', 'given', 1n, 2n],
      ['tell', 'b', 'given', 2n],
    ],
    'given before',
  ],
  [
    'an item that two have taken',
    'queue',
    [
      ['tell', 'a', 'put', 'i'],
      ['tell', 'a', 'out', 'i'],
      ['tell', 'b', 'out', 'i'],
    ],
    'second time',
  ],
  [
    'a node made twice in a session',
    'membership',
    [
      ['tell', 'a', 'birth', 7n],
      ['tell', 'a', 'birth', 7n],
    ],
    'made twice',
  ],
  [
    'an item that is out before its time',
    'delayQueue',
    [
      ['tell', 'a', 'put', 'i@5'],
      ['tell', 'b', 'taken', 'i@5', 5, 4],
    ],
    '1 ms early',
  ],
  [
    'a member that is made twice in a session',
    'groupMember',
    [
      ['tell', 'a', 'joined', 'b', 7n, 1n],
      ['tell', 'c', 'joined', 'b', 7n, 2n],
    ],
    'made twice',
  ],
  [
    'a machine that is up again in a session that was over',
    'machineMonitor',
    [
      ['tell', 'a', 'up', 'b', 7n],
      ['tell', 'a', 'gone', 'b', 7n],
      ['tell', 'a', 'up', 'b', 7n],
    ],
    'after it was gone',
  ],
  [
    'an appointed one who leads in the epoch of another',
    'appointment',
    [
      ['ask', 'a', 'enter', 1n],
      ['ask', 'b', 'enter', 1n],
    ],
    'given before',
  ],
  [
    'a change of which no event has told',
    'persistentWatcher',
    [['tell', 'a', 'missed', 'x is there']],
    'x is there',
  ],
])('%s is found', (_, recipe, steps, why) => {
  expect(brokenBy(recipe, steps)).toContain(why);
});
