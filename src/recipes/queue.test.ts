import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Queue } from './queue.ts';

/** Requests between a put and the moment from which the server is quiet, with so many waiting. */
async function requestsPerItem(takers: number): Promise<number> {
  await using server = await startTestServer();
  const producer = await connect(`127.0.0.1:${server.port}`);
  const clients = await Promise.all(
    Array.from({ length: takers }, () => connect(`127.0.0.1:${server.port}`)),
  );
  const put = new Queue(producer, '/jobs');
  await put.put('warm up');
  await (await put.take()).confirm();
  let taken = 0;
  const takes = clients.map((client) =>
    new Queue(client, '/jobs').take().then(async (item) => {
      taken += 1;
      await item.confirm();
    }),
  );
  const inLine = async () => (await producer.children('/jobs/takers')).length;
  await expect.poll(inLine, { timeout: 10_000 }).toBe(takers);
  // The head of the line watches the list of items and the one bucket, the third the two before it; each
  // of the others one node, and all their own.
  await expect
    .poll(() => clients.reduce((sum, it) => sum + it.load.watches, 0))
    .toBe(2 * takers + 2);
  const quiet = async () => {
    for (let seen = -1; seen !== server.log.length; ) {
      seen = server.log.length;
      for (const client of clients) await client.sync('/');
      seen += clients.length;
    }
  };
  await quiet();
  const own = producer.sessionId;
  const asked = () =>
    server.log.filter(({ op, sessionId }) => sessionId !== own && op !== 'sync' && op !== 'ping')
      .length;
  const before = asked();
  const items = 3;

  for (let i = 1; i <= items; i++) {
    await put.put(`${i}`);
    await expect.poll(() => taken).toBe(i);
    await expect.poll(inLine).toBe(takers - i);
  }
  await quiet();

  const after = asked();
  for (let i = items; i < takers; i++) await put.put(`${i}`);
  await Promise.all(takes);
  await Promise.all([producer, ...clients].map((client) => client.close()));
  return (after - before) / items;
}

test('a put wakes one taker, however many wait', async () => {
  const [few, many] = [await requestsPerItem(5), await requestsPerItem(30)];

  expect(few).toBeLessThan(40);
  expect(many).toBeLessThan(few + 10);
}, 60_000);

test.for(['buckets', 'curator'] as const)(
  'who takes many gets as many as are asked for, as long as there are as many (%s)',
  async (layout) => {
    await using server = await startTestServer();
    await using client = await connect(server.address);
    const queue = new Queue(client, '/jobs', { layout });
    await queue.putMany(Array.from({ length: 350 }, (_, i) => `${i}`));

    const taken: string[][] = [];
    for (let i = 0; i < 4; i++) {
      taken.push((await queue.takeMany(100)).map(({ data }) => String(data)));
    }

    expect(taken.map((items) => items.length)).toEqual([100, 100, 100, 50]);
    expect(taken.flat()).toEqual(Array.from({ length: 350 }, (_, i) => `${i}`));
    await queue.close();
  },
);
