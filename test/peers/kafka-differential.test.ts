/**
 * The same events on Apache Kafka with Apache ZooKeeper, and on our brokers with our server: what stands
 * in the nodes afterwards is the same, byte for byte, but for names, times and ids.
 *
 * Kafka's side is driven by its own requests and tools, ours by our own functions. After each event both
 * trees are read whole and compared.
 */

import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import {
  createTopic,
  deleteTopic,
  electPreferred,
  growTopic,
  readController,
  readTopic,
  readTopicNames,
  reassignPartitions,
} from '../../src/kafka/index.ts';
import { startTestServer, type TestServer } from '../../src/testing/index.ts';
import { addBroker, type TestBroker } from '../kafka.ts';
import { type KafkaBroker, startKafka } from './kafka/broker.ts';
import { findKafka, type KafkaPeer } from './kafka/fetch.ts';
import { kafkaTool } from './kafka/tool.ts';
import { type ApacheServer, findZooKeepers, startApache } from './zookeeper.ts';

const found = await findKafka();
const { found: zooKeepers } = await findZooKeepers();
const missing = typeof found === 'string' ? found : zooKeepers.length === 0 ? 'no ZooKeeper' : null;
const isStrict = process.env.CI === 'true';

test.runIf(missing !== null && isStrict)('Kafka is here', () => expect(missing).toBeNull());

const limitMs = 240_000;
const topic = 'orders';
const assignment = [
  [1, 2],
  [2, 1],
];
const grown = [[1, 2]];

/** One side: what can be done to it, and a session that looks on. */
interface Side {
  readonly zk: Client;
  create(): Promise<void>;
  kill(broker: number): Promise<void>;
  restart(broker: number): Promise<void>;
  grow(): Promise<void>;
  elect(): Promise<void>;
  move(partition: number, replicas: number[]): Promise<void>;
  delete(): Promise<void>;
}

