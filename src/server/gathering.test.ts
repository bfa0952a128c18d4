import { expect, test } from 'vitest';
import type { Connection } from './connection.ts';
import { Gathering } from './gathering.ts';

const link = (state: { isLive?: boolean; inFlight?: number; hasSpentWatch?: boolean } = {}) =>
  ({ isLive: true, inFlight: 0, awaitedRound: 0, lookRound: 0, ...state }) as unknown as Connection;

test('it is over once all who were answered have spoken', () => {
  const gathering = new Gathering();
  const [a, b, stranger] = [link(), link(), link()];
  gathering.answered([a, b], 0);
  expect(gathering.isOn(0.01)).toBe(true);
  gathering.heard(a);
  gathering.heard(a);
  gathering.heard(stranger);
  expect(gathering.isOn(0.02)).toBe(true);
  gathering.heard(b);

  expect(gathering.isOn(0.03)).toBe(false);
});

test('nobody is waited for longer than a moment, by time or by turns', () => {
  const gathering = new Gathering();
  gathering.answered([link()], 5);
  expect(gathering.isOn(5.09)).toBe(true);
  expect(gathering.isOn(5.1)).toBe(false);

  gathering.answered([link()], 7);
  let turns = 0;
  while (gathering.isOn(7)) turns += 1;
  expect(turns).toBeLessThan(200);
});

test('without a disk, who was told that its watch is spent is waited for until it reads, or for a moment', () => {
  const gathering = new Gathering({ waitsForLooks: true });
  const told = () => link({ hasSpentWatch: true });
  const [a, b] = [told(), told()];
  gathering.answered([a, b], 0);
  gathering.heard(a);
  gathering.heard(b);
  expect(gathering.isOn(0.2)).toBe(true);
  gathering.looked(a);
  gathering.looked(a);
  expect(gathering.isOn(0.2)).toBe(true);
  gathering.looked(b);
  expect(gathering.isOn(0.2)).toBe(false);

  const late = told();
  gathering.answered([late], 5);
  gathering.heard(late);
  expect(gathering.isOn(5.29)).toBe(true);
  expect(gathering.isOn(5.31)).toBe(false);
});

test('with a disk, nobody is waited for longer than it takes to be heard', () => {
  const gathering = new Gathering();
  const told = link({ hasSpentWatch: true });
  gathering.answered([told], 0);
  gathering.heard(told);

  expect(gathering.isOn(0.01)).toBe(false);
});

test('not waited for: a link that is gone, that waits itself, that was answered before; or too many', () => {
  const gathering = new Gathering();
  gathering.answered([link({ isLive: false }), link({ inFlight: 1 })], 0);
  expect(gathering.isOn(0)).toBe(false);

  const earlier = link();
  gathering.answered([earlier], 0);
  gathering.answered([link()], 0);
  gathering.heard(earlier);
  expect(gathering.isOn(0)).toBe(true);

  gathering.answered(
    Array.from({ length: 65 }, () => link()),
    0,
  );
  expect(gathering.isOn(0)).toBe(false);
});

test('while links come, turn after turn, their sessions are waited for, and then no longer', () => {
  const gathering = new Gathering();
  expect(gathering.isOn(0)).toBe(false);
  for (let turn = 0; turn < 20; turn++) {
    gathering.came();
    expect(gathering.isOn(turn)).toBe(true);
  }
  expect(gathering.isOn(20)).toBe(false);

  gathering.came();
  expect(gathering.isOn(21)).toBe(true);
});

test('links that come without end hold up nobody for long', () => {
  const gathering = new Gathering();
  const next = () => {
    gathering.came();
    return gathering.isOn(0);
  };
  for (let batch = 0; batch < 3; batch++) {
    let turns = 0;
    while (next()) turns += 1;
    expect(turns).toBe(40);
  }
});
