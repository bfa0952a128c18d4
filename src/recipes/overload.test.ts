/** What a server refuses in a moment of overload is asked for again. */

import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { ElectionObserver } from './election-observer.ts';
import { Membership } from './membership.ts';
import { NotificationTopic } from './notification.ts';
import { PersistentWatcher } from './persistent-watcher.ts';

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
  await client.create('/master', { data: 'a' });
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
