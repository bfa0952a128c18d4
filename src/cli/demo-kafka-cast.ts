/**
 * Who plays in `drover demo kafka`: brokers, a producer, consumers, on one embedded server.
 *
 * The control plane is real: registrations, controller, elections, groups and offsets are the library's
 * own, each broker and member with a session of its own. The records are files in a temporary folder,
 * one a partition, so that nothing has to be installed. A replica is in sync as soon as it follows.
 */

import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, connect } from '../client/index.ts';
import {
  type Broker,
  Consumer,
  createTopic,
  FencedError,
  type FollowerRole,
  type LeaderRole,
  NdjsonSource,
  NotOwnerError,
  ProducerPartitions,
  partitionKey,
  RoundRobin,
  startBroker,
} from '../kafka/index.ts';

export const topics: Readonly<Record<string, number>> = { orders: 6, payments: 3 };

const sessionTimeoutMs = 6_000;
const produceEveryMs = 25;
const pollMs = 50;

export interface MemberPart {
  readonly group: string;
  readonly topics: readonly string[];
  readonly mode: 'classic' | 'planned';
  /** What a batch costs it. */
  readonly workMs: number;
}

interface Player {
  readonly client: Client;
  close(): Promise<void>;
}

interface BrokerPlayer extends Player {
  readonly broker: Broker;
}

interface MemberPlayer extends Player {
  readonly consumer: Consumer;
}

export class Cast {
  readonly address: string;
  readonly directory: string;
  /** Looks on, asks for topics and elections. */
  readonly witness: Client;
  readonly brokers = new Map<number, BrokerPlayer>();
  readonly members = new Map<string, MemberPlayer>();
  readonly #leaders = new Map<string, LeaderRole>();
  readonly #ended = new AbortController();
  readonly #onTrouble: (error: unknown) => void;
  #producing: Promise<void> | undefined;
  produced = 0;

  private constructor(
    address: string,
    directory: string,
    witness: Client,
    onTrouble: (error: unknown) => void,
  ) {
    this.address = address;
    this.directory = directory;
    this.witness = witness;
    this.#onTrouble = onTrouble;
  }

  static async gather(address: string, onTrouble: (error: unknown) => void): Promise<Cast> {
    const witness = await connect(address, { sessionTimeoutMs });
    const directory = await mkdtemp(join(tmpdir(), 'drover-demo-'));
    for (const [topic, partitions] of Object.entries(topics)) {
      for (let i = 0; i < partitions; i++) {
        await writeFile(join(directory, `${topic}-${i}.ndjson`), '');
      }
    }
    return new Cast(address, directory, witness, onTrouble);
  }

  /** `autoBalance` false: leaders stay where they are until somebody asks. */
  async addBroker(id: number, { autoBalance = true } = {}): Promise<void> {
    const client = await connect(this.address, { sessionTimeoutMs, renew: true });
    const broker = await startBroker(client, {
      id,
      endpoints: [`PLAINTEXT://demo-${id}.invalid:9092`],
      rack: `rack-${id}`,
      service: {
        becomeLeader: (role) => this.#lead(role),
        becomeFollower: (role) => this.#follow(id, role),
        stopReplica: () => {},
      },
      isrNotification: { quietMs: 100 },
      controller: { autoBalance },
    });
    const close = async () => {
      await broker.close({ handOverMs: 0 });
      await client.close();
    };
    this.brokers.set(id, { client, broker, close });
  }

  /** As a crash: nothing is handed over, its session is over. */
  async killBroker(id: number): Promise<void> {
    const player = this.brokers.get(id)!;
    this.brokers.delete(id);
    await player.client.close();
    await player.broker.close({ handOverMs: 0 });
  }

  async createTopics(): Promise<void> {
    for (const [topic, partitions] of Object.entries(topics)) {
      await createTopic(this.witness, topic, { partitions, replicationFactor: 3, startIndex: 0 });
    }
  }

  #lead(role: LeaderRole): void {
    const key = partitionKey(role);
    this.#leaders.set(key, role);
    role.signal.addEventListener('abort', () => {
      if (this.#leaders.get(key) === role) this.#leaders.delete(key);
    });
  }

  /** A real service would fetch first. The leader is in this process: it is told directly. */
  #follow(id: number, role: FollowerRole): void {
    void this.#joinIsr(id, role).catch((error) => {
      const isPassing = error instanceof FencedError || role.signal.aborted;
      if (!isPassing) this.#onTrouble(error);
    });
  }

  async #joinIsr(id: number, role: FollowerRole): Promise<void> {
    while (!role.signal.aborted && !this.#ended.signal.aborted) {
      const leader = this.#leaders.get(partitionKey(role));
      if (leader?.leaderEpoch === role.leaderEpoch) {
        if (!leader.isr.includes(id)) await leader.changeIsr([...leader.isr, id]);
        return;
      }
      await delay(pollMs);
    }
  }

  /** A record now and then to each topic, round robin over what has a leader. */
  async startProducing(): Promise<void> {
    const lists = await Promise.all(
      Object.keys(topics).map((topic) => ProducerPartitions.open(this.witness, topic)),
    );
    const produce = async () => {
      const robins = lists.map(() => new RoundRobin());
      while (!this.#ended.signal.aborted) {
        for (const [i, list] of lists.entries()) {
          const chosen = robins[i]!.choose(list.available);
          if (chosen === null) continue;
          this.produced += 1;
          const record = { timestamp: Date.now(), value: `${list.topic} ${this.produced}` };
          const file = join(this.directory, `${list.topic}-${chosen.partition}.ndjson`);
          await appendFile(file, `${JSON.stringify(record)}\n`);
        }
        await delay(produceEveryMs);
      }
      for (const list of lists) await list.close();
    };
    this.#producing = produce();
    this.#producing.catch(this.#onTrouble);
  }

  async addMember(id: string, part: MemberPart): Promise<void> {
    const client = await connect(this.address, { sessionTimeoutMs });
    const source = new NdjsonSource({ directory: this.directory, pollMs, batchRecordsMax: 20 });
    const consumer = new Consumer(client, {
      group: part.group,
      consumerId: id.slice(part.group.length + 1), // the group's name is put before it
      subscribe: { topics: part.topics },
      mode: part.mode,
      source,
      debounceMs: 50,
      autoCommitMs: 500,
    });
    const loop = this.#consume(id, consumer, part.workMs);
    const close = async () => {
      await consumer.close();
      await loop;
      await source.close();
      await client.close();
    };
    this.members.set(id, { client, consumer, close });
  }

  async #consume(id: string, consumer: Consumer, workMs: number): Promise<void> {
    try {
      for await (const batch of consumer) {
        await delay(workMs);
        await batch.commit();
      }
    } catch (error) {
      // A member that was killed is told so by what it does, or what it was doing: before its state says so.
      const { name } = consumer.state;
      const isOver = !this.members.has(id) || name === 'failed' || name === 'closed';
      if (!isOver && !(error instanceof NotOwnerError)) this.#onTrouble(error);
    }
  }

  /** As a crash: its session is over, and the others share what it had. */
  async killMember(id: string): Promise<void> {
    const player = this.members.get(id)!;
    this.members.delete(id);
    await player.client.close();
    await player.close();
  }

  async removeMember(id: string): Promise<void> {
    const player = this.members.get(id)!;
    this.members.delete(id);
    await player.close();
  }

  async close(): Promise<void> {
    this.#ended.abort();
    for (const { close } of [...this.members.values()]) await close();
    await this.#producing?.catch(() => {}); // told already
    for (const { close } of [...this.brokers.values()]) await close();
    await this.witness.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
