import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { PersistentNode } from '../../src/recipes/persistent-node.ts';
import { PersistentWatcher } from '../../src/recipes/persistent-watcher.ts';
import { isOp, loseRequest, opCodes } from '../faults.ts';
import { reached, startZk } from '../zk.ts';

const renewing = { renew: true, sessionTimeoutMs: 4_000 };

/** The next `count` births of a node. */
async function births(node: PersistentNode, count: number) {
  const seen = [];
  for await (const birth of node) {
    seen.push(birth);
    if (seen.length === count) break;
  }
  return seen;
}

/** No watch is held: neither here nor, by what the client asks a server to set again, there. */
const watchesOf = (client: Client) => client.load.watches;

test('a node is there with its data and the parents above it, and goes with close', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];

  const node = new PersistentNode(client, '/a/b/me', { data: 'hello' });
  await node.ready;

  expect(node.state).toMatchObject({ name: 'present', path: '/a/b/me' });
  const { data, stat } = await witness.get('/a/b/me');
  expect([String(data), stat.ephemeralOwner]).toEqual(['hello', client.sessionId]);
  await node.close();
  expect(await witness.exists('/a/b/me')).toBeNull();
  expect(node.state.name).toBe('closed');
  expect(watchesOf(client)).toBe(0);
});

test('after an expiry it is made once more, by the new session, with the data it had last', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(renewing), await zk.witness()];
  await using node = new PersistentNode(client, '/me', { data: 'one' });
  await node.ready;
  const first = client.sessionId;
  await node.set('two');
  const next = births(node, 1);

  await zk.expire(client);

  const [birth] = await next;
  expect(birth).toMatchObject({ path: '/me', why: 'sessionRenewed', sessionId: client.sessionId });
  expect(client.sessionId).not.toBe(first);
  const { data, stat } = await witness.get('/me');
  expect([String(data), stat.ephemeralOwner, stat.czxid]).toEqual([
    'two',
    client.sessionId,
    birth!.czxid,
  ]);
});

test('a sequential node keeps its number through an expiry, and there is only one of it', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(renewing), await zk.witness()];
  await witness.create('/line');
  await using node = new PersistentNode(client, '/line/n-', { mode: 'ephemeralSequential' });
  await node.ready;
  const { path } = node;
  expect(path).toMatch(/^\/line\/_c_[-0-9a-f]{36}-n-0000000000$/);
  const next = births(node, 1);

  await zk.expire(client);
  await next;

  expect(node.path).toBe(path);
  expect((await witness.children('/line')).map((name) => `/line/${name}`)).toEqual([path]);
  expect((await witness.exists(path!))!.ephemeralOwner).toBe(client.sessionId);
});

test.each(['ephemeral', 'ephemeralSequential', 'persistent', 'persistentSequential'] as const)(
  'somebody deletes a node (%s), and it is back, with its data',
  async (mode) => {
    await using zk = await startZk();
    const [client, witness] = [await zk.connect(), await zk.witness()];
    await using node = new PersistentNode(client, '/me', { mode, data: 'mine' });
    await node.ready;
    const next = births(node, 2);

    await witness.delete(node.path!);
    await vi.waitFor(async () => expect(await witness.exists(node.path!)).not.toBeNull());
    await vi.waitFor(() => expect(node.state.name).toBe('present'));
    await witness.delete(node.path!);

    expect((await next).map(({ why }) => why)).toEqual(['deleted', 'deleted']);
    expect(String((await witness.get(node.path!)).data)).toBe('mine');
  },
);

test.each(['ephemeral', 'ephemeralSequential'] as const)(
  'the reply to the create is lost: the node (%s) is made once all the same',
  async (mode) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const client = await zk.connect();
    await witness.create('/p');
    let isCut = false;
    zk.link.onFrame = ({ direction, bytes }) => {
      const isCreate = direction === 'toServer' && bytes.includes('/p/');
      if (!isCreate || isCut || !isOp(bytes, opCodes.create)) return undefined;
      isCut = true;
      queueMicrotask(() => zk.link.pause('toClient'));
      return 'pass';
    };

    const node = new PersistentNode(client, '/p/me', { mode });
    await vi.waitFor(async () => expect(await witness.children('/p')).toHaveLength(1));
    zk.link.cut();
    zk.link.resume('toClient');
    await node.ready;

    expect(isCut).toBe(true);
    expect((await witness.children('/p')).map((name) => `/p/${name}`)).toEqual([node.path]);
    await node.close();
    expect(await witness.children('/p')).toEqual([]);
  },
);

