/** A barrier as a gate: whoever comes while it is closed waits, and all go on when it is opened. */

import { connect } from 'drover';
import { Barrier } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  const gate = new Barrier(zk, '/gates/migration');
  await gate.close();
  const workers = [1, 2, 3].map(async (worker) => {
    await gate.wait({ timeoutMs: 10_000 });
    console.log(`worker ${worker} goes on`);
  });

  console.log('migrating');
  await gate.open();
  await Promise.all(workers);
} finally {
  await zk.close();
}
