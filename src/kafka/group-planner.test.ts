import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { systemClock } from '../support/index.ts';
import { startTestServer } from '../testing/index.ts';
import { assignors } from './assignors.ts';
import { GroupPlanner } from './group-planner.ts';
import type { GroupView } from './group-view.ts';

test('a plan that no frame holds is written in several, with every member’s part', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const topics = Array.from({ length: 250 }, (_, i) => String(i).padStart(100, 't'));
  const consumers = Array.from({ length: 50 }, (_, i) => `g_host${i}`);
  const partitions = Array.from({ length: 50 }, (_, i) => String(i));
  const input = {
    members: new Map(consumers.map((id) => [id, new Map(topics.map((topic) => [topic, 1]))])),
    topics: new Map(topics.map((topic) => [topic, partitions])),
  };
  const planner = new GroupPlanner(client, {
    group: 'g',
    consumerId: 'g_host0',
    view: { read: async () => input } as Partial<GroupView> as GroupView,
    assignor: assignors.sticky,
    clock: systemClock,
    debounceMs: 10,
    onProblem() {},
    onLeading() {},
  });
  const stop = new AbortController();
  const running = planner.run(stop.signal);
  const failed = running.then(() => 'over', String);

  const members = '/consumers/g/plan/members';
  const written = async () => {
    const names = await client.children(members).catch(() => []);
    return Promise.race([failed, names.length]);
  };
  await expect.poll(written).toBe(consumers.length);
  const parts = await Promise.all(consumers.map((id) => client.get(`${members}/${id}`)));
  const bytes = parts.reduce((sum, { data }) => sum + data!.length, 0);

  expect(bytes).toBeGreaterThan(0xfffff);
  stop.abort();
  planner.changed();
  await running;
});