test('what an earlier session left behind at the path is replaced at once', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const old = await zk.witness();
  await old.create('/me', 'old', { mode: 'ephemeral' });
  const client = await zk.connect();

  await using node = new PersistentNode(client, '/me', { data: 'new', whenTaken: 'replace' });
  await node.ready;

  const { data, stat } = await witness.get('/me');
  expect([String(data), stat.ephemeralOwner]).toEqual(['new', client.sessionId]);
});

test('a path that a stranger has is waited for, and taken when it is free', async () => {
  await using zk = await startZk();
  const [client, stranger] = [await zk.connect(), await zk.witness()];
  await stranger.create('/me', 'stranger', { mode: 'ephemeral' });
  await using node = new PersistentNode(client, '/me', { data: 'mine' });
  await vi.waitFor(() => expect(node.state).toEqual({ name: 'taken', owner: stranger.sessionId }));
  expect(String((await stranger.get('/me')).data)).toBe('stranger');

  await stranger.delete('/me');
  await node.ready;

  expect(String((await stranger.get('/me')).data)).toBe('mine');
});

test('one that only waited for a stranger leaves no watch and the stranger alone', async () => {
  await using zk = await startZk();
  const [client, stranger] = [await zk.connect(), await zk.witness()];
  await stranger.create('/me', '', { mode: 'ephemeral' });
  const node = new PersistentNode(client, '/me');
  await vi.waitFor(() => expect(node.state.name).toBe('taken'));

  await node.close();

  expect(await stranger.exists('/me')).not.toBeNull();
  expect(watchesOf(client)).toBe(0);
});

test('whoever was replaced hears of it and does not fight', async () => {
  await using zk = await startZk();
  const [first, second] = [await zk.connect(), await zk.witness()];
  await using older = new PersistentNode(first, '/me', { whenTaken: 'replace', data: 'older' });
  await older.ready;

  await using newer = new PersistentNode(second, '/me', { whenTaken: 'replace', data: 'newer' });
  await newer.ready;
  await vi.waitFor(async () => {
    // The one that was there first may have been quick to make its node again: then it is replaced again.
    expect([older.state.name, newer.state.name]).toContain('failed');
  });

  const failed = older.state.name === 'failed' ? older : newer;
  expect(failed.state).toMatchObject({ error: { code: 'NODE_TAKEN', path: '/me' } });
  await expect(failed.set('x')).rejects.toMatchObject({ code: 'NODE_TAKEN' });
});

test('one that must not wait fails, and says who has the path', async () => {
  await using zk = await startZk();
  const [client, stranger] = [await zk.connect(), await zk.witness()];
  await stranger.create('/me', '', { mode: 'ephemeral' });

  const node = new PersistentNode(client, '/me', { whenTaken: 'fail' });

  await expect(node.ready).rejects.toMatchObject({ code: 'NODE_TAKEN', owner: stranger.sessionId });
  await node.close();
});

test('without renewal the end of the session is the end of the node, and it says so', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const node = new PersistentNode(client, '/me');
  await node.ready;
  const loop = births(node, 1);
  loop.catch(() => {}); // it may end before it is looked at

  await zk.expire(client);

  await expect(loop).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  expect(node.state).toMatchObject({ name: 'failed', error: { code: 'SESSION_EXPIRED' } });
  await node.close();
});

test('data given while the link is away is there once it is back', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await using node = new PersistentNode(client, '/me', { data: 'before' });
  await node.ready;
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  const given = node.set('after');
  await zk.link.accept();
  await given;

  await vi.waitFor(async () => expect(String((await witness.get('/me')).data)).toBe('after'));
});

test('data whose write never arrived is written again', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await using node = new PersistentNode(client, '/me', { data: 'before' });
  await node.ready;
  loseRequest(zk.link, opCodes.setData);

  await node.set('after');

  await vi.waitFor(async () => expect(String((await witness.get('/me')).data)).toBe('after'));
});

