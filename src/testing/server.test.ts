import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connect } from '../client/index.ts';
import { deferred, systemClock } from '../support/index.ts';
import { Link } from './link.ts';
import { MovableClock } from './movable-clock.ts';
import { RawClient } from './raw-client.ts';
import { startTestServer } from './server.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

test('the port of a server is free again after it', async () => {
  const zk = await startTestServer();
  await zk.close();

  await using again = await startTestServer({ port: zk.port });
  expect(again.port).toBe(zk.port);
});

test('fixtures go in and come out as plain objects', async () => {
  await using zk = await startTestServer();

  await zk.load({ '/a/b/c': 'deep', '/a': 'top', '/none': null });

  expect(zk.tree()).toEqual({ '/a': 'top', '/a/b': '', '/a/b/c': 'deep', '/none': null });
});

test('the next op of a kind fails, and only that', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.failNext('create', 'CONNECTION_LOSS');
  zk.failNext('exists', 'NO_AUTH');
  const create = { path: '/a', data: null, acl: open, flags: 0 };

  expect(await client.err('exists', { path: '/', watch: false })).toBe(-102);
  expect(await client.err('create', create)).toBe(-4);
  expect(await client.err('create', create)).toBe(0);
  expect(zk.log.map(({ op }) => op)).toEqual(['exists', 'create', 'create']);
});

test('a paused link neither hears nor is heard until it is resumed', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.pause(client.sessionId);
  const xid = client.send('exists', { path: '/', watch: false });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(client.heard).toEqual([]);

  zk.resume(client.sessionId);

  expect((await client.reply(xid)).err).toBe(0);
});

test('a slow link is told everything in order, later', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.delay(client.sessionId, 50);
  const startMs = performance.now();

  const xids = [1, 2, 3].map(() => client.send('exists', { path: '/', watch: false }));
  await client.reply(xids[2]!);

  expect(performance.now() - startMs).toBeGreaterThan(45);
  expect(client.heard).toEqual(xids);
});

test('a link that is slow no longer is told what was on its way first', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const ask = () => client.send('exists', { path: '/', watch: false });
  zk.delay(client.sessionId, 60_000);
  const slow = ask();
  while (zk.log.length < 1) await new Promise(setImmediate);
  zk.delay(client.sessionId, 0);
  const soon = ask();

  await client.reply(soon);

  expect(client.heard).toEqual([slow, soon]);
});

test('a link that is slower no longer is told what was on its way first', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const ask = () => client.send('exists', { path: '/', watch: false });
  zk.delay(client.sessionId, 60_000);
  const slow = ask();
  while (zk.log.length < 1) await new Promise(setImmediate);
  zk.delay(client.sessionId, 1_000);
  const soon = ask();
  while (zk.log.length < 2) await new Promise(setImmediate);

  zk.clock.advance(2_000);
  await client.reply(soon);

  expect(client.heard).toEqual([slow, soon]);
});

test('what is on its way to a link that is paused stays there', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.delay(client.sessionId, 1_000);
  const xid = client.send('exists', { path: '/', watch: false });
  while (zk.log.length < 1) await new Promise(setImmediate);
  zk.pause(client.sessionId);
  zk.clock.advance(2_000);
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(client.heard).toEqual([]);

  zk.resume(client.sessionId);

  expect((await client.reply(xid)).err).toBe(0);
});

test('a link that is paused hears of its end when it is resumed', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const xid = client.send('closeSession', {});
  while (zk.log.length < 1) await new Promise(setImmediate);
  zk.pause(client.sessionId);
  while (zk.engine.sessions.size > 0) await new Promise(setImmediate);
  expect(zk.engine.connections.size).toBe(1);

  zk.resume(client.sessionId);

  expect((await client.reply(xid)).err).toBe(0);
  await client.ended();
});

test('a link that is slow and then paused hears of its end when it is resumed', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.delay(client.sessionId, 1_000);
  const xid = client.send('closeSession', {});
  while (zk.engine.sessions.size > 0) await new Promise(setImmediate);
  zk.pause(client.sessionId);
  zk.clock.advance(2_000);
  expect(zk.engine.connections.size).toBe(1);

  zk.resume(client.sessionId);

  expect((await client.reply(xid)).err).toBe(0);
  await client.ended();
});

test('to expire a session of a server that is closed is an error, and does not wait for ever', async () => {
  const zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  await zk.close();

  await expect(zk.expire(client.sessionId)).rejects.toThrow('the server is closed');
});

