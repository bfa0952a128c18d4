import { expect, test, vi } from 'vitest';
import {
  type Change,
  Client,
  openAcl,
  readOnlyAcl,
  WatchOverflowError,
  type WatchStream,
} from '../../src/client/index.ts';
import { ops } from '../../src/protocol/index.ts';
import { ManualClock } from '../../src/support/index.ts';
import { isBefore, persistentWatches, reached, startZk, type Zk } from '../zk.ts';

/** Reads so many changes. */
async function take(stream: WatchStream, count: number): Promise<Change[]> {
  const changes: Change[] = [];
  while (changes.length < count) {
    const { value, done } = await stream.next();
    if (done) throw new Error(`the stream ended after ${changes.length} changes`);
    changes.push(value);
  }
  return changes;
}

const texts = (changes: Change[]) => changes.map(({ type, path }) => `${type} ${path}`);

async function away(zk: Zk, client: Client, work: () => Promise<unknown>): Promise<void> {
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await work();
  await zk.link.accept();
}

test('a loop over a watch hears of every change of its node', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await using stream = client.watch('/a');
  await stream.ready;

  const made = await writer.create('/a');
  await writer.set('/a', 'x');
  await writer.create('/a/b');
  await writer.delete('/a/b');
  await writer.delete('/a');
  const changes = await take(stream, 5);

  expect(texts(changes)).toEqual([
    'created /a',
    'dataChanged /a',
    'childrenChanged /a',
    'childrenChanged /a',
    'deleted /a',
  ]);
  expect(changes.every(({ late }) => !late)).toBe(true);
  expect(changes[0]!.zxid).toBe(isBefore(zk.version, '3.9') ? null : made.stat.czxid);
});

test('a break out of the loop takes the watch away, here and on the server', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  const stream = client.watch('/', { recursive: true });
  await stream.ready;
  await client.create('/a');

  for await (const change of stream) {
    expect(change.path).toBe('/a');
    break;
  }
  await client.sync('/');
  const { frames } = zk.link.stats;
  await client.create('/b');

  expect(client.load.watches).toBe(0);
  expect(zk.link.stats.frames.toClient).toBe(frames.toClient + 1);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

test('what happens while the link is away is told once, in order, when it is back', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  for (const path of ['/changed', '/gone', '/gone/child', '/again', '/again/child', '/quiet']) {
    await writer.create(path, '0');
  }
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;

  await away(zk, client, async () => {
    await writer.set('/changed', '1');
    await writer.set('/changed', '2');
    await writer.delete('/gone/child');
    await writer.delete('/gone');
    await writer.delete('/again/child');
    await writer.delete('/again');
    await writer.create('/again', '0');
    await writer.create('/new');
    await writer.create('/new/below');
    await writer.create('/came-and-went');
    await writer.delete('/came-and-went');
  });
  const missed = await take(stream, 8);
  await writer.create('/live');
  const [live] = await take(stream, 1);

  expect(new Set(texts(missed))).toEqual(
    new Set([
      'dataChanged /changed',
      'deleted /gone/child',
      'deleted /gone',
      'deleted /again/child',
      'deleted /again',
      'created /again',
      'created /new',
      'created /new/below',
    ]),
  );
  const at = (text: string) => texts(missed).indexOf(text);
  expect(at('deleted /gone/child')).toBeLessThan(at('deleted /gone'));
  expect(at('deleted /again/child')).toBeLessThan(at('deleted /again'));
  expect(at('deleted /again')).toBeLessThan(at('created /again'));
  expect(at('created /again')).toBeLessThan(at('created /new'));
  expect(at('created /new')).toBeLessThan(at('created /new/below'));
  expect(missed.every(({ late }) => late)).toBe(true);
  const zxids = missed.flatMap(({ zxid }) => (zxid === null ? [] : [zxid]));
  expect(zxids).toEqual([...zxids].sort((a, b) => (a < b ? -1 : 1)));
  expect([live!.path, live!.late]).toEqual(['/live', false]);
});

test('a reconnect without a change tells nothing', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/a');
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;
  await writer.set('/a', 'x');
  await writer.create('/b');
  await take(stream, 2);
  await client.sync('/');

  for (let i = 0; i < 3; i++) {
    zk.link.cut();
    await reached(client, 'suspended');
    await reached(client, 'connected');
    await client.sync('/');
  }
  await writer.create('/c');

  expect(texts(await take(stream, 1))).toEqual(['created /c']);
});

test('a node deleted and made again with the same version is another node', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/a', 'same');
  await using stream = client.watch('/a');
  await stream.ready;

  await away(zk, client, async () => {
    await writer.delete('/a');
    await writer.create('/a', 'same');
  });

  expect(texts(await take(stream, 2))).toEqual(['deleted /a', 'created /a']);
});

