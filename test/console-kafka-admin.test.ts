/** Settings, moves and elections that stand in ZooKeeper, as the Kafka page is told. */

import { expect, test } from 'vitest';
import { events, startConsoleInTest } from './console-run.ts';

const config = (values: Record<string, string>) => JSON.stringify({ version: 1, config: values });

test('settings of brokers, topics, users, clients and addresses are shown, and secrets never', async () => {
  await using zk = await startConsoleInTest();
  const put = (path: string, data: string) => zk.client.create(path, data, { parents: true });
  await put('/config/brokers/<default>', config({ 'log.cleaner.threads': '2' }));
  await put('/config/brokers/1', config({ 'listener.name.x.ssl.keystore.password': 'hush' }));
  await put('/config/topics/orders', config({ 'retention.ms': '1000' }));
  await put('/config/topics/plain', config({}));
  await put('/config/users/ann%40b', config({ 'SCRAM-SHA-256': 'salt=hush,iterations=4096' }));
  await put('/config/users/ann%40b/clients/app', config({ consumer_byte_rate: '2048' }));
  await put('/config/clients/<default>', config({ producer_byte_rate: '1024' }));
  await put('/config/ips/10.0.0.1', config({ connection_creation_rate: '5' }));
  await put('/config/topics/broken', 'no JSON');

  const answer = await zk.get('/api/kafka/configs');
  const { rows, total, problems } = answer.json;

  expect(answer.text).not.toContain('hush');
  expect(total).toBe(7);
  expect(rows.map((row: { kind: string; name: string }) => `${row.kind} ${row.name}`)).toEqual([
    'broker 1',
    'broker <default>',
    'topic orders',
    'user ann@b',
    'client <default>',
    'ip 10.0.0.1',
    'user ann@b, client app',
  ]);
  expect(rows[0].values).toEqual([{ name: 'listener.name.x.ssl.keystore.password', value: null }]);
  expect(rows[2].values).toEqual([{ name: 'retention.ms', value: '1000' }]);
  expect(problems).toMatchObject([{ path: '/config/topics/broken' }]);
  const found = (await zk.get('/api/kafka/configs?filter=byte_rate')).json;
  expect(found).toMatchObject({ total: 7, matching: 2 });
});

test('a move is shown where it stands: in the topic, or asked for beside it', async () => {
  await using zk = await startConsoleInTest();
  const put = (path: string, value: object) =>
    zk.client.create(path, JSON.stringify(value), { parents: true });
  await put('/brokers/topics/orders', {
    version: 3,
    topic_id: 'AAAAAAAAAAAAAAAAAAAAAA',
    partitions: { 0: [3, 1, 2], 1: [1, 2], 2: [1, 2] },
    adding_replicas: { 0: [3] },
    removing_replicas: { 0: [1] },
  });
  await put('/brokers/topics/orders/partitions/0/state', {
    version: 1,
    leader: 2,
    leader_epoch: 4,
    controller_epoch: 1,
    isr: [1, 2],
  });
  await put('/admin/reassign_partitions', {
    version: 1,
    partitions: [
      { topic: 'orders', partition: 1, replicas: [2, 3] },
      { topic: 'gone', partition: 9, replicas: [1] },
    ],
  });
  await put('/admin/preferred_replica_election', {
    version: 1,
    partitions: [{ topic: 'orders', partition: 2 }],
  });

  const view = (await zk.get('/api/kafka/moves')).json;

  expect(view).toMatchObject({ total: 3, electing: [{ topic: 'orders', partition: 2 }] });
  expect(view.askedAtMs).toBeGreaterThan(0);
  expect(view.rows).toEqual([
    {
      ...{ topic: 'orders', partition: 0, from: [1, 2], to: [3, 2], adding: [3], removing: [1] },
      ...{ inSync: 1, state: 'moving' },
    },
    {
      ...{ topic: 'orders', partition: 1, from: [1, 2], to: [2, 3], adding: [3], removing: [1] },
      ...{ inSync: null, state: 'asked' },
    },
    {
      ...{ topic: 'gone', partition: 9, from: null, to: [1], adding: [], removing: [] },
      ...{ inSync: null, state: 'asked' },
    },
  ]);
});

test('a change that comes while an answer is still kept is told of once more, when it is not', async () => {
  await using zk = await startConsoleInTest();
  const over = new AbortController();
  const stream = events(zk, { signal: over.signal });
  await stream.next(); // the page listens
  const topic = (more: object) =>
    JSON.stringify({ version: 2, partitions: { 0: [1, 2] }, ...more });
  const none = topic({ adding_replicas: {}, removing_replicas: {} });
  await zk.client.create('/brokers/topics/orders', none, { parents: true });
  expect((await zk.get('/api/kafka/moves')).json.total).toBe(0);
  await zk.client.set(
    '/brokers/topics/orders',
    topic({ adding_replicas: { 0: [2] }, removing_replicas: {} }),
  );

  // As the page does it: it asks when it is told, and not otherwise.
  let total = 0;
  for await (const { kind, data } of stream) {
    if (kind !== 'views' || !data.views.includes('kafka')) continue;
    total = (await zk.get('/api/kafka/moves')).json.total;
    if (total === 1) break;
  }

  over.abort();
  expect(total).toBe(1);
});
