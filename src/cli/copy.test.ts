import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Copy } from './copy.ts';
import { readTree, ZkTarget } from './tree-zk.ts';

const { signal } = new AbortController();

/** Copies a node with data onto another that has these. */
async function copiedOnto(data: string | null) {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await client.create('/from', { data: 'top' });
  await client.create('/to', { data });
  const source = { name: '/from', root: '/from', nodes: () => readTree(client, '/from') };
  const copy = new Copy(source, new ZkTarget(client, '/to'), {
    signal,
    onConflict: 'fail',
    withoutAcl: false,
    mirrors: false,
    dataBytesMax: 1_000,
  });
  await copy.perform();
  return String((await client.get('/to')).data);
}

test.for([
  ['no data', null],
  ['data of no length', ''],
] as const)('a top with %s is no conflict', async ([, data]) => {
  expect(await copiedOnto(data)).toBe('top');
});

test('a top with other data is a conflict', async () => {
  await expect(copiedOnto('x')).rejects.toThrow('/to is there and differs');
});
