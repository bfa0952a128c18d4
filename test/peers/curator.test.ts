/**
 * Java processes with Apache Curator and ours on the same nodes: they contend for locks, leases and
 * leadership, and read each other's queues, barriers, numbers and services. On `drover serve` and on
 * Apache ZooKeeper.
 */

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import {
  AtomicLong,
  Barrier,
  buildUri,
  DoubleBarrier,
  Election,
  ElectionObserver,
  Lock,
  LockTimeoutError,
  Queue,
  ReadWriteLock,
  Semaphore,
  ServiceDiscovery,
  SharedCount,
  SimpleQueue,
} from '../../src/recipes/index.ts';
import { findCurator } from './curator/fetch.ts';
import { faultsOf, type HistoryFile, handOversOf, historyFile } from './curator/history.ts';
import { CuratorProcess } from './curator/process.ts';
import { startDroverServe } from './drover-serve.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const curator = await findCurator();
const { found } = await findZooKeepers();
const tick = { tickTime: '500' };
const servers = [
  { name: 'drover serve', start: () => startDroverServe(tick) },
  ...found
    .slice(0, 1)
    .map((peer) => ({ name: peer.name, start: () => startApache(peer, { config: tick }) })),
];

test.each<[string, string[], string]>([
  ['two holders', ['enter lock a 1', 'enter lock b 2'], 'inside'],
  ['an older token', ['enter term a 2', 'leave term a 2', 'enter term b 1'], 'not above 2'],
  ['a token twice', ['enter lease a 2', 'leave lease a 2', 'enter lease b 2'], 'given before'],
  ['a reader with a writer', ['enter write a 1', 'enter read b 2'], 'inside'],
  ['a writer with a reader', ['enter read b 2', 'enter write a 3'], 'inside'],
  ['a lease too many', ['enter lease a 1', 'enter lease b 2', 'enter lease c 3'], 'inside'],
])('a history with %s is found wrong', (_, lines, why) => {
  expect(faultsOf(lines, 2).join()).toContain(why);
});

test.runIf(typeof curator === 'string')('Curator is here', ({ skip }) => {
  if (process.env.CI !== 'true') skip(String(curator));
  expect.fail(String(curator));
});

