/**
 * Moving partitions from brokers to brokers, so that a controller can die at any step.
 *
 *   U   the topic node holds old and new replicas, and which are which
 *   A   not all of the new are in sync: the leader's epoch is raised, so that it lets them in
 *   B   all are: a new leader if the old one is to go, the old ones out of the ISR, and last the topic
 *       node with the new replicas alone, for until then it is what knows where they came from
 *
 * A further reassignment of the same partition replaces the one under way; `null` turns it round.
 */

import type { ControllerContext } from './controller-context.ts';
import type { TopicDeletion } from './controller-deletion.ts';
import { isReassigning, originOf, reassignTo, targetOf } from './controller-election.ts';
import type { PartitionMachine } from './controller-partitions.ts';
import type { ReplicaMachine } from './controller-replicas.ts';
import type { ControllerStore } from './controller-store.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey, type Reassignment, type TopicPartition } from './layout-admin.ts';
import { type ReplicaSet, steady, topicVersionNewest } from './layout-topic.ts';
import type { OneShotWatches } from './one-shot-watches.ts';

export interface ReassignmentHooks {
  readonly onProblem: OnProblem;
  /** The ISR of a partition on the move has changed. */
  readonly onIsr: (at: TopicPartition) => void;
  /** /admin/reassign_partitions is gone, and may be made again. */
  readonly onFree: () => void;
}

export class Reassignments {
  readonly #context: ControllerContext;
  readonly #store: ControllerStore;
  readonly #partitions: PartitionMachine;
  readonly #replicas: ReplicaMachine;
  readonly #deletion: TopicDeletion;
  readonly #watches: OneShotWatches;
  readonly #hooks: ReassignmentHooks;

  constructor(
    context: ControllerContext,
    store: ControllerStore,
    machines: {
      readonly partitions: PartitionMachine;
      readonly replicas: ReplicaMachine;
      readonly deletion: TopicDeletion;
    },
    watches: OneShotWatches,
    hooks: ReassignmentHooks,
  ) {
    this.#context = context;
    this.#store = store;
    this.#partitions = machines.partitions;
    this.#replicas = machines.replicas;
    this.#deletion = machines.deletion;
    this.#watches = watches;
    this.#hooks = hooks;
  }

