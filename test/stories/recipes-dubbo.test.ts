/** Providers and consumers of Dubbo services find each other, in Dubbo's own nodes. */

import { expect, test } from 'vitest';
import { anyoneId, permissions } from '../../src/client/index.ts';
import { DubboRegistry, type DubboUrl, formatDubboUrl } from '../../src/recipes/index.ts';
import { reached, startZk } from '../zk.ts';

const service = 'com.foo.BarService';
const provider = (port: number, more = '') =>
  `dubbo://10.0.0.1:${port}/${service}?interface=${service}&side=provider${more}`;
const consumer = (more = '') =>
  `consumer://10.0.0.9/${service}?interface=${service}&side=consumer${more}`;
const ports = (urls: readonly DubboUrl[]) => urls.map(({ port }) => port).sort();

test('a provider is an ephemeral node below persistent ones, named by its URL', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using registry = new DubboRegistry(client);

  await registry.register(provider(20880));
  const [name] = await client.children(`/dubbo/${service}/providers`);
  const stat = await client.exists(`/dubbo/${service}/providers/${name}`);
  const above = await client.exists(`/dubbo/${service}/providers`);

  expect(name).toBe(
    `dubbo%3A%2F%2F10.0.0.1%3A20880%2F${service}%3Finterface%3D${service}%26side%3Dprovider`,
  );
  expect(stat!.ephemeralOwner).toBe(client.sessionId);
  expect(above!.ephemeralOwner).toBe(0n);
  expect(ports(await registry.lookup(consumer()))).toEqual([20880]);
  expect(await registry.services()).toEqual([service]);
});

test('a static provider outlives the session, and goes when it is taken out', async () => {
  await using zk = await startZk();
  const [client, seeker] = [await zk.connect(), await zk.witness()];
  const registry = new DubboRegistry(client);
  const url = provider(1, '&dynamic=false');
  await registry.register(url);
  await client.close();

  const theirs = new DubboRegistry(seeker);
  expect(ports(await theirs.lookup(consumer()))).toEqual([1]);
  const again = await theirs.register(url);
  await again.close();

  expect(await theirs.lookup(consumer())).toEqual([]);
});

test('a subscriber is told whole lists, and of an empty one by an empty URL', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  await using mine = new DubboRegistry(client);
  await using theirs = new DubboRegistry(other);
  const subscription = await mine.subscribe(consumer('&category=providers,configurators,routers'));

  const first = [await subscription.next(), await subscription.next(), await subscription.next()];
  const one = await theirs.register(provider(1));
  const second = (await subscription.next()).value!;
  await theirs.register(provider(2));
  const third = (await subscription.next()).value!;
  await theirs.register(provider(3, '&group=other'));
  await one.close();
  await expect.poll(() => ports(subscription.urls())).toEqual([2]);

  expect(first.map(({ value }) => value!.category)).toEqual([
    'providers',
    'configurators',
    'routers',
  ]);
  expect(formatDubboUrl(first[0]!.value!.urls[0]!)).toBe(
    `empty://10.0.0.9/${service}?category=providers&interface=${service}&side=consumer`,
  );
  expect([second.category, ports(second.urls)]).toEqual(['providers', [1]]);
  expect(ports(third.urls)).toEqual([1, 2]);
  for (const category of ['providers', 'configurators', 'routers']) {
    expect(await client.exists(`/dubbo/${service}/${category}`)).not.toBeNull();
  }
});

test('while ZooKeeper is away a subscriber keeps its list, and knows since when it is old', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  await using mine = new DubboRegistry(client);
  await using theirs = new DubboRegistry(other);
  await theirs.register(provider(1));
  const subscription = await mine.subscribe(consumer());
  await subscription.ready;
  expect(subscription.staleSinceMs).toBeNull();

  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await theirs.register(provider(2));
  expect(subscription.staleSinceMs).toEqual(expect.any(Number));
  expect(ports(subscription.urls())).toEqual([1]);
  await zk.link.accept();

  await expect.poll(() => ports(subscription.urls())).toEqual([1, 2]);
  await expect.poll(() => subscription.staleSinceMs).toBeNull();
});

test('a restart that is faster than the expiry owns its node, and a new session makes its own', async () => {
  await using zk = await startZk();
  const old = await zk.connect();
  const seeker = await zk.witness();
  const { path } = await new DubboRegistry(old).register(provider(1));
  zk.link.refuse();
  zk.link.cut();
  await reached(old, 'suspended');
  await using restarted = new DubboRegistry(await zk.witness({ renew: true }));

  await restarted.register(provider(1));
  const owner = (await seeker.exists(path))!.ephemeralOwner;
  await zk.expire(old);

  expect(owner).not.toBe(old.identity?.sessionId);
  expect((await seeker.exists(path))!.ephemeralOwner).toBe(owner);
});