test('after a restore everything acts on what serves now', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-test-server-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  await using zk = await startTestServer({ dataDir });
  await zk.load({ '/kept': 'x' });
  const storage = zk.facts.storage!;
  const { path } = (await storage.takeSnapshot!())!;
  await zk.load({ '/gone': 'x' });
  const { engine, persistence } = zk;

  await storage.restore!(createReadStream(path));

  expect([zk.engine === engine, zk.persistence === persistence]).toEqual([false, false]);
  expect(zk.tree()).toEqual({ '/kept': 'x' });
  await zk.load({ '/new': 'y' });
  const client = await RawClient.connect(zk.port);
  zk.failNext('exists', 'NO_AUTH');
  expect(await client.err('exists', { path: '/new', watch: false })).toBe(-102);
  expect(await client.err('create', { path: '/own', data: null, acl: open, flags: 1 })).toBe(0);
  zk.delay(client.sessionId, 1_000);
  const xid = client.send('exists', { path: '/', watch: false });
  await vi.waitFor(() => expect(zk.log.at(-1)).toMatchObject({ xid, op: 'exists' }));
  zk.clock.advance(1_000);
  await client.reply(xid);
  zk.pause(client.sessionId);
  zk.resume(client.sessionId);
  await zk.expire(client.sessionId);
  await client.ended();
  expect(zk.tree()).toEqual({ '/kept': 'x', '/new': 'y' });
  const other = await RawClient.connect(zk.port);
  zk.drop(other.sessionId);
  await other.ended();
});

test('what is asked of a server that is closed is refused, and what it held can still be read', async () => {
  const zk = await startTestServer();
  await zk.load({ '/a': 'x' });
  const id = zk.engine.sessions.create(10_000, 0).id;

  await Promise.all([zk.close(), zk.close(), zk[Symbol.asyncDispose]()]);

  const closed = 'the server is closed';
  await expect(zk.load({ '/b': 'x' })).rejects.toThrow(closed);
  await expect(zk.expire(1n)).rejects.toThrow(closed);
  expect(() => zk.failNext('create', 'NO_NODE')).toThrow(closed);
  for (const act of ['drop', 'pause', 'resume'] as const) {
    expect(() => zk[act](id)).toThrow('is on no link');
  }
  expect(() => zk.delay(id, 5)).toThrow('is on no link');
  zk.clock.advance(60_000);
  await zk.close();
  expect(zk.tree()).toEqual({ '/a': 'x' });
});

test('fixtures that are being loaded when the server closes are refused from there on', async () => {
  const zk = await startTestServer();
  const loaded = zk.load({ '/a/b': 'x', '/c': 'x' });

  const closed = zk.close();

  await expect(loaded).rejects.toThrow('the server is closed');
  await closed;
  expect(zk.tree()).toEqual({ '/a': '' });
});

test('fixtures that a log fails under are refused with why', async () => {
  const broken = {
    append: () => Promise.reject(new Error('the disk is gone')),
    close: async () => {},
  };
  await using zk = await startTestServer({ log: broken });

  await expect(zk.load({ '/a': 'x' })).rejects.toThrow('the disk is gone');

  expect((await zk.failed).message).toBe('the disk is gone');
  await expect(zk.load({ '/a': 'x' })).rejects.toThrow('the server is closed');
});

test('a fixture finds again what somebody is about to delete', async () => {
  const loaded = deferred<Promise<void>>();
  await using zk = await startTestServer({
    onRequest({ op }) {
      // Behind the request itself, before it has landed.
      if (op === 'delete') queueMicrotask(() => loaded.resolve(zk.load({ '/a/b': 'x' })));
      return undefined;
    },
  });
  await zk.load({ '/a': 'x' });
  const client = await RawClient.connect(zk.port);

  await client.ask('delete', { path: '/a', version: -1 });
  await await loaded.promise;

  expect(zk.tree()).toEqual({ '/a': '', '/a/b': 'x' });
});

test.each([
  ['get', 'NO_NODE', /no request is called "get": is getData.* meant/],
  ['getDaat', 'NO_NODE', 'no request is called "getDaat": is getData meant?'],
  ['createSession', 'NO_NODE', 'no request is called "createSession"'],
  ['check', 'NO_NODE', 'no request is called "check"'],
  ['nothing-like-it', 'NO_NODE', /there are .*create2/],
  ['getData', 'NoNode', 'no error is called "NoNode": is NO_NODE meant?'],
])('failNext(%j, %j), which would never come by, is refused', async (op, code, message) => {
  await using zk = await startTestServer();

  expect(() => zk.failNext(op as never, code as never)).toThrow(message);
});

test('an op that fails next does so in the form that tells a Stat, too', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  zk.failNext('create', 'NO_AUTH');
  zk.failNext('getChildren', 'NO_NODE');
  zk.failNext('create2', 'NODE_EXISTS');
  const create = { path: '/a', data: null, acl: open, flags: 0 };

  expect(await client.err('create2', create)).toBe(-102);
  expect(await client.err('getChildren2', { path: '/', watch: false })).toBe(-101);
  expect(await client.err('create', create)).toBe(0);
  expect(await client.err('create2', create)).toBe(-110);
});

test('an id that is none, as before a client is connected, is refused', async () => {
  await using zk = await startTestServer();
  const wanted = 'the id of a session is wanted, not undefined';

  await expect(zk.expire(undefined as never)).rejects.toThrow(wanted);
  expect(() => zk.drop(undefined as never)).toThrow(wanted);
});

