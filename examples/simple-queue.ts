/** The plain queue of the textbooks: what is taken is gone. For work that must not get lost see queue.ts. */

import { connect } from 'drover';
import { SimpleQueue } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const queue = new SimpleQueue(zk, '/queues/plain');
try {
  for (const word of ['one', 'two', 'three']) await queue.put(word);
  console.log('waiting:', await queue.size());
  while ((await queue.peek()) !== null) console.log(String(await queue.take()));
} finally {
  await queue.close();
  await zk.close();
}
