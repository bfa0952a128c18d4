/** A monitor of /clusterServers: machines come, one leaves, one is missing from the start. */

import { connect } from 'drover';
import { Machine, MachineMonitor } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const zk = await connect(servers);
const monitor = new MachineMonitor(zk, { expected: ['db-1', 'db-2', 'web-1'] });
await monitor.ready;

const db = new Machine(zk, { name: 'db-1', data: JSON.stringify({ cores: 8 }) });
const web = new Machine(zk, { name: 'web-1' });
await Promise.all([db.ready, web.ready]);
let isLeaving = false;
for await (const { machine, to } of monitor) {
  console.log(monitor.explain(machine));
  const { up } = monitor.counts;
  if (up === 2 && !isLeaving) {
    isLeaving = true;
    await web.close();
  }
  if (isLeaving && machine.name === 'web-1' && to === 'down' && up === 1) break;
}

console.log(monitor.counts);
await Promise.all([db.close(), monitor.close()]);
await zk.close();
