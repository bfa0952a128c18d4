/** A function that locks calls another that locks the same: its owner goes through, everybody else waits. */

import { connect } from 'drover';
import { ReentrantLock } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  const lock = new ReentrantLock(zk, '/locks/reports');

  const write = (owner: object, line: string) =>
    lock.hold(() => console.log(`${line} (held ${lock.count(owner)} times)`), { owner });

  const task = (name: string) => {
    const owner = { name };
    return lock.hold(
      async () => {
        await write(owner, `${name} writes its head`);
        await write(owner, `${name} writes its foot`);
      },
      { owner },
    );
  };

  await Promise.all([task('first'), task('second')]); // never mixed
} finally {
  await zk.close();
}
