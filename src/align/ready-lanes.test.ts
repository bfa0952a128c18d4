import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Lane } from './lane.ts';
import { ReadyLanes } from './ready-lanes.ts';

interface Fake {
  name: number;
  isReady: boolean;
  isHeldBack: boolean;
  nextTimeMs: number | null;
}

const lane = (name: number, nextTimeMs: number | null = 0): Fake => ({
  name,
  isReady: true,
  isHeldBack: false,
  nextTimeMs,
});
const as = (fake: Fake) => fake as unknown as Lane;
const nameOf = (found: Lane | undefined) => (found as unknown as Fake | undefined)?.name;

test('the earliest is in front; one without a time before all; of equals who came first', () => {
  const ready = new ReadyLanes();
  const all = [lane(0, 30), lane(1, 10), lane(2, 10), lane(3, null)];
  for (const one of all) ready.look(as(one));

  const order: (number | undefined)[] = [];
  for (let i = 0; i <= all.length; i++) {
    const first = ready.first;
    order.push(nameOf(first));
    if (first === undefined) break;
    (first as unknown as Fake).isReady = false;
    ready.look(first);
  }

  expect(order).toEqual([3, 1, 2, 0, undefined]);
});

test('one that went without a word is passed over', () => {
  const ready = new ReadyLanes();
  const [a, b] = [lane(0, 1), lane(1, 2)];
  ready.look(as(a));
  ready.look(as(b));

  a.isReady = false;

  expect(nameOf(ready.first)).toBe(1);
});

test('it is held back when there is something and none of it may come', () => {
  const ready = new ReadyLanes();
  const [a, b] = [lane(0, 1), { ...lane(1, 2), isReady: false, isHeldBack: true }];
  ready.look(as(a));
  ready.look(as(b));
  expect(ready.isHeldBack).toBe(false);

  a.isReady = false;
  ready.look(as(a));
  expect(ready.isHeldBack).toBe(true);

  b.isHeldBack = false;
  expect(ready.isHeldBack).toBe(false);
});

test('whatever happens to lanes, the first is the earliest of those that are ready', () => {
  const change = fc.record({ at: fc.nat(9), time: fc.nat(20), isReady: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const ready = new ReadyLanes();
      const all = Array.from({ length: 10 }, (_, i) => ({ ...lane(i), isReady: false }));
      for (const { at, time, isReady } of changes) {
        const one = all[at]!;
        one.nextTimeMs = time;
        one.isReady = isReady;
        ready.look(as(one));
        const times = all.filter((each) => each.isReady).map(({ nextTimeMs }) => nextTimeMs!);

        const first = ready.first as unknown as Fake | undefined;
        expect(first?.nextTimeMs).toBe(times.length === 0 ? undefined : Math.min(...times));
      }
    }),
  );
});
