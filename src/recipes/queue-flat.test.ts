import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
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
    await other.create('/q/queue-', {
      data: encodePayload([Buffer.from('x')]),
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
