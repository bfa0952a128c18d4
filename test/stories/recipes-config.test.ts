/** A configuration is typed, whole, remembered, and there when ZooKeeper is not. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Acl, anyoneId, Client, openAcl, permissions } from '../../src/client/index.ts';
import { type ConfigOptions, type ConfigProblem, ConfigStore } from '../../src/recipes/index.ts';
import { deferred } from '../../src/support/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { loseReply, opCodes } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

interface Limits {
  readonly low: number;
  readonly high: number;
}

function limits(value: unknown): Limits {
  const { low, high } = (value ?? {}) as Partial<Limits>;
  if (typeof low !== 'number' || typeof high !== 'number')
    throw new Error('two numbers are wanted');
  return { low, high };
}

function number(value: unknown): number {
  if (typeof value !== 'number') throw new Error('a number is wanted');
  return value;
}

type App = { limits: Limits; rate: number };
const app: ConfigOptions<App> = { schemas: { limits, rate: { parse: number } } };
const { write, create, delete: remove, admin } = permissions;
const writeOnlyAcl: readonly Acl[] = [{ perms: write | create | remove | admin, id: anyoneId }];
const first = { limits: { low: 1, high: 2 }, rate: 10 };

async function directory() {
  const path = await mkdtemp(join(tmpdir(), 'drover-config-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

test('what is written is read, checked and followed', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  await using store = new ConfigStore<App>(client, '/config/app', app);
  await using writer = new ConfigStore<App>(other, '/config/app', app);
  expect(() => store.get('rate')).toThrow(expect.objectContaining({ code: 'NOT_LOADED' }));

  const version = await writer.updateAll(() => first);
  await store.ready;
  const rates: number[] = [];
  const watching = (async () => {
    for await (const { value } of store.watch('rate')) {
      rates.push(value);
      if (value === 12) return;
    }
  })();
  await expect.poll(() => rates).toEqual([10]);
  await writer.update('limits', (now) => ({ ...now!, high: 3 }));
  await writer.update('rate', (now) => now! + 2);
  await watching;

  expect(rates).toEqual([10, 12]);
  expect(store.get('limits')).toEqual({ low: 1, high: 3 });
  expect(store.snapshot).toMatchObject({ source: 'server', staleSinceMs: null });
  expect(store.snapshot.version).toBeGreaterThan(version!);
  expect((await other.get('/config/app/rate')).data!.toString()).toBe('12');
});

test('several keys that change in one transaction are never seen apart', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  type Pair = { a: number; b: number };
  const options = { schemas: { a: number, b: number }, historyMax: 3 };
  await using store = new ConfigStore<Pair>(client, '/pair', options);
  await using writer = new ConfigStore<Pair>(other, '/pair', options);
  await writer.updateAll(() => ({ a: 0, b: 0 }));
  await store.ready;
  const seen: string[] = [];
  let last = 0n;
  const watching = (async () => {
    for await (const { values, version } of store) {
      if (values.a !== values.b) seen.push(`${values.a} beside ${values.b}`);
      if (version <= last) seen.push(`${version} after ${last}`);
      last = version;
      if (values.a === 60) return;
    }
  })();

  for (let i = 1; i <= 60; i++) {
    await writer.updateAll(() => ({ a: i, b: i }));
    if (i % 20 === 0) zk.link.cut();
  }
  await watching;

  expect(seen).toEqual([]);
  expect(await other.children('/pair/_history/a')).toHaveLength(3);
});

test.for([
  ['not json', 'BAD_JSON'],
  ['"text"', 'SCHEMA_MISMATCH'],
  ['{"__proto__":{"polluted":true}}', 'BAD_JSON'],
  ['', 'BAD_JSON'],
])('%j keeps what was there, and is reported', async ([garbage, code]) => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  const problems: ConfigProblem[] = [];
  await using store = new ConfigStore<App>(client, '/app', {
    ...app,
    onProblem: (problem) => problems.push(problem),
  });
  await store.updateAll(() => first);
  await store.ready;
  problems.length = 0; // before that there was nothing

  await other.set('/app/rate', garbage!);
  await expect.poll(() => problems.length).toBe(1);
  expect(problems[0]).toMatchObject({ path: '/app/rate', error: { code } });
  expect(store.problems).toEqual(problems);
  expect(store.get('rate')).toBe(10);
  await expect(store.update('rate', () => 1)).rejects.toMatchObject({ code });
  await store.set('rate', 11);

  await expect.poll(() => store.get('rate')).toBe(11);
  expect(store.problems).toEqual([]);
});

test('what fails its schema is not written', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using store = new ConfigStore<App>(client, '/app', app);

  await expect(store.set('rate', 'fast')).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH' });
  await expect(store.updateAll(() => ({ rate: 1, limits: {} }))).rejects.toThrow('two numbers');
  await expect(store.set('rate', undefined)).rejects.toMatchObject({ code: 'BAD_JSON' });
  await expect(store.set('other' as 'rate', 1)).rejects.toThrow(/^key: /);
  const big = new ConfigStore<{ text: string }>(client, '/big', { schemas: { text: String } });
  await expect(big.set('text', 'x'.repeat(600_000))).rejects.toThrow('fit');
  await big.close();

  expect(await client.exists('/app/rate')).toBeNull();
});

test('no update is lost, whoever writes at the same time', async () => {
  await using zk = await startZk();
  const stores: ConfigStore<{ n: number }>[] = [];
  for (let i = 0; i < 4; i++) {
    stores.push(
      new ConfigStore<{ n: number }>(await zk.connect(), '/c', { schemas: { n: number } }),
    );
  }
  await stores[0]!.set('n', 0);

  await Promise.all(
    stores.map(async (store) => {
      for (let i = 0; i < 10; i++) await store.update('n', (n) => n! + 1, { triesMax: 1_000 });
    }),
  );

  await stores[0]!.ready;
  await expect.poll(() => stores[0]!.get('n')).toBe(40);
  const versions = (await stores[0]!.history('n')).map(({ version }) => version);
  expect(versions).toEqual([...versions].sort((a, b) => (a > b ? -1 : 1)));
  expect(versions).toHaveLength(20);
  await Promise.all(stores.map((store) => store.close()));
});

test('who is always too late is told so after so many tries', async () => {
  await using zk = await startZk();
  const [client, other] = [await zk.connect(), await zk.witness()];
  await using store = new ConfigStore<{ n: number }>(client, '/c', { schemas: { n: number } });
  await store.set('n', 0);
  let tries = 0;

  const update = store.update(
    'n',
    async (n) => {
      tries += 1;
      await other.set('/c/n', String(tries + 100));
      return n! + 1;
    },
    { triesMax: 3 },
  );

  await expect(update).rejects.toMatchObject({ code: 'CONFIG_CONFLICT' });
  expect(tries).toBe(3);
});

test('a write whose reply was lost happens once', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using store = new ConfigStore<{ n: number }>(client, '/c', { schemas: { n: number } });
  await store.set('n', 0);
  let isLost = false;
  zk.link.onFrame = ({ direction, bytes }) => {
    // The reply to a multi: the first that comes after the request with op 14.
    if (direction === 'toServer' && bytes.readInt32BE(4) === 14) isLost = true;
    else if (direction === 'toClient' && isLost) {
      zk.link.onFrame = undefined;
      return 'cut';
    }
    return 'pass';
  };

  const version = await store.update('n', (n) => n! + 1);
  const { data, stat } = await client.get('/c/n');

  expect([data!.toString(), stat.version]).toEqual(['1', 1]);
  expect(stat.mzxid).toBe(version);
});

test('a write that may have gone out of the history with others is not made again', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const options = { schemas: { n: number }, historyMax: 2 };
  await using store = new ConfigStore<{ n: number }>(client, '/c', options);
  await using theirs = new ConfigStore<{ n: number }>(await zk.witness(), '/c', options);
  await store.set('n', 0);
  const lost = deferred();
  let isSent = false;
  zk.link.onFrame = ({ direction, bytes }) => {
    if (direction === 'toServer' && bytes.readInt32BE(4) === 14) isSent = true;
    else if (direction === 'toClient' && isSent) {
      zk.link.onFrame = undefined;
      zk.link.refuse();
      lost.resolve();
      return 'cut';
    }
    return 'pass';
  };

  const update = store.update('n', (n) => n! + 1);
  await lost.promise;
  for (const n of [10, 20, 30]) await theirs.set('n', n);
  await zk.link.accept();

  await expect(update).rejects.toMatchObject({ outcomeUnknown: true });
  expect(await theirs.history('n')).toHaveLength(2);
  const { data } = await client.get('/c/n');
  expect(data!.toString()).toBe('30');
});

test('history is kept, bounded, and rolled back to, all keys in one', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using store = new ConfigStore<App>(client, '/app', { ...app, historyMax: 3 });
  await store.updateAll(() => first);
  const good = await store.updateAll(() => ({ limits: { low: 5, high: 6 }, rate: 20 }));
  await store.update('rate', () => 30);
  const bad = await store.updateAll(() => ({ limits: { low: 0, high: 0 }, rate: 0 }));
  await store.ready;

  const back = await store.rollback(good!);
  await expect.poll(() => store.snapshot.version).toBe(back);

  expect(store.snapshot.values).toEqual({ limits: { low: 5, high: 6 }, rate: 20 });
  expect(store.snapshot.versions).toEqual({ limits: back, rate: back });
  const rates = await store.history('rate');
  expect(rates.map(({ value }) => value)).toEqual([20, 0, 30]);
  expect(rates[1]!.version).toBe(bad);
  expect(rates[0]!.writtenMs).toBeGreaterThan(0);
  expect(await store.rollback(back!)).toBeNull();
  await expect(store.rollback(1n)).rejects.toMatchObject({ code: 'NO_SUCH_VERSION' });
  await store.rollback(bad!, { keys: ['rate'] });
  await expect.poll(() => store.get('rate')).toBe(0);
  expect(store.get('limits')).toEqual({ low: 5, high: 6 });
});

test('a process starts while ZooKeeper is down, with what was good last, marked stale', async () => {
  await using dir = await directory();
  await using zk = await startZk();
  const file = join(dir.path, 'app.json');
  const before = new ConfigStore<App>(await zk.connect(), '/app', { ...app, file });
  await before.updateAll(() => first);
  await before.ready;
  await before.close();
  zk.link.refuse();
  zk.link.cut();

  await using client = new Client(zk.address, { sessionTimeoutMs: 10_000 });
  await using store = new ConfigStore<App>(client, '/app', { ...app, file, fileAfterMs: 0 });
  await store.ready;
  expect(store.snapshot).toMatchObject({
    ...{ values: first, source: 'file', staleSinceMs: expect.any(Number) },
    version: before.snapshot.version,
  });
  await (await zk.witness()).set('/app/rate', '11');
  await zk.link.accept();

  await expect.poll(() => store.snapshot.source).toBe('server');
  expect(store.snapshot).toMatchObject({ values: { ...first, rate: 11 }, staleSinceMs: null });
});

test('without a link what is known stays, and says since when', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using store = new ConfigStore<App>(client, '/app', app);
  await store.updateAll(() => first);
  await store.ready;

  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  expect(store.snapshot).toMatchObject({ values: first, staleSinceMs: expect.any(Number) });
  await zk.link.accept();
  await expect.poll(() => store.snapshot.staleSinceMs).toBeNull();
});

test('defaults stand for nodes that are missing, and closing leaves nothing behind', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const store = new ConfigStore<App>(client, '/app', { ...app, defaults: first });
  await store.ready;
  expect(store.snapshot).toMatchObject({ values: first, version: 0n });
  await store.update('rate', (rate) => rate! + 1);
  await expect.poll(() => store.get('rate')).toBe(11);
  const loop = store[Symbol.asyncIterator]();
  await loop.next();
  const next = loop.next();

  await store.close();

  expect(await next).toEqual({ done: true, value: undefined });
  expect(store.get('rate')).toBe(11);
  expect(client.load.watches).toBe(0);
  expect(client.listenerCount('state')).toBe(0);
});

test("defaults, and what a schema hands out, stay the caller's: neither is frozen, nor followed", async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const defaults = { names: ['a'], deep: { list: [{ x: 1 }] } };
  const constant = { low: 1 };
  await using store = new ConfigStore<{ names: string[]; deep: unknown; constant: unknown }>(
    client,
    '/app',
    {
      schemas: {
        names: (value) => value as string[],
        deep: (value) => value,
        constant: () => constant,
      },
      defaults: { ...defaults, constant: null },
    },
  );
  await store.ready;
  const read = store.get('deep');

  defaults.names.push('b');
  defaults.deep.list[0]!.x = 2;
  constant.low = 2;

  expect([store.get('names'), store.get('deep')]).toEqual([['a'], { list: [{ x: 1 }] }]);
  expect(read).toEqual({ list: [{ x: 1 }] });
  expect(Object.isFrozen(store.get('deep'))).toBe(true);
  expect(Object.isFrozen(constant)).toBe(false);
});

test('a write that landed, and of which nobody could ask before the session ended, is of unknown outcome', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const [client, witness] = [await zk.connect({ clock }), await zk.witness()];
  await using config = new ConfigStore(client, '/app', app);
  await config.update('rate', () => 1);
  loseReply(zk, opCodes.multi);
  const cut = zk.link.until(({ cuts }) => cuts === 1).then(() => zk.link.refuse());

  const updating = config.update('rate', () => 2).catch((error) => error);
  await cut;
  await reached(client, 'suspended');
  clock.advance(11_000);

  expect(await updating).toMatchObject({ code: 'CONNECTION_LOSS', outcomeUnknown: true });
  expect(String((await witness.get('/app/rate')).data)).toBe('2');
  await zk.link.accept();
});

test('what onProblem throws is its own, and what is written next is seen and saved', async () => {
  await using zk = await startZk();
  await using folder = await directory();
  const [client, other] = [await zk.connect(), await zk.witness()];
  const file = join(folder.path, 'missing', 'app.json'); // a folder that is not there: each save fails
  const thrown: string[] = [];
  const caught = (error: Error) => thrown.push(error.message);
  const others = ['uncaughtException', 'unhandledRejection'].map((event) => {
    const listeners = process.listeners(event as 'uncaughtException');
    process.removeAllListeners(event).on(event, caught);
    return () => {
      process.off(event, caught);
      for (const one of listeners) process.on(event, one);
    };
  });
  try {
    await using writer = new ConfigStore<App>(other, '/app', app);
    await writer.updateAll(() => first);
    const onProblem = ({ path }: ConfigProblem) => {
      throw new Error(`my own fault at ${path}`);
    };
    await using store = new ConfigStore<App>(client, '/app', { ...app, file, onProblem });
    await store.ready;
    await expect.poll(() => thrown).toEqual([`my own fault at ${file}`]);
    await other.set('/app/rate', 'no number');
    await expect.poll(() => thrown).toContain('my own fault at /app/rate');

    await writer.set('rate', 11);

    await expect.poll(() => store.get('rate')).toBe(11);
  } finally {
    for (const restore of others) restore();
  }
});

test('a key that may not be read is a problem, and holds back no other store', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const problems: ConfigProblem[] = [];
  const onProblem = (problem: ConfigProblem) => problems.push(problem);
  await using open = new ConfigStore<App>(client, '/app', app);
  await open.updateAll(() => first);
  await open.ready;

  await writer.setAcl('/app/rate', writeOnlyAcl);
  await using store = new ConfigStore<App>(client, '/app', {
    ...{ ...app, defaults: { rate: 1 }, onProblem },
  });
  await expect.poll(() => problems).not.toEqual([]);
  expect(problems[0]).toMatchObject({ path: '/app/rate', error: { code: 'NO_AUTH' } });
  expect(() => store.get('rate')).toThrow(/NOT_LOADED: .*NO_AUTH/);

  await writer.setAcl('/app/rate', openAcl);
  await writer.set('/app/rate', '11');
  await store.ready;
  expect(store.problems).toEqual([]);
  expect(store.get('rate')).toBe(11);
  await expect.poll(() => open.get('rate')).toBe(11);
});

test('a key that may no longer be read holds the others back, and not in silence', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await using store = new ConfigStore<App>(client, '/app', app);
  await store.updateAll(() => first);
  await store.ready;

  await writer.setAcl('/app/rate', writeOnlyAcl);
  await writer.set('/app/rate', '11');
  await writer.set('/app/limits', '{"low":2,"high":3}');

  await expect.poll(() => store.problems).toMatchObject([{ path: '/app/rate' }]);
  expect(store.snapshot.values).toEqual(first);
  await writer.setAcl('/app/rate', openAcl); // or nobody could delete it behind the story
});

test('a store whose keys may not be listed says so', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await using writing = new ConfigStore<App>(writer, '/app', app);
  await writing.updateAll(() => first);
  await writer.setAcl('/app', writeOnlyAcl);

  await using store = new ConfigStore<App>(client, '/app', app);

  await expect
    .poll(() => store.problems)
    .toMatchObject([{ path: '/app', error: { code: 'NO_AUTH' } }]);
  await writer.setAcl('/app', openAcl);
});

test('a store that is closed during an outage takes nothing in after it', async () => {
  await using zk = await startZk();
  await using folder = await directory();
  const file = join(folder.path, 'app.json');
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const store = new ConfigStore<App>(client, '/app', { ...app, file });
  await store.updateAll(() => first);
  await store.ready;
  zk.link.onFrame = ({ index, direction, bytes }) => {
    if (index === 0 || direction !== 'toServer' || bytes.readInt32BE(4) !== opCodes.exists)
      return 'pass';
    zk.link.onFrame = undefined;
    zk.link.refuse();
    return 'cut';
  };
  await writer.set('/app/rate', '11');
  await reached(client, 'suspended');

  await store.close();
  await rm(file);
  await zk.link.accept();
  await client.connected();
  await client.exists('/app/rate'); // answered behind whatever the store had asked

  await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(store.get('rate')).toBe(10);
});
