/** A copy of a subtree that keeps itself up to date: read at once, and told of every change. */

import { connect } from 'drover';
import { Cache } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181', { renew: true });
await zk.create('/fleet/trucks', '', { parents: true });

const cache = new Cache(zk, '/fleet');
await cache.ready;
console.log('loaded', cache.size, 'nodes; state:', cache.state.name);

const trucks = ['a', 'b', 'c'];
const writing = (async () => {
  for (const truck of trucks) await zk.create(`/fleet/trucks/${truck}`, 'parked');
  await zk.set('/fleet/trucks/a', 'on the road');
  await zk.delete('/fleet/trucks/c');
})();

// Begins with what is there, so that adding up the changes gives the whole.
for await (const { type, path, node } of cache.changes()) {
  console.log(type, path, String(node.data));
  if (type === 'removed') break;
}
await writing;

console.log('now there:', cache.children('/fleet/trucks'));
console.log('truck a is', String(cache.get('/fleet/trucks/a')?.data));
await cache.close();
await zk.close();
