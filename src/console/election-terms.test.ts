import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { ElectionTerms } from './election-terms.ts';

test('an election that went while nobody looked is led by nobody, and by the next when it is made anew', async () => {
  await using server = await startTestServer();
  await using zk = await connect(server.address);
  const terms = new ElectionTerms(zk);
  await zk.create('/leader/latch-0000000000', 'ann', { parents: true });
  expect(await terms.seen('/leader', 1)).toMatchObject([{ id: 'ann', untilMs: null }]);

  await zk.deleteRecursive('/leader');
  await terms.forget();
  expect(await terms.seen('/leader', 1)).not.toMatchObject([{ untilMs: null }]);
  await zk.create('/leader/latch-0000000001', 'bob', { parents: true });
  terms.changed('/leader/latch-0000000001', 'created');

  await expect.poll(() => terms.seen('/leader', 1)).toMatchObject([{ id: 'bob', untilMs: null }]);
});

test('what is no election has no terms, and none that were let go of', async () => {
  await using server = await startTestServer();
  await using zk = await connect(server.address);

  expect(await new ElectionTerms(zk).view('/nothing')).toMatchObject({ terms: [], isCut: false });
});
