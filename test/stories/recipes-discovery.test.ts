/** Instances are found while they live, by whoever looks, and by nobody once they do not. */

import { expect, test } from 'vitest';
import { anyoneId, permissions } from '../../src/client/index.ts';
import { ServiceDiscovery, type ServiceInstance, strategies } from '../../src/recipes/index.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

const ids = (instances: readonly ServiceInstance[]) => instances.map(({ id }) => id);

test('an instance that is registered is found, changed and taken out', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  await using mine = new ServiceDiscovery<{ cpu: number }>(server, '/services');
  const theirs = new ServiceDiscovery<{ cpu: number }>(seeker, '/services');
  expect(await theirs.names()).toEqual([]);
  expect(await theirs.instances('api')).toEqual([]);

  const registration = await mine.register({
    ...{ name: 'api', id: 'a', address: '10.0.0.1', port: 80, payload: { cpu: 1 } },
    uriSpec: '{scheme}://{address}:{port}',
  });
  const found = await theirs.instance('api', 'a');
  await registration.update({ payload: { cpu: 2 } });

  expect(found).toEqual({ ...registration.instance, payload: { cpu: 1 } });
  expect((await theirs.instances('api'))[0]!.payload).toEqual({ cpu: 2 });
  expect(await theirs.names()).toEqual(['api']);
  expect((await seeker.exists('/services/api/a'))!.ephemeralOwner).toBe(server.sessionId);
  expect(await mine.unregister('api', 'a')).toBe(true);
  expect(await mine.unregister('api', 'a')).toBe(false);
  expect(await theirs.instance('api', 'a')).toBeNull();
  expect(await ephemeralsOf(server, '/')).toEqual([]);
});

test('an instance that is registered again before it can be found is not said to be', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  await using mine = new ServiceDiscovery(server, '/services');
  const theirs = new ServiceDiscovery(seeker, '/services');

  const first = mine.register({ name: 'api', id: 'a', port: 1 });
  const again = await mine.register({ name: 'api', id: 'a', port: 2 });

  expect(await theirs.instance('api', 'a')).toMatchObject({ port: 2 });
  expect(await first).toBe(again);
});

test('who registers an instance again waits no longer than it likes, and takes nothing away', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  await using mine = new ServiceDiscovery(server, '/services');
  zk.link.pause('toServer');
  const first = mine.register({ name: 'api', id: 'a', port: 1 });

  const again = mine.register({ name: 'api', id: 'a', port: 2 }, { timeoutMs: 10 });
  await expect(again).rejects.toThrow('10 ms are over');
  zk.link.resume('toServer');
  await first;

  expect(await seeker.exists('/services/api/a')).not.toBeNull();
});

test('who registers an instance first and gives up does not take it from who still waits', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  await using mine = new ServiceDiscovery(server, '/services');
  const impatient = new AbortController();
  const first = mine.register({ name: 'api', id: 'a', port: 1 }, { signal: impatient.signal });
  const again = mine.register({ name: 'api', id: 'a', port: 2 });

  impatient.abort(new Error('no more time'));

  await expect(first).rejects.toThrow('no more time');
  await again;
  expect(await seeker.exists('/services/api/a')).not.toBeNull();
  expect(await mine.unregister('api', 'a')).toBe(true);
  expect(await seeker.exists('/services/api/a')).toBeNull();
});

test('the type decides what outlives the session', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  const mine = new ServiceDiscovery(server, '/services');
  for (const serviceType of ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'] as const) {
    await mine.register({ name: 'api', id: serviceType, serviceType });
  }
  const before = await seeker.children('/services/api');

  await server.close();

  expect(before).toHaveLength(4);
  expect(before.some((name) => /DYNAMIC_SEQUENTIAL\d{10}$/.test(name))).toBe(true);
  expect((await seeker.children('/services/api')).sort()).toEqual(['PERMANENT', 'STATIC']);
});

test('a restart that is faster than the expiry owns its node: the old one goes without harm', async () => {
  await using zk = await startZk();
  const old = await zk.connect();
  const restarted = await zk.witness();
  const seeker = await zk.witness();
  const before = new ServiceDiscovery(old, '/services');
  await before.register({ name: 'api', id: 'host-1', port: 1 });
  zk.link.refuse();
  zk.link.cut();
  await reached(old, 'suspended'); // and gone for good: its session lives on for a while
  const { ephemeralOwner: dying } = (await seeker.exists('/services/api/host-1'))!;

  await using after = new ServiceDiscovery(restarted, '/services');
  await after.register({ name: 'api', id: 'host-1', port: 2 });

  const stat = (await seeker.exists('/services/api/host-1'))!;
  expect(dying).toBe(old.identity!.sessionId);
  expect(stat.ephemeralOwner).toBe(restarted.sessionId);
  await zk.expire(old);
  const [left] = await new ServiceDiscovery(seeker, '/services').instances('api');
  expect(left).toMatchObject({ id: 'host-1', port: 2 });
});

test('a new session registers again, as the new session', async () => {
  await using zk = await startZk();
  const server = await zk.connect({ renew: true });
  const seeker = await zk.witness();
  await using mine = new ServiceDiscovery(server, '/services');
  await mine.register({ name: 'api', id: 'a' });
  const first = server.sessionId;

  await zk.expire(server);

  await expect
    .poll(async () => (await seeker.exists('/services/api/a'))?.ephemeralOwner)
    .toSatisfy((owner) => owner !== undefined && owner !== first && owner === server.sessionId);
});

