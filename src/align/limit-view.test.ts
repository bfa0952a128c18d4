import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { SessionState } from '../client/index.ts';
import { ManualClock } from '../support/index.ts';
import { formatLimit, type StoredLimit } from './layout.ts';
import { LimitView } from './limit-view.ts';
import { ruleOf, withHold } from './rule.ts';
import type { AlignClient } from './session.ts';

/** A client with one node in it, and a link that the test cuts. */
class OneNode extends EventEmitter {
  state = { name: 'connected', readOnly: false } as SessionState;
  sessionId = 1n;
  data = '';
  zxid = 0n;
  #watch: (() => void) | undefined;

  write(limit: Partial<StoredLimit>, zxid = this.zxid + 1n): Promise<void> {
    const rule = ruleOf({ period: 60 });
    const full = { epoch: 1n, limitMs: 60, rule, cut: null, isFinished: false, movedAtMs: 0 };
    return this.put(formatLimit({ ...full, ...limit }), zxid);
  }

  async put(data: string, zxid = this.zxid + 1n): Promise<void> {
    this.data = data;
    this.zxid = zxid;
    this.#watch?.();
    await new Promise((resolve) => void setImmediate(resolve));
  }

  async get(_: string, { watch }: { watch: () => void }) {
    this.#watch = watch;
    return { data: Buffer.from(this.data), stat: { mzxid: this.zxid } };
  }

  move(name: 'connected' | 'suspended'): void {
    this.state = { name, readOnly: false } as SessionState;
    this.emit('state', this.state);
  }

  async removeWatches(): Promise<void> {}
}

async function start(failOpenMs = 0) {
  const node = new OneNode();
  const clock = new ManualClock();
  const told = { problems: [] as string[], open: [] as boolean[] };
  await node.write({});
  const view = new LimitView(node as unknown as AlignClient, {
    path: '/limit',
    clock,
    failOpenMs,
    onLimit: () => {},
    onOpen: (isOpen) => told.open.push(isOpen),
    onProblem: (error) => told.problems.push((error as Error).message),
    onFailure: (error) => told.problems.push(String(error)),
  });
  expect(view.effectiveMs).toBe(Number.NEGATIVE_INFINITY);
  view.start();
  await node.write({});
  return { node, view, clock, told };
}

test('takes a limit forward and never back, whoever says so', async () => {
  const { node, view, told } = await start();
  expect(view.effectiveMs).toBe(60);

  await node.write({ epoch: 5n, limitMs: 120 });
  expect(view.effectiveMs).toBe(120);
  await node.write({ epoch: 4n, limitMs: 600 }); // a leader of before
  expect(view.effectiveMs).toBe(120);
  await node.write({ epoch: 5n, limitMs: 60 });
  expect(view.effectiveMs).toBe(120);
  expect(told.problems).toEqual([expect.stringMatching(/not taken back/)]);
});

test('what a server that is behind says counts for nothing', async () => {
  const { node, view } = await start();
  await node.write({ limitMs: 600 }, 50n);

  await node.write({ limitMs: 900 }, 40n);

  expect(view.effectiveMs).toBe(600);
});

test('garbage is told, and the limit of before holds', async () => {
  const { node, view, told } = await start();

  await node.put('{"version":1}');

  expect(view.effectiveMs).toBe(60);
  expect(told.problems).toEqual([
    expect.stringMatching(/^\/limit: epoch must be a decimal number/),
  ]);
});

test('without a link the limit stands; where it may fail open, for so long and no longer', async () => {
  const closed = await start();
  closed.node.move('suspended');
  expect(closed.view.effectiveMs).toBe(60);

  const { node, view, clock, told } = await start(1_000);
  node.move('suspended');
  expect(view.effectiveMs).toBe(Number.POSITIVE_INFINITY);
  clock.advance(1_000);
  expect(view.effectiveMs).toBe(60);
  node.move('connected');
  node.move('suspended');
  expect(view.effectiveMs).toBe(Number.POSITIVE_INFINITY);
  node.move('connected');
  expect(view.effectiveMs).toBe(60);
  expect(told.open).toEqual([true, false, true, false]);
});

test('a rule that is off has no limit', async () => {
  const { node, view } = await start();

  await node.write({ rule: ruleOf({ off: true, step: 60 }) });

  expect(view.effectiveMs).toBe(Number.POSITIVE_INFINITY);
});

test('what people hold is held, also where the rule is off, and without a link', async () => {
  const { node, view } = await start(1_000);
  await node.write({ rule: withHold(ruleOf({ off: true, step: 60 }), 300) });
  expect({ ms: view.effectiveMs, isPaused: view.isPaused }).toEqual({ ms: 300, isPaused: false });

  await node.write({ rule: withHold(ruleOf({ period: 60 }), 90), limitMs: 120 });
  expect(view.isPaused).toBe(true);
  node.move('suspended');
  expect(view.effectiveMs).toBe(120);
  node.move('connected');

  await node.write({ limitMs: 120 });
  expect(view.isPaused).toBe(false);
});
