import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  AtomicLong,
  Counter,
  type CounterError,
  IdGenerator,
  SharedCount,
  SharedValue,
} from '../../src/recipes/index.ts';
import { failureOf, loseReply, loseRequest, opCodes } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

const multi = 14;

const failure = failureOf<CounterError>;

const quick = { backoff: { firstMs: 1, maxMs: 10 } };

test('a counter counts as kazoo writes it, and closing leaves the number alone', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const [ints, floats] = [
    new Counter(client, '/c/int'),
    new Counter(client, '/c/float', { kind: 'float', initial: 1 }),
  ];

  expect([await ints.get(), await floats.get()]).toEqual([0, 1]);
  expect(await ints.add(2)).toEqual({ before: 0, after: 2, tries: 1 });
  expect(await ints.decrement()).toMatchObject({ before: 2, after: 1 });
  expect(await floats.add(2)).toMatchObject({ before: 1, after: 3 });
  expect(String((await client.get('/c/int')).data)).toBe('1');
  expect(String((await client.get('/c/float')).data)).toBe('3.0');

  await client.set('/c/int', '-41');
  expect((await ints.increment()).after).toBe(-40);
  await Promise.all([ints.close(), floats.close()]);
  expect(await client.children('/c/int')).toEqual([]);
});

test.each(['request', 'reply'] as const)(
  'a number is there once it was initialized, though the %s was lost',
  async (what) => {
    await using zk = await startZk();
    const client = await zk.connect(quick);
    const long = new AtomicLong(client, '/n');
    if (what === 'request') loseRequest(zk.link, opCodes.create);
    else loseReply(zk, opCodes.create);

    await long.initialize(5n);

    expect([zk.link.stats.cuts, await long.get()]).toEqual([1, 5n]);
  },
);

test('a counter refuses what is no number, and what it cannot hold', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const counter = new Counter(client, '/c');

  await counter.set(Number.MAX_SAFE_INTEGER);
  expect((await failure(counter.increment())).code).toBe('OVERFLOW');
  expect(await counter.get()).toBe(Number.MAX_SAFE_INTEGER);
  await client.set('/c', 'many');
  expect(await failure(counter.get())).toMatchObject({ code: 'CORRUPT', path: '/c' });
  expect((await failure(counter.increment())).message).toContain('"many"');
  expect((await failure(counter.add(0.5))).message).toContain('delta');
  expect(() => new Counter(client, '/c', { kind: 'x' as 'int' })).toThrow('kind');
});

test('no increment is lost, and none made twice, while links break', async () => {
  await using zk = await startZk();
  const clients: Client[] = [];
  for (let i = 0; i < 4; i++) clients.push(await zk.connect(quick));
  const counters = clients.map((client) => new Counter(client, '/sum', { triesMax: 1_000 }));
  const longs = clients.map((client) => new AtomicLong(client, '/long', { triesMax: 1_000 }));
  let replies = 0;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 37 === 0 ? 'cut' : 'pass';
  const seen: number[] = [];

  await Promise.all(
    [0, 1, 2, 3].map(async (i) => {
      for (let n = 0; n < 25; n++) {
        seen.push((await counters[i]!.increment()).after);
        await longs[i]!.add(3n);
      }
    }),
  );

  zk.link.onFrame = undefined;
  expect(zk.link.stats.cuts).toBeGreaterThan(5);
  expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  expect([await counters[0]!.get(), await longs[0]!.get()]).toEqual([100, 300n]);
}, 60_000);

test('an increment whose reply was lost is made once, also when others count on meanwhile', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(quick), await zk.witness()];
  const [mine, theirs] = [new Counter(client, '/c'), new Counter(witness, '/c')];
  await mine.increment();
  loseReply(zk, multi, { lost: () => zk.link.refuse() });

  const counting = mine.increment();
  await reached(client, 'suspended');
  for (let i = 0; i < 3; i++) await theirs.increment();
  await zk.link.accept();

  expect(await counting).toMatchObject({ before: 1, after: 2 });
  expect(await theirs.get()).toBe(5);
});

test('who calls an increment off while it is on its way is told what came of it', async () => {
  await using zk = await startZk();
  const client = await zk.connect(quick);
  const counter = new Counter(client, '/c');
  await counter.increment();
  const callOff = new AbortController();
  zk.link.onFrame = ({ index, direction, bytes }) => {
    const isWrite = index > 0 && direction === 'toServer' && bytes.readInt32BE(4) === multi;
    if (isWrite) callOff.abort();
    return 'pass';
  };

  const counted = await counter.increment({ signal: callOff.signal });

  expect(callOff.signal.aborted).toBe(true);
  expect(counted).toMatchObject({ before: 1, after: 2 });
});

