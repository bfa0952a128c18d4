/** Whatever is closed is closed: without a link too, and beside its client; and it leaves nothing behind. */

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  Cache,
  ConfigStore,
  Counter,
  DubboRegistry,
  ElectionObserver,
  GroupMember,
  Machine,
  MachineMonitor,
  NotificationTopic,
  Partitioner,
  PersistentNode,
  PersistentWatcher,
  Queue,
  ServiceDiscovery,
  SimpleQueue,
  StaticElection,
} from '../../src/recipes/index.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

interface Closable {
  readonly ready?: Promise<unknown>;
  close(): Promise<void>;
}

const recipes: Record<string, (client: Client) => Closable | Promise<Closable>> = {
  cache: (client) => new Cache(client, '/c'),
  config: (client) => new ConfigStore(client, '/c', { schemas: { a: Number }, defaults: { a: 1 } }),
  async counter(client) {
    const counter = new Counter(client, '/c');
    await counter.increment();
    return counter;
  },
  async queue(client) {
    const queue = new Queue(client, '/q');
    await queue.put('x');
    return queue;
  },
  async simpleQueue(client) {
    const queue = new SimpleQueue(client, '/q');
    await queue.put('x');
    return queue;
  },
  async staticElection(client) {
    const election = new StaticElection(client, '/c', { appointable: true });
    election.lead(async () => {}).catch(() => {}); // closed before it is elected
    return election;
  },
  observer: (client) => new ElectionObserver(client, '/e'),
  groupMember: (client) => new GroupMember(client, '/g', 'me'),
  machine: (client) => new Machine(client),
  machineMonitor: (client) => new MachineMonitor(client),
  subscription: (client) => new NotificationTopic(client, '/t').subscribe('me'),
  persistentNode: (client) => new PersistentNode(client, '/n'),
  persistentWatcher: (client) => new PersistentWatcher(client, '/n', () => {}),
  async partitioner(client) {
    const partitioner = new Partitioner(client, '/p', { shards: ['a', 'b'], settleMs: 1 });
    await expect.poll(() => partitioner.held).toHaveLength(2);
    return partitioner;
  },
  async discovery(client) {
    const discovery = new ServiceDiscovery(client, '/d');
    await discovery.register({ name: 'a', id: 'b' });
    await discovery.cache('a').ready;
    return discovery;
  },
  async dubbo(client) {
    const registry = new DubboRegistry(client);
    await registry.register('dubbo://127.0.0.1:1/a.B');
    await (await registry.subscribe('consumer://127.0.0.1/a.B')).ready;
    return registry;
  },
};

/** Shorter than a session lasts: its end would take everything along. */
const limit = { timeout: 5_000 };

async function answered(client: Client): Promise<void> {
  for (let trips = 0; trips < 30; trips++) await client.exists('/');
}

test.each(Object.entries(recipes))('%s, without a link', limit, async (_, open) => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/c');
  const listeners = client.listenerCount('state');
  const recipe = await open(client);
  await recipe.ready;
  await answered(client);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await recipe.close();
  await zk.link.accept();
  await answered(client);

  expect(client.listenerCount('state')).toBe(listeners);
  expect(client.load.watches).toBe(0);
  expect(await ephemeralsOf(client)).toEqual([]);
});

test.each(Object.entries(recipes))('%s, while its client is closed', limit, async (_, open) => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/c');
  const recipe = await open(client);
  await recipe.ready;
  const troubles: unknown[] = [];
  const onTrouble = (error: unknown) => troubles.push(error);
  process.on('unhandledRejection', onTrouble);

  await Promise.all([recipe.close(), client.close()]);
  await recipe.close();
  await setImmediate();

  process.off('unhandledRejection', onTrouble);
  expect(troubles).toEqual([]);
});
