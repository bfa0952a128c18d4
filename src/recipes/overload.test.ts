/** What a server refuses in a moment of overload is asked for again. */

import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { nameOf, ops, wireOf } from '../protocol/index.ts';
import { ManualClock } from '../support/index.ts';
import { Link, startTestServer } from '../testing/index.ts';
import { DoubleBarrier } from './double-barrier.ts';
import { ElectionObserver } from './election-observer.ts';
import { GroupMember } from './group-member.ts';
import { Lock } from './lock.ts';
import { Membership } from './membership.ts';
import { NotificationTopic } from './notification.ts';
import { PersistentWatcher } from './persistent-watcher.ts';
import { Semaphore } from './semaphore.ts';

const codes = ['SESSION_MOVED', 'THROTTLED_OP', 'REQUEST_TIMEOUT'] as const;

async function start() {
  const server = await startTestServer();
  const client = await connect(`127.0.0.1:${server.port}`, { sessionTimeoutMs: 10_000 });
  return {
    server,
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.close();
    },
  };
}

test.each(codes)('members are followed through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  await client.create('/group');
  await using members = new Membership(client, '/group');
  await members.ready;

  for (const op of ['getChildren', 'getData'] as const) server.failNext(op, code);
  await client.create('/group/a');

  await expect.poll(() => members.members.map(({ name }) => name)).toEqual(['a']);
});

test.each(codes)('a leader is observed through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  await client.create('/master', 'a');
  await using observer = new ElectionObserver(client, '/master', { layout: 'static' });
  await observer.ready;

  server.failNext('getData', code);
  await client.set('/master', 'b');

  await expect.poll(() => observer.leader?.id).toBe('b');
});

test.each(codes)('a watch is set through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  server.failNext('addWatch', code);

  await using watcher = new PersistentWatcher(client, '/a', () => {});

  await watcher.ready;
});

test.each(codes)('a stream goes on through %s, at its start and at every look', async (code) => {
  await using world = await start();
  const { server, client } = world;
  await client.create('/a');
  await client.create('/a/b');
  for (const op of ['addWatch', 'getChildren2'] as const) server.failNext(op, code);
  await using stream = client.watch('/a', { recursive: true });
  await stream.ready;

  server.failNext('getChildren2', code);
  server.drop(client.sessionId!);
  await client.set('/a/b', 'x').catch(() => client.set('/a/b', 'x'));

  expect((await stream.next()).value).toMatchObject({ type: 'dataChanged', path: '/a/b' });
});

test.each(codes)('a message is heard through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  const topic = new NotificationTopic(client, '/topic');
  await using subscription = topic.subscribe('a');
  await subscription.ready;
  const heard = subscription[Symbol.asyncIterator]().next();

  server.failNext('exists', code);
  await topic.send('x', { to: ['a'] });

  expect(String((await heard).value.data)).toBe('x');
});

test.each(codes)(
  'who waits hears of what it waits for, though its watches were refused with %s',
  async (code) => {
    await using world = await start();
    const { server, client } = world;
    await using other = await connect(`127.0.0.1:${server.port}`);
    const held = await new Lock(other, '/lock').acquire();
    const waiting = new Lock(client, '/lock').acquire();
    await expect.poll(() => client.load.watches).toBe(2);

    for (let times = 0; times < 3; times++) server.failNext('setWatches', code);
    server.drop(client.sessionId!);
    await expect.poll(() => server.log.filter(({ op }) => op === 'setWatches')).not.toEqual([]);
    await held.release();

    await (await waiting).release();
  },
);

// ── what is to go, goes: else a session that lives on would hold it for ever ────────────────────

test.each(codes)('a lock is let go of through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  const lock = new Lock(client, '/lock');

  await lock.hold(() => server.failNext('delete', code));

  expect(await client.children('/lock')).toEqual([]);
});

test.each(codes)('who waits no longer for a lock leaves the line through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  await using holder = await new Lock(client, '/lock').acquire();
  const enough = new AbortController();
  const waiting = new Lock(client, '/lock').acquire({ signal: enough.signal });
  await expect.poll(() => client.children('/lock')).toHaveLength(2);

  server.failNext('delete', code);
  enough.abort(new Error('enough'));

  await expect(waiting).rejects.toThrow('enough');
  expect(await client.children('/lock')).toEqual([nameOf(holder.path)]);
});

test.each(codes)('leases are given back through %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  const leases = await new Semaphore(client, '/semaphore', { limit: 3 }).acquire({ count: 3 });

  for (let lease = 0; lease < 3; lease++) server.failNext('delete', code);
  await leases.release();

  expect(await client.children('/semaphore/leases')).toEqual([]);
});

test.each(codes)('who leaves a barrier has left, also where that ends with %s', async (code) => {
  await using world = await start();
  const { server, client } = world;
  const barrier = new DoubleBarrier(client, '/barrier', 1);
  await barrier.enter();

  server.failNext('exists', code);
  await expect(barrier.leave()).rejects.toMatchObject({ code });

  expect(await barrier.members()).toEqual([]);
});

test.each(codes)(
  'who could not enter a barrier is not in it, also after a lost reply and %s',
  async (code) => {
    await using world = await start();
    const { server } = world;
    const link = await Link.to({ host: '127.0.0.1', port: server.port });
    await using client = await connect(link.address);
    await client.create('/barrier');
    let isAsked = false;
    link.onFrame = ({ index, direction, bytes }) => {
      if (direction === 'toServer')
        isAsked ||= index > 0 && bytes.readInt32BE(4) === ops.create2.code;
      if (!isAsked || direction === 'toServer') return 'pass';
      link.onFrame = undefined;
      server.failNext('create2', code);
      return 'cut';
    };

    const entered = new DoubleBarrier(client, '/barrier', 2).enter({ timeoutMs: 100 });

    await expect(entered).rejects.toThrow();
    expect(await client.children('/barrier')).toEqual([]);
    await client.close();
    await link.close();
  },
);

test.each(codes)('a member leaves through %s, whatever is refused', async (code) => {
  await using world = await start();
  const { server, client } = world;
  const member = new GroupMember(client, '/group', 'a');
  await member.ready;

  for (const op of ['exists', 'delete'] as const) server.failNext(op, code);
  await member.close();

  expect(await client.children('/group')).toEqual([]);
});

test('what is refused again and again is not asked for any more once the client is closed', async () => {
  await using server = await startTestServer({
    onRequest: ({ op }) => (op === 'delete' ? wireOf('THROTTLED_OP') : undefined),
  });
  const clock = new ManualClock();
  const client = await connect(`127.0.0.1:${server.port}`, { clock });
  await client.create('/a');
  const gone = client.discard('/a').catch((error) => error);
  await expect.poll(() => server.log.filter(({ op }) => op === 'delete').length).toBe(1);
  await client.exists('/a'); // answered behind the refusal

  await client.close();

  expect(await gone).toMatchObject({ code: 'SESSION_EXPIRED' });
  expect(clock.pending).toBe(0);
});
