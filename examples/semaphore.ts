/** At most two of five jobs at a time, whichever processes they run in. */

import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'drover';
import { Semaphore, SemaphoreMutex } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  const slots = new Semaphore(zk, '/semaphores/imports', { limit: 2 });
  let running = 0;
  await Promise.all(
    [1, 2, 3, 4, 5].map((job) =>
      slots.hold(async ({ signal }) => {
        running += 1;
        console.log(`job ${job} runs, ${running} at a time`);
        await delay(20, undefined, { signal });
        running -= 1;
      }),
    ),
  );
  // A semaphore of one, as Curator's InterProcessSemaphoreMutex lays it out.
  const report = new SemaphoreMutex(zk, '/semaphores/report');
  await report.hold(() => console.log('one alone writes the report'));
} finally {
  await zk.close();
}