test('who calls an increment off while it is on its way and the link is gone is told that nobody knows', async () => {
  await using zk = await startZk();
  const client = await zk.connect(quick);
  const counter = new Counter(client, '/c');
  await counter.increment();
  const callOff = new AbortController();
  loseReply(zk, multi, { lost: () => zk.link.refuse() });

  const counting = failure(counter.increment({ signal: callOff.signal }));
  await reached(client, 'suspended');
  callOff.abort();

  expect((await counting).code).toBe('OUTCOME_UNKNOWN');
  await zk.link.accept();
  await expect.poll(() => counter.get()).toBe(2);
});

test('an increment of a session that ended is unknown only where the node cannot tell', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ ...quick, renew: true }), await zk.witness()];
  const [mine, theirs] = [new AtomicLong(client, '/c'), new AtomicLong(witness, '/c')];
  await mine.increment();
  const cutAndExpire = async (isDone: boolean) => {
    if (isDone) loseReply(zk, multi, { lost: () => zk.link.refuse() });
    else {
      zk.link.onFrame = ({ direction, index, bytes }) => {
        if (direction !== 'toServer' || index === 0 || bytes.readInt32BE(4) !== multi)
          return 'pass';
        zk.link.refuse();
        zk.link.onFrame = undefined;
        return 'cut';
      };
    }
    const counting = mine.add(10n).then(
      ({ after }) => after,
      (error: CounterError) => error.code,
    );
    await reached(client, 'suspended');
    await zk.expire(client);
    await zk.link.accept();
    return counting;
  };

  expect(await cutAndExpire(false)).toBe(11n);
  expect(await cutAndExpire(true)).toBe('OUTCOME_UNKNOWN');
  expect(await theirs.get()).toBe(21n);
  expect((await mine.increment()).after).toBe(22n);
});

test('a change that others always beat is given up, and nothing was changed', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const counter = new Counter(client, '/c', { triesMax: 3 });
  await counter.increment();
  let writes = 0;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (direction === 'toServer' && index > 0 && bytes.readInt32BE(4) === multi) writes += 1;
    return 'pass';
  };
  // The version that was read is never the one that is there: somebody has written in between.
  const get = client.get.bind(client);
  client.get = async (path, options) => {
    const found = await get(path, options);
    if (path === '/c') await witness.set('/c', '7');
    return found;
  };

  const error = await failure(counter.increment());
  client.get = get;

  expect(error).toMatchObject({ code: 'CONTENTION' });
  expect([writes, await counter.get()]).toEqual([3, 7]);
});

test('an atomic long is eight bytes as Java has it, and says what its tries were', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const long = new AtomicLong(client, '/n/long');

  expect(await long.get()).toBe(0n);
  expect([await long.initialize(5n), await long.initialize(6n)]).toEqual([true, false]);
  const { before, after, succeeded, stats } = await long.add(-7n);
  expect({ before, after, succeeded }).toEqual({ before: 5n, after: -2n, succeeded: true });
  expect(stats).toMatchObject({ optimisticTries: 1, promotedTries: 0, promotedMs: 0 });
  expect((await client.get('/n/long')).data?.toString('hex')).toBe('fffffffffffffffe');
  expect(await long.compareAndSet(1n, 9n)).toMatchObject({ succeeded: false, after: -2n });
  expect(await long.compareAndSet(-2n, 9n)).toMatchObject({ succeeded: true, after: 9n });
  await long.set(2n ** 63n - 1n);
  expect((await failure(long.increment())).code).toBe('OVERFLOW');
  await client.set('/n/long', 'abc');
  expect((await failure(long.get())).code).toBe('CORRUPT');
  expect((await failure(long.set(2n ** 63n))).code).toBe('INVALID_ARGUMENT');
});

test('who always loses takes the lock, and its numbers say so', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const long = new AtomicLong(client, '/n', { triesMax: 2, lockPath: '/n-lock' });
  await long.increment();
  let disturbed = 0;
  const get = client.get.bind(client);
  client.get = async (path, options) => {
    const found = await get(path, options);
    if (path === '/n' && disturbed < 2) {
      disturbed += 1;
      await witness.set('/n', found.data!);
    }
    return found;
  };

  const { after, stats } = await long.increment();

  expect(after).toBe(2n);
  expect(stats).toMatchObject({ optimisticTries: 2, promotedTries: 1 });
  await expect.poll(() => witness.children('/n-lock')).toEqual([]);
});

