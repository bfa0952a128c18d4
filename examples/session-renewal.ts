/** A member that registers again, by itself, whenever its session had to be replaced. */

import { connect } from 'drover';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const zk = await connect(servers, { renew: true, sessionTimeoutMs: 4_000 });
await zk.create('/members', { mode: 'container' }).catch(() => {}); // there already is fine

const join = async () => {
  const { path } = await zk.createProtected('/members/m-', { mode: 'ephemeralSequential' });
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

// What the network does on a bad day: another process takes the session and ends it.
const thief = await connect(servers, { identity: zk.identity! });
await thief.close();

await rejoined;
console.log('members:', (await zk.children('/members')).length);
await zk.close();
