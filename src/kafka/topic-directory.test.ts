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
