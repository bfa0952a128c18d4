import { expect, test, vi } from 'vitest';
import type { Client, WatchEvent } from '../../src/client/index.ts';
import { ops, specialXids } from '../../src/protocol/index.ts';
import { isBefore, persistentWatches, reached, startZk, type Zk } from '../zk.ts';

/** Whether events carry the transaction that caused them, as 3.9 says it. */
const saysZxid = (zk: Zk) => !isBefore(zk.version, '3.9');

function recorder() {
  const events: WatchEvent[] = [];
  return {
    events,
    listener: (event: WatchEvent) => void events.push(event),
    texts: () => events.map(({ type, path }) => `${type} ${path}`),
    /** The server tells of a change before it answers what is asked after it. */
    async settled(client: Client) {
      await client.sync('/');
      await client.exists('/');
    },
  };
}

test('a one-shot watch is told of the next change and of no other', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const heard = recorder();
  await client.create('/a');
  await client.get('/a', { watch: heard.listener });

  const { mzxid } = await writer.set('/a', '1');
  await writer.set('/a', '2');
  await heard.settled(client);

  expect(heard.events).toEqual([
    { type: 'dataChanged', path: '/a', zxid: saysZxid(zk) ? mzxid : null },
  ]);
  expect(client.load.watches).toBe(0);
});

test('each read sets the watch that is its own', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await client.create('/a');
  const [missing, present, data, children, both] = [1, 2, 3, 4, 5].map(recorder);

  expect(await client.exists('/new', { watch: missing!.listener })).toBeNull();
  await client.exists('/a', { watch: present!.listener });
  await client.get('/a', { watch: data!.listener });
  await client.children('/a', { watch: children!.listener });
  await client.childrenAndStat('/a', { watch: both!.listener });
  await writer.create('/new');
  await writer.create('/a/b');
  await writer.set('/a', 'x');
  await data!.settled(client);

  expect(missing!.texts()).toEqual(['created /new']);
  expect(present!.texts()).toEqual(['dataChanged /a']);
  expect(data!.texts()).toEqual(['dataChanged /a']);
  expect(children!.texts()).toEqual(['childrenChanged /a']);
  expect(both!.texts()).toEqual(['childrenChanged /a']);
});

test('a read that fails sets no watch', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const heard = recorder();

  await expect(client.get('/none', { watch: heard.listener })).rejects.toThrow(/NO_NODE/);
  await expect(client.children('/none', { watch: heard.listener })).rejects.toThrow(/NO_NODE/);
  await client.create('/none');
  await heard.settled(client);

  expect(heard.events).toEqual([]);
  expect(client.load.watches).toBe(0);
});

test('a listener is told once of a deletion that several of its watches see', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const heard = recorder();
  await client.create('/a');
  await client.get('/a', { watch: heard.listener });
  await client.exists('/a', { watch: heard.listener });
  await client.children('/a', { watch: heard.listener });

  await client.delete('/a');
  await heard.settled(client);

  expect(heard.texts()).toEqual(['deleted /a']);
});

test('a writer hears of its own change before its write is done', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const order: string[] = [];
  await client.get('/a', { watch: () => order.push('event') });

  await client.set('/a', 'x');
  order.push('reply');

  expect(order).toEqual(['event', 'reply']);
});

test('a persistent watch hears of every change of its node and its children', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const heard = recorder();
  await client.addWatch('/a', 'persistent', heard.listener);

  await writer.create('/a');
  await writer.set('/a', 'x');
  await writer.create('/a/b');
  await writer.set('/a/b', 'x');
  await writer.delete('/a/b');
  await writer.delete('/a');
  await heard.settled(client);

  expect(heard.texts()).toEqual([
    'created /a',
    'dataChanged /a',
    'childrenChanged /a',
    'childrenChanged /a',
    'deleted /a',
  ]);
});

test('a recursive watch hears of every change at and below its node, and of no list of children', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const heard = recorder();
  await client.addWatch('/a', 'persistentRecursive', heard.listener);

  await writer.create('/a');
  await writer.create('/a/b');
  await writer.set('/a/b', 'x');
  await writer.create('/ab');
  await writer.delete('/a/b');
  await heard.settled(client);

  expect(heard.texts()).toEqual(['created /a', 'created /a/b', 'dataChanged /a/b', 'deleted /a/b']);
});

test('the events of a multi come before its reply, in their order', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  const heard = recorder();
  await client.addWatch('/', 'persistentRecursive', heard.listener);

  await client.multi([
    { op: 'create', path: '/a' },
    { op: 'create', path: '/a/b' },
    { op: 'set', path: '/a', data: 'x' },
    { op: 'delete', path: '/a/b' },
  ]);

  expect(heard.texts()).toEqual(['created /a', 'created /a/b', 'dataChanged /a', 'deleted /a/b']);
});

