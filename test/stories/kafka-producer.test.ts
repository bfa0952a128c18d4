import { expect, test, vi } from 'vitest';
import {
  createTopic,
  ProducerPartitions,
  prepareCluster,
  RoundRobin,
} from '../../src/kafka/index.ts';
import { addBroker, eventually } from '../kafka.ts';
import { startZk } from '../zk.ts';

const names = (list: ProducerPartitions) => list.available.map(({ name }) => name);

test('0.7: partitions of all brokers, by broker and number, come and go with them', async () => {
  await using zk = await startZk();
  const [client, broker9, broker10] = [await zk.connect(), await zk.witness(), await zk.witness()];
  const register = async (broker: typeof broker9, id: number, count: number) => {
    await broker.create(`/brokers/ids/${id}`, `h-1:h:${id}`, { parents: false, mode: 'ephemeral' });
    await broker.create(`/brokers/topics/t/${id}`, String(count), { mode: 'ephemeral' });
  };
  await client.create('/brokers/ids', '', { parents: true });
  await client.create('/brokers/topics/t', '', { parents: true });
  await register(broker10, 10, 1);
  await register(broker9, 9, 11);

  await using list = await ProducerPartitions.open(client, 't', { layout: '0.7' });
  expect(names(list)).toEqual([...Array.from({ length: 11 }, (_, i) => `9-${i}`), '10-0']);

  await broker9.close();
  await eventually(() => expect(names(list)).toEqual(['10-0']));
});

test.for(['0.7', 'metaq'] as const)(
  '%s: brokers that together count too many partitions are problems, and the others take records',
  async (layout) => {
    await using zk = await startZk();
    const client = await zk.connect();
    const root = layout === '0.7' ? '/brokers/topics' : '/brokers/topics-pub';
    for (let broker = 1; broker <= 9; broker++) {
      const name = layout === '0.7' ? `${broker}` : `${broker}-m`;
      await client.create(`${root}/t/${name}`, String(broker === 1 ? 2 : 150_000), {
        parents: true,
      });
    }
    const problems: string[] = [];

    await using list = await ProducerPartitions.open(client, 't', {
      layout,
      onProblem: ({ path }) => problems.push(path),
    });

    expect(list.all.length).toBeLessThanOrEqual(200_000);
    expect(problems).toHaveLength(7);
  },
);

test('MetaQ: masters alone take records, round robin in the order of the list', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const share = (name: string, numParts: number) =>
    client.create(`/brokers/topics-pub/t/${name}`, JSON.stringify({ numParts, broker: name }), {
      parents: true,
    });
  await share('2-m', 2);
  await share('1-m', 1);
  await share('1-s0', 5);

  await using list = await ProducerPartitions.open(client, 't', { layout: 'metaq' });
  const robin = new RoundRobin();
  const chosen = Array.from({ length: 4 }, () => robin.choose(list.available)?.name);

  expect(chosen).toEqual(['1-0', '2-0', '2-1', '1-0']);
});

test('0.8: a partition whose leader is gone is skipped and comes back', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1);
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));
  const two = await addBroker(zk, 2, { controller: false });
  const client = await zk.connect();
  await using list = await ProducerPartitions.open(client, 't');
  expect([list.all, list.isFresh]).toEqual([[], true]);

  await createTopic(client, 't', { assignment: [[2], [1], [2]] });
  await eventually(() => expect(names(list)).toEqual(['1', '0', '2']));

  await two.client.close();
  await eventually(() => expect(names(list)).toEqual(['1']));
  expect(list.all.map(({ name, broker }) => [name, broker])).toEqual([
    ['0', null],
    ['1', 1],
    ['2', null],
  ]);

  const back = await addBroker(zk, 2, { controller: false });
  await eventually(() => expect(names(list)).toEqual(['1', '0', '2']));
  await back.broker.close({ handOverMs: 0 });
  await one.broker.close({ handOverMs: 0 });
});

test('the list stays as it was without a session, says so, and is fresh again with the next', async () => {
  await using zk = await startZk();
  const [client, admin] = [await zk.connect({ renew: true }), await zk.witness()];
  await prepareCluster(admin);
  await admin.create('/brokers/ids/1', '{"version":1,"host":"h","port":1}');
  await admin.create('/brokers/topics/t', '{"version":1,"partitions":{"0":[1],"1":[1]}}');
  const state = (partition: number) =>
    admin.create(
      `/brokers/topics/t/partitions/${partition}/state`,
      '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
      { parents: true },
    );
  await state(0);
  const list = await ProducerPartitions.open(client, 't');
  expect(names(list)).toEqual(['0']);
  const { sessionSignal } = client;
  const freshAtTheEnd: boolean[] = [];
  sessionSignal.addEventListener('abort', () => freshAtTheEnd.push(list.isFresh));

  await zk.expire(client);
  await eventually(() => expect(sessionSignal.aborted).toBe(true));
  await state(1);

  await eventually(() => expect([names(list), list.isFresh]).toEqual([['0', '1'], true]));
  expect(freshAtTheEnd).toEqual([false]);
  await list.close();
  await eventually(() => expect(client.load.watches).toBe(0));
  expect(client.listenerCount('session')).toBe(0);
});

test('what is made between two questions about it is not missed', async () => {
  await using zk = await startZk();
  const [client, admin] = [await zk.connect(), await zk.witness()];
  await prepareCluster(admin);
  const topic = '/brokers/topics/t';
  const nodes: Record<string, string> = {
    [topic]: '{"version":1,"partitions":{"0":[1]}}',
    [`${topic}/partitions/0/state`]:
      '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
  };
  await admin.create('/brokers/ids/1', '{"version":1,"host":"h","port":1}');
  const get = client.get.bind(client);
  vi.spyOn(client, 'get').mockImplementation(async (path, options) => {
    try {
      return await get(path, options);
    } catch (error) {
      await admin.create(path, nodes[path]!, { parents: true }); // it was not there when we asked
      throw error;
    }
  });

  await using list = await ProducerPartitions.open(client, 't');

  await eventually(() => expect(names(list)).toEqual(['0']));
});

test('garbage in one node is told and takes one partition away, not the list', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await prepareCluster(client);
  await client.create('/brokers/ids/1', '{"version":1,"host":"h","port":1}');
  await client.create('/brokers/topics/t', '{"version":1,"partitions":{"0":[1],"1":[1]}}');
  for (const [partition, data] of [
    '{',
    '{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]}',
  ].entries()) {
    await client.create(`/brokers/topics/t/partitions/${partition}/state`, data, { parents: true });
  }
  const problems: string[] = [];

  await using list = await ProducerPartitions.open(client, 't', {
    onProblem: ({ path }) => problems.push(path),
  });

  expect(names(list)).toEqual(['1']);
  expect(problems).toEqual(['/brokers/topics/t/partitions/0/state']);
});
