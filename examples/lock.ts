/** Two workers want the same job. One does it at a time; a third gives up and says who was in its way. */

import { connect } from 'drover';
import { Lock, LockTimeoutError } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  const work = async (name: string) =>
    new Lock(zk, '/locks/billing', { data: name }).hold(async (lock) => {
      // Before each side effect: looks at the clock, and throws if another process may have the lock.
      lock.check();
      console.log(`${name} bills, with token ${lock.fencingToken}`);
    });
  await Promise.all([work('worker-a'), work('worker-b')]);

  const held = await new Lock(zk, '/locks/billing', { data: 'worker-a' }).acquire();
  try {
    await new Lock(zk, '/locks/billing').acquire({ timeoutMs: 200 });
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    console.log(error.message);
  }
  await held.release();
} finally {
  await zk.close();
}