test('watches are taken away by kind and by listener, and then hear nothing', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const [one, other, child] = [recorder(), recorder(), recorder()];
  await client.get('/a', { watch: one.listener });
  await client.get('/a', { watch: other.listener });
  await client.children('/a', { watch: child.listener });

  await client.removeWatches('/a', { kind: 'data', listener: one.listener });
  await client.removeWatches('/a', { kind: 'children' });
  await client.set('/a', 'x');
  await client.create('/a/b');
  await one.settled(client);

  expect(one.texts()).toEqual(['dataWatchRemoved /a']);
  expect(other.texts()).toEqual(['dataChanged /a']);
  expect(child.texts()).toEqual(['childWatchRemoved /a']);
});

test('all watches of a node can go at once, of every kind', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const heard = recorder();
  await client.get('/a', { watch: heard.listener });
  await client.children('/a', {
    watch: () => heard.listener({ type: 'none', path: '', zxid: null }),
  });
  await client.addWatch('/a', 'persistent', heard.listener);
  await client.addWatch('/a', 'persistentRecursive', heard.listener);

  await client.removeWatches('/a');
  heard.events.length = 0;
  await client.set('/a', 'x');
  await heard.settled(client);

  expect(heard.events).toEqual([]);
  expect(client.load.watches).toBe(0);
  await expect(client.removeWatches('/a')).rejects.toMatchObject({ code: 'NO_WATCHER' });
});

test('one kind of a node goes by itself, while the others stay', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  await client.create('/a');
  const [persistent, recursive, data] = [recorder(), recorder(), recorder()];
  await client.addWatch('/a', 'persistent', persistent.listener);
  await client.addWatch('/a', 'persistentRecursive', recursive.listener);
  await client.get('/a', { watch: data.listener });

  await client.removeWatches('/a', { kind: 'persistent' });
  await client.set('/a', '1');
  await client.removeWatches('/a', { kind: 'persistentRecursive' });
  await client.set('/a', '2');
  await data.settled(client);

  expect(persistent.texts()).toEqual(['persistentWatchRemoved /a']);
  expect(recursive.texts()).toEqual(['dataChanged /a', 'persistentWatchRemoved /a']);
  expect(data.texts()).toEqual(['dataChanged /a']);
});

test('a watch that is asked for before another of its path goes is heard all the same', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const [going, data, child, persistent] = [recorder(), recorder(), recorder(), recorder()];
  await client.get('/a', { watch: going.listener });

  await Promise.all([
    client.exists('/a', { watch: data.listener }),
    client.children('/a', { watch: child.listener }),
    client.addWatch('/a', 'persistent', persistent.listener),
    client.removeWatches('/a', { listener: going.listener }),
  ]);
  await client.set('/a', 'x');
  await client.create('/a/b');
  await data.settled(client);

  expect(going.texts()).toEqual(['dataWatchRemoved /a']);
  expect(data.texts()).toEqual(['dataChanged /a']);
  expect(child.texts()).toEqual(['childrenChanged /a']);
  expect(persistent.texts()).toEqual(['dataChanged /a', 'childrenChanged /a']);
});

test('a watch that is asked for after all others of its path were to go stays', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const [going, data, persistent] = [recorder(), recorder(), recorder()];
  await client.get('/a', { watch: going.listener });
  await client.addWatch('/a', 'persistent', going.listener);

  await Promise.all([
    client.removeWatches('/a'),
    client.get('/a', { watch: data.listener }),
    client.addWatch('/a', 'persistent', persistent.listener),
  ]);
  await client.set('/a', 'x');
  await data.settled(client);

  expect(going.texts()).toEqual(['dataWatchRemoved /a', 'persistentWatchRemoved /a']);
  expect(data.texts()).toEqual(['dataChanged /a']);
  expect(persistent.texts()).toEqual(['dataChanged /a']);
});

test('a removal that was given up after it left takes the watch away when its reply comes', async () => {
  await using zk = await startZk({ since: '3.5', what: 'removeWatches' });
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await client.create('/a');
  const heard = recorder();
  await client.get('/a', { watch: heard.listener });
  const givenUp = new AbortController();
  zk.link.onFrame = ({ direction, bytes }) => {
    if (direction === 'toServer' && bytes.readInt32BE(4) === ops.removeWatches.code) {
      givenUp.abort();
    }
    return 'pass';
  };

  const removal = client.removeWatches('/a', { signal: givenUp.signal });
  await expect(removal).rejects.toThrow();
  await client.exists('/a'); // behind the removal: without it the writer, on its own link, may be first
  await writer.set('/a', 'x');
  await heard.settled(client);

  expect(heard.texts()).toEqual(['dataWatchRemoved /a']);
  expect(client.load.watches).toBe(0);
});

