import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../support/index.ts';
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

test('to expire a session of a server that is closed is an error, and does not wait for ever', async () => {
  const zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  await zk.close();

  await expect(zk.expire(client.sessionId)).rejects.toThrow('the server is closed');
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