describe.skipIf(typeof curator === 'string').each(servers)('on $name', ({ start }) => {
  let server: Awaited<ReturnType<typeof start>>;
  let java: CuratorProcess;
  let zk: Client;

  beforeAll(async () => {
    server = await start();
    if (typeof curator !== 'string') java = await CuratorProcess.start(curator, server.address);
    zk = await connect(server.address, { sessionTimeoutMs: 30_000 });
  });

  afterAll(async () => {
    await zk?.close();
    await java?.kill();
    await server?.[Symbol.asyncDispose]();
  });

  async function client(): Promise<Client> {
    const made = await connect(server.address, { sessionTimeoutMs: 30_000 });
    onTestFinished(async () => void (await made.close()));
    return made;
  }

  /** Two of ours and two of Java's, each so many rounds; what they wrote. */
  async function contend(
    history: HistoryFile,
    rounds: number,
    kind: string,
    args: Record<string, unknown>,
    ours: (client: Client, who: string) => Promise<void>,
  ): Promise<string[]> {
    const things = await Promise.all(
      [1, 2].map((i) => java.open(kind, { ...args, as: `java-${i}` })),
    );
    const clients = await Promise.all([client(), client()]);
    await Promise.all([
      ...things.map((thing, i) =>
        thing.do('rounds', { rounds, history: history.path, who: `java-${i + 1}` }),
      ),
      ...clients.map((one, i) => ours(one, `ours-${i + 1}`)),
    ]);
    const lines = history.lines();
    expect(lines.length).toBe(4 * rounds * 2);
    expect(handOversOf(lines)).toBeGreaterThan(0);
    return lines;
  }

  async function repeat(rounds: number, work: () => Promise<void>): Promise<void> {
    for (let round = 0; round < rounds; round++) await work();
  }

  test('one lock: never two holders, and every token is higher than all before it', async () => {
    using history = historyFile();

    const lines = await contend(history, 25, 'mutex', { path: '/lock' }, (one, who) =>
      repeat(25, () =>
        new Lock(one, '/lock').hold(({ fencingToken }) => {
          history.enter('lock', who, fencingToken);
          history.leave('lock', who, fencingToken);
        }),
      ),
    );

    expect(faultsOf(lines)).toEqual([]);
    await expect.poll(() => zk.children('/lock').catch(() => [])).toEqual([]);
  });

  test('both stand in one line, see each other in it, and go in the order they came', async () => {
    const path = '/line';
    const [first, third] = await Promise.all([1, 3].map(() => java.open('mutex', { path })));
    const lock = new Lock(zk, path, { data: 'ours' });
    await first!.do('acquire');
    const order: string[] = [];
    const second = lock.acquire();
    void second.then(() => order.push('second'));
    await expect.poll(async () => (await lock.queue()).length).toBe(1);
    const thirdHolds = third!.do('acquire').then(() => order.push('third'));
    await expect.poll(async () => (await lock.queue()).length).toBe(2);
    const fourth = lock.acquire();
    void fourth.then(() => order.push('fourth'));
    await expect.poll(async () => (await first!.do('participants')).length).toBe(4);

    expect((await lock.holder())?.sessionId).toBe(java.sessionId);
    expect(await lock.tryAcquire()).toBeNull();
    const late = await lock.acquire({ timeoutMs: 50 }).catch((error) => error);
    expect(late).toBeInstanceOf(LockTimeoutError);
    expect(late.message).toContain(`0x${java.sessionId.toString(16)}`);
    await first!.do('release');
    await (await second).release();
    await thirdHolds;
    expect(await first!.do('acquire', { timeoutMs: 50 })).toBeNull();
    await third!.do('release');
    await (await fourth).release();

    expect(order).toEqual(['second', 'third', 'fourth']);
    await expect.poll(() => zk.children(path).catch(() => [])).toEqual([]);
  });

  test('each can ask the other to let go', async () => {
    const path = '/revocable';
    const mutex = await java.open('mutex', { path });
    const lock = new Lock(zk, path);

    await mutex.do('acquire');
    expect((await lock.requestRevocation())?.sessionId).toBe(java.sessionId);
    await mutex.event('revoked');
    await mutex.do('release');
    const ours = await lock.acquire();
    await mutex.do('revoke');
    await expect.poll(() => ours.revocation.aborted).toBe(true);

    expect(ours.isHeld).toBe(true);
    await ours.release();
  });

  test('a Java holder that is killed or stopped loses the lock to ours, whose token is higher', async () => {
    const path = '/dying';
    const lock = new Lock(zk, path);
    const tokens: bigint[] = [];
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      const options = { sessionTimeoutMs: 1_000 };
      await using mortal = await CuratorProcess.start(curator as never, server.address, options);
      tokens.push(BigInt(await (await mortal.open('mutex', { path })).do('acquire')));
      const waiting = lock.acquire();
      await expect.poll(async () => (await lock.queue()).length).toBe(1);

      mortal.signal(signal);

      const grant = await waiting;
      tokens.push(grant.fencingToken);
      await grant.release();
    }

    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(4);
  });

  test('when our session ends, a Java process has the lock', async () => {
    const path = '/ours-dying';
    const mutex = await java.open('mutex', { path });
    const mortal = await client();
    const grant = await new Lock(mortal, path).acquire();
    const waiting = mutex.do('acquire');
    await expect.poll(async () => (await new Lock(zk, path).queue()).length).toBe(1);

    await mortal.close();

    expect(BigInt(await waiting)).toBeGreaterThan(grant.fencingToken);
    expect(grant.signal.aborted).toBe(true);
    await mutex.do('release');
  });

  test('a read-write lock: never a reader with a writer, of whichever language', async () => {
    using history = historyFile();

    const lines = await contend(history, 24, 'readWrite', { path: '/rw' }, async (one, who) => {
      const lock = new ReadWriteLock(one, '/rw');
      let left = 24;
      await repeat(24, async () => {
        const kind = left-- % 3 === 0 ? 'write' : 'read';
        await lock[kind].hold(({ fencingToken }) => {
          history.enter(kind, who, fencingToken);
          history.leave(kind, who, fencingToken);
        });
      });
    });

    expect(faultsOf(lines)).toEqual([]);
  });

  test('readers of both are in together, and a writer of either waits for both', async () => {
    const path = '/rw-together';
    const theirs = await java.open('readWrite', { path });
    const writer = await java.open('readWrite', { path });
    const lock = new ReadWriteLock(zk, path);
    await theirs.do('acquire', { side: 'read' });
    const ours = await lock.read.acquire();

    expect(await lock.write.tryAcquire()).toBeNull();
    expect(await writer.do('acquire', { side: 'write', timeoutMs: 50 })).toBe(false);
    const written = writer.do('acquire', { side: 'write' });
    await expect.poll(async () => (await lock.queue()).length).toBe(1);
    expect(await lock.read.tryAcquire()).toBeNull(); // the writer is ahead
    await theirs.do('release', { side: 'read' });
    await ours.release();

    expect(await written).toBe(true);
    await writer.do('release', { side: 'write' });
  });

  test('a semaphore: never more leases than there are, and as many as there are', async () => {
    using history = historyFile();
    const args = { path: '/semaphore', limit: 3 };

    const lines = await contend(history, 20, 'semaphore', args, (one, who) =>
      repeat(20, () =>
        new Semaphore(one, '/semaphore', { limit: 3 }).hold(({ fencingTokens: [token] }) => {
          history.enter('lease', who, token!);
          history.leave('lease', who, token!);
        }),
      ),
    );

    expect(faultsOf(lines, 3)).toEqual([]);
    await expect.poll(() => zk.children('/semaphore/leases')).toEqual([]);
    const theirs = await java.open('semaphore', args);
    const semaphore = new Semaphore(zk, '/semaphore', { limit: 3 });
    await theirs.do('acquire', { count: 2 });
    const ours = await semaphore.acquire();
    expect(await semaphore.tryAcquire()).toBeNull();
    expect(await theirs.do('acquire', { timeoutMs: 50 })).toBe(false);
    expect((await theirs.do('participants')).length).toBe(3);
    await theirs.do('release');
    await ours.release();
  });

  test.each(['latch', 'selector'] as const)(
    "an election in the layout of Curator's %s: one leader at a time, epochs grow",
    async (layout) => {
      using history = historyFile();
      const path = `/election-${layout}`;

      const lines = await contend(history, 10, layout, { path }, async (one, who) => {
        const election = new Election(one, path, { layout, id: who });
        let left = 10;
        for await (const term of election) {
          history.enter('term', who, term.epoch);
          history.leave('term', who, term.epoch);
          left -= 1;
          if (left === 0) break;
        }
        await election.close();
      });

      expect(faultsOf(lines)).toEqual([]);
      await expect.poll(() => zk.children(path).catch(() => [])).toEqual([]);
    },
  );

  test.each(['latch', 'selector'] as const)(
    'each side sees whom the other has as leader (%s)',
    async (layout) => {
      const path = `/leader-${layout}`;
      const theirs = await java.open(layout, { path, as: 'from Java' });
      const election = new Election(zk, path, { layout, id: 'from ours' });
      await using observer = new ElectionObserver(zk, path, { layout });
      await theirs.do('start');
      if (layout === 'latch') await theirs.do('await');
      else await theirs.event('leading');
      const terms = election.terms();
      const ours = terms.next();
      await expect.poll(async () => (await election.candidates()).length).toBe(2);

      await expect.poll(() => observer.leader?.id).toBe('from Java');
      expect((await election.candidates()).map(({ id }) => id)).toEqual(['from Java', 'from ours']);
      expect((await theirs.do('participants')).sort()).toEqual(['from Java', 'from ours']);
      await theirs.do(layout === 'latch' ? 'close' : 'yield');
      expect((await ours).done).toBe(false);
      await expect.poll(() => observer.leader?.id).toBe('from ours');
      const asker = layout === 'latch' ? await java.open(layout, { path, as: 'asker' }) : theirs;
      expect(await asker.do('leader')).toBe('from ours');
      await terms.return();
      await election.close();
    },
  );

  test('services: what either registers, the other finds, field by field', async () => {
    const base = '/services';
    const theirs = await java.open('discovery', { path: base });
    await using discovery = new ServiceDiscovery(zk, base);
    const uriSpec = '{scheme}://{address}:{port}/x';

    await theirs.do('register', {
      ...{ name: 'orders', instance: 'j1', address: '10.0.0.1', port: 8080 },
      ...{ payload: { zone: 'a', weight: 3 }, uriSpec },
    });
    await discovery.register({
      ...{ name: 'orders', id: 'o1', address: '10.0.0.2', port: 8081, sslPort: 8443 },
      ...{ payload: { zone: 'b', weight: 4 }, uriSpec },
    });

    const ours = await discovery.instances('orders');
    expect(ours.map(({ id, address, port }) => [id, address, port])).toEqual([
      ['j1', '10.0.0.1', 8080],
      ['o1', '10.0.0.2', 8081],
    ]);
    expect(ours[0]).toMatchObject({ payload: { zone: 'a', weight: 3 }, serviceType: 'DYNAMIC' });
    expect(await theirs.do('names')).toEqual(['orders']);
    expect(buildUri(ours[0]!.uriSpec!, ours[0])).toBe('http://10.0.0.1:8080/x');
    const seen: { id: string }[] = await theirs.do('instances', { name: 'orders' });
    expect(seen.find(({ id }) => id === 'o1')).toMatchObject({
      ...{ name: 'orders', address: '10.0.0.2', port: 8081, sslPort: 8443, enabled: true },
      ...{ payload: { zone: 'b', weight: 4 }, serviceType: 'DYNAMIC' },
      ...{
        uri: buildUri(ours[1]!.uriSpec!, ours[1]),
        registrationTimeUTC: ours[1]!.registrationTimeUTC,
      },
    });
    await theirs.do('unregister', { name: 'orders', instance: 'j1', port: 8080 });
    await expect.poll(async () => (await discovery.instances('orders')).length).toBe(1);
    await theirs.do('close');
  });

  test('a simple queue: each takes what the other put, in order', async () => {
    const theirs = await java.open('simpleQueue', { path: '/simple' });
    await using ours = new SimpleQueue(zk, '/simple');

    await theirs.do('put', { data: 'a' });
    await ours.put('b');
    await theirs.do('put', { data: 'c' });

    expect((await ours.take())?.toString()).toBe('a');
    expect(await theirs.do('take')).toBe('b');
    const waiting = theirs.do('take');
    expect(await waiting).toBe('c');
    const fromUs = theirs.do('take');
    await ours.put('d');
    expect(await fromUs).toBe('d');
  });

  test.each(['fifo', 'priority'] as const)(
    "a queue in Curator's layout (%s): every item is taken once, by either",
    async (order) => {
      const path = `/queue-${order}`;
      const lockPath = `${path}-locks`;
      const producer = await java.open('queue', { path, lockPath, order });
      await using queue = new Queue(zk, path, { layout: 'curator', order, lockPath });

      for (let i = 0; i < 10; i++) {
        await producer.do('put', { data: `java ${i}`, priority: 10 - i });
        await queue.put(`ours ${i}`, order === 'priority' ? { priority: 10 - i } : {});
      }
      await expect.poll(() => zk.children(path).then((names) => names.length)).toBe(20);
      const taken: string[] = [];
      for (let i = 0; i < 10; i++) {
        const item = await queue.take();
        taken.push(String(item.data));
        await item.confirm();
      }
      const consumer = await java.open('queue', { path, lockPath, order, consume: true });
      for (let i = 0; i < 10; i++) taken.push(String((await consumer.event('item')).data));

      const all = Array.from({ length: 10 }, (_, i) => [`java ${i}`, `ours ${i}`]);
      if (order === 'fifo') expect(taken).toEqual(all.flat());
      else expect(taken).toEqual(all.reverse().flat());
      await expect.poll(() => zk.children(path)).toEqual([]);
      await consumer.do('close');
      await producer.do('close');
    },
  );

  test('a barrier that either closes, either waits at and either opens', async () => {
    const theirs = await java.open('barrier', { path: '/barrier' });
    const waiter = await java.open('barrier', { path: '/barrier' });
    const ours = new Barrier(zk, '/barrier');

    await theirs.do('close');
    expect(await ours.isOpen()).toBe(false);
    const [here, there] = [ours.wait(), waiter.do('wait')];
    await ours.open();
    await here;
    expect(await there).toBe(true);
    await ours.close();
    expect(await waiter.do('wait', { timeoutMs: 50 })).toBe(false);
    const again = ours.wait();
    await theirs.do('remove');
    await again;
  });

  test('a double barrier: nobody is in before all have come, nor out before all go', async () => {
    const path = '/double';
    const theirs = await Promise.all(
      [1, 2].map(() => java.open('doubleBarrier', { path, size: 4 })),
    );
    const ours = [new DoubleBarrier(zk, path, 4), new DoubleBarrier(await client(), path, 4)];
    let inside = 0;
    const came = () => {
      inside += 1;
    };
    const entering = [
      ...theirs.map((one) => one.do('enter').then(came)),
      ours[0]!.enter().then(came),
    ];
    await expect.poll(() => ours[0]!.members().then((names) => names.length)).toBe(3);

    expect(inside).toBe(0);
    await Promise.all([...entering, ours[1]!.enter().then(came)]);
    expect(inside).toBe(4);
    let outside = 0;
    const went = () => {
      outside += 1;
    };
    const leaving = [
      ...ours.map((one) => one.leave().then(went)),
      theirs[0]!.do('leave').then(went),
    ];
    await expect.poll(() => ours[0]!.members().then((names) => names.length)).toBeLessThan(4);
    expect(outside).toBe(0);
    await Promise.all([...leaving, theirs[1]!.do('leave').then(went)]);
    expect(outside).toBe(4);
  });

  test('numbers: no increment of either is lost', async () => {
    const [atomic, count] = [
      await java.open('atomicLong', { path: '/atomic', lockPath: '/atomic-lock' }),
      await java.open('sharedCount', { path: '/count', seed: 0 }),
    ];
    await using ourAtomic = new AtomicLong(zk, '/atomic', { lockPath: '/atomic-lock' });
    await using ourCount = new SharedCount(zk, '/count');

    const [added] = await Promise.all([
      atomic.do('add', { times: 50, value: 3 }),
      repeat(50, async () => void (await ourAtomic.add(-2n))),
      count.do('add', { times: 30 }),
      repeat(30, async () => void (await ourCount.update((value) => value + 1))),
    ]);

    expect(added).toBe(50);
    expect(await ourAtomic.get()).toBe(50n);
    expect(await atomic.do('get')).toBe('50');
    expect((await ourCount.get()).value).toBe(60);
    await expect.poll(() => count.do('get')).toBe(60);
    await count.do('close');
  });
});
