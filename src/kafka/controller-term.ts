/**
 * One term of one controller: from the election to the resignation. All of its methods run in the
 * controller's queue, one after the other, and each sets its watch again before it looks.
 *
 * In: what changed (brokers, topics, requests). Out: partition states, topic nodes, deletions, every
 * one of them fenced by the term. A new term begins with an empty memory and reads all of it again.
 */

import type { Client } from '../client/index.ts';
import { prepareCluster } from './cluster.ts';
import { ControllerContext, type LiveBroker } from './controller-context.ts';
import { TopicDeletion } from './controller-deletion.ts';
import { isReassigning } from './controller-election.ts';
import { type ElectionResult, PartitionMachine } from './controller-partitions.ts';
import { Reassignments } from './controller-reassignment.ts';
import { ReplicaMachine } from './controller-replicas.ts';
import { ControllerStore, type Term } from './controller-store.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey, type TopicPartition } from './layout-admin.ts';
import { layoutDrover } from './layout-drover.ts';
import { type ReplicaSet, type TopicAssignment, topicVersionNewest } from './layout-topic.ts';
import { OneShotWatches } from './one-shot-watches.ts';
import { newTopicId } from './topic-names.ts';

export interface TermOptions {
  readonly deleteTopics: boolean;
  readonly uncleanElection: boolean;
  readonly topicIds: boolean;
  readonly onProblem: OnProblem;
}

/** Puts a piece of work in the controller's queue, under a key. */
export type Put = (key: string, work: () => Promise<void>) => void;

export class ControllerTerm {
  readonly context = new ControllerContext();
  readonly store: ControllerStore;
  readonly partitions: PartitionMachine;
  readonly replicas: ReplicaMachine;
  readonly deletion: TopicDeletion;
  readonly reassignments: Reassignments;
  readonly #watches: OneShotWatches;
  readonly #options: TermOptions;
  readonly #put: Put;

