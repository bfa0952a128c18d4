import { expect, test } from 'vitest';
import { frameBytesMax } from '../protocol/index.ts';
import { startTestServer } from '../testing/index.ts';
import { connect } from './client.ts';

/** Around the data in a set of /a: the header, the path, a length and the version. */
const setBytes = 8 + 4 + '/a'.length + 4 + 4;

test('the longest data that can be written can be read', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address, { readRetries: 0 });
  await client.create('/a');
  const longest = Buffer.alloc(frameBytesMax - setBytes, 1);

  await client.set('/a', longest);

  expect((await client.get('/a')).data?.equals(longest)).toBe(true);
  const longer = client.set('/a', Buffer.alloc(longest.length + 1));
  await expect(longer).rejects.toThrow(`servers take ${frameBytesMax} at most`);
});