describe.skipIf(missing !== null)(missing ?? 'Kafka and ours leave the same nodes', () => {
  const peer = found as KafkaPeer;
  let apache: ApacheServer;
  const real = new Map<number, KafkaBroker>();
  let ours: TestServer;
  const own = new Map<number, TestBroker>();
  const clients: Client[] = [];
  let sides: readonly Side[];

  const open = async (address: string) => {
    const client = await connect(address, { sessionTimeoutMs: 30_000 });
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    apache = await startApache(zooKeepers[0]!, { config: { tickTime: '500' } });
    // One after the other, so that the first is the controller on both sides.
    for (const brokerId of [1, 2]) {
      const config = { 'zookeeper.session.timeout.ms': '4000' };
      real.set(brokerId, await startKafka(peer, { zookeeper: apache.address, brokerId, config }));
    }
    ours = await startTestServer({ tickTimeMs: 500 });
    for (const id of [1, 2]) own.set(id, await addOwn(id));
    sides = [await kafkaSide(), await ownSide()];
  }, limitMs);

  afterAll(async () => {
    for (const client of clients) await client.close();
    for (const broker of real.values()) await broker[Symbol.asyncDispose]();
    await apache?.[Symbol.asyncDispose]();
    await ours?.close();
  }, 60_000);

  async function addOwn(id: number): Promise<TestBroker> {
    const address = `127.0.0.1:${ours.port}`;
    const link = {
      connect: async (options: object) => {
        const client = await connect(address, { sessionTimeoutMs: 10_000, ...options });
        clients.push(client);
        return client;
      },
    };
    // As Kafka is configured here: leaders stay where they are until asked.
    return addBroker(link as never, id, { controller: { autoBalance: false } });
  }

  async function kafkaSide(): Promise<Side> {
    const address = () => [...real.values()].find(({ isRunning }) => isRunning)!.address;
    const admin = async <T>(work: (admin: ReturnType<Kafka['admin']>) => Promise<T>) => {
      const one = new Kafka({ brokers: [address()], logLevel: logLevel.NOTHING }).admin();
      await one.connect();
      try {
        return await work(one);
      } finally {
        await one.disconnect();
      }
    };
    const replicaAssignment = assignment.map((replicas, partition) => ({ partition, replicas }));
    return {
      zk: await open(apache.address),
      create: () =>
        admin(
          async (one) => void (await one.createTopics({ topics: [{ topic, replicaAssignment }] })),
        ),
      kill: (broker) => real.get(broker)!.kill(),
      restart: (broker) => real.get(broker)!.start(),
      grow: () =>
        admin(async (one) => {
          const count = assignment.length + grown.length;
          await one.createPartitions({ topicPartitions: [{ topic, count, assignments: grown }] });
        }),
      elect: async () => {
        const where = ['--bootstrap-server', address(), '--all-topic-partitions'];
        await kafkaTool(peer, 'election', [...where, '--election-type', 'preferred']);
      },
      move: (partition, replicas) =>
        admin((one) => {
          const partitionAssignment = [{ partition, replicas }];
          return one.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] });
        }),
      delete: () => admin((one) => one.deleteTopics({ topics: [topic] })),
    };
  }

  async function ownSide(): Promise<Side> {
    const zk = await open(`127.0.0.1:${ours.port}`);
    return {
      zk,
      create: async () => void (await createTopic(zk, topic, { assignment })),
      async kill(id) {
        const { client, broker } = own.get(id)!;
        await client.close();
        await broker.close({ handOverMs: 0 });
      },
      async restart(id) {
        own.set(id, await addOwn(id));
        // What Kafka's replicas do by fetching: they catch up, and the leader says so.
        await eventually(async () => {
          const seen = await readTopic(zk, topic);
          for (const { partition, state, replicas } of seen!.partitions) {
            if (state!.isr.length === replicas.length) continue;
            const { service } = own.get(state!.leader)!;
            const role = service.leads.get(`${topic}/${partition}`)!;
            await role.changeIsr([...state!.isr, id]);
          }
        });
      },
      grow: async () =>
        void (await growTopic(zk, topic, {
          partitions: assignment.length + grown.length,
          assignment: grown,
        })),
      elect: async () => {
        const seen = await readTopic(zk, topic);
        await electPreferred(
          zk,
          seen!.partitions.map(({ partition }) => ({ topic, partition })),
        );
      },
      move: (partition, replicas) => reassignPartitions(zk, [{ topic, partition, replicas }]),
      delete: () => deleteTopic(zk, topic),
    };
  }

  const both = async (work: (side: Side) => Promise<void>) => {
    await Promise.all(sides.map(work));
  };

  /** Waits until both sides have dealt with it, then compares. */
  async function compare(isDone: (zk: Client) => Promise<void>): Promise<string[]> {
    await both((side) => eventually(() => isDone(side.zk)));
    let trees: string[][] = [];
    await eventually(async () => {
      trees = await Promise.all(sides.map(({ zk }) => treeOf(zk)));
      expect(trees[1]).toEqual(trees[0]);
    });
    return trees[0]!;
  }

  /** Each begins where the one before ended: after a failure the rest would only wait. */
  let hasFailed = false;
  const step = (name: string, work: () => Promise<void>) =>
    test(name, { timeout: limitMs }, async (context) => {
      if (hasFailed) return context.skip('a step before it failed');
      hasFailed = true;
      await work();
      hasFailed = false;
    });

  step('after the start', async () => {
    const tree = await compare(async (zk) => expect((await readController(zk)).brokerId).toBe(1));

    expect(tree).toContain('/controller_epoch =1');
    expect(tree.length).toBeGreaterThan(20);
  });

  step('after a topic is created', async () => {
    await both((side) => side.create());

    const tree = await compare((zk) => leaders(zk, [1, 2]));

    expect(tree.filter((line) => line.includes('/state ')).length).toBe(2);
  });

  step('after a broker has died', async () => {
    await both((side) => side.kill(2));

    const tree = await compare((zk) => leaders(zk, [1, 1]));

    expect(tree.join('\n')).toContain('"isr":[1]');
  });

  step('after it has returned', async () => {
    await both((side) => side.restart(2));

    await compare((zk) => inSync(zk));
  });

  step('after an election of preferred leaders', async () => {
    await both((side) => side.elect());

    await compare((zk) => leaders(zk, [1, 2]));
  });

  step('after the topic has grown', async () => {
    await both((side) => side.grow());

    await compare((zk) => leaders(zk, [1, 2, 1]));
  });

  step('after the controller has died and returned', async () => {
    await both((side) => side.kill(1));
    await compare((zk) => leaders(zk, [2, 2, 2]));
    await both((side) => side.restart(1));

    const tree = await compare((zk) => inSync(zk));

    expect(tree).toContain('/controller_epoch =2');
  });

  step('after a replica has moved away', async () => {
    await both((side) => side.move(0, [1]));

    const tree = await compare((zk) => leaders(zk, [1, 2, 2]));

    expect(tree.join('\n')).toContain('"0":[1]');
  });

  step('after the topic is deleted', async () => {
    await both((side) => side.delete());

    const tree = await compare(async (zk) => expect(await readTopicNames(zk)).toEqual([]));

    expect(tree.filter((line) => line.includes(topic))).toEqual([]);
  });
});

