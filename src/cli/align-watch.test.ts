import { expect, test } from 'vitest';
import type { StoredLimit } from '../align/index.ts';
import type { Alignment, ShownPartition } from './align-view.ts';
import { paceOf, type Sample, viewOf } from './align-watch.ts';
import { textOf } from './kafka-view.ts';

const rule = { mode: 'period', stepMs: 60_000, lookAhead: 0 } as const;

function sample(atMs: number, limitMs: number | null, records: number, more: object = {}): Sample {
  const member = { id: 'm', sessionId: 1n, sinceMs: 0, records, waitingShare: 0.25, partitions: 1 };
  const cut = { end: 60_000, start: 0, node: 'x', parts: 0 };
  const limit: StoredLimit = {
    epoch: 7n,
    limitMs,
    rule,
    cut,
    isFinished: false,
    movedAtMs: 0,
    ...more,
  };
  const slowest: ShownPartition = {
    topic: 't',
    partition: '0',
    state: 'reading',
    member: 'm',
    positionMs: 90_000,
    offset: 12n,
  };
  const alignment: Alignment = {
    group: 'g',
    rule,
    limit,
    holdMs: limit.rule.holdMs ?? null,
    isPaused: limit.rule.holdMs !== undefined,
    calledMs: null,
    members: [member],
    partitions: [slowest],
    leader: 'm',
    slowest,
  };
  return { alignment, atMs, wallMs: 1_000_000 };
}

test('one look has no speed; two have that of the limit and of the records', () => {
  const [first, last] = [sample(0, 60_000, 100), sample(2_000, 120_000, 300)];

  expect(paceOf(first, first, 600_000)).toMatchObject({ eventMsPerSecond: null, etaMs: null });
  expect(paceOf(first, last, 600_000)).toEqual({
    eventMsPerSecond: 30_000,
    recordsPerSecond: 100,
    etaMs: 16_000,
  });
});

test('up to now the target moves too, and may never be reached', () => {
  const fast = paceOf(sample(0, 60_000, 0), sample(1_000, 64_000, 0), null);
  const slow = paceOf(sample(0, 60_000, 0), sample(1_000, 60_500, 0), null);

  expect(fast.etaMs).toBe((1_000 * (1_000_000 - 64_000)) / 3_000);
  expect(slow.etaMs).toBeNull();
});

test('who left took its count along, and what is finished has no time left', () => {
  const end = sample(1_000, 120_000, 10, { isFinished: true });

  expect(paceOf(sample(0, 60_000, 50), end, 600_000)).toMatchObject({
    recordsPerSecond: null,
    etaMs: 0,
  });
});

test('it says who holds the others back, by how much, and why', () => {
  const last = sample(2_000, 120_000, 300);

  const view = viewOf(sample(0, 60_000, 100), last, { startMs: 0, endMs: 240_000 }, 240_000);

  const [limit, held, states] = textOf(view).split('\n');
  expect(limit).toBe(
    'limit 1970-01-01T00:02:00.000Z · 50 % · 30s a second · 100 rec/s · ETA 4s · waiting 25 % of the time',
  );
  expect(held).toBe(
    'held back by t-0 · m · 30s before the limit · it is being read · limit moved 16m 40s ago',
  );
  expect(states).toContain('paused 0 · reading 1 · idle 0 · finished 0 · cut');
  expect(view.records[0]).toMatchObject({ heldBackBy: { topic: 't', behindMs: 30_000 } });
});

test('a group that is paused by hand says so, and nobody is blamed who has come to the limit', () => {
  const more = { rule: { ...rule, holdMs: 60_000 } };
  const view = (limitMs: number) => {
    const last = sample(1_000, limitMs, 0, more);
    return { ...viewOf(last, last, null, null), lines: textOf(viewOf(last, last, null, null)) };
  };

  const there = view(90_000);
  expect(there.lines).toContain('\npaused by hand at 1970-01-01T00:01:30.000Z · align step g');
  expect(there.lines).not.toContain('held back by');
  expect(there.records[0]).toMatchObject({ isPaused: true, holdMs: 60_000 });
  expect(view(120_000).lines).toContain('held back by t-0');
});
