/** Two instances of a service register; a caller finds them, and turns away from one that fails. */

import { connect } from 'drover';
import { buildUri, ServiceDiscovery, strategies } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const serving = await connect(servers, { renew: true });
const calling = await connect(servers, { renew: true });

// The side that serves. With `renew` it registers again after its session had to be replaced.
const mine = new ServiceDiscovery<{ zone: string }>(serving, '/services');
for (const [id, port] of [
  ['api-1', 8001],
  ['api-2', 8002],
] as const) {
  await mine.register({
    ...{ name: 'api', id, port, address: '127.0.0.1', payload: { zone: 'north' } },
    uriSpec: '{scheme}://{address}:{port}/v1',
  });
}

// The side that calls. Asking costs no request; the answer says whether it may be old.
const theirs = new ServiceDiscovery<{ zone: string }>(calling, '/services');
const provider = theirs.provider('api', {
  strategy: strategies.roundRobin(),
  filters: [({ payload }) => payload?.zone === 'north'],
});
await provider.ready;
for (let i = 0; i < 3; i++) {
  const instance = provider.get();
  if (instance?.uriSpec) console.log('call', buildUri(instance.uriSpec, instance));
}

const failing = provider.get();
if (failing) for (let i = 0; i < 2; i++) provider.noteError(failing);
console.log(failing?.id, 'fails; left:', provider.answer.instances.map(({ id }) => id).join());
console.log('stale since:', provider.answer.staleSinceMs ?? 'it is up to date');

await theirs.close();
await mine.close(); // takes both instances out
await Promise.all([serving.close(), calling.close()]);
