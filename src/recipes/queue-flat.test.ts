import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Queue } from './queue.ts';
import { encodePayload } from './queue-payload.ts';

/** A list holds a hundred items. */
const options = { layout: 'curator', listBytesMax: 1_024 + 21 * 100 } as const;
const items = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);

test('two producers who fill a flat queue at the same time leave it such that it can be taken from', async () => {
  await using server = await startTestServer();
  await using mine = await connect(server.address);
  await using theirs = await connect(server.address);
  const [queue, other] = [new Queue(mine, '/q', options), new Queue(theirs, '/q', options)];
  await Promise.all([queue.putMany(items(25)), other.putMany(items(25))]);

  // Both look before either puts: each of them sees room for its own.
  for (let round = 0; round < 5; round++) {
    await Promise.allSettled([queue.putMany(items(7)), other.putMany(items(7))]);
  }

  await expect(queue.putMany(items(7))).rejects.toMatchObject({ code: 'LIST_TOO_LONG' });
  const item = (await queue.tryTake())!;
  expect(item.id).toMatch(/^queue-/);
  await item.confirm();
  await Promise.all([queue.close(), other.close()]);
});

test('a flat queue that takes no more puts can be counted, taken from and requeued to', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await using other = await connect(server.address);
  const queue = new Queue(client, '/q', options);
  await queue.putMany(items(90));
  // As Java does, which asks nobody.
  for (let i = 0; i < 10; i++) {
    await other.create('/q/queue-', encodePayload([Buffer.from('x')]), {
      mode: 'persistentSequential',
    });
  }

  expect(await queue.size()).toEqual({ waiting: 100, claimed: 0 });
  await expect(queue.put('one too many')).rejects.toThrow('101 items are more than the 90');
  await (await queue.take()).requeue();
  expect(await queue.size()).toEqual({ waiting: 100, claimed: 0 });
  await (await queue.take()).confirm();
  expect(await queue.size()).toEqual({ waiting: 99, claimed: 0 });
  await queue.close();
});

test('many producers with long lists of items leave a flat queue such that it can be taken from', async () => {
  await using server = await startTestServer();
  const clients = await Promise.all(Array.from({ length: 40 }, () => connect(server.address)));
  const thousand = { layout: 'curator', listBytesMax: 1_024 + 21 * 1_000 } as const;
  const queues = clients.map((client) => new Queue(client, '/q', thousand));
  await queues[0]!.putMany(items(800));

  await Promise.allSettled(queues.map((queue) => queue.putMany(items(20))));

  expect((await clients[0]!.exists('/q'))?.numChildren).toBeLessThanOrEqual(1_000);
  expect(String((await queues[0]!.take()).data)).toBe('0');
  await Promise.all(clients.map((client) => client.close()));
});

/** As Curator's DistributedIdQueue puts them. */
async function putWithIds(client: Client, count: number, idLength: number): Promise<void> {
  const path = `/q/queue-|${'x'.repeat(idLength)}|`;
  const data = encodePayload([Buffer.from('x')]);
  const create = () => client.create(path, data, { mode: 'persistentSequential' });
  await Promise.all(Array.from({ length: count }, create));
}

test('what the ids of Curator take in a list counts for who puts', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const queue = new Queue(client, '/q', options);
  await client.create('/q');
  await putWithIds(client, 40, 36); // 58 bytes each: 37 of them would be too many for a list

  const put = queue.put('one too many');

  await expect(put).rejects.toThrow('41 items are more than the 33');
  await (await queue.take()).confirm();
  await queue.close();
});

test('a list whose names are too long to be read is told of as such, and the link is lost once', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address, { frameBytesMax: 16 * 1024, readRetries: 0 });
  await using other = await connect(server.address);
  const queue = new Queue(client, '/q', { layout: 'curator', listBytesMax: 16 * 1024 });
  await queue.put('x');
  await putWithIds(other, 200, 100);
  let losses = 0;
  client.on('state', ({ name }) => {
    if (name === 'suspended') losses += 1;
  });

  for (const use of [() => queue.size(), () => queue.tryTake(), () => queue.put('x')]) {
    await expect(use()).rejects.toMatchObject({ code: 'LIST_TOO_LONG' });
  }
  const names = (await other.children('/q')).filter((name) => name.includes('|'));
  await Promise.all(names.slice(0, 100).map((name) => other.delete(`/q/${name}`)));

  expect(losses).toBe(1);
  expect(await queue.size()).toEqual({ waiting: 101, claimed: 0 });
  await queue.close();
});
