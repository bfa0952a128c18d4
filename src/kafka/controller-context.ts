/**
 * What the controller knows: brokers, topics, states, and what is under way. Memory alone; ZooKeeper
 * has the truth, and a new term starts with an empty one.
 *
 * Partitions are kept by `topic/partition`, replicas by that and the broker.
 */

import {
  type PartitionPhase,
  partitionFrom,
  type ReplicaPhase,
  replicaFrom,
} from './controller-states.ts';
import { partitionKey, type TopicPartition } from './layout-admin.ts';
import type { BrokerRegistration } from './layout-broker.ts';
import { noLeader, type PartitionState, type ReplicaSet } from './layout-topic.ts';

export interface LiveBroker {
  readonly id: number;
  /** The czxid of its registration: one that came back has another. */
  readonly epoch: bigint;
  readonly registration: BrokerRegistration;
}

/** A state as it was read or written, and the version of its node. */
export interface KnownState {
  readonly state: PartitionState;
  readonly version: number;
  readonly mzxid: bigint;
}

export interface Replica extends TopicPartition {
  readonly broker: number;
}

interface KnownTopic {
  topicId: string | null;
  readonly partitions: Map<number, ReplicaSet>;
}

export class ControllerContext {
  readonly brokers = new Map<number, LiveBroker>();
  readonly leaving = new Set<number>();
  readonly topics = new Map<string, KnownTopic>();
  readonly states = new Map<string, KnownState>();
  readonly toDelete = new Set<string>();
  readonly deletionStarted = new Set<string>();
  readonly ineligible = new Set<string>();
  readonly reassigning = new Map<string, TopicPartition>();
  readonly #partitions = new Map<string, PartitionPhase>();
  readonly #replicas = new Map<string, ReplicaPhase>();

  /** Brokers that can lead: those about to leave cannot. */
  get live(): Set<number> {
    return new Set([...this.brokers.keys()].filter((id) => !this.leaving.has(id)));
  }

  isLive(id: number): boolean {
    return this.brokers.has(id) && !this.leaving.has(id);
  }

  // ── partitions ────────────────────────────────────────────────────────────────────────────────

  allPartitions(): TopicPartition[] {
    return [...this.topics.keys()].flatMap((topic) => this.partitionsOf(topic));
  }

  partitionsOf(topic: string): TopicPartition[] {
    const partitions = this.topics.get(topic)?.partitions.keys() ?? [];
    return [...partitions].map((partition) => ({ topic, partition }));
  }

  set(at: TopicPartition): ReplicaSet | undefined {
    return this.topics.get(at.topic)?.partitions.get(at.partition);
  }

  state(at: TopicPartition): KnownState | undefined {
    return this.states.get(partitionKey(at));
  }

  partitionPhase(at: TopicPartition): PartitionPhase {
    return this.#partitions.get(partitionKey(at)) ?? 'nonExistent';
  }

  mayMove(at: TopicPartition, to: PartitionPhase): boolean {
    return partitionFrom[to].includes(this.partitionPhase(at));
  }

  putPartition(at: TopicPartition, phase: PartitionPhase): void {
    if (phase === 'nonExistent') this.#partitions.delete(partitionKey(at));
    else this.#partitions.set(partitionKey(at), phase);
  }

  partitionsIn(phases: readonly PartitionPhase[], topic?: string): TopicPartition[] {
    const all = topic === undefined ? this.allPartitions() : this.partitionsOf(topic);
    return all.filter((at) => phases.includes(this.partitionPhase(at)));
  }

  /** Led by nobody who lives, though the topic stays. */
  partitionsWithDeadLeader(): TopicPartition[] {
    return this.allPartitions().filter((at) => {
      const known = this.state(at);
      return (
        known !== undefined && !this.isLive(known.state.leader) && !this.toDelete.has(at.topic)
      );
    });
  }

  ledBy(broker: number): TopicPartition[] {
    return this.allPartitions().filter((at) => this.state(at)?.state.leader === broker);
  }

  // ── replicas ──────────────────────────────────────────────────────────────────────────────────

  replicasOf(partitions: readonly TopicPartition[]): Replica[] {
    return partitions.flatMap((at) =>
      (this.set(at)?.replicas ?? []).map((broker) => ({ ...at, broker })),
    );
  }

  replicasOn(brokers: ReadonlySet<number>): Replica[] {
    return this.replicasOf(this.allPartitions()).filter(({ broker }) => brokers.has(broker));
  }

  replicaPhase(replica: Replica): ReplicaPhase {
    return this.#replicas.get(replicaKey(replica)) ?? 'nonExistent';
  }

  mayMoveReplica(replica: Replica, to: ReplicaPhase): boolean {
    return replicaFrom[to].includes(this.replicaPhase(replica));
  }

  putReplica(replica: Replica, phase: ReplicaPhase): void {
    if (phase === 'nonExistent') this.#replicas.delete(replicaKey(replica));
    else this.#replicas.set(replicaKey(replica), phase);
  }

  replicasIn(topic: string, phase: ReplicaPhase): Replica[] {
    const all = this.replicasOf(this.partitionsOf(topic));
    return all.filter((replica) => this.replicaPhase(replica) === phase);
  }

  // ── topics ────────────────────────────────────────────────────────────────────────────────────

  putTopic(
    topic: string,
    topicId: string | null,
    partitions: ReadonlyMap<number, ReplicaSet>,
  ): void {
    this.topics.set(topic, { topicId, partitions: new Map(partitions) });
  }

  removeTopic(topic: string): void {
    for (const at of this.partitionsOf(topic)) {
      for (const replica of this.replicasOf([at])) this.putReplica(replica, 'nonExistent');
      this.#partitions.delete(partitionKey(at));
      this.states.delete(partitionKey(at));
      this.reassigning.delete(partitionKey(at));
    }
    this.topics.delete(topic);
    this.toDelete.delete(topic);
    this.deletionStarted.delete(topic);
    this.ineligible.delete(topic);
  }

  /** For each broker, the partitions it should lead and those of them that it does not. */
  preferred(): Map<number, { readonly all: number; readonly elsewhere: TopicPartition[] }> {
    const result = new Map<number, { all: number; elsewhere: TopicPartition[] }>();
    for (const at of this.allPartitions()) {
      const broker = this.set(at)?.replicas[0];
      if (broker === undefined || this.toDelete.has(at.topic)) continue;
      const entry = result.get(broker) ?? { all: 0, elsewhere: [] };
      result.set(broker, entry);
      entry.all += 1;
      const leader = this.state(at)?.state.leader;
      if (leader !== undefined && leader !== broker) entry.elsewhere.push(at);
    }
    return result;
  }

  /** Partitions that nobody leads. */
  leaderless(): TopicPartition[] {
    return this.allPartitions().filter((at) => {
      const leader = this.state(at)?.state.leader ?? noLeader;
      return leader === noLeader || !this.brokers.has(leader);
    });
  }
}

function replicaKey({ broker, ...at }: Replica): string {
  return `${partitionKey(at)}@${broker}`;
}
