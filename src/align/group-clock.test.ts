import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GroupClock, type PartitionReport, type PartitionState } from './group-clock.ts';
import { type Rule, ruleOf, withHold } from './rule.ts';

const minute = ruleOf({ period: 60 });

function at(positionMs: number | null, more: Partial<PartitionReport> = {}): PartitionReport {
  return { epoch: 1n, state: 'reading', positionMs, offset: 0n, reached: [], ...more };
}

function group(keys: readonly string[], rule: Rule = minute, limitMs: number | null = null) {
  const clock = new GroupClock(rule, limitMs, null);
  clock.plan(keys);
  return clock;
}

describe('the limit', () => {
  test('does not move before every partition was heard of', () => {
    const clock = group(['t/0', 't/1']);
    clock.report('t/0', 'a', at(10));

    expect(clock.decide().limitMs).toBeNull();

    clock.report('t/1', 'a', at(30));
    expect(clock.decide().limitMs).toBe(60);
  });

  test('is the end of the period that the slowest is in', () => {
    const clock = group(['t/0', 't/1']);
    clock.report('t/0', 'a', at(59));
    clock.report('t/1', 'a', at(500));
    expect(clock.decide().limitMs).toBe(60);

    clock.report('t/0', 'a', at(60));
    expect(clock.decide().limitMs).toBe(120);
  });

  test('with look-ahead, and with drift, lies further on', () => {
    const ahead = group(['t/0'], ruleOf({ period: 60, lookAhead: 2 }));
    ahead.report('t/0', 'a', at(70));
    expect(ahead.decide().limitMs).toBe(240);

    const drift = group(['t/0'], ruleOf({ drift: 100 }));
    drift.report('t/0', 'a', at(70));
    expect(drift.decide().limitMs).toBe(170);
  });

  test('skips a gap of days in one step', () => {
    const clock = group(['t/0', 't/1'], minute, 60);
    const days = 5 * 86_400_000;
    clock.report('t/0', 'a', at(days + 7, { offset: 4n, reached: [{ end: days, offset: 4n }] }));
    clock.report('t/1', 'a', at(days + 100));

    expect(clock.decide().limitMs).toBe(days + 60);
  });

  test('never goes back, whatever comes back, and whatever the rule becomes', () => {
    const clock = group(['t/0', 't/1'], minute, 600);
    clock.report('t/0', 'a', at(10));
    clock.report('t/1', 'a', at(700));

    expect(clock.decide().limitMs).toBe(600);
    clock.rule = ruleOf({ drift: 5 });
    expect(clock.decide().limitMs).toBe(600);
  });

  test.for(['idle', 'finished'] satisfies PartitionState[])(
    'an %s partition holds nobody back',
    (state) => {
      const clock = group(['t/0', 't/1']);
      clock.report('t/0', 'a', at(5, { state }));
      clock.report('t/1', 'a', at(130));

      expect(clock.decide().limitMs).toBe(180);
    },
  );

  test('stays when all are idle, and follows the first that comes back', () => {
    const clock = group(['t/0', 't/1'], minute, 60);
    clock.report('t/0', 'a', at(10, { state: 'idle' }));
    clock.report('t/1', 'a', at(20, { state: 'idle' }));
    expect(clock.decide()).toEqual({ limitMs: 60, cut: null, isFinished: false });

    clock.report('t/1', 'a', at(1_000));
    expect(clock.decide().limitMs).toBe(1_020);
  });

  test('does not follow a record far ahead while another partition may still bring an earlier one', () => {
    const clock = group(['t/0', 't/1', 't/2'], minute, 60);
    clock.report('t/0', 'a', at(50, { state: 'idle', aheadMs: 900_000 }));
    clock.report('t/1', 'a', at(20, { state: 'idle' }));
    clock.report('t/2', 'a', at(30, { state: 'finished' }));

    expect(clock.decide()).toEqual({ limitMs: 60, cut: null, isFinished: false });
  });

  test('goes on to the nearest record where all that is left lies far ahead', () => {
    const clock = group(['t/0', 't/1', 't/2'], minute, 60);
    clock.report('t/0', 'a', at(50, { state: 'idle', aheadMs: 900_000 }));
    clock.report('t/1', 'a', at(20, { state: 'idle', aheadMs: 600_010 }));
    clock.report('t/2', 'a', at(30, { state: 'finished' }));

    expect(clock.decide()).toEqual({ limitMs: 600_060, cut: null, isFinished: false });
  });

  test('does not run away when a finished one was far ahead and the others go idle', () => {
    const clock = group(['t/0', 't/1'], minute, 60);
    clock.report('t/0', 'a', at(1_000_000, { state: 'finished' }));
    clock.report('t/1', 'b', at(20, { state: 'idle' }));

    expect(clock.decide()).toEqual({ limitMs: 60, cut: null, isFinished: false });
  });

  test('is held by a partition that nobody has, where it was last, also if it was idle there', () => {
    const clock = group(['t/0', 't/1']);
    clock.report('t/0', 'a', at(30, { state: 'idle' }));
    clock.report('t/1', 'b', at(500));
    clock.left('a');

    expect(clock.decide().limitMs).toBe(60);
    expect(clock.slowest).toEqual({ key: 't/0', positionMs: 30 });
  });

  test('of a member that lets go of some of its partitions, only those have nobody', () => {
    const clock = group(['t/0', 't/1', 't/2']);
    for (const key of clock.keys) clock.report(key, 'a', at(70));
    clock.report('t/2', 'b', at(70, { epoch: 2n }));

    clock.left('a', ['t/1', 't/2', 't/9']);

    expect([...clock.keys].map((key) => clock.view(key)?.member)).toEqual(['a', null, 'b']);
  });

  test('waits for a partition that is new', () => {
    const clock = group(['t/0'], minute, 60);
    clock.report('t/0', 'a', at(100));
    clock.plan(['t/0', 't/1']);
    expect(clock.decide().limitMs).toBe(60);

    clock.report('t/1', 'a', at(null, { state: 'finished' }));
    expect(clock.decide().limitMs).toBe(120);
  });

  test('whoever lost a partition has no more say in it', () => {
    const clock = group(['t/0']);
    clock.report('t/0', 'b', at(10, { epoch: 7n }));

    expect(clock.report('t/0', 'a', at(1_000, { epoch: 6n }))).toBe(false);
    expect(clock.decide().limitMs).toBe(60);
  });

  test('where nobody owns anything, what was said beside who had the say counts once that one is gone', () => {
    const clock = group(['t/0'], minute, 60);
    clock.hasOwners = false;
    clock.report('t/0', 'younger', at(0, { epoch: 2n }));
    clock.report('t/0', 'older', at(60));
    expect(clock.decide().limitMs).toBe(60);

    clock.left('younger');
    expect(clock.view('t/0')).toMatchObject({ member: 'older', positionMs: 60 });
    expect(clock.decide().limitMs).toBe(120);

    // Not so what does not go as far, or what was said by who is gone too.
    clock.report('t/0', 'younger', at(200, { epoch: 3n }));
    clock.report('t/0', 'older', at(60));
    clock.left('younger');
    expect(clock.view('t/0')).toMatchObject({ member: null, positionMs: 200 });
    clock.report('t/0', 'younger', at(200, { epoch: 4n }));
    clock.report('t/0', 'older', at(300));
    clock.left('older');
    clock.left('younger');
    expect(clock.view('t/0')).toMatchObject({ member: null, positionMs: 200 });
  });

  test('that a partition is at its end counts so only if it was said since another had the say', () => {
    const clock = group(['t/0'], minute, 60);
    clock.hasOwners = false;
    const over = at(null, { state: 'finished' });
    clock.report('t/0', 'younger', at(0, { epoch: 2n }));
    clock.report('t/0', 'older', over);
    clock.left('younger');
    expect(clock.view('t/0')).toMatchObject({ member: null, state: 'reading' });

    clock.report('t/0', 'younger', at(0, { epoch: 3n }));
    clock.report('t/0', 'older', over, true);
    clock.left('younger');
    expect(clock.view('t/0')).toMatchObject({ member: 'older', state: 'finished' });
  });

  test('a new owner that knows nothing yet leaves in force what was known', () => {
    const clock = group(['t/0']);
    clock.report('t/0', 'a', at(70, { epoch: 1n, offset: 5n }));
    clock.report('t/0', 'b', at(null, { epoch: 2n, offset: 3n }));

    expect(clock.decide().limitMs).toBe(120);
    expect(clock.report('t/0', 'a', at(900, { epoch: 1n }))).toBe(false);
  });
});

