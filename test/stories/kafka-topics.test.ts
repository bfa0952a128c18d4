import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  createTopic,
  deleteTopic,
  electPreferred,
  growTopic,
  layout08,
  prepareCluster,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  reassignPartitions,
} from '../../src/kafka/index.ts';
import { startZk } from '../zk.ts';

/** A cluster with brokers and no controller: what is asked for is seen as it was written. */
async function cluster(client: Client, racks: readonly (string | null)[]): Promise<void> {
  await prepareCluster(client);
  for (const [id, rack] of racks.entries()) {
    const host = `h${id}`;
    const data = {
      version: 3,
      host,
      port: 1,
      endpoints: [`PLAINTEXT://${host}:1`],
      ...(rack && { rack }),
    };
    await client.create(`/brokers/ids/${id}`, JSON.stringify(data), { mode: 'ephemeral' });
  }
}

test('a topic is written as Kafka writes it: configuration, then assignment', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, [null, null, null, null, null]);

  await createTopic(client, 'orders', {
    partitions: 6,
    replicationFactor: 3,
    startIndex: 0,
    config: { 'cleanup.policy': 'compact' },
  });

  const config = await client.get('/config/topics/orders');
  const topic = await client.get('/brokers/topics/orders');
  expect(JSON.parse(String(config.data))).toEqual({
    version: 1,
    config: { 'cleanup.policy': 'compact' },
  });
  expect(JSON.parse(String(topic.data))).toEqual({
    version: 3,
    topic_id: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
    adding_replicas: {},
    removing_replicas: {},
    partitions: {
      0: [0, 1, 2],
      1: [1, 2, 3],
      2: [2, 3, 4],
      3: [3, 4, 0],
      4: [4, 0, 1],
      5: [0, 2, 3],
    },
  });
  expect(config.stat.czxid).toBeLessThan(topic.stat.czxid);
});

test('racks are spread over, and count for nothing where one broker has none', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, ['a', 'a', 'b', 'b']);
  const place = async (topic: string) => {
    const { partitions } = await createTopic(client, topic, {
      partitions: 4,
      replicationFactor: 2,
      startIndex: 0,
    });
    return [...partitions.values()].map(({ replicas }) => replicas);
  };

  const spread = await place('spread');
  await client.set('/brokers/ids/3', '{"version":1,"host":"h","port":9}');
  const plain = await place('plain');

  for (const replicas of spread) {
    expect(new Set(replicas.map((id) => (id < 2 ? 'a' : 'b'))).size).toBe(2);
  }
  expect(plain).toEqual([
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 0],
  ]);
});

test('names and assignments that Kafka refuses are refused here, and nothing is written', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, [null, null]);
  await createTopic(client, 'a.b', {});
  await deleteTopic(client, 'a.b');
  const create = (topic: string, options = {}) => createTopic(client, topic, options);

  await expect(create('')).rejects.toThrow(/needs a name/);
  await expect(create('..')).rejects.toThrow(/is no name/);
  await expect(create('x'.repeat(250))).rejects.toThrow(/at most 249/);
  await expect(create('a/b')).rejects.toThrow(/letters, digits/);
  await expect(create('a_b')).rejects.toThrow(/would be one in metrics/);
  await expect(create('a.b')).rejects.toMatchObject({ code: 'TOPIC_EXISTS' });
  await expect(create('c', { replicationFactor: 3 })).rejects.toThrow(/there are 2/);
  await expect(create('c', { assignment: [[0, 0]] })).rejects.toThrow(/none twice/);
  await expect(create('c', { assignment: [[0], [7]] })).rejects.toThrow(/partition 1: brokers 7/);
  await expect(create('c', { assignment: [[0], [0, 1]] })).rejects.toThrow(/as many replicas/);
  await expect(growTopic(client, 'a.b', { partitions: 2 })).rejects.toMatchObject({
    code: 'TOPIC_BEING_DELETED',
  });
  await expect(growTopic(client, 'none', { partitions: 2 })).rejects.toMatchObject({
    code: 'NO_SUCH_TOPIC',
  });
  await expect(deleteTopic(client, 'none')).rejects.toMatchObject({ code: 'NO_SUCH_TOPIC' });
  expect(await client.children('/config/topics')).toEqual(['a.b']);
});

