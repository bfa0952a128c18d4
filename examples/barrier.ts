/** Three workers that begin together and end together. */

import { setTimeout } from 'node:timers/promises';
import { connect } from 'drover';
import { DoubleBarrier } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');

async function worker(name: string, takesMs: number): Promise<void> {
  const barrier = new DoubleBarrier(zk, '/example-step', 3, { name });
  await setTimeout(takesMs);
  console.log(name, 'has come');
  await barrier.enter({ timeoutMs: 10_000 });
  console.log(name, 'computes');
  await barrier.leave({ timeoutMs: 10_000 });
  console.log(name, 'has left');
}

await Promise.all([worker('a', 0), worker('b', 30), worker('c', 60)]);
await zk.deleteRecursive('/example-step');
await zk.close();
