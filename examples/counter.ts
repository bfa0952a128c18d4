/** Numbers that several processes share: a counter, and ids that nobody else has. */

import { connect } from 'drover';
import { Counter, IdGenerator } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const processes = await Promise.all([connect(servers), connect(servers), connect(servers)]);

const ids = await Promise.all(
  processes.map(async (zk) => {
    const visits = new Counter(zk, '/example-visits');
    const orders = new IdGenerator(zk, '/example-orders', { blockSize: 10 });
    for (let i = 0; i < 5; i++) await visits.increment();
    await visits.close();
    return orders.nextMany(3);
  }),
);

const zk = processes[0]!;
console.log('visits:', await new Counter(zk, '/example-visits').get());
console.log('ids:', ids.map(String).join(' | '));
await zk.delete('/example-visits');
await zk.delete('/example-orders');
await Promise.all(processes.map((one) => one.close()));