test('a shared value is changed only by who has seen the last one', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [
    new SharedValue(client, '/v/x', { seed: 'first' }),
    new SharedValue(witness, '/v/x', { seed: 'other' }),
  ];
  const seen = await mine.get();

  expect(String(seen.value)).toBe('first');
  expect(await theirs.trySet(await theirs.get(), Buffer.from('second'))).toBe(true);
  expect(await mine.trySet(seen, Buffer.from('third'))).toBe(false);
  await mine.set(Buffer.from('fourth'));
  expect(String((await theirs.get()).value)).toBe('fourth');
});

test('a shared count is four bytes as Java has it, and its changes are told', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const [mine, theirs] = [
    new SharedCount(client, '/n', { seed: 3 }),
    new SharedCount(witness, '/n'),
  ];
  const abort = new AbortController();
  const told: number[] = [];

  const following = (async () => {
    for await (const { value } of mine.changes({ signal: abort.signal })) told.push(value);
  })();
  await expect.poll(() => told).toEqual([3]);
  expect((await witness.get('/n')).data?.toString('hex')).toBe('00000003');
  await theirs.update((value) => value + 4);
  await expect.poll(() => told).toEqual([3, 7]);
  await theirs.close();
  await witness.delete('/n');
  await theirs.set(-1);
  await expect.poll(() => told.at(-1)).toBe(-1);
  abort.abort();
  await following;

  await expect.poll(() => client.load.watches).toBe(0);
  expect(() => new SharedCount(client, '/n', { seed: 2 ** 31 })).toThrow('32-bit');
});

test('ids are unique over all generators, through lost replies and ended sessions', async () => {
  await using zk = await startZk();
  const clients: Client[] = [];
  for (let i = 0; i < 3; i++) clients.push(await zk.connect({ ...quick, renew: true }));
  const generators = clients.map(
    (client) => new IdGenerator(client, '/ids/next', { blockSize: 3 }),
  );
  let replies = 0;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 23 === 0 ? 'cut' : 'pass';
  const all: bigint[] = [];
  const take = async (generator: IdGenerator) => {
    for (let n = 0; n < 60; n++) {
      try {
        all.push(await generator.next());
      } catch (error) {
        if ((error as { code?: string }).code !== 'SESSION_EXPIRED') throw error;
      }
    }
  };

  const taking = Promise.all(generators.map(take));
  await expect.poll(() => all.length).toBeGreaterThan(20);
  if (clients[0]!.identity) await zk.expire(clients[0]!);
  await taking;

  expect(all.length).toBeGreaterThan(170);
  expect(new Set(all).size).toBe(all.length);
  expect(zk.link.stats.cuts).toBeGreaterThan(3);
}, 60_000);

test('ids go on past 2^31 and 2^53, and a block is one write', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const start of [2n ** 31n - 2n, 2n ** 53n - 2n]) {
    const path = `/ids-${start}`;
    const generator = new IdGenerator(client, path, { first: start, blockSize: 5 });

    const [first, ...rest] = await Promise.all([1, 2, 3, 4, 5].map(() => generator.next()));

    expect([first, ...rest]).toEqual([start, start + 1n, start + 2n, start + 3n, start + 4n]);
    expect((await client.get(path)).stat.version).toBe(1);
    expect(await generator.nextMany(2)).toEqual([start + 5n, start + 6n]);
  }
  await client.set('/ids-2147483646', 'x');
  const broken = new IdGenerator(client, '/ids-2147483646');
  expect((await failure(broken.next())).code).toBe('CORRUPT');
  expect(() => new IdGenerator(client, '/x', { blockSize: 0 })).toThrow('blockSize');
});

test('what is no number is set to one, as the error says, and nothing else changes it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const path of ['/c', '/l']) await client.create(path, 'spoilt');
  await using counter = new Counter(client, '/c', { initial: 3 });
  await using long = new AtomicLong(client, '/l');
  expect(await failure(counter.increment())).toMatchObject({ code: 'CORRUPT' });
  expect(await failure(long.compareAndSet(0n, 1n))).toMatchObject({ code: 'CORRUPT' });

  const [set, setLong] = [await counter.set(5), await long.set(7n)];

  expect(set).toMatchObject({ before: 3, after: 5 });
  expect(setLong).toMatchObject({ succeeded: true, before: 0n, after: 7n });
  expect([await counter.get(), await long.get()]).toEqual([5, 7n]);
});

test('who no longer follows a value does not wait for a link', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ renew: true }), await zk.witness()];
  await using value = new SharedValue(client, '/v', { seed: 'x' });
  const enough = new AbortController();
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  const next = value.changes({ signal: enough.signal }).next();

  enough.abort();

  expect(await next).toEqual({ done: true, value: undefined });
  await zk.link.accept();
  await client.connected();
  await client.barrier();
  expect(await witness.exists('/v')).toBeNull();
});
