/** Whoever gives up hears so at once, also while there is no link. */

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  AtomicLong,
  Barrier,
  Counter,
  DoubleBarrier,
  DubboRegistry,
  Election,
  GatheringQueue,
  IdGenerator,
  Lock,
  MultiLock,
  NotificationTopic,
  Queue,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
  ServiceDiscovery,
  SharedCount,
  SimpleQueue,
  StaticElection,
  type WaitOptions,
} from '../../src/recipes/index.ts';
import { ephemeralsOf, reached, startZk, type Zk } from '../zk.ts';

type Wait = (options: WaitOptions) => Promise<unknown>;

/** By name: what there is before the link goes, and what then is waited for. */
type Cases = Record<string, (client: Client, witness: Client) => Promise<Wait>>;

const waits: Cases = {
  async lock(client, witness) {
    await new Lock(witness, '/l').acquire();
    return (options) => new Lock(client, '/l').acquire(options);
  },
  async reentrant(client, witness) {
    await new Lock(witness, '/l').acquire();
    const lock = new ReentrantLock(client, '/l');
    return (options) => lock.acquire({ ...options, owner: client });
  },
  async multiLock(client, witness) {
    await new Lock(witness, '/b').acquire();
    return (options) => new MultiLock(client, ['/a', '/b']).acquire(options);
  },
  async semaphore(client, witness) {
    await new Semaphore(witness, '/s', { limit: 1 }).acquire();
    return (options) => new Semaphore(client, '/s', { limit: 1 }).acquire(options);
  },
  async downgrade(client) {
    const lock = new ReadWriteLock(client, '/rw');
    await (await lock.write.acquire({ owner: client })).grant.ready;
    return (options) => lock.read.acquire({ ...options, owner: client });
  },
  async read(client, witness) {
    await new ReadWriteLock(witness, '/rw').write.acquire();
    const lock = new ReadWriteLock(client, '/rw');
    return (options) => lock.read.acquire(options);
  },
  async queue(client) {
    const queue = new Queue(client, '/q');
    await queue.size();
    return (options) => queue.take(options);
  },
  async curatorQueue(client) {
    const queue = new Queue(client, '/q', { layout: 'curator' });
    await queue.size();
    return (options) => queue.take(options);
  },
  async put(client) {
    const queue = new Queue(client, '/q');
    await queue.put('first');
    return (options) => queue.put('x', options);
  },
  async simpleQueue(client) {
    const queue = new SimpleQueue(client, '/q');
    return (options) => queue.take(options);
  },
  async barrier(client, witness) {
    await new Barrier(witness, '/b').close();
    return (options) => new Barrier(client, '/b').wait(options);
  },
  async enter(client) {
    return (options) => new DoubleBarrier(client, '/b', 2).enter(options);
  },
  async leave(client, witness) {
    const [mine, theirs] = [client, witness].map((one) => new DoubleBarrier(one, '/b', 2));
    await Promise.all([mine!.enter(), theirs!.enter()]);
    return (options) => mine!.leave(options);
  },
  async gathering(client) {
    const queue = new GatheringQueue(client, '/g', { size: 2 });
    return (options) => queue.join(options);
  },
  async gathered(client) {
    const member = await new GatheringQueue(client, '/g', { size: 2 }).join();
    await expect.poll(() => client.load.watches).toBe(1); // on its own node
    return (options) => member.gathered(options);
  },
  async receipt(client) {
    const receipt = await new NotificationTopic(client, '/n').send('x', { to: ['a'] });
    return (options) => receipt.all(options);
  },
  async discovery(client) {
    const discovery = new ServiceDiscovery(client, '/d');
    return (options) => discovery.register({ name: 'a', id: 'b' }, options);
  },
  async dubbo(client) {
    const registry = new DubboRegistry(client);
    return (options) => registry.register('dubbo://127.0.0.1:1/a.B', options);
  },
};