  /**
   * Why it was refused, or null. `replicas: null` goes back to where they were. `mayWait`: for brokers
   * that do not live yet, as Kafka does for what is asked through ZooKeeper.
   */
  async begin(
    at: TopicPartition,
    replicas: readonly number[] | null,
    { mayWait = false } = {},
  ): Promise<string | null> {
    const set = this.#context.set(at);
    if (set === undefined || this.#context.toDelete.has(at.topic))
      return 'there is no such partition';
    if (replicas === null && !isReassigning(set)) return 'it is not being reassigned';
    const target = replicas ?? originOf(set);
    const fault = this.#fault(set, target, mayWait);
    if (fault !== null) return fault;
    const next = reassignTo(set, target);
    const isUnderWay = this.#context.reassigning.has(partitionKey(at)) && sameSet(set, next);
    if (!isUnderWay) await this.#go(at, next);
    return null;
  }

  /** What /admin/reassign_partitions asks for; `also`, at the start of a term, what was under way. */
  async resume(asked: readonly Reassignment[], also: boolean): Promise<void> {
    const before = new Map(this.#context.reassigning);
    const refused = new Set<string>();
    for (const { replicas, ...at } of asked) {
      const why = await this.begin(at, replicas, { mayWait: true });
      if (why === null) continue;
      refused.add(partitionKey(at));
      const path = layout08.reassign.at();
      this.#hooks.onProblem({ path, why: `${partitionKey(at)}: ${why}`, content: null });
    }
    if (refused.size > 0) await this.#strike((one) => refused.has(partitionKey(one)));
    if (!also) return;
    for (const [key, at] of before) {
      const set = this.#context.set(at);
      if (this.#context.reassigning.has(key) && set !== undefined) await this.#go(at, set);
    }
  }

  /** Those that wait for one of these brokers. */
  async brokersCame(brokers: ReadonlySet<number>): Promise<void> {
    for (const at of [...this.#context.reassigning.values()]) {
      const set = this.#context.set(at);
      if (set && targetOf(set).some((id) => brokers.has(id))) await this.#go(at, set);
    }
  }

  async isrChanged(at: TopicPartition): Promise<void> {
    const set = this.#context.set(at);
    if (set === undefined || !this.#context.reassigning.has(partitionKey(at))) return;
    if (await this.#isComplete(at, set)) await this.#go(at, set);
  }

  async #go(at: TopicPartition, set: ReplicaSet): Promise<void> {
    const context = this.#context;
    const key = partitionKey(at);
    if (context.toDelete.has(at.topic)) context.ineligible.add(at.topic);
    const before = context.set(at)!;
    if (!sameSet(before, set)) {
      await this.#write(at, set);
      context.topics.get(at.topic)!.partitions.set(at.partition, set);
      await this.#stop(
        at,
        before.replicas.filter((id) => !set.replicas.includes(id)),
      );
    }
    context.reassigning.set(key, at);
    if (!(await this.#isComplete(at, set))) {
      await this.#partitions.raiseEpoch(at);
      const fresh = set.adding
        .map((broker) => ({ ...at, broker }))
        .filter((replica) => context.replicaPhase(replica) === 'nonExistent');
      await this.#replicas.move(fresh, 'new');
      return;
    }
    await this.#finish(at, set);
  }

  async #finish(at: TopicPartition, set: ReplicaSet): Promise<void> {
    const context = this.#context;
    const added = set.adding.map((broker) => ({ ...at, broker }));
    const waiting = added.filter((replica) => context.replicaPhase(replica) === 'nonExistent');
    await this.#replicas.move(waiting, 'new');
    await this.#replicas.move(added, 'online');
    const done = steady(targetOf(set));
    context.topics.get(at.topic)!.partitions.set(at.partition, done);
    const leader = context.state(at)?.state.leader ?? -1;
    if (done.replicas.includes(leader) && context.isLive(leader)) {
      await this.#partitions.raiseEpoch(at);
    } else {
      await this.#partitions.move([at], 'online', 'reassign');
    }
    await this.#stop(at, set.removing);
    await this.#write(at, done);
    context.reassigning.delete(partitionKey(at));
    await this.#watches.drop('data', layout08.partitionState.at(at));
    await this.#strike(
      (one) => partitionKey(one) === partitionKey(at) && sameIds(one.replicas, done.replicas),
    );
    await this.#deletion.mayGoOn([at.topic]);
  }

  async #stop(at: TopicPartition, brokers: readonly number[]): Promise<void> {
    const replicas = brokers.map((broker) => ({ ...at, broker }));
    const known = replicas.filter((one) => this.#context.replicaPhase(one) !== 'nonExistent');
    for (const phase of [
      'offline',
      'deletionStarted',
      'deletionSuccessful',
      'nonExistent',
    ] as const) {
      await this.#replicas.move(known, phase);
    }
  }

  /** Reads with a watch: below 2.7 a leader writes its ISR itself, and this is how we hear of it. */
  async #isComplete(at: TopicPartition, set: ReplicaSet): Promise<boolean> {
    if (!isReassigning(set)) return true;
    const path = layout08.partitionState.at(at);
    const listener = this.#watches.on('data', path, () => this.#hooks.onIsr(at));
    const node = await this.#store.get(path, listener);
    const state = node && layout08.partitionState.tryParse(node.data, path, this.#hooks.onProblem);
    if (state === null) return false;
    const { version, mzxid } = node!.stat;
    this.#context.states.set(partitionKey(at), { state, version, mzxid });
    return targetOf(set).every((id) => state.isr.includes(id));
  }

  async #write({ topic, partition }: TopicPartition, set: ReplicaSet): Promise<void> {
    const { topicId, partitions: known } = this.#context.topics.get(topic)!;
    const written = await this.#store.changeTopic(topic, ({ partitions }) => ({
      version: topicVersionNewest,
      topicId,
      partitions: new Map([...partitions, ...known, [partition, set]]),
    }));
    if (written === null) {
      throw new Error(`topic ${topic} is gone while its partition ${partition} was reassigned`);
    }
  }

  /** Takes entries out of /admin/reassign_partitions, and the node with the last of them. */
  async #strike(isDone: (one: Reassignment) => boolean): Promise<void> {
    const path = layout08.reassign.at();
    const node = await this.#store.get(path);
    if (node === null) return;
    const asked = layout08.reassign.tryParse(node.data, path, this.#hooks.onProblem) ?? [];
    const left = asked.filter((one) => !isDone(one));
    if (left.length === 0) {
      await this.#store.remove(path);
      this.#hooks.onFree();
    } else if (left.length < asked.length) {
      await this.#store.set(path, layout08.reassign.format(left)!);
    }
  }

  #fault(set: ReplicaSet, target: readonly number[], mayWait: boolean): string | null {
    if (target.length === 0) return 'at least one replica is wanted';
    if (new Set(target).size !== target.length) return `replicas ${target} name a broker twice`;
    if (mayWait) return null;
    const dead = reassignTo(set, target).adding.filter((id) => !this.#context.isLive(id));
    return dead.length === 0 ? null : `brokers ${dead} are to hold it and do not live`;
  }
}

function sameIds(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}

function sameSet(a: ReplicaSet, b: ReplicaSet): boolean {
  return (
    sameIds(a.replicas, b.replicas) &&
    sameIds(a.adding, b.adding) &&
    sameIds(a.removing, b.removing)
  );
}