test('growth starts at the broker that leads partition 0, in the version that was there', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, [null, null, null]);
  await createTopic(client, 't', { assignment: [[1, 2]], version: 1 });

  await growTopic(client, 't', { partitions: 3 });

  const { data } = await client.get('/brokers/topics/t');
  // The shift of the followers starts where the leaders do, as in Kafka.
  expect(String(data)).toBe('{"partitions":{"0":[1,2],"1":[2,1],"2":[0,2]},"version":1}');
});

test('one request at a time: the next is refused until the controller has taken it away', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, [null]);

  await electPreferred(client, [{ topic: 't', partition: 0 }]);
  await reassignPartitions(client, [{ topic: 't', partition: 0, replicas: [1, 2] }]);

  expect(String((await client.get('/admin/preferred_replica_election')).data)).toBe(
    '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
  );
  expect(String((await client.get('/admin/reassign_partitions')).data)).toBe(
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
  );
  const again = electPreferred(client, [{ topic: 't', partition: 1 }]);
  await expect(again).rejects.toMatchObject({ code: 'REQUEST_PENDING' });
  await expect(
    reassignPartitions(client, [{ topic: 't', partition: 0, replicas: [1, 1] }]),
  ).rejects.toThrow(/none twice/);
});

test('while a KRaft controller leads the cluster, nothing is asked that only a rollback would read', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await cluster(client, [null]);
  const elects = () => electPreferred(client, [{ topic: 't', partition: 0 }]);
  const all = () => [
    elects(),
    reassignPartitions(client, [{ topic: 't', partition: 0, replicas: [1] }]),
    createTopic(client, 'new', { partitions: 1 }),
    growTopic(client, 't', { partitions: 9 }),
    deleteTopic(client, 't'),
  ];
  const led = { status: 'rejected', reason: expect.objectContaining({ code: 'LED_BY_KRAFT' }) };
  const migration = '{"version":0,"kraft_controller_id":3000}';

  await client.create('/controller', '{"version":2,"brokerid":3000,"kraftControllerEpoch":5}');
  expect(await Promise.allSettled(all())).toEqual(Array(5).fill(led));
  await client.create('/migration', migration);
  await client.delete('/controller');
  await expect(elects()).rejects.toMatchObject({ code: 'LED_BY_KRAFT' });
  expect(await client.exists('/admin/preferred_replica_election')).toBeNull();
  expect(await client.exists('/brokers/topics/new')).toBeNull();

  await client.create('/controller', '{"version":2,"brokerid":1,"kraftControllerEpoch":-1}');
  await elects();
  expect(await client.exists('/admin/preferred_replica_election')).not.toBeNull();
});

test('a cluster is read whole, and what is garbage in it is told', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  expect(await readBrokers(client)).toEqual([]);
  expect(await readTopicNames(client)).toEqual([]);
  expect(await readController(client)).toEqual({ brokerId: null, epoch: null, sinceMs: null });
  await cluster(client, [null, 'r']);
  await client.create('/brokers/ids/9', 'what?');
  await client.create('/controller', '{"version":1,"brokerid":1,"timestamp":"5"}');
  await client.create('/controller_epoch', '4');
  await createTopic(client, 't', {
    assignment: [
      [0, 1],
      [1, 0],
    ],
  });
  await client.create(
    '/brokers/topics/t/partitions/0/state',
    layout08.partitionState.format({
      leader: 0,
      leaderEpoch: 2,
      controllerEpoch: 4,
      isr: [0],
      isRecovering: false,
    })!,
    { parents: true },
  );
  const problems: string[] = [];
  const onProblem = ({ path }: { path: string }) => void problems.push(path);

  const brokers = await readBrokers(client, { onProblem });
  const topic = await readTopic(client, 't', { onProblem });

  expect(brokers.map(({ id, registration }) => [id, registration.rack])).toEqual([
    [0, null],
    [1, 'r'],
  ]);
  expect(problems).toEqual(['/brokers/ids/9']);
  expect(await readController(client)).toEqual({ brokerId: 1, epoch: 4, sinceMs: 5 });
  expect(topic).toMatchObject({
    topic: 't',
    isBeingDeleted: false,
    partitions: [
      { partition: 0, replicas: [0, 1], state: { leader: 0, isr: [0] } },
      { partition: 1, replicas: [1, 0], state: null },
    ],
  });
  expect(await readTopic(client, 'none')).toBeNull();
});
