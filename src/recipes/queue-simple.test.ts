import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { SimpleQueue } from './queue-simple.ts';

/** A list holds a hundred items. */
const options = { listBytesMax: 1_024 + 18 * 100 };

test.for([
  ['one producer who puts', 1],
  ['five producers who put', 5],
] as const)('%s more at once than there is room for can still be taken from', async ([, count]) => {
  await using server = await startTestServer();
  const clients = await Promise.all(Array.from({ length: count }, () => connect(server.address)));
  const queues = clients.map((client) => new SimpleQueue(client, '/q', options));
  for (let i = 0; i < 85; i++) await queues[0]!.put(`${i}`);

  const puts = Array.from({ length: 50 }, (_, i) => queues[i % count]!.put('more'));
  const refused = (await Promise.allSettled(puts)).filter(({ status }) => status === 'rejected');

  expect(refused.length).toBeGreaterThan(35);
  await expect(queues[0]!.put('more')).rejects.toMatchObject({ code: 'LIST_TOO_LONG' });
  expect(String((await queues[0]!.tryTake())?.data)).toBe('0');
  await Promise.all(clients.map((client) => client.close()));
});