describe('held by hand', () => {
  test('the limit goes up to there and no further, and the cut with it', () => {
    const clock = group(['t/0', 't/1'], withHold(minute, 130), 60);
    const reached = [{ end: 600, offset: 9n }];
    clock.report('t/0', 'a', at(610, { offset: 9n, reached }));
    clock.report('t/1', 'a', at(700, { offset: 5n, reached: [{ end: 660, offset: 5n }] }));

    const decision = clock.decide();

    expect(decision).toMatchObject({ limitMs: 130, cut: { end: 120 }, isFinished: false });
    expect([...decision.cut!.offsets.values()]).toEqual([9n, 5n]);
    clock.moved(decision);
    expect(clock.decide()).toEqual({ limitMs: 130, cut: null, isFinished: false });

    clock.rule = minute;
    expect(clock.decide()).toMatchObject({ limitMs: 660, cut: { end: 600 } });
  });

  test('a limit that is beyond it stays, whatever the rule', () => {
    for (const rule of [
      minute,
      ruleOf({ drift: 500, step: 60 }),
      ruleOf({ off: true, step: 60 }),
    ]) {
      const clock = group(['t/0'], withHold(rule, 90), 240);
      clock.report('t/0', 'a', at(239));
      expect(clock.decide().limitMs).toBe(240);

      clock.report('t/0', 'a', at(500));
      expect(clock.decide()).toMatchObject({ limitMs: 240, cut: { end: 240 } });
    }
  });

  test('a limit from outside is held too', () => {
    const clock = group(['t/0'], withHold(minute, 60), 60);
    clock.outerMs = 600;
    clock.report('t/0', 'a', at(70));

    expect(clock.decide().limitMs).toBe(60);
  });

  test('the group is not at its end before it is let go, though its last period may be', () => {
    const clock = group(['t/0'], withHold(minute, 120), 120);
    clock.report('t/0', 'a', at(70, { state: 'finished', offset: 3n }));

    const decision = clock.decide();
    expect(decision).toMatchObject({ limitMs: 120, cut: { end: 120, isFinal: true } });
    expect(decision.isFinished).toBe(false);
    clock.moved(decision);
    expect(clock.decide()).toEqual({ limitMs: 120, cut: null, isFinished: false });

    clock.rule = minute;
    expect(clock.decide()).toEqual({ limitMs: 120, cut: null, isFinished: true });
  });

  test('a last period that ends beyond it is not ended', () => {
    const clock = group(['t/0'], withHold(minute, 90), 60);
    clock.report('t/0', 'a', at(70, { state: 'finished', offset: 3n }));

    expect(clock.decide()).toEqual({ limitMs: 60, cut: null, isFinished: false });
  });

  test('nor is one in which there never was a record', () => {
    const clock = group(['t/0'], withHold(minute, 120));
    clock.report('t/0', 'a', at(null, { state: 'finished' }));

    expect(clock.decide().isFinished).toBe(false);
  });
});

