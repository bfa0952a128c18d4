import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { systemClock } from '../support/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { Grant } from './grant.ts';

const client = (server: TestServer): Promise<Client> =>
  connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 10_000 });

test('a node of another session is no grant of ours', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  await using theirs = await client(server);
  const node = await theirs.create('/a', '', { mode: 'ephemeral' });

  const grant = new Grant(mine, node);

  expect(grant.isHeld).toBe(false);
  expect(grant.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
  await expect(grant.ready).rejects.toMatchObject({ code: 'NOT_HELD' });
  expect(() => grant.check()).toThrow(/\/a is not held/);
});

test('a node that is gone before it is watched is no grant', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const node = await mine.create('/a', '', { mode: 'ephemeral' });
  await mine.delete('/a');

  const grant = new Grant(mine, node);

  await expect(grant.ready).rejects.toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  expect(mine.load.watches).toBe(0);
});

test('one that can no longer be watched ends, and says why', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));
  await grant.ready;
  server.failNext('getData', 'NO_AUTH');

  await mine.set('/a', 'changed');

  await expect.poll(() => grant.isHeld).toBe(false);
  expect(grant.signal.reason).toMatchObject({ reason: 'unwatched', cause: { code: 'NO_AUTH' } });
});

test('a read that fails for a while does not end it', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));
  await grant.ready;
  for (let i = 0; i < 5; i++) server.failNext('getData', 'THROTTLED_OP');

  await mine.set('/a', '__REVOKE__');

  await expect.poll(() => grant.revocation.aborted).toBe(true);
  expect(grant.isHeld).toBe(true);
});

test('a release that failed is tried again by who asks again', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));
  server.failNext('delete', 'NO_AUTH');

  await expect(grant.release()).rejects.toMatchObject({ code: 'NO_AUTH' });
  expect([grant.isHeld, '/a' in server.tree()]).toEqual([false, true]);
  await grant.release();

  expect(server.tree()).toEqual({});
});

test('after a pause it is the first to know: whoever looks finds it ended, before any timer has fired', async () => {
  await using server = await startTestServer();
  let pausedMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + pausedMs };
  const address = `127.0.0.1:${server.port}`;
  await using mine = await connect(address, { sessionTimeoutMs: 10_000, clock });
  const [first, second] = [
    new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' })),
    new Grant(mine, await mine.create('/b', '', { mode: 'ephemeral' })),
  ];
  await Promise.all([first.ready, second.ready]);
  const { signal } = second;
  expect(signal.aborted).toBe(false);

  pausedMs = 10_001;

  expect(first.isHeld).toBe(false);
  expect(signal.aborted).toBe(true); // one look is enough for all that the session holds
});

test('the signal itself is a look at the clock', async () => {
  await using server = await startTestServer();
  let pausedMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + pausedMs };
  const address = `127.0.0.1:${server.port}`;
  await using mine = await connect(address, { sessionTimeoutMs: 10_000, clock });
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));
  await grant.ready;

  pausedMs = 10_001;

  expect(grant.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'sessionOver' });
});

test('what is asked for only after it happened tells the same', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '__REVOKE__', { mode: 'ephemeral' }));
  await expect.poll(() => grant.isWatched).toBe(true);

  expect(grant.revocation.aborted).toBe(true);
  await grant.ready;
  await grant.release();
  expect(grant.signal.aborted).toBe(true);
  expect(grant.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'released' });
  expect(() => grant.check()).toThrow(grant.signal.reason);
  expect(grant.isWatched).toBe(false);
});

test('one that is let go of in the same turn is never watched', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));

  await grant.release();
  await mine.exists('/a');

  expect(server.log.filter(({ op }) => op === 'getData')).toEqual([]);
  await expect(grant.ready).rejects.toMatchObject({ reason: 'released' });
});

test('another link is another number', async () => {
  await using server = await startTestServer();
  await using mine = await client(server);
  const grant = new Grant(mine, await mine.create('/a', '', { mode: 'ephemeral' }));
  await grant.ready;
  const { links } = grant;

  const lost = new Promise((resolve) => mine.on('state', resolve));
  server.drop(mine.sessionId!);
  await lost;
  await mine.exists('/a');

  expect(grant.links).toBeGreaterThan(links);
  expect(grant.isHeld).toBe(true);
});
