import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { ConfigHistory } from './config-history.ts';

test.for([
  ['2147483645', '2147483646', '2147483647'],
  ['2147483646', '2147483647', '-2147483648'],
  ['2147483647', '-2147483648', '-2147483647'],
  ['-2147483648', '-2147483647', '-2147483646'],
])(
  'the oldest entry goes first, also where the counter has passed 2^31: %s, %s, %s',
  async (numbers) => {
    await using server = await startTestServer();
    await using client = await connect(server.address);
    const history = new ConfigHistory(client, '/c', 3);
    for (const [i, number] of numbers.entries()) {
      await client.create(`${history.pathOf('k')}/mark${i}-${number}`, `${i}`, { parents: true });
    }

    const entries = await history.list('k', {});
    const [, ...deletes] = await history.record('k', 'new', 'mark', {});

    expect(entries.map(({ data }) => String(data))).toEqual(['2', '1', '0']);
    expect(deletes).toEqual([{ op: 'delete', path: `${history.pathOf('k')}/mark0-${numbers[0]}` }]);
  },
);
