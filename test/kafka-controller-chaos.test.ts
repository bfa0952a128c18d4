/**
 * A cluster under random trouble, by seed: brokers that lose their session or close, topics that come,
 * grow and go, ISRs that shrink and grow, elections that are asked for. Whatever happens, what must
 * always hold holds, and when it is quiet all is well again.
 */

import { expect, test, vi } from 'vitest';
import { type Client, connect } from '../src/client/index.ts';
import {
  createTopic,
  deleteTopic,
  electPreferred,
  growTopic,
  type LeaderRole,
  layout08,
  type PartitionState,
  readTopic,
  readTopicNames,
  startBroker,
} from '../src/kafka/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';
import { RecordingService } from './kafka.ts';
import { seeded } from './random.ts';

const seeds = (process.env.KAFKA_CHAOS_SEEDS ?? '1,2,3').split(',').map(Number);
const steps = Number(process.env.KAFKA_CHAOS_STEPS ?? 40);
const brokerIds = [1, 2, 3, 4];

/** The same seed, the same trouble. */
function chance(seed: number) {
  const random = seeded(seed);
  return {
    random,
    pick: <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)],
  };
}

async function addBroker(server: TestServer, id: number) {
  const client = await connect(server.address, { renew: true, sessionTimeoutMs: 20_000 });
  const service = new RecordingService();
  const broker = await startBroker(client, {
    id,
    endpoints: [`PLAINTEXT://h${id}:1`],
    service,
    controller: { autoBalance: false },
    isrNotification: { quietMs: 5 },
  });
  return { client, service, broker };
}

/** Every state that ever stood in a node: epochs only grow, and who leads is in sync. */
async function observe(client: Client, signal: AbortSignal, faults: string[]): Promise<void> {
  const last = new Map<string, PartitionState & { czxid: bigint }>();
  const stream = client.watch('/brokers/topics', { recursive: true, signal });
  try {
    for await (const { path } of stream) {
      if (!path.endsWith('/state')) continue;
      const node = await client.get(path).catch(() => null);
      if (node === null) continue;
      const state = layout08.partitionState.parse(node.data, path);
      const before = last.get(path);
      last.set(path, { ...state, czxid: node.stat.czxid });
      if (state.leader !== -1 && !state.isr.includes(state.leader))
        faults.push(`${path}: led from outside`);
      if (state.isr.length === 0) faults.push(`${path}: nobody in sync`);
      if (before === undefined || before.czxid !== node.stat.czxid) continue;
      if (state.leaderEpoch < before.leaderEpoch) faults.push(`${path}: epoch went back`);
      if (state.controllerEpoch < before.controllerEpoch)
        faults.push(`${path}: an old controller wrote`);
      if (state.leader !== before.leader && state.leaderEpoch === before.leaderEpoch) {
        faults.push(`${path}: two leaders in epoch ${state.leaderEpoch}`);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

test.for(seeds)(
  'whatever happens, leaders are in sync and epochs grow (seed %i)',
  { timeout: 120_000 },
  async (seed) => {
    await using server = await startTestServer({ tickTimeMs: 500 });
    const { random, pick } = chance(seed);
    const brokers = new Map<number, Awaited<ReturnType<typeof addBroker>>>();
    for (const id of brokerIds) brokers.set(id, await addBroker(server, id));
    const admin = await connect(server.address);
    const faults: string[] = [];
    const watching = new AbortController();
    const observed = observe(admin, watching.signal, faults);
    const leads = (): LeaderRole[] =>
      [...brokers.values()].flatMap(({ broker }) =>
        broker.roles.filter(
          (role): role is LeaderRole => role.kind === 'leader' && !role.signal.aborted,
        ),
      );
    const ignore = () => {}; // refused for what happened meanwhile: part of the trouble

    const trouble = {
      async expire() {
        const { client } = pick([...brokers.values()]) ?? {};
        if (client?.sessionId !== undefined) await server.expire(client.sessionId);
      },
      async drop() {
        const { client } = pick([...brokers.values()]) ?? {};
        if (client?.state.name !== 'connected') return;
        try {
          server.drop(client.sessionId!);
        } catch {
          // on no link just now, which is trouble enough
        }
      },
      async leave() {
        const id = pick([...brokers.keys()]);
        if (id === undefined || brokers.size < 3) return;
        const { broker, client } = brokers.get(id)!;
        brokers.delete(id);
        if (random() < 0.5) await broker.close({ handOverMs: 2_000 });
        const { sessionId } = client;
        await client.close();
        // A close that found no link leaves the session to its timeout: long, and nothing new.
        if (sessionId !== undefined) await server.expire(sessionId);
      },
      async come() {
        const id = pick(brokerIds.filter((one) => !brokers.has(one)));
        if (id !== undefined) brokers.set(id, await addBroker(server, id));
      },
      async create() {
        const replicationFactor = 1 + Math.floor(random() * 3);
        const topic = `t${Math.floor(random() * 5)}`;
        await createTopic(admin, topic, { partitions: 3, replicationFactor, random }).catch(ignore);
      },
      async grow() {
        const topic = pick(await readTopicNames(admin));
        if (topic)
          await growTopic(admin, topic, { partitions: 4 + Math.floor(random() * 3) }).catch(ignore);
      },
      async delete() {
        const topic = pick(await readTopicNames(admin));
        if (topic && random() < 0.4) await deleteTopic(admin, topic).catch(ignore);
      },
      async prefer() {
        const topic = pick(await readTopicNames(admin));
        if (topic) await electPreferred(admin, [{ topic, partition: 0 }]).catch(ignore);
      },
      async isr() {
        const { broker } = pick([...brokers.values()])!;
        const role = pick(broker.roles.filter((one) => one.kind === 'leader'));
        if (role === undefined) return;
        const isr = role.replicas.filter((id) => id === broker.id || random() < 0.5);
        await role.changeIsr(isr).catch(ignore);
      },
    };
    const kinds = Object.values(trouble);
    for (let step = 0; step < steps; step++) {
      await pick(kinds)!();
      if (random() < 0.5) await new Promise((resolve) => setImmediate(resolve));
      // Two that lead the same partition in the same epoch would both think that they may.
      const held = leads().map(
        ({ topic, partition, leaderEpoch }) => `${topic}/${partition} @${leaderEpoch}`,
      );
      if (new Set(held).size < held.length) faults.push(`two leaders: ${held.sort().join(', ')}`);
    }

    for (const id of brokerIds) if (!brokers.has(id)) brokers.set(id, await addBroker(server, id));
    await vi.waitFor(
      async () => {
        expect(await admin.children('/admin/delete_topics')).toEqual([]);
        for (const topic of await readTopicNames(admin)) {
          const { partitions } = (await readTopic(admin, topic))!;
          for (const { partition, state, replicas } of partitions) {
            expect({ topic, partition, state }).toMatchObject({
              state: { leader: expect.any(Number) },
            });
            expect(replicas).toContain(state!.leader);
            const leader = brokers.get(state!.leader)!;
            const role = leader.broker.roles.find(
              (one) => one.topic === topic && one.partition === partition,
            );
            expect(role).toMatchObject({ kind: 'leader', leaderEpoch: state!.leaderEpoch });
          }
        }
      },
      { timeout: 60_000, interval: 50 },
    );
    expect(faults).toEqual([]);
    watching.abort();
    await observed;
    await Promise.all([...brokers.values()].map(({ broker }) => broker.close({ handOverMs: 0 })));
    await Promise.all(
      [admin, ...[...brokers.values()].map(({ client }) => client)].map((one) => one.close()),
    );
  },
);