test('a watch of one node tells of children that changed while the link was away', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/a');
  await using stream = client.watch('/a');
  await stream.ready;

  await away(zk, client, () => writer.create('/a/b'));

  expect(texts(await take(stream, 1))).toEqual(['childrenChanged /a']);
});

test('with renew, a stream goes on through the end of its session', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect({ renew: true }), await zk.witness()];
  await writer.create('/a');
  await client.create('/mine', '', { mode: 'ephemeral' });
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;
  const first = client.sessionId;

  zk.link.refuse();
  zk.link.cut();
  await zk.expire(client);
  await writer.set('/a', 'x');
  await writer.create('/b');
  await zk.link.accept();
  const changes = await take(stream, 3);
  await writer.create('/live');

  expect(client.sessionId).not.toBe(first);
  expect(new Set(texts(changes))).toEqual(
    new Set(['deleted /mine', 'dataChanged /a', 'created /b']),
  );
  expect(texts(await take(stream, 1))).toEqual(['created /live']);
});

test('what a new session tells together with the reply that sets the watch is not lost', async () => {
  await using zk = await startZk(persistentWatches);
  const [client, writer] = [await zk.connect({ renew: true }), await zk.witness()];
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;
  let made: Promise<unknown> | undefined;
  zk.link.onFrame = ({ direction, bytes }) => {
    if (direction === 'toServer' && bytes.readInt32BE(4) === ops.addWatch.code) {
      zk.link.pause('toClient');
      made = writer.create('/a'); // right behind it, so that its event follows the reply
    }
    return 'pass';
  };

  await zk.expire(client);
  await vi.waitFor(async () => expect(await writer.exists('/a')).not.toBeNull());
  await writer.set('/a', 'x');
  zk.link.resume('toClient');
  await made;

  expect(texts(await take(stream, 1))).toEqual(['created /a']);
});

test('links that break in the middle of looking around tell nothing twice and leave nothing out', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect({ readRetries: 100 }), await zk.witness()];
  for (let i = 0; i < 100; i++) await writer.create(`/n-${i}`);
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;

  await away(zk, client, async () => {
    for (let i = 0; i < 100; i += 2) await writer.set(`/n-${i}`, 'x');
    for (let i = 1; i < 100; i += 2) await writer.delete(`/n-${i}`);
    for (let i = 1; i < 100; i += 4) await writer.create(`/n-${i}`);
    zk.link.cutAfter({ toClient: 2_000 });
  });
  await zk.link.until(({ cuts }) => cuts >= 2);
  await writer.set('/n-0', 'y');
  zk.link.cutAfter({ toClient: 3_000 });
  await zk.link.until(({ cuts }) => cuts >= 3);
  await writer.create('/last');

  const told: Change[] = [];
  while (told.at(-1)?.path !== '/last') told.push(...(await take(stream, 1)));
  const count = (text: string) => texts(told).filter((one) => one === text).length;
  for (let i = 0; i < 100; i += 2) {
    expect(count(`dataChanged /n-${i}`)).toBeGreaterThanOrEqual(1);
    expect(count(`dataChanged /n-${i}`)).toBeLessThanOrEqual(i === 0 ? 2 : 1);
  }
  for (let i = 1; i < 100; i += 2) {
    expect(count(`deleted /n-${i}`)).toBe(1);
    expect(count(`created /n-${i}`)).toBe(i % 4 === 1 ? 1 : 0);
  }
});

test('a node that can be seen no more is not told to be gone', async () => {
  await using zk = await startZk();
  const [client, owner] = [
    await zk.connect(),
    await zk.witness({ auth: [{ scheme: 'digest', auth: 'me:secret' }] }),
  ];
  await owner.create('/hidden');
  await owner.create('/hidden/below');
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;

  await away(zk, client, async () => {
    await owner.setAcl('/hidden', [{ perms: 31, id: { scheme: 'auth', id: '' } }]);
    await owner.create('/marker', '', { acl: readOnlyAcl });
  });
  const changes = await take(stream, 1);
  await owner.setAcl('/hidden', openAcl);

  expect(texts(changes)).toEqual(['created /marker']);
});

test('a reader that is too slow is told so, and the watch is let go of', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const stream = client.watch('/', { recursive: true, bufferMax: 10 });
  await stream.ready;

  for (let i = 0; i < 20; i++) await client.create(`/${i}`);
  const read: string[] = [];
  const loop = async () => {
    for await (const { path } of stream) read.push(path);
  };

  await expect(loop()).rejects.toThrow(WatchOverflowError);
  expect(read).toHaveLength(11);
  expect((await stream.next()).done).toBe(true);
  await client.sync('/');
  expect(client.load.watches).toBe(0);
});

