/** What is known of a partition's past: what was seen, and how much was not. */

import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { IsrHistory } from './isr-history.ts';

const path = '/brokers/topics/t/partitions/0/state';
const put = (isr: number[], leader = 1) =>
  JSON.stringify({ controller_epoch: 1, leader, version: 1, leader_epoch: 3, isr });
const plant = (client: Client) => client.create(path, put([1, 2]), { parents: true });

test('changes that nobody saw are counted by the version of the node', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await plant(client);
  await client.set(path, put([1]));
  const history = new IsrHistory(client);

  await history.of('t', 0);
  await client.set(path, put([1, 2]));
  await client.set(path, put([2], -1));
  const states = await history.of('t', 0);

  expect(states).toMatchObject([
    { isr: [1], leader: 1, leaderEpoch: 3, missed: 1 },
    { isr: [2], leader: null, missed: 1 },
  ]);
  expect(history.count('t', 0)).toBe(1);
});

test('each change that is told is read once, in its order', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await plant(client);
  const history = new IsrHistory(client);
  await client.addWatch('/', 'persistentRecursive', ({ path: at }) => history.changed(at));
  await history.of('t', 0);

  for (const [at, isr] of [[1], [1, 2], [2]].entries()) {
    await client.set(path, put(isr));
    await expect.poll(() => history.count('t', 0)).toBe(at + 1);
  }

  const states = await history.of('t', 0);
  expect(states.map(({ isr }) => isr)).toEqual([[1, 2], [1], [1, 2], [2]]);
  expect(states.every(({ missed }) => missed === 0)).toBe(true);
});

test('a partition that was deleted and made again begins anew, and one that is gone has no past', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await plant(client);
  const history = new IsrHistory(client);
  await history.of('t', 0);
  await client.delete(path);
  expect(await history.of('t', 0)).toEqual([]);
  await plant(client);

  expect(await history.of('t', 0)).toMatchObject([{ isr: [1, 2], missed: 0 }]);
  await client.delete(path);
  await plant(client);
  await client.set(path, put([2]));
  expect(await history.of('t', 0)).toMatchObject([{ isr: [2], missed: 1 }]);
});

test('a state that makes no sense, and any other path, is left out', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await client.create(path, 'nonsense', { parents: true });
  const history = new IsrHistory(client);

  history.changed('/brokers/topics/t');
  history.changed('/elsewhere');

  expect(await history.of('t', 0)).toEqual([]);
});