test('without a link, watches are forgotten here when that is asked for', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const heard = recorder();
  await client.addWatch('/a', 'persistent', heard.listener);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await client.removeWatches('/a', { local: true, timeoutMs: 50 });
  await zk.link.accept();
  await client.set('/a', 'x');

  expect(heard.texts()).toEqual(['persistentWatchRemoved /a']);
});

test('after a reconnect all watches are there again, and one-shot ones tell of what they missed', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect(), await zk.witness()];
  for (const path of ['/changed', '/deleted', '/parent', '/quiet']) await client.create(path);
  const heard = recorder();
  await client.get('/changed', { watch: heard.listener });
  await client.get('/deleted', { watch: heard.listener });
  await client.get('/quiet', { watch: heard.listener });
  await client.exists('/new', { watch: heard.listener });
  await client.children('/parent', { watch: heard.listener });
  const stays = recorder();
  await client.addWatch('/quiet', 'persistent', stays.listener);
  await client.addWatch('/parent', 'persistentRecursive', stays.listener);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await writer.set('/changed', 'x');
  await writer.delete('/deleted');
  await writer.create('/new');
  await writer.create('/parent/child');
  await zk.link.accept();
  await reached(client, 'connected');
  await heard.settled(client);
  const late = heard.texts().sort();
  await writer.set('/quiet', 'x');
  await writer.set('/parent/child', 'x');
  await heard.settled(client);

  expect(late).toEqual([
    'childrenChanged /parent',
    'created /new',
    'dataChanged /changed',
    'deleted /deleted',
  ]);
  expect(heard.texts().at(-1)).toBe('dataChanged /quiet');
  expect(stays.texts()).toEqual(['dataChanged /quiet', 'dataChanged /parent/child']);
});

test('a link that breaks between two requests that set watches again costs no event', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  const heard = recorder();
  await client.create('/a');
  await client.children('/a', { watch: heard.listener });
  // So long that they take a request of their own, ahead of the one with the children.
  for (const name of ['x', 'y', 'z']) {
    await client.exists(`/${name.repeat(60_000)}`, { watch: () => {} });
  }
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await writer.create('/a/b');
  let cuts = 0;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    const isSet = index > 0 && bytes.readInt32BE(0) === specialXids.setWatches;
    return direction === 'toClient' && isSet && cuts++ === 0 ? 'passThenCut' : 'pass';
  };
  await zk.link.accept();
  await zk.link.until(() => cuts > 0);
  await heard.settled(client);

  expect(heard.texts()).toEqual(['childrenChanged /a']);
});

test('100,000 watches survive a reconnect', { timeout: 60_000 }, async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect({ sessionTimeoutMs: 20_000 }), await zk.witness()];
  const heard = recorder();
  const long = 'x'.repeat(60);
  const asked: Promise<unknown>[] = [];
  for (let i = 0; i < 99_999; i++) {
    asked.push(client.addWatch(`/${long}-${i}`, 'persistent', heard.listener));
    if (asked.length === 10_000) await Promise.all(asked.splice(0));
  }
  await Promise.all(asked);
  await client.exists('/missed', { watch: heard.listener });
  expect(client.load.watches).toBe(100_000);

  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await writer.create('/missed');
  await zk.link.accept();
  await client.exists('/');
  for (const i of [0, 50_000, 99_998]) await writer.create(`/${long}-${i}`);
  await heard.settled(client);

  expect(heard.texts()).toEqual([
    'created /missed',
    `created /${long}-0`,
    `created /${long}-50000`,
    `created /${long}-99998`,
  ]);
  expect(client.load.watches).toBe(99_999);
});

test('what a listener throws is its own affair', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const thrown: unknown[] = [];
  const catcher = vi.fn((error: unknown) => thrown.push(error));
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', catcher);
  try {
    const heard = recorder();
    const fails = () => {
      if (process.listeners('uncaughtException').includes(catcher)) throw new Error('my own fault');
    };
    await client.addWatch('/a', 'persistent', fails);
    await client.addWatch('/a', 'persistent', heard.listener);
    client.on('state', fails);
    const states: string[] = [];
    client.on('state', ({ name }) => states.push(name));

    await client.create('/a');
    zk.link.cut();
    await client.set('/a', 'x').catch(() => client.set('/a', 'x'));
    await heard.settled(client);

    expect(heard.texts()).toContain('created /a');
    expect(client.state.name).toBe('connected');
    expect(states).toEqual(['suspended', 'connected']);
    expect(thrown.length).toBeGreaterThanOrEqual(3);
  } finally {
    client.removeAllListeners('state');
    process.off('uncaughtException', catcher);
    for (const other of others) process.on('uncaughtException', other);
  }
});
