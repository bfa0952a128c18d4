/** A write with a deadline, and what to do when it is not known whether it took place. */

import { connect, isZkError } from 'drover';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const { stat } = await zk.create('/balance', '100');
try {
  await zk.set('/balance', '90', { version: stat.version, timeoutMs: 2_000 });
  console.log('done');
} catch (error) {
  if (!isZkError(error) || !error.outcomeUnknown) throw error;
  await zk.connected({ timeoutMs: 30_000 });
  await zk.sync('/balance');
  const now = await zk.get('/balance');
  console.log(now.stat.version === stat.version ? 'did not happen: try again' : 'done after all');
}
await zk.delete('/balance');
await zk.close();
