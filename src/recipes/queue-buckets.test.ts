import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Queue } from './queue.ts';

const items = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);

async function bucketSizes(client: Client, path: string): Promise<number[]> {
  const names = await client.children(path);
  return Promise.all(
    names.map(async (name) => (await client.exists(`${path}/${name}`))?.numChildren ?? 0),
  );
}

test('many producers who find one bucket open leave it such that it can be taken from', async () => {
  await using server = await startTestServer();
  const clients = await Promise.all(Array.from({ length: 45 }, () => connect(server.address)));
  const queues = clients.map((client) => new Queue(client, '/q'));
  // One by one, so that each has found the bucket when there were fewer than there are in the end.
  for (const queue of queues) await queue.put('first');

  await Promise.all(queues.map((queue) => queue.putMany(items(500))));

  // With a claim for each of them: twice as many names.
  expect(Math.max(...(await bucketSizes(clients[0]!, '/q/items')))).toBeLessThan(7_000);
  expect(await queues[0]!.size()).toEqual({ waiting: 45 * 501, claimed: 0 });
  expect(String((await queues[0]!.take()).data)).toBe('first');
  await Promise.all(clients.map((client) => client.close()));
});

test.for([
  ['requeued', 'requeue', '/q/items'],
  ['buried', 'bury', '/q/dead'],
] as const)(
  'items that are %s all at once do not all go into one bucket',
  async ([, how, path]) => {
    await using server = await startTestServer();
    await using client = await connect(server.address);
    const queue = new Queue(client, '/q', { bucketItemsMax: 100 });
    await queue.putMany(items(1_000));
    const held = await queue.takeMany(1_000);

    await Promise.all(held.map((item) => item[how]()));

    const sizes = await bucketSizes(client, path);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(1_000);
    expect(Math.max(...sizes)).toBeLessThan(600);
  },
);