describe('a cut', () => {
  test('has one offset for each partition: where it passed the boundary, or where it stands', () => {
    const clock = group(['t/0', 't/1', 't/2', 't/3']);
    const passes = [
      { end: 60, offset: 5n },
      { end: 120, offset: 9n },
    ];
    clock.report('t/0', 'a', at(130, { offset: 9n, reached: passes }));
    clock.report('t/1', 'a', at(200, { offset: 40n, reached: [{ end: 180, offset: 33n }] }));
    clock.report('t/2', 'a', at(20, { state: 'idle', offset: 3n }));
    clock.report('t/3', 'b', at(null, { state: 'finished', offset: 0n }));

    const { cut } = clock.decide();

    expect(cut?.end).toBe(120);
    expect(Object.fromEntries(cut!.offsets)).toEqual({
      't/0': 9n,
      't/1': 33n,
      't/2': 3n,
      't/3': 0n,
    });
    clock.moved(clock.decide());
    expect(clock.decide().cut).toBeNull();
  });

  test('lies where its own boundary was passed, also of a partition that has passed the next ones', () => {
    const ahead = ruleOf({ period: 60, lookAhead: 2 });
    const clock = group(['t/0', 't/1'], ahead);
    const reached = [
      { end: 60, offset: 5n },
      { end: 120, offset: 9n },
      { end: 180, offset: 14n },
    ];
    clock.report('t/0', 'a', at(200, { offset: 20n, reached }));
    const cuts: [number, bigint][] = [];
    for (const positionMs of [70, 130, 190]) {
      clock.report('t/1', 'b', at(positionMs, { offset: 1n }));
      const decision = clock.decide();
      clock.moved(decision);
      cuts.push([decision.cut!.end, decision.cut!.offsets.get('t/0')!]);
    }

    expect(cuts).toEqual([
      [60, 5n],
      [120, 9n],
      [180, 14n],
    ]);
  });

  test('that skips boundaries lies at the first that was passed at or after its own', () => {
    const clock = group(['t/0', 't/1']);
    // One record passed 120 and 180 together; the work on those behind it is done as well.
    const reached = [
      { end: 60, offset: 5n },
      { end: 180, offset: 9n },
      { end: 240, offset: 12n },
    ];
    clock.report('t/0', 'a', at(250, { offset: 15n, reached }));
    clock.report('t/1', 'b', at(130, { offset: 1n }));

    expect(clock.decide().cut).toMatchObject({ end: 120 });
    expect(clock.decide().cut!.offsets.get('t/0')).toBe(9n);
  });

  test('ends the last period when every partition has ended', () => {
    const clock = group(['t/0', 't/1'], minute, 120);
    clock.report('t/0', 'a', at(70, { state: 'finished', offset: 10n }));
    clock.report('t/1', 'a', at(130, { state: 'finished', offset: 20n }));

    const { cut, limitMs, isFinished } = clock.decide();

    expect({ end: cut?.end, limitMs, isFinished }).toEqual({
      end: 180,
      limitMs: 180,
      isFinished: true,
    });
    expect([...cut!.offsets.values()]).toEqual([10n, 20n]);
  });

  test('is not made where there never was a record', () => {
    const clock = group(['t/0']);
    clock.report('t/0', 'a', at(null, { state: 'finished' }));

    expect(clock.decide()).toEqual({ limitMs: null, cut: null, isFinished: true });
  });
});