test('a registration is made again by a new session', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const seeker = await zk.witness();
  await using registry = new DubboRegistry(client);
  const { path } = await registry.register(provider(1));
  const first = client.sessionId;

  await zk.expire(client);

  await expect
    .poll(async () => (await seeker.exists(path))?.ephemeralOwner)
    .toSatisfy((owner) => owner !== undefined && owner !== first && owner === client.sessionId);
});

test('a monitor tells who provides and who consumes', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  const problems: string[] = [];
  await using mine = new DubboRegistry(client, { onProblem: ({ path }) => problems.push(path) });
  await using theirs = new DubboRegistry(other);
  const monitor = mine.monitor(service);
  await monitor.ready;
  const changes = monitor[Symbol.asyncIterator]();
  const next = async () => {
    const { type, category, url } = (await changes.next()).value!;
    return `${type} ${category} ${url.host}`;
  };

  const one = await theirs.register(provider(1));
  expect(await next()).toBe('up providers 10.0.0.1');
  await theirs.register(consumer('&category=consumers'));
  expect(await next()).toBe('up consumers 10.0.0.9');
  await other.create(`/dubbo/${service}/providers/%zz`);
  await one.close();

  expect(await next()).toBe('down providers 10.0.0.1');
  expect([monitor.providers.length, monitor.consumers.length]).toEqual([0, 1]);
  await expect.poll(() => problems).toEqual([`/dubbo/${service}/providers/%zz`]);
  await mine.close();
  expect(client.load.watches).toBe(0);
});

test('registering that is called off leaves nothing behind', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const registry = new DubboRegistry(client);

  for (const more of ['', '&dynamic=false']) {
    const abort = new AbortController();
    const registering = registry.register(provider(1, more), { signal: abort.signal });
    abort.abort(new Error('called off'));
    await expect(registering).rejects.toThrow('called off');
  }

  await expect.poll(() => registry.lookup(consumer())).toEqual([]);
  await expect.poll(() => client.load.watches).toBe(0);
});

test('a provider that may not be read is told of like any other, and so is its end', async () => {
  await using zk = await startZk();
  const [client, server] = [await zk.connect(), await zk.witness()];
  await using registry = new DubboRegistry(client);
  await using subscription = await registry.subscribe(consumer());
  const folder = `/dubbo/${service}/providers`;
  const hidden = (port: number) => `${folder}/${encodeURIComponent(provider(port))}`;
  const acl = [{ perms: permissions.write, id: anyoneId }];
  await registry.register(provider(1));

  await server.create(hidden(2), '', { acl });
  await expect.poll(() => ports(subscription.urls())).toEqual([1, 2]);
  await using later = await registry.subscribe(consumer('&timestamp=2'));
  await later.ready;
  expect(ports(later.urls())).toEqual([1, 2]);
  expect(ports(await registry.lookup(consumer()))).toEqual([1, 2]);

  await server.delete(hidden(2));
  await expect.poll(() => ports(subscription.urls())).toEqual([1]);
  await server.create(hidden(2), '');
  await expect.poll(() => ports(subscription.urls())).toEqual([1, 2]);
});

test('a provider that vanishes while the link is away is gone, also if it could not be read', async () => {
  await using zk = await startZk();
  const [client, server] = [await zk.connect(), await zk.witness()];
  await using registry = new DubboRegistry(client);
  await using subscription = await registry.subscribe(consumer());
  const folder = `/dubbo/${service}/providers`;
  const hidden = (port: number) => `${folder}/${encodeURIComponent(provider(port))}`;
  const acl = [{ perms: permissions.write, id: anyoneId }];
  await server.create(hidden(1), '', { acl });
  await server.create(hidden(2), '', { acl });
  await expect.poll(() => ports(subscription.urls())).toEqual([1, 2]);

  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await server.delete(hidden(1));
  await zk.link.accept();

  await expect.poll(() => ports(subscription.urls())).toEqual([2]);
  await server.delete(hidden(2));
});

test('a category that may not be read is reported', async () => {
  await using zk = await startZk();
  const [client, server] = [await zk.connect(), await zk.witness()];
  const problems: string[] = [];
  await using registry = new DubboRegistry(client, {
    onProblem: ({ path, error }) => problems.push(`${path} ${(error as { code?: string }).code}`),
  });
  const folder = `/dubbo/${service}/routers`;
  const acl = [{ perms: permissions.write | permissions.create, id: anyoneId }];
  await registry.register(provider(1));
  await server.create(folder, '', { acl });

  await using subscription = await registry.subscribe(consumer('&category=providers,routers'));
  await subscription.ready;

  expect(problems).toEqual([`${folder} NO_AUTH`]);
  await server.delete(folder);
});
