/** Jobs that are done at least once: a worker that fails gives its job back. */

import { connect } from 'drover';
import { Queue } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const queue = new Queue(zk, '/example-jobs', { triesMax: 3 });
await queue.putMany(['resize 1', 'resize 2', 'resize what?', 'resize 3']);

const stop = new AbortController();
await queue.work(
  async (item) => {
    const job = String(item.data);
    if (!/\d$/.test(job)) throw new Error(`cannot do "${job}"`);
    console.log('done:', job);
  },
  {
    signal: stop.signal,
    onError: (error, item) => {
      console.log(`try ${item.tries}:`, (error as Error).message);
      if (item.tries === 3) stop.abort();
    },
  },
);

await queue.tryTake(); // whoever looks next finds that it was tried too often
for (const letter of await queue.dead.list()) console.log('given up:', String(letter.data));
await queue.close();
await zk.deleteRecursive('/example-jobs');
await zk.close();
