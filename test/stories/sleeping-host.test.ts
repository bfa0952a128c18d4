/** What a client knows of all that it holds when its host was suspended, or its calendar was set. */

import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { Lock } from '../../src/recipes/index.ts';
import { hostClock } from '../../src/support/index.ts';
import { type Held, kinds, saysHeld } from '../held-kinds.ts';
import { startZk, type Zk } from '../zk.ts';

const hourMs = 3_600_000;

/** This host, which also sleeps and has its calendar set when the test says so. */
function host() {
  let [sleptMs, setMs] = [0, 0];
  const clock = hostClock({
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now() + sleptMs + setMs,
    uptimeMs: () => performance.now() + sleptMs + 0.5,
  });
  return {
    clock,
    sleep: (ms: number) => {
      sleptMs += ms;
    },
    setCalendar: (byMs: number) => {
      setMs += byMs;
    },
  };
}

type Host = ReturnType<typeof host>;

async function holdAll(zk: Zk, { clock }: Host): Promise<Map<string, Held>> {
  const take = async (name: string): Promise<[string, Held]> => {
    const client = await zk.connect({ clock, renew: true });
    return [name, await kinds[name]!(client)];
  };
  return new Map(await Promise.all(Object.keys(kinds).map(take)));
}

/** What each says of itself: its signal, and all else. */
const standing = (held: Map<string, Held>) =>
  [...held].map(([name, { signal, says = [] }]) => [name, !signal.aborted, ...says.map(saysHeld)]);

const all = (held: Map<string, Held>, isHeld: boolean) =>
  [...held].map(([name, { says = [] }]) => [name, isHeld, ...says.map(() => isHeld)]);

test('a host that slept for longer than its sessions live has lost all that it held', async () => {
  await using zk = await startZk();
  const ours = host();
  const held = await holdAll(zk, ours);
  expect(standing(held)).toEqual(all(held, true));

  ours.sleep(hourMs);

  expect(standing(held)).toEqual(all(held, false));
});

test('a calendar that is set, forwards or backwards, ends nothing', async () => {
  await using zk = await startZk();
  const ours = host();
  const held = await holdAll(zk, ours);

  for (const byMs of [hourMs, -2 * hourMs, 40 * hourMs]) {
    ours.setCalendar(byMs);
    expect(standing(held)).toEqual(all(held, true));
  }
});

test('a host that slept for a part of the session timeout still holds what it held', async () => {
  await using zk = await startZk();
  const ours = host();
  const client = await zk.connect({ clock: ours.clock, sessionTimeoutMs: 10_000 });
  const grant = await new Lock(client, '/lock').acquire();

  ours.sleep(4_000);

  expect(grant.isHeld).toBe(true);
  expect((client.state as { deadlineMs: number }).deadlineMs - ours.clock.nowMs()).toBeLessThan(
    6_000,
  );
});

test('who listens for the end of a grant hears of it within seconds of waking', async () => {
  await using zk = await startZk();
  const ours = host();
  const client = await zk.connect({ clock: ours.clock, sessionTimeoutMs: 30_000 });
  const grant = await new Lock(client, '/lock').acquire();
  const ended = once(grant.signal, 'abort');
  await grant.ready;
  await vi.waitFor(() => expect(client.load).toMatchObject({ inFlight: 0, waiting: 0 }));
  await setImmediate(); // nothing is on its way any more that would make the client look at its clock
  const startMs = performance.now();

  ours.sleep(hourMs);
  await ended;

  expect(performance.now() - startMs).toBeLessThan(5_000);
});

test('a request that was made just before the host slept does not leave after it', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const ours = host();
  const client = await zk.connect({ clock: ours.clock });

  const made = [client.create('/first', ''), client.create('/second', '')];
  ours.sleep(hourMs);

  for (const outcome of await Promise.allSettled(made)) {
    expect(outcome).toMatchObject({ reason: { code: 'SESSION_EXPIRED', outcomeUnknown: false } });
  }
  expect(await witness.children('/')).toEqual([]);
});
