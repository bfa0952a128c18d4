/** Needs two servers of its own, so it is no story: on real ones it is test/peers/client-older-data.test.ts. */

import { expect, test } from 'vitest';
import { reached, startZk } from './zk.ts';

test('a server with older data than the session has seen is told of, and not asked in silence for ever', async () => {
  await using zk = await startZk();
  await using other = await startZk();
  const client = await zk.connect({ connectRoundsMax: 3, backoff: { firstMs: 10, maxMs: 20 } });
  for (let i = 0; i < 100; i++) await client.create(`/${i}`);

  zk.link.retarget({ host: '127.0.0.1', port: Number(other.directAddress.split(/[:/]/)[1]) });
  zk.link.cut();
  await reached(client, 'closed');

  await expect(client.get('/')).rejects.toThrow(
    /its data is probably older than what this session has seen/,
  );
});
