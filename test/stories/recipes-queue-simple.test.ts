import { expect, test } from 'vitest';
import { type QueueError, SimpleQueue } from '../../src/recipes/index.ts';
import { failureOf } from '../faults.ts';
import { startZk } from '../zk.ts';

const failure = failureOf<QueueError>;

test('what is put is removed as it is taken, in its order, under Curator’s names', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [new SimpleQueue(client, '/a/q'), new SimpleQueue(witness, '/a/q')];

  for (const data of ['1', '2', '3']) await mine.put(data);

  expect((await witness.children('/a/q')).sort()).toEqual([
    'qn-0000000000',
    'qn-0000000001',
    'qn-0000000002',
  ]);
  expect(String((await theirs.peek())?.data)).toBe('1');
  expect([String(await theirs.take()), String(await mine.take())]).toEqual(['1', '2']);
  expect(await mine.size()).toBe(1);
  expect(String((await theirs.tryTake())?.data)).toBe('3');
  expect([await theirs.tryTake(), await theirs.peek()]).toEqual([null, null]);
});

test('who finds nothing waits, and a wait that is called off loses nothing and leaves no watch', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [new SimpleQueue(client, '/q'), new SimpleQueue(witness, '/q')];
  const abort = new AbortController();

  const waits = [mine.take(), failure(mine.take({ signal: abort.signal }))];
  await expect.poll(() => client.load.watches).toBe(1);
  abort.abort(new Error('enough'));
  await theirs.put('a');

  expect([String(await waits[0]), ((await waits[1]) as Error).message]).toEqual(['a', 'enough']);
  expect((await failure(mine.take({ timeoutMs: 30 }))).code).toBe('TIMEOUT');
  const last = failure(mine.take());
  await mine.close();
  expect((await last).code).toBe('CLOSED');
  await expect.poll(() => client.load.watches).toBe(0);
});

test('each item has one taker, and none is lost or doubled, while links break', async () => {
  await using zk = await startZk();
  const clients = await Promise.all(
    [1, 2, 3].map(() => zk.connect({ backoff: { firstMs: 1, maxMs: 5 } })),
  );
  const queues = clients.map((client) => new SimpleQueue(client, '/q'));
  let replies = 0;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 41 === 0 ? 'cut' : 'pass';
  const taken: string[] = [];

  await Promise.all([
    (async () => {
      for (let i = 0; i < 60; i++) await queues[0]!.put(`${i}`);
    })(),
    ...queues.slice(1).map(async (queue) => {
      for (let i = 0; i < 30; i++) taken.push(String(await queue.take()));
    }),
  ]);

  expect(zk.link.stats.cuts).toBeGreaterThan(3);
  expect(taken.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
}, 60_000);

test('a list that would not fit into a reply is refused before it is asked for', async () => {
  await using zk = await startZk();
  const queue = new SimpleQueue(await zk.connect(), '/q', { listBytesMax: 1_024 + 18 * 3 });
  for (let i = 0; i < 3; i++) await queue.put(`${i}`);

  expect((await failure(queue.put('one too many'))).code).toBe('LIST_TOO_LONG');
  expect(String(await queue.take())).toBe('0');
});
