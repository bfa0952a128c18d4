import { expect, test } from 'vitest';
import type { Listener } from '../client/index.ts';
import type { GroupClient } from './group-client.ts';
import { ZooKeeperTopics } from './topic-directory.ts';

test('a topic that is made while the list is on its way is not missed', async () => {
  const lists = [['a'], ['a', 'b']];
  let asked = 0;
  const children = async (path: string, { watch }: { watch: Listener }) => {
    const list = lists[asked++]!;
    // The list and the news of its change come in one chunk: both are known before anybody goes on.
    if (asked === 1) watch({ type: 'childrenChanged', path, zxid: 2n });
    return list;
  };
  const topics = new ZooKeeperTopics({ children } as unknown as GroupClient, '0.8', () => {});
  let changes = 0;
  topics.onChange(() => changes++);

  expect(await topics.list()).toEqual(['a']);
  expect(changes).toBe(1);

  expect(await topics.list()).toEqual(['a', 'b']);
  expect(await topics.list()).toEqual(['a', 'b']);
  expect(asked).toBe(2); // kept while its watch is set
});

test.each([1_000_000, 150_000])(
  '0.7: 180 brokers that each count %i partitions are problems, and take no memory',
  async (count) => {
    const problems = new Map<string, string>();
    const brokers = Array.from({ length: 60 }, (_, broker) => String(broker));
    const client = {
      children: async () => brokers,
      get: async () => ({ data: Buffer.from(String(count)) }),
    };
    const topics = new ZooKeeperTopics(client as unknown as GroupClient, '0.7', (problem) =>
      problems.set(problem.path, problem.why),
    );

    const found = await Promise.all(['a', 'b', 'c'].map((topic) => topics.partitions(topic)));

    expect(found.flat().length).toBeLessThanOrEqual(200_000);
    expect(problems.size).toBeGreaterThanOrEqual(179);
    expect(problems.get('/brokers/topics/c/59')).toMatch(/200000/);
  },
);

test('0.7: a topic that shrinks makes room for others', async () => {
  const counts: Record<string, number> = { a: 150_000, b: 100_000 };
  const problems: string[] = [];
  const listeners: Listener[] = [];
  const client = {
    async children(_: string, { watch }: { watch: Listener }) {
      listeners.push(watch);
      return ['1'];
    },
    get: async (path: string) => ({ data: Buffer.from(String(counts[path.split('/')[3]!])) }),
  };
  const topics = new ZooKeeperTopics(client as unknown as GroupClient, '0.7', ({ path }) =>
    problems.push(path),
  );

  const before = [await topics.partitions('a'), await topics.partitions('b')];
  counts.a = 1;
  for (const heard of listeners) heard({ type: 'childrenChanged', path: '', zxid: 1n });
  const after = [await topics.partitions('a'), await topics.partitions('b')];

  expect(before.map(({ length }) => length)).toEqual([150_000, 0]);
  expect(after.map(({ length }) => length)).toEqual([1, 100_000]);
  expect(problems).toEqual(['/brokers/topics/b/1']);
});
