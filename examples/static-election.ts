/** All race to make one node, /currentMaster; and an operator names the next master by hand. */

import { once } from 'node:events';
import { connect } from 'drover';
import { Appointment, StaticElection } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const clients = await Promise.all([connect(servers), connect(servers)]);
const [first, second] = clients.map(
  (zk, i) => new StaticElection(zk, '/currentMaster', { id: `host-${i + 1}`, appointable: true }),
) as [StaticElection, StaticElection];

try {
  const led = first.lead(async ({ signal, epoch }) => {
    console.log('host-1 is master; its epoch is a zxid:', typeof epoch === 'bigint');
    // The operator's word: host-1 steps down, and stands back until host-2 has had its chance.
    void new Appointment(clients[0]!, '/currentMaster').appoint('host-2', { by: 'operator' });
    if (!signal.aborted) await once(signal, 'abort');
    console.log('host-1 steps down');
  });
  await led.catch(() => {}); // it was taken from us: that is what this is about
  await second.lead(async () => console.log('host-2 is master'));
} finally {
  await Promise.all([first.close(), second.close()]);
  await Promise.all(clients.map((zk) => zk.close()));
}
