/** A task that begins when its three parts are ready, and then runs them in the order they came. */

import { connect } from 'drover';
import { GatheringQueue } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const queue = new GatheringQueue(zk, '/example-task', { size: 3 });

async function part(name: string): Promise<void> {
  const member = await queue.join({ data: name });
  console.log(name, 'is ready');
  const { position } = await member.turn({ timeoutMs: 10_000 });
  console.log(name, 'runs as number', position + 1);
  await member.leave();
}

await Promise.all(['download', 'unpack', 'index'].map(part));
await zk.deleteRecursive('/example-task');
await zk.close();
