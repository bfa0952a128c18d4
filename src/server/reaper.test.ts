import { expect, test, vi } from 'vitest';
import { openAcl } from '../protocol/index.ts';
import { MovableClock } from '../testing/index.ts';
import { Tree } from '../tree/index.ts';
import { Reaper } from './reaper.ts';

const nodes = 50_000;

/** Nodes that live for a second. */
function grown(wallMs: number, count = nodes): Tree {
  const tree = new Tree({ extendedTypes: true });
  for (let i = 0; i < count; i++) {
    const head = { clientId: 1n, cxid: 1, zxid: i + 1, timeMs: wallMs };
    const txn = { path: `/${i}`, data: null, acl: [...openAcl], parentCVersion: -1, ttl: 1_000n };
    tree.apply(head, { type: 'createTTL', txn });
  }
  return tree;
}

test.each([
  [1_000, 59],
  [1_000, 10],
  [1_000, 121],
  [60_000, 10],
])(
  'looking every %d ms, no more than %d go in a minute, and hardly less',
  (intervalMs, perMinuteMax) => {
    const clock = new MovableClock();
    const gone: string[] = [];
    const options = { intervalMs, perMinuteMax, neverUsedMs: 0 };
    const reaper = new Reaper(grown(clock.wallMs() - 2_000, 1_000), clock, options, (path) =>
      gone.push(path),
    );
    reaper.start();

    for (let ms = 0; ms < 60_000; ms += intervalMs) clock.advance(intervalMs);
    reaper.stop();

    expect(gone.length).toBeLessThanOrEqual(perMinuteMax);
    expect(gone.length).toBeGreaterThanOrEqual(perMinuteMax - 1);
  },
);

test('many nodes are looked at bit by bit, all of them, and again after a while', async () => {
  const clock = new MovableClock();
  const tree = grown(clock.wallMs());
  const find = vi.spyOn(tree, 'find');
  const gone: string[] = [];
  const options = { intervalMs: 60_000, perMinuteMax: 40_000, neverUsedMs: 0 };
  const reaper = new Reaper(tree, clock, options, (path) => gone.push(path));
  reaper.start();

  clock.advance(60_000);
  expect(find.mock.calls.length).toBeLessThan(nodes / 4);
  while (gone.length < 40_000) await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(new Set(gone).size).toBe(40_000);

  clock.advance(60_000);
  reaper.stop();
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(gone.length).toBeLessThan(60_000);
});

test('what is there is looked at again when it may be due or something changed, and else left alone', () => {
  const clock = new MovableClock();
  const tree = grown(clock.wallMs() + 3_600_000, 100); // as by a clock that is an hour ahead
  const find = vi.spyOn(tree, 'find');
  const gone: string[] = [];
  const options = { intervalMs: 60_000, perMinuteMax: 1_000, neverUsedMs: 0 };
  const reaper = new Reaper(tree, clock, options, (path) => gone.push(path));
  reaper.start();

  clock.advance(3_600_000 - 60_000);
  expect(find).toHaveBeenCalledTimes(100);
  const txn = { path: '/new', data: null, acl: [...openAcl], parentCVersion: -1, ttl: 1_000n };
  const head = { clientId: 1n, cxid: 1, zxid: 101, timeMs: clock.wallMs() - 2_000 };
  tree.apply(head, { type: 'createTTL', txn });
  find.mockClear();
  clock.advance(60_000);
  expect(gone).toEqual(['/new']);
  clock.advance(60_000);
  reaper.stop();

  expect(new Set(gone).size).toBe(101);
});

test('what can not be asked to go now is asked again at the next look', () => {
  const clock = new MovableClock();
  const asked: string[] = [];
  const options = { intervalMs: 60_000, perMinuteMax: 1_000, neverUsedMs: 0 };
  const reaper = new Reaper(grown(clock.wallMs() - 2_000, 1), clock, options, (path) => {
    asked.push(path);
    return asked.length > 2;
  });
  reaper.start();

  clock.advance(600_000);
  reaper.stop();

  expect(asked).toEqual(['/0', '/0', '/0']);
});