test('a tree too large to watch is refused', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (let i = 0; i < 20; i++) await client.create(`/${i}`);

  const stream = client.watch('/', { recursive: true, nodesMax: 10 });

  await expect(stream.ready).rejects.toThrow(/more than 10 nodes; watch less of the tree/);
  await expect(stream.next()).rejects.toThrow(WatchOverflowError);
});

test('one node is watched however many children it has; a tree with a list that fits no frame is refused', async () => {
  await using zk = await startZk(persistentWatches);
  const writer = await zk.witness();
  await writer.create('/wide');
  const names = Array.from({ length: 100 }, (_, i) => `/wide/${'n'.repeat(50)}${i}`);
  await writer.multi(names.map((path) => ({ op: 'create', path }) as const));
  const client = await zk.connect({ frameBytesMax: 2_000, backoff: { firstMs: 1, maxMs: 5 } });

  await using one = client.watch('/wide');
  await one.ready;
  expect(zk.link.stats.connections).toBe(1);
  await writer.set('/wide', 'x');
  expect(texts(await take(one, 1))).toEqual(['dataChanged /wide']);

  await using tree = client.watch('/', { recursive: true });
  await expect(tree.next()).rejects.toThrow(
    /each time: a frame of \d+ bytes.*frameBytesMax.*\/wide/,
  );
  await expect(tree.ready).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
  await client.sync('/');
  const { connections } = zk.link.stats;
  await writer.delete(names[0]!);
  expect(texts(await take(one, 1))).toEqual(['childrenChanged /wide']);
  expect(zk.link.stats.connections).toBe(connections);
});

test('a signal ends the stream with its reason, and nothing is left of it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const stream = client.watch('/', { signal: abort.signal });
  await stream.ready;
  const next = stream.next();

  abort.abort(new Error('enough'));

  await expect(next).rejects.toThrow('enough');
  expect((await stream.next()).done).toBe(true);
  await client.sync('/');
  expect(client.load.watches).toBe(0);
  await expect(client.watch('/', { signal: abort.signal }).next()).rejects.toThrow('enough');
});

test('closing the client ends the loop; an expired session fails it', async () => {
  await using zk = await startZk();
  const [closes, expires] = [await zk.connect(), await zk.connect()];
  const streams = [closes.watch('/'), expires.watch('/')];
  await Promise.all(streams.map(({ ready }) => ready));
  const ends = streams.map((stream) => stream.next());
  ends[1]!.catch(() => {});

  await closes.close();
  await zk.expire(expires);

  expect(await ends[0]).toEqual({ done: true, value: undefined });
  await expect(ends[1]).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
});

test('closing the client between two sessions ends the loop too', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const stream = client.watch('/');
  await stream.ready;
  const next = stream.next();
  // The new session is asked for, and nobody answers.
  const isNewSession = (bytes: Buffer) => bytes.readBigInt64BE(16) === 0n;
  zk.link.onFrame = ({ index, direction, bytes }) =>
    index === 0 && direction === 'toServer' && isNewSession(bytes) ? 'drop' : 'pass';
  await zk.expire(client);
  await reached(client, 'connecting');

  await client.close();

  expect(await next).toEqual({ done: true, value: undefined });
});

test('a stream may begin before there is a server', async () => {
  await using zk = await startZk();
  zk.link.refuse();
  await using client = new Client(zk.address);
  await using stream = client.watch('/a');
  const writer = await zk.witness();

  await zk.link.accept();
  await stream.ready;
  await writer.create('/a');

  expect(texts(await take(stream, 1))).toEqual(['created /a']);
});

test('several streams of one node each hear of all, and one that ends leaves the others be', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const [one, other] = [client.watch('/a'), client.watch('/a')];
  await Promise.all([one.ready, other.ready]);

  await client.create('/a');
  const [first] = await take(one, 1);
  await one.close();
  await client.set('/a', 'x');

  expect(first!.type).toBe('created');
  expect(texts(await take(other, 2))).toEqual(['created /a', 'dataChanged /a']);
  await other.close();
});

test('a stream that begins as another of the same node ends hears of all', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  const one = client.watch('/', { recursive: true });
  await one.ready;

  const other = client.watch('/', { recursive: true });
  await one.close();
  await other.ready;
  await client.create('/a');
  await other.close();

  expect(texts(await take(other, 1))).toEqual(['created /a']);
});

test('a stream waits for answers longer than a call may', async () => {
  await using zk = await startZk();
  const clock = new ManualClock();
  const client = await zk.connect({ clock, requestTimeoutMs: 500 });
  zk.link.pause('toClient');
  const stream = client.watch('/a');
  const call = client.exists('/a').catch((error) => error);

  clock.advance(1_000);
  expect(await call).toMatchObject({ code: 'OPERATION_TIMEOUT' });
  zk.link.resume('toClient');
  await stream.ready;
  await client.create('/a');

  expect(texts(await take(stream, 1))).toEqual(['created /a']);
});