test('the slowest that reads is never at its limit, and the limit and the cut only grow', () => {
  const states = fc.constantFrom<PartitionState>('reading', 'idle', 'finished');
  const event = fc.record({
    key: fc.integer({ min: 0, max: 3 }),
    positionMs: fc.integer({ min: 0, max: 5_000 }),
    state: states,
  });
  const rules = fc.constantFrom(
    minute,
    ruleOf({ period: 60, lookAhead: 3 }),
    ruleOf({ drift: 90 }),
  );
  fc.assert(
    fc.property(rules, fc.array(event, { maxLength: 40 }), (rule, events) => {
      const clock = group(['0', '1', '2', '3'], rule);
      let limit = -1;
      let end = -1;
      for (const { key, positionMs, state } of events) {
        clock.report(String(key), 'a', at(positionMs, { state }));
        const decision = clock.decide();
        if (decision.limitMs === null) continue;
        expect(decision.limitMs).toBeGreaterThanOrEqual(limit);
        limit = decision.limitMs;
        const { slowest } = clock;
        if (slowest?.positionMs != null) expect(slowest.positionMs).toBeLessThan(limit);
        if (decision.cut !== null) {
          expect(decision.cut.end).toBeGreaterThan(end);
          if (slowest !== null) expect(decision.cut.end).toBeLessThanOrEqual(slowest.positionMs!);
          end = decision.cut.end;
        }
        clock.moved(decision);
      }
    }),
  );
});