test('a node that was there before has our data, though the first write of it never arrived', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/me', 'theirs');
  loseRequest(zk.link, opCodes.setData);

  await using node = new PersistentNode(client, '/me', { mode: 'persistent', data: 'ours' });
  await node.ready;

  expect(String((await witness.get('/me')).data)).toBe('ours');
});

test('a node that is deleted in the moment in which it is to be written is made anew', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/me', 'theirs');
  const asked: number[] = [];
  let deleted: Promise<void> | undefined;
  zk.link.onFrame = ({ direction, index, bytes }) => {
    if (index === 0) return 'pass';
    const xid = bytes.readInt32BE(0);
    if (direction === 'toServer' && bytes.readInt32BE(4) === opCodes.getData) asked.push(xid);
    else if (deleted === undefined && direction === 'toClient' && asked.includes(xid)) {
      // What it asks for after it has read the node is held back until the node is gone.
      zk.link.pause('toServer');
      deleted = witness.delete('/me').then(() => zk.link.resume('toServer'));
    }
    return 'pass';
  };

  await using node = new PersistentNode(client, '/me', { mode: 'persistent', data: 'ours' });
  await node.ready;

  expect(String((await witness.get('/me')).data)).toBe('ours');
});

test('one whose signal aborts as the client is closed makes no trouble', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const stop = new AbortController();
  const troubles: unknown[] = [];
  const onTrouble = (error: unknown) => troubles.push(error);
  process.on('unhandledRejection', onTrouble);
  const node = new PersistentNode(client, '/me', { signal: stop.signal });
  await node.ready;

  stop.abort();
  await client.close();
  await setImmediate();

  process.off('unhandledRejection', onTrouble);
  expect(troubles).toEqual([]);
  expect(node.state.name).toBe('closed');
});

test('a node under a parent that may not be written fails with the reason', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/closed', '', {
    acl: [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }],
  });

  const node = new PersistentNode(client, '/closed/me');

  await expect(node.ready).rejects.toMatchObject({ code: 'NO_AUTH' });
  await node.close();
});

test('a TTL node is touched in time, and so outlives its TTL', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const mode = 'persistentTtl';
  await using node = new PersistentNode(client, '/ttl', { mode, ttlMs: 300, data: 'x' });
  try {
    await node.ready;
  } catch (error) {
    // A server without extended types knows no TTL: then that is what is said.
    expect(error).toMatchObject({ code: 'UNIMPLEMENTED' });
    return;
  }

  await vi.waitFor(async () => expect((await witness.exists('/ttl'))!.version).toBeGreaterThan(2), {
    timeout: 10_000,
  });

  expect(String((await witness.get('/ttl')).data)).toBe('x');
});

test('a mode that does not exist is refused at once', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(() => new PersistentNode(client, '/me', { mode: 'eternal' as never })).toThrow(
    /mode: must be one of persistent, /,
  );
});

test('a watcher that stays hears of changes in every session, and when it may have missed some', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(renewing), await zk.witness()];
  const [heard, armed] = [vi.fn(), vi.fn()];
  const watcher = new PersistentWatcher(client, '/tree', heard, {
    recursive: true,
    onArmed: armed,
  });
  await watcher.ready;
  await witness.create('/tree');
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(1));

  zk.link.cut();
  await vi.waitFor(() => expect(armed).toHaveBeenCalledTimes(2));
  await witness.create('/tree/a');
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(2));
  const first = client.sessionId;
  await zk.expire(client);
  await vi.waitFor(() => expect(armed.mock.lastCall![0].sessionId).not.toBe(first));
  await witness.create('/tree/b');
  await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(3));

  expect(heard.mock.calls.map(([{ type, path }]) => `${type} ${path}`)).toEqual([
    'created /tree',
    'created /tree/a',
    'created /tree/b',
  ]);
  expect(armed.mock.calls[0]![0]).toMatchObject({ isAgain: false });
  expect(armed.mock.lastCall![0]).toMatchObject({ isAgain: true });
  await watcher.close();
  expect(watchesOf(client)).toBe(0);
});

test('whoever closes a node that is being closed waits until it is gone, too', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const enough = new AbortController();
  const node = new PersistentNode(client, '/n', { mode: 'persistent', signal: enough.signal });
  await node.ready;

  enough.abort();
  await node.close();

  expect(await witness.exists('/n')).toBeNull();
});