/** Those that take a signal, and no time. */
const signalled: Cases = {
  async tryLock(client) {
    return (options) => new Lock(client, '/l').tryAcquire(options);
  },
  async tryDowngrade(client) {
    const lock = new ReadWriteLock(client, '/rw');
    await (await lock.write.acquire({ owner: client })).grant.ready;
    return (options) => lock.read.tryAcquire({ ...options, owner: client });
  },
  async counter(client) {
    const counter = new Counter(client, '/c');
    await counter.increment();
    return (options) => counter.increment(options);
  },
  async atomicLong(client) {
    const counter = new AtomicLong(client, '/c');
    await counter.increment();
    return (options) => counter.increment(options);
  },
  async sharedCount(client) {
    const counter = new SharedCount(client, '/c');
    await counter.get();
    return (options) => counter.set(1, options);
  },
  async ids(client) {
    const ids = new IdGenerator(client, '/c', { blockSize: 1 });
    await ids.next();
    return (options) => ids.next(options);
  },
  async send(client) {
    return (options) => new NotificationTopic(client, '/n').send('x', { ...options, to: ['a'] });
  },
  async election(client, witness) {
    const lead = new Election(witness, '/e').lead(() => new Promise(() => {}));
    lead.catch(() => {});
    await expect.poll(() => witness.children('/e').catch(() => [])).toHaveLength(1);
    const election = new Election(client, '/e');
    return (options) => election.lead(async () => {}, options);
  },
  async appointable(client, witness) {
    const lead = new Election(witness, '/e').lead(() => new Promise(() => {}));
    lead.catch(() => {});
    await expect.poll(() => witness.children('/e').catch(() => [])).toHaveLength(1);
    const election = new Election(client, '/e', { appointable: true });
    return (options) => election.lead(async () => {}, options);
  },
  async staticElection(client, witness) {
    await witness.create('/e', '', { mode: 'ephemeral' });
    const election = new StaticElection(client, '/e');
    return (options) => election.lead(async () => {}, options);
  },
};

/** Shorter than a session lasts: its end would end every wait. */
const limit = { timeout: 5_000 };

/** What the client has on the server. */
async function holdings(client: Client) {
  return { watches: client.load.watches, nodes: await ephemeralsOf(client) };
}

async function lose(zk: Zk, client: Client): Promise<void> {
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
}

test.each(Object.entries({ ...waits, ...signalled }))(
  '%s: begun without a link, and called off',
  limit,
  async (_, prepare) => {
    await using zk = await startZk();
    const [client, witness] = [await zk.connect(), await zk.witness()];
    const wait = await prepare(client, witness);
    const abort = new AbortController();
    const before = await holdings(client);
    await lose(zk, client);

    const waiting = wait({ signal: abort.signal });
    await setImmediate();
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await zk.link.accept();
    for (let trips = 0; trips < 30; trips++) await client.exists('/');

    const after = await holdings(client);
    expect(after.watches).toBeLessThanOrEqual(before.watches);
    expect(after.nodes.filter((path) => !before.nodes.includes(path))).toEqual([]);
  },
);

test.each(Object.entries(waits))(
  '%s: begun without a link, and its time is over',
  limit,
  async (_, prepare) => {
    await using zk = await startZk();
    const [client, witness] = [await zk.connect(), await zk.witness()];
    const wait = await prepare(client, witness);
    await lose(zk, client);

    await expect(wait({ timeoutMs: 1 })).rejects.toThrow();
  },
);

test.each(Object.entries({ ...waits, ...signalled }))(
  '%s: called off when the link was lost meanwhile',
  limit,
  async (_, prepare) => {
    await using zk = await startZk();
    const [client, witness] = [await zk.connect(), await zk.witness()];
    const wait = await prepare(client, witness);
    const abort = new AbortController();
    const before = await holdings(client);

    const waiting = wait({ signal: abort.signal });
    for (let trips = 0; trips < 30; trips++) await client.exists('/');
    await lose(zk, client);
    abort.abort(new Error('enough'));

    const outcome = await waiting.then(
      () => 'done before',
      (error) => error.message,
    );
    await zk.link.accept();
    for (let trips = 0; trips < 30; trips++) await client.exists('/');

    if (outcome === 'done before') return;
    expect(outcome).toBe('enough');
    const after = await holdings(client);
    expect(after.watches).toBeLessThanOrEqual(before.watches);
    expect(after.nodes.filter((path) => !before.nodes.includes(path))).toEqual([]);
  },
);
