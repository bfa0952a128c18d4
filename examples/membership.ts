/** Who is there: members with data, and everybody sees them come and go. */

import { connect } from 'drover';
import { Membership } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const [watcher, worker] = await Promise.all([connect(servers), connect(servers)]);
const seen = new Membership(watcher, '/workers');
try {
  await seen.ready;
  const own = new Membership(worker, '/workers');
  await own.join('worker-1', { data: 'host-a:8080' });

  for await (const { type, member } of seen) {
    console.log(type, member.name, String(member.data));
    if (type === 'left') break;
    await own.close(); // takes its node along
    await worker.close();
  }
} finally {
  await seen.close();
  await watcher.close();
  await worker.close();
}
