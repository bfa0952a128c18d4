import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Lock } from './lock.ts';

test('those in line can be read, however much each of them wrote', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address, { readRetries: 0 });
  const sizes = [900_000, ...Array.from({ length: 100 }, () => 10_500), 900_000, 0];
  await client.create('/l');
  for (const size of sizes) {
    await client.create('/l/lock-', Buffer.alloc(size, 1), { mode: 'ephemeralSequential' });
  }

  const lock = new Lock(client, '/l');
  const line = [await lock.holder(), ...(await lock.queue())];

  expect(line.map((one) => one?.data.length)).toEqual(sizes);
});