test('a cache follows the instances; garbage is named and harms nothing', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  const problems: string[] = [];
  await using mine = new ServiceDiscovery(server, '/services');
  await using theirs = new ServiceDiscovery(seeker, '/services', {
    onProblem: ({ path, error }) => problems.push(`${path} ${(error as { code?: string }).code}`),
  });
  const cache = theirs.cache('api');
  await cache.ready;
  expect(cache.answer).toEqual({ instances: [], staleSinceMs: null });
  const told: string[] = [];
  const follow = (async () => {
    for await (const { type, instance } of cache) told.push(`${type} ${instance.id}`);
  })();

  const a = await mine.register({ name: 'api', id: 'a' });
  await mine.register({ name: 'api', id: 'b' });
  await server.create('/services/api/junk', '{');
  await expect.poll(() => ids(cache.instances)).toEqual(['a', 'b']);
  await server.set('/services/api/b', 'not json');
  await expect.poll(() => cache.problems.length).toBe(2);
  expect(ids(cache.instances)).toEqual(['a', 'b']);
  await server.delete('/services/api/junk');
  await a.close();
  await expect.poll(() => ids(cache.instances)).toEqual(['b']);
  expect(ids(await theirs.instances('api'))).toEqual([]);
  await expect(theirs.instance('api', 'b')).rejects.toMatchObject({ code: 'BAD_JSON' });
  await theirs.close();
  await follow;

  expect(told).toEqual(['added a', 'added b', 'removed a']);
  expect(problems).toContain('/services/api/junk BAD_JSON');
  expect(seeker.load.watches).toBe(0);
});

test('an instance that may not be read is named, and hides none of the others', async () => {
  await using zk = await startZk();
  const [server, seeker] = [await zk.connect(), await zk.witness()];
  const problems: string[] = [];
  await using mine = new ServiceDiscovery(server, '/services');
  await using theirs = new ServiceDiscovery(seeker, '/services', {
    onProblem: ({ path, error }) => problems.push(`${path} ${(error as { code?: string }).code}`),
  });
  await mine.register({ name: 'api', id: 'a' });
  const acl = [{ perms: permissions.write, id: anyoneId }];
  await server.create('/services/api/secret', '{}', { acl });

  expect(ids(await theirs.instances('api'))).toEqual(['a']);
  const cache = theirs.cache('api');
  await cache.ready;

  expect(ids(cache.instances)).toEqual(['a']);
  expect(cache.problems).toMatchObject([
    { path: '/services/api/secret', error: { code: 'NO_AUTH' } },
  ]);
  expect(problems).toEqual(Array(2).fill('/services/api/secret NO_AUTH'));
  await server.delete('/services/api/secret');
});

test('while ZooKeeper is away the last known answer is given, and says since when', async () => {
  await using zk = await startZk();
  const [seeker, server] = [await zk.connect(), await zk.witness()];
  await using mine = new ServiceDiscovery(server, '/services');
  await mine.register({ name: 'api', id: 'a' });
  await using theirs = new ServiceDiscovery(seeker, '/services');
  const provider = theirs.provider('api');
  await provider.ready;
  expect(provider.answer.staleSinceMs).toBeNull();

  zk.link.refuse();
  zk.link.cut();
  await reached(seeker, 'suspended');
  await mine.register({ name: 'api', id: 'b' });

  expect(provider.answer).toMatchObject({ staleSinceMs: expect.any(Number) });
  expect(provider.get()!.id).toBe('a');
  await zk.link.accept();
  await expect.poll(() => provider.answer.staleSinceMs).toBeNull();
  expect(ids(provider.answer.instances)).toEqual(['a', 'b']);
});

test('a provider leaves out what is disabled, filtered or down', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using discovery = new ServiceDiscovery<{ zone: string } | null>(client, '/services', {
    writeEnabled: true,
  });
  for (const [id, zone, enabled] of [
    ['a', 'x', true],
    ['b', 'x', true],
    ['c', 'y', true],
    ['d', 'x', false],
  ] as const) {
    await discovery.register({ name: 'api', id, payload: { zone }, enabled });
  }
  const provider = discovery.provider('api', {
    strategy: strategies.roundRobin(),
    filters: [({ payload }) => payload?.zone === 'x'],
  });
  await provider.ready;

  expect([provider.get()!.id, provider.get()!.id, provider.get()!.id]).toEqual(['a', 'b', 'a']);
  const a = provider.answer.instances[0]!;
  provider.noteError(a);
  expect(ids(provider.answer.instances)).toEqual(['a', 'b']);
  provider.noteError(a);
  expect(ids(provider.answer.instances)).toEqual(['b']);
});

test('registering that is called off leaves nothing behind', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const discovery = new ServiceDiscovery(client, '/services');
  const abort = new AbortController();

  const registering = discovery.register({ name: 'api', id: 'a' }, { signal: abort.signal });
  abort.abort(new Error('called off'));

  await expect(registering).rejects.toThrow('called off');
  expect(discovery.registrations).toEqual([]);
  await expect.poll(() => ephemeralsOf(client, '/')).toEqual([]);
  await expect.poll(() => client.load.watches).toBe(0);
});

test('payloads are checked by whatever schema is given', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using loose = new ServiceDiscovery(client, '/services');
  await using strict = new ServiceDiscovery<number>(client, '/services', {
    payload: (value) => {
      if (typeof value !== 'number') throw new Error('a number is wanted');
      return value;
    },
  });
  await loose.register({ name: 'api', id: 'a', payload: 7 });
  await loose.register({ name: 'api', id: 'b', payload: 'seven' });

  expect((await strict.instances('api')).map(({ payload }) => payload)).toEqual([7]);
  await expect(strict.instance('api', 'b')).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH' });
});
