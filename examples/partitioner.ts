/** Six shards and two workers: the second takes its share, and gives it back when it leaves. */

import { once } from 'node:events';
import { connect } from 'drover';
import { Partitioner } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const shards = ['a', 'b', 'c', 'd', 'e', 'f'];
const [one, two] = [await connect(servers), await connect(servers)];

function work(partitioner: Partitioner): Promise<void> {
  return partitioner.each(async ({ shard, token, signal }) => {
    console.log(`${partitioner.name} begins ${shard} (token 0x${token.toString(16)})`);
    if (!signal.aborted) await once(signal, 'abort'); // the work goes here
    console.log(`${partitioner.name} ends ${shard}`);
  });
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

const first = new Partitioner(one, '/example/shards', { name: 'worker-1', shards });
const runs = [work(first)];
await until(() => first.held.length === 6);
const second = new Partitioner(two, '/example/shards', { name: 'worker-2', shards });
runs.push(work(second));
await until(() => first.held.length === 3 && second.held.length === 3);

await second.close();
await until(() => first.held.length === 6);
await first.close();
await Promise.all(runs);
await Promise.all([one.close(), two.close()]);
