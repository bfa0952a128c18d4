/** A member that registers again, by itself, whenever its session had to be replaced. */

import { connect } from 'drover';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const zk = await connect(servers, { renew: true, sessionTimeoutMs: 4_000 });
await zk.create('/members', '', { mode: 'container' }).catch(() => {}); // there already is fine

const join = async () => {
  const { path } = await zk.createProtected('/members/m-', '', { mode: 'ephemeralSequential' });
  console.log('joined as', path);
};

const rejoined = new Promise<void>((resolve) => {
  zk.on('session', async ({ isFirst }) => {
    if (isFirst) return;
    await join();
    resolve();
  });
});
await join();

// What the network does on a bad day: the session ends. Here another client takes it over and closes
// it, again and again, since its owner takes it back as often, until a server says that it is over.
const identity = zk.identity!;
for (;;) {
  const thief = await connect(servers, { identity }).catch(() => null);
  if (thief === null) break;
  await thief.close();
}

await rejoined;
console.log('members:', (await zk.children('/members')).length);
await zk.close();
