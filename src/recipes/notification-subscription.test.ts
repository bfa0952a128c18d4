import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { type Deferred, deferred } from '../support/index.ts';
import { startTestServer } from '../testing/index.ts';
import { NotificationTopic } from './notification.ts';

test('messages are heard in the order of sending, in whichever order they are read', async () => {
  await using server = await startTestServer();
  const address = `127.0.0.1:${server.port}`;
  await using client = await connect(address);
  await using sender = await connect(address);
  const gates = new Map<string, Deferred<void>>();
  const gate = (end: string) => gates.set(end, deferred()).get(end)!;
  const pass = (path: string) =>
    [...gates].find(([end]) => path.endsWith(end))?.[1].promise ?? Promise.resolve();
  const got: string[] = [];
  const read = (end: string) => expect.poll(() => got.some((path) => path.endsWith(end)));
  const { children, exists, get } = client;
  // Apache's server lists children in the order of a hash set.
  client.children = async (...asked) => (await children.apply(client, asked)).reverse();
  client.exists = async (...asked) => {
    await pass(asked[0]);
    return exists.apply(client, asked);
  };
  client.get = async (...asked) => {
    await pass(asked[0]);
    const node = await get.apply(client, asked);
    got.push(asked[0]);
    return node;
  };
  await using subscription = new NotificationTopic(client, '/topic').subscribe('a');
  await subscription.ready;
  const heard: string[] = [];
  const hearing = (async () => {
    for await (const { data } of subscription) if (heard.push(String(data)) === 4) return;
  })();
  const topic = new NotificationTopic(sender, '/topic');

  const first = gate('0/a');
  await topic.send('0');
  await topic.send('1');
  await read('1').toBe(true);
  const third = gate('2');
  const node = { op: 'create', path: '/topic/messages/m-', mode: 'persistentSequential' } as const;
  await sender.multi(['2', '3'].map((data) => ({ ...node, data })));
  await read('3').toBe(true);
  await client.getAcl('/topic'); // answered behind that
  first.resolve();
  await expect.poll(() => heard).toEqual(['0', '1']);
  await client.getAcl('/topic');
  third.resolve();
  await hearing;

  expect(heard).toEqual(['0', '1', '2', '3']);
});