test('server and client answer where a test has put fake timers in the place of all, and time is what these say', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await using zk = await startTestServer();
  await zk.load({ '/a': 'x' });
  await using client = await connect(zk.address, { renew: false });
  await client.create('/own', '', { mode: 'ephemeral' });
  const link = await Link.to({ host: zk.host, port: zk.port });
  link.dribble();
  await using slow = await connect(link.address);

  expect(String((await slow.get('/a')).data)).toBe('x');
  await slow.close();
  await link.close();
  expect(zk.tree()).toEqual({ '/a': 'x', '/own': '' });
  zk.pause(client.sessionId!);
  vi.advanceTimersByTime(60_000);
  while (zk.engine.sessions.size > 0) await nextTurn();

  expect(client.state.name).toBe('expired');
  expect(zk.tree()).toEqual({ '/a': 'x' });
});

test('a port that is left open is any that is free', async () => {
  const [one, other] = [await startTestServer({ port: undefined }), await startTestServer()];

  expect(one.port).toBeGreaterThan(0);
  expect(one.port).not.toBe(2181);
  await Promise.all([one.close(), other.close()]);
});

test('the log holds the last 10,000 requests', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  const ask = () => client.send('exists', { path: '/', watch: false });

  const xids = client.atOnce(() => Array.from({ length: 10_010 }, ask));
  await client.reply(xids.at(-1)!);

  expect(zk.log).toHaveLength(10_000);
  expect(zk.log.map(({ xid }) => xid)).toEqual(xids.slice(10));
});

test('what the root holds goes in and comes out, too', async () => {
  await using zk = await startTestServer();

  await zk.load({ '/': 'top', '/a': 'x' });

  expect(zk.tree()).toEqual({ '/': 'top', '/a': 'x' });
});

test.each([
  [5, 'number'],
  [{ b: 'x' }, 'object'],
  [undefined, 'undefined'],
])('a fixture of %j is refused before anything is made', async (data, type) => {
  await using zk = await startTestServer();

  await expect(zk.load({ '/good': 'x', '/a': data as never })).rejects.toThrow(
    `/a: text, bytes or null is wanted, not ${type}`,
  );

  expect(zk.tree()).toEqual({});
});

test('fixtures that are loaded side by side leave each other alone', async () => {
  await using zk = await startTestServer();

  await Promise.all([zk.load({ '/a': 'top' }), zk.load({ '/a/b': 'below' })]);

  expect(zk.tree()).toEqual({ '/a': 'top', '/a/b': 'below' });
});

test('a timer that keeps the process alive does so too when its clock was moved', () => {
  const armed = vi.spyOn(systemClock, 'after');
  onTestFinished(() => armed.mockRestore());
  const clock = new MovableClock();
  const timers = [clock.after(60_000, () => {}), clock.after(60_000, () => {}, true)];

  clock.advance(1);

  expect(armed.mock.calls.map(([, , background]) => background ?? false)).toEqual([
    ...[false, true],
    ...[false, true],
  ]);
  for (const timer of timers) timer.cancel();
});

test('a year passes without a timer of the system, each look at its own moment', () => {
  const armed = vi.spyOn(systemClock, 'after');
  onTestFinished(() => armed.mockRestore());
  const clock = new MovableClock();
  const startMs = clock.nowMs();
  const minutes: number[] = [];
  const look = () => {
    minutes.push(Math.floor((clock.nowMs() - startMs) / 60_000));
    clock.after(60_000, look, true);
  };
  look();
  const [first, late] = [clock.after(90_000, () => minutes.push(-1)), clock.after(1e12, () => {})];
  clock.after(60_000, () => first.cancel());
  clock.after(60_000, () => clock.advance(30_000));

  clock.advance(365 * 24 * 60 * 60_000);

  expect(minutes).not.toContain(-1);
  expect(minutes).toHaveLength(1 + 365 * 24 * 60);
  expect(minutes.slice(0, 4)).toEqual([0, 1, 2, 3]);
  expect(armed).toHaveBeenCalledTimes(5 + 2);
  late.cancel();
});

test('a timer that is armed again and again for no time at all does not hold up time that is moved', () => {
  const clock = new MovableClock();
  let fired = 0;
  const again = () => {
    fired += 1;
    clock.after(0, again, true);
  };
  clock.after(10, again);

  clock.advance(20);

  expect(fired).toBeGreaterThan(1);
  expect(fired).toBeLessThan(20);
});

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, '30s' as never])(
  'time is not moved by %s',
  (byMs) => {
    const clock = new MovableClock();
    clock.after(1_000, () => clock.after(1_000, () => {}));

    expect(() => clock.advance(byMs)).toThrow('milliseconds are wanted');
  },
);

test.each(['a/b', 'a', '', '/a/', '/a//b'])(
  'a fixture with %j, which is no path, is refused',
  async (path) => {
    await using zk = await startTestServer();

    await expect(zk.load({ '/good': 'x', [path]: 'x' })).rejects.toThrow('is no path');

    expect(zk.tree()).toEqual({});
  },
);