const eventually = <T>(check: () => Promise<T> | T) =>
  vi.waitFor(check, { timeout: 60_000, interval: 100 });

async function leaders(zk: Client, wanted: readonly number[]): Promise<void> {
  const seen = await readTopic(zk, topic);
  expect(seen!.partitions.map(({ state }) => state?.leader)).toEqual(wanted);
}

async function inSync(zk: Client): Promise<void> {
  const seen = await readTopic(zk, topic);
  for (const { state, replicas } of seen!.partitions) {
    expect(state!.isr.length).toBe(replicas.length);
  }
}

/** Nodes that only one side has, and why. */
const leftOut = [
  /^\/zookeeper/, // the server's own
  /^\/drover/, // what our brokers say to each other, and Kafka's by requests
  /^\/feature/, // Kafka's alone: it tells brokers of versions which ours do not have
  /^\/isr_change_notification\/./, // ours change the ISR as Kafka's did before 2.7, and tell of it
];

/** All nodes, each as path, kind and content, without what differs from run to run. */
async function treeOf(zk: Client): Promise<string[]> {
  const lines: string[] = [];
  const visit = async (path: string): Promise<void> => {
    const { data, stat } = await zk.get(path);
    const kind = stat.ephemeralOwner === 0n ? '' : ' (ephemeral)';
    lines.push(`${path}${kind} ${contentOf(path, data)}`);
    for (const child of await zk.children(path)) {
      const below = path === '/' ? `/${child}` : `${path}/${child}`;
      if (!leftOut.some((pattern) => pattern.test(below))) await visit(below);
    }
  };
  await visit('/');
  return lines.sort();
}

function contentOf(path: string, data: Buffer | null): string {
  // No data and empty data are two things.
  const text = data === null ? '-' : `=${data.toString('utf8')}`;
  if (path.startsWith('/brokers/ids/')) {
    return text
      .replace(/"timestamp":"\d+"/, '"timestamp":"T"')
      .replace(/"port":\d+/, '"port":P')
      .replace(/"host":"[^"]+"/, '"host":"H"')
      .replace(/PLAINTEXT:\/\/[^"]+"/, 'PLAINTEXT://H:P"');
  }
  return text
    .replace(/"timestamp":"\d+"/, '"timestamp":"T"')
    .replace(/"topic_id":"[^"]{22}"/, '"topic_id":"ID"')
    .replace(/"id":"[^"]{22}"/, '"id":"ID"');
}
