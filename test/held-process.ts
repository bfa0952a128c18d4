/**
 * A process that holds one of every kind, each with a client of its own, and is stopped for longer than its
 * sessions live. Its first code that runs again asks what it has kept.
 *
 *   held-process.ts <address> <sessionTimeoutMs> synchronous | asynchronous | untold
 *
 *   synchronous    in one long function that blocks the event loop, as a loop of synchronous writes does
 *   asynchronous   in a loop over timers
 *   untold         nobody asks: how long the `abort` event and signals made by `AbortSignal.any` take
 *
 * Prints `ready`, then one line of JSON: for each kind how it stood.
 */

import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../src/client/index.ts';
import { type Held, kinds, saysHeld } from './held-kinds.ts';

export interface Verdict {
  /** Side effects that a loop that asks the kept signal before each would have made after the stop. */
  readonly effects: number;
  /** What said that it is held: `aborted`, `throwIfAborted`, or the number of one in `says`. */
  readonly stillHeld: readonly (string | number)[];
}

/** How long after the stop: turns of the event loop, and milliseconds. */
interface Told {
  readonly turns: number;
  readonly ms: number;
}

/** When each was told though nobody asked. */
export interface Untold {
  /** A listener for `abort`. */
  readonly event: Told;
  /** A signal made by `AbortSignal.any`. */
  readonly combined: Told;
}

/** Longer than any scheduling pause, shorter than any stop. */
const stopMs = 1_500;
const askedTimes = 500;

const [address, sessionTimeoutMs, mode] = process.argv.slice(2);

async function take(name: string): Promise<Held> {
  const client = await connect(address!, {
    sessionTimeoutMs: Number(sessionTimeoutMs),
    renew: true,
  });
  const held = await kinds[name]!(client);
  await client.create(`/held/${name}`, '', { mode: 'ephemeral' });
  return held;
}

const names = Object.keys(kinds);
const held = await Promise.all(names.map(take));
const verdicts = held.map(() => ({ effects: 0, stillHeld: [] as (string | number)[] }));

/** What the first code after the stop sees, kind by kind. */
function ask(): void {
  for (const [at, { signal, says = [] }] of held.entries()) {
    const { stillHeld } = verdicts[at]!;
    // Each kind is asked by another of its ways first, as it has a client of its own.
    const ways: [string | number, () => boolean][] = [
      ['aborted', () => !signal.aborted],
      ['throwIfAborted', () => saysHeld(() => signal.throwIfAborted())],
      ...says.map((way, number): [number, () => boolean] => [number, () => saysHeld(way)]),
    ];
    for (let i = 0; i < ways.length; i++) {
      const [way, isHeld] = ways[(i + at) % ways.length]!;
      if (isHeld()) stillHeld.push(way);
    }
    for (let times = 0; times < askedTimes && !signal.aborted; times++) verdicts[at]!.effects += 1;
  }
}

/** Whether the process was stopped since the last call. */
function stopwatch(): () => boolean {
  let lastMs = performance.now();
  return () => {
    const nowMs = performance.now();
    const wasStopped = nowMs - lastMs > stopMs;
    lastMs = nowMs;
    return wasStopped;
  };
}

/** Turns of the event loop, and milliseconds, since the process went on: until all were told, or 5 s. */
async function untold(wokeMs: number): Promise<Record<string, Untold>> {
  const told = names.map((): { event?: Told; combined?: Told } => ({}));
  let turns = 0;
  const now = () => ({ turns, ms: Math.round((performance.now() - wokeMs) * 10) / 10 });
  for (const [at, { signal }] of held.entries()) {
    signal.addEventListener('abort', () => {
      told[at]!.event = now();
    });
  }
  const isOver = () => told.every(({ event, combined }) => event && combined);
  for (; !isOver() && now().ms < 5_000; turns++) {
    for (const [at, one] of combinations.entries()) if (one.aborted) told[at]!.combined ??= now();
    await setImmediate();
  }
  return Object.fromEntries(names.map((name, at) => [name, told[at] as Untold]));
}

const combinations = held.map(({ signal }) => AbortSignal.any([signal]));
const wasStopped = stopwatch(); // first: the stop follows closely on the line
process.stdout.write('ready\n');
const cell = new Int32Array(new SharedArrayBuffer(4));
while (!wasStopped()) {
  if (mode === 'asynchronous') await sleep(5);
  else Atomics.wait(cell, 0, 0, 5);
}
const wokeMs = performance.now();
if (mode !== 'untold') ask();
const byName = () => Object.fromEntries(names.map((name, at) => [name, verdicts[at]]));
const result = mode === 'untold' ? await untold(wokeMs) : byName();
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