  constructor(client: Client, term: Term, options: TermOptions, put: Put) {
    const { onProblem } = options;
    this.#options = options;
    this.#put = put;
    this.#watches = new OneShotWatches(client);
    this.store = new ControllerStore(client, term, onProblem);
    this.partitions = new PartitionMachine(this.context, this.store, options);
    this.replicas = new ReplicaMachine(this.context, this.store, onProblem);
    this.deletion = new TopicDeletion(this.context, this.store, this, this.#watches, {
      isEnabled: options.deleteTopics,
      onProblem,
      onAnswers: (topic) => put(`answers ${topic}`, () => this.deletion.answered(topic)),
    });
    this.reassignments = new Reassignments(this.context, this.store, this, this.#watches, {
      onProblem,
      onIsr: (at) => put(`isr ${partitionKey(at)}`, () => this.reassignments.isrChanged(at)),
      onFree: () => put('reassign', () => this.reassignmentsAsked()),
    });
  }

  async close(): Promise<void> {
    await this.#watches.close();
  }

  // ── the start ─────────────────────────────────────────────────────────────────────────────────

  /** Kafka's order: hear first, then read, then replicas, then partitions, then what was pending. */
  async failover(): Promise<void> {
    const { context, store } = this;
    await prepareCluster(store.client);
    await this.#drop('logDirs');
    await this.#drop('isrChanges');
    for (const [id, broker] of await this.#readBrokers()) context.brokers.set(id, broker);
    const topics = await store.children(layout08.topics.at(), this.#hear('topics'));
    await this.#readTopics(topics);
    for (const at of context.allPartitions()) {
      if (isReassigning(context.set(at)!)) context.reassigning.set(partitionKey(at), at);
    }
    await this.#readStates(context.allPartitions());
    await this.deletion.load(
      await store.children(layout08.deleteTopics.at(), this.#hear('deletions')),
    );
    await this.replicas.start();
    await this.partitions.start();
    await this.reassignmentsAsked(true);
    await this.deletion.resume();
    await this.preferredAsked();
    await this.brokersLeaving();
  }

  // ── brokers ───────────────────────────────────────────────────────────────────────────────────

  async brokersChanged(): Promise<void> {
    const { brokers } = this.context;
    const now = await this.#readBrokers();
    const came = [...now.keys()].filter((id) => !brokers.has(id));
    const died = [...brokers.keys()].filter((id) => !now.has(id));
    const bounced = [...now.values()].filter((one) => {
      const before = brokers.get(one.id);
      return before !== undefined && one.epoch > before.epoch;
    });
    const rest = [...now.values()].filter(
      ({ id }) => brokers.has(id) && !bounced.includes(now.get(id)!),
    );
    for (const one of rest) brokers.set(one.id, one); // its endpoints may have changed

    if (came.length > 0) {
      for (const id of came) brokers.set(id, now.get(id)!);
      await this.#brokersCame(came);
    }
    if (bounced.length > 0) {
      const ids = bounced.map(({ id }) => id);
      for (const id of ids) brokers.delete(id);
      await this.#brokersDied(ids);
      for (const one of bounced) brokers.set(one.id, one);
      await this.#brokersCame(ids);
    }
    if (died.length > 0) {
      for (const id of died) brokers.delete(id);
      await this.#brokersDied(died);
    }
  }

  async #brokersCame(ids: readonly number[]): Promise<void> {
    const brokers = new Set(ids);
    for (const id of ids) this.context.leaving.delete(id);
    const replicas = this.context.replicasOn(brokers);
    const isGoing = ({ topic }: TopicPartition) => this.context.toDelete.has(topic);
    await this.replicas.move(
      replicas.filter((one) => this.context.mayMoveReplica(one, 'online')),
      'online',
    );
    await this.partitions.bringOnline();
    await this.reassignments.brokersCame(brokers);
    await this.deletion.mayGoOn(new Set(replicas.filter(isGoing).map(({ topic }) => topic)));
  }

  async #brokersDied(ids: readonly number[]): Promise<void> {
    const { context } = this;
    for (const id of ids) context.leaving.delete(id);
    const replicas = context.replicasOn(new Set(ids));
    await this.partitions.move(context.partitionsWithDeadLeader(), 'offline');
    await this.partitions.bringOnline();
    const staying = replicas.filter(({ topic }) => !context.toDelete.has(topic));
    await this.replicas.move(staying, 'offline');
    await this.deletion.failed(replicas.filter(({ topic }) => context.toDelete.has(topic)));
    await Promise.all(ids.map((id) => this.#watches.drop('data', layout08.broker.at({ id }))));
  }

  /** Brokers that ask to hand over before they go. */
  async brokersLeaving(): Promise<void> {
    const names = await this.store.children(layoutDrover.leavings.at(), this.#hear('leaving'));
    for (const broker of names) {
      const path = layoutDrover.leaving.at({ broker });
      const node = await this.store.get(path);
      const asked = node && layoutDrover.leaving.tryParse(node.data, path, this.#options.onProblem);
      const live = this.context.brokers.get(Number(broker));
      // Of an earlier life of that broker: it is gone, and this goes with its session.
      if (asked === null || live?.epoch !== asked.brokerEpoch) continue;
      if (this.context.leaving.has(live.id)) continue;
      await this.handOver(live.id);
      await this.store.set(path, layoutDrover.leaving.format({ ...asked, isDone: true })!);
    }
  }

  /** Controlled shutdown. What the broker still leads afterwards nobody else can lead. */
  async handOver(id: number): Promise<TopicPartition[]> {
    const { context } = this;
    context.leaving.add(id);
    const concerned = context.allPartitions().filter((at) => {
      const set = context.set(at)!;
      const isShared = set.replicas.includes(id) && set.replicas.length > 1;
      return isShared && context.state(at) !== undefined && !context.toDelete.has(at.topic);
    });
    const leads = (at: TopicPartition) => context.state(at)!.state.leader === id;
    const led = concerned.filter(leads);
    const followed = concerned.filter((at) => !leads(at));
    await this.partitions.move(led, 'online', 'controlledShutdown');
    await this.replicas.move(
      followed.map((at) => ({ ...at, broker: id })),
      'offline',
    );
    return context.ledBy(id);
  }

  // ── topics ────────────────────────────────────────────────────────────────────────────────────

  async topicsChanged(): Promise<void> {
    const { context } = this;
    const now = await this.store.children(layout08.topics.at(), this.#hear('topics'));
    const gone = [...context.topics.keys()].filter((topic) => !now.includes(topic));
    for (const topic of gone) {
      context.removeTopic(topic);
      await this.#watches.drop('data', layout08.topic.at({ topic }));
    }
    const fresh = now.filter((topic) => !context.topics.has(topic));
    await this.#readTopics(fresh);
    await this.#create(fresh.flatMap((topic) => context.partitionsOf(topic)));
  }

  async topicChanged(topic: string): Promise<void> {
    const { context } = this;
    const known = context.topics.get(topic);
    const read = await this.store.topic(topic, this.#hearTopic(topic));
    if (known === undefined || read === null) return;
    const added = [...read.partitions].filter(([partition]) => !known.partitions.has(partition));
    if (added.length === 0) return;
    if (context.toDelete.has(topic)) {
      // It is to go: it does not grow.
      const { partitions, topicId } = known;
      await this.store.setTopic(topic, { version: topicVersionNewest, topicId, partitions });
      return;
    }
    for (const [partition, set] of added) known.partitions.set(partition, set);
    await this.#create(added.map(([partition]) => ({ topic, partition })));
  }

  async #create(partitions: readonly TopicPartition[]): Promise<void> {
    const { context } = this;
    const unborn = partitions.filter((at) => context.partitionPhase(at) === 'nonExistent');
    await this.partitions.move(unborn, 'new');
    await this.replicas.move(context.replicasOf(unborn), 'new');
    await this.partitions.move(unborn, 'online');
    await this.replicas.move(context.replicasOf(unborn), 'online');
  }

  async deletionsAsked(): Promise<void> {
    const path = layout08.deleteTopics.at();
    await this.deletion.asked(await this.store.children(path, this.#hear('deletions')));
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────

  /** `also`: those under way as well, as at the start of a term. */
  async reassignmentsAsked(also = false): Promise<void> {
    const path = layout08.reassign.at();
    const asked = await this.#request(path, 'reassign', layout08.reassign);
    if (asked !== null || also) await this.reassignments.resume(asked ?? [], also);
  }

  async preferredAsked(): Promise<void> {
    const path = layout08.preferredElection.at();
    const asked = await this.#request(path, 'preferred', layout08.preferredElection);
    if (asked === null) return;
    const { context } = this;
    const known = asked.filter((at) => context.set(at) && !context.toDelete.has(at.topic));
    const wanted = known.filter(
      (at) => context.state(at)?.state.leader !== context.set(at)!.replicas[0],
    );
    await this.partitions.move(wanted, 'online', 'preferred');
    await this.store.remove(path);
    this.#put('preferred', () => this.preferredAsked());
  }

  /** By whoever runs the controller: also an unclean election, which no node can ask for. */
  async elect(
    partitions: readonly TopicPartition[],
    type: 'preferred' | 'unclean',
  ): Promise<ElectionResult[]> {
    const { context } = this;
    const known = partitions.filter((at) => context.set(at) && !context.toDelete.has(at.topic));
    const unknown = partitions.filter((at) => !known.includes(at));
    const needed = known.filter((at) => {
      const leader = context.state(at)?.state.leader ?? -1;
      return type === 'preferred'
        ? leader !== context.set(at)!.replicas[0]
        : !context.isLive(leader);
    });
    const results = await this.partitions.move(needed, 'online', type);
    return [...results, ...unknown.map((at) => ({ at, failed: 'there is no such partition' }))];
  }

  // ── notifications ─────────────────────────────────────────────────────────────────────────────

  async isrsChanged(): Promise<void> {
    const parent = layout08.isrChanges.at();
    const names = await this.store.children(parent, this.#hear('isrChanges'));
    const changed = new Map<string, TopicPartition>();
    for (const name of names) {
      const path = `${parent}/${name}`;
      const node = await this.store.get(path);
      const list = node && layout08.isrChange.tryParse(node.data, path, this.#options.onProblem);
      for (const at of list ?? []) changed.set(partitionKey(at), at);
    }
    const known = [...changed.values()].filter((at) => this.context.set(at));
    await this.#readStates(known);
    for (const at of known) await this.reassignments.isrChanged(at);
    await this.store.inTurn(names, (name) => this.store.remove(`${parent}/${name}`));
  }

  /** Which replicas were on the disk only the broker knows: it is told of, and taken away. */
  async logDirsFailed(): Promise<void> {
    const parent = layout08.logDirEvents.at();
    const names = await this.store.children(parent, this.#hear('logDirs'));
    for (const name of names) {
      const path = `${parent}/${name}`;
      this.#options.onProblem({ path, why: 'a broker has lost a disk; restart it', content: null });
      await this.store.remove(path);
    }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  async #readBrokers(): Promise<Map<number, LiveBroker>> {
    const names = await this.store.children(layout08.brokerIds.at(), this.#hear('brokers'));
    const found = await this.store.inTurn(names, (id) => {
      const path = layout08.broker.at({ id });
      return this.store.broker(id, this.#watches.on('data', path, this.#heard('brokers')));
    });
    const live = found.filter((one): one is LiveBroker => one !== null);
    return new Map(live.sort((a, b) => a.id - b.id).map((one) => [one.id, one]));
  }

  async #readTopics(topics: readonly string[]): Promise<void> {
    await this.store.inTurn(topics, async (topic) => {
      const read = await this.store.topic(topic, this.#hearTopic(topic));
      const needsId = this.#options.topicIds && read !== null && read.topicId === null;
      const known = needsId ? await this.#giveId(topic) : read;
      // One that cannot be read has no partitions, and can at least be deleted.
      const partitions = known?.partitions ?? new Map<number, ReplicaSet>();
      this.context.putTopic(topic, known?.topicId ?? null, partitions);
    });
  }

  #giveId(topic: string): Promise<TopicAssignment | null> {
    const topicId = newTopicId();
    return this.store.changeTopic(topic, ({ partitions, topicId: id }) => ({
      version: topicVersionNewest,
      topicId: id ?? topicId,
      partitions,
    }));
  }

  async #readStates(partitions: readonly TopicPartition[]): Promise<void> {
    for (const [key, known] of await this.store.states(partitions)) {
      this.context.states.set(key, known);
    }
  }

  /** What a request node asks for, heard of when it is made again. Null: nothing, or nonsense. */
  async #request<T>(
    path: string,
    name: EventName,
    row: { tryParse(data: Uint8Array | null, path: string, onProblem: OnProblem): T | null },
  ): Promise<T | null> {
    const watch = this.#watches.on('data', path, this.#heard(name));
    if ((await this.store.client.exists(path, { watch })) === null) return null;
    const node = await this.store.get(path);
    if (node === null) return null;
    const asked = row.tryParse(node.data, path, this.#options.onProblem);
    if (asked === null) await this.store.remove(path);
    return asked;
  }

  /** Old notifications say nothing that reading everything does not. */
  async #drop(name: keyof typeof parents): Promise<void> {
    const parent = parents[name]();
    const names = await this.store.children(parent, this.#hear(name));
    await this.store.inTurn(names, (one) => this.store.remove(`${parent}/${one}`));
  }

  // ── hearing ───────────────────────────────────────────────────────────────────────────────────

  #hear(name: keyof typeof parents) {
    return this.#watches.on('children', parents[name](), this.#heard(name));
  }

  #hearTopic(topic: string) {
    return this.#watches.on('data', layout08.topic.at({ topic }), () =>
      this.#put(`topic ${topic}`, () => this.topicChanged(topic)),
    );
  }

  #heard(name: EventName): () => void {
    return () => this.#put(name, () => this[handlers[name]]());
  }
}

/** Which method looks at what, when it was heard of. */
const handlers = {
  brokers: 'brokersChanged',
  topics: 'topicsChanged',
  deletions: 'deletionsAsked',
  leaving: 'brokersLeaving',
  reassign: 'reassignmentsAsked',
  preferred: 'preferredAsked',
  isrChanges: 'isrsChanged',
  logDirs: 'logDirsFailed',
} as const;

type EventName = keyof typeof handlers;

const parents = {
  brokers: () => layout08.brokerIds.at(),
  topics: () => layout08.topics.at(),
  deletions: () => layout08.deleteTopics.at(),
  leaving: () => layoutDrover.leavings.at(),
  isrChanges: () => layout08.isrChanges.at(),
  logDirs: () => layout08.logDirEvents.at(),
};
