import { expect, test } from 'vitest';
import type { Client } from '../client/index.ts';
import { ManualClock } from '../support/index.ts';
import { Feed } from './feed.ts';
import { LiveTree } from './live.ts';

test('what is shown is old since the link was lost, and not since the session was over', () => {
  const clock = new ManualClock();
  let moved: (state: { name: string }, before: { name: string }) => void = () => {};
  const client = {
    state: { name: 'connected' },
    on: (_: string, listener: typeof moved) => {
      moved = listener;
    },
    off: () => {},
    addWatch: async () => {},
    removeWatches: async () => {},
  } as unknown as Client;
  const live = new LiveTree(client, new Feed(), clock);
  clock.advance(60_000);

  moved({ name: 'suspended' }, { name: 'connected' });
  const lostMs = live.link.sinceMs;
  clock.advance(30_000);
  moved({ name: 'expired' }, { name: 'suspended' });

  expect(live.link).toMatchObject({ state: 'expired', sinceMs: lostMs });
  clock.advance(5_000);
  moved({ name: 'connected' }, { name: 'connecting' });
  expect(live.link).toMatchObject({ state: 'connected', sinceMs: lostMs + 35_000 });
  live.close();
});
