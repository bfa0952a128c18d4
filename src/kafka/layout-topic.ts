/**
 * What Kafka keeps of a topic: who holds each partition, and who leads it now.
 *
 * In: /brokers/topics/[topic] in versions 1 to 3, and …/partitions/[partition]/state. Out: maps by
 * partition number, in ascending order, whatever order the JSON had.
 */

import type { Content } from './layout.ts';
import {
  intOf,
  intsOf,
  isObject,
  type JsonObject,
  parseObject,
  textOf,
  toInt,
  toJson,
} from './layout-fields.ts';

/** Who holds one partition. While it is being moved, `replicas` holds both old and new. */
export interface ReplicaSet {
  /** The first is the preferred leader. */
  readonly replicas: readonly number[];
  readonly adding: readonly number[];
  readonly removing: readonly number[];
}

export interface TopicAssignment {
  readonly version: number;
  /** 22 characters of base64url, since 2.8. */
  readonly topicId: string | null;
  readonly partitions: ReadonlyMap<number, ReplicaSet>;
}

export const topicVersionNewest = 3;

/** A partition whose replicas stay where they are. */
export function steady(replicas: readonly number[]): ReplicaSet {
  return { replicas, adding: [], removing: [] };
}

export const topicContent: Content<TopicAssignment> = {
  schema:
    '{"version":3,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{},"topic_id":"base64url"}',
  parse(text) {
    const json = parseObject(text);
    const partitions = json.partitions;
    if (!isObject(partitions)) throw new Error('partitions: an object is wanted');
    const adding = replicasBy(json, 'adding_replicas');
    const removing = replicasBy(json, 'removing_replicas');
    const entries = Object.entries(partitions).map(([key, replicas]): [number, ReplicaSet] => [
      toPartition(key),
      {
        replicas: intsOf(replicas, `partitions.${key}`),
        adding: adding[key] ?? [],
        removing: removing[key] ?? [],
      },
    ]);
    return {
      version: intOf(json, 'version', 1),
      topicId: textOf(json, 'topic_id'),
      partitions: new Map(entries.sort(([a], [b]) => a - b)),
    };
  },
  // The order of fields is the one in which Kafka 3.9 writes them.
  format(topic, version = topicVersionNewest) {
    const by = (pick: (set: ReplicaSet) => readonly number[], all = false) =>
      Object.fromEntries(
        [...topic.partitions]
          .map(([partition, set]) => [partition, pick(set)] as const)
          .filter(([, ids]) => all || ids.length > 0),
      );
    return toJson({
      partitions: by((set) => set.replicas, true),
      ...(version >= 3 && topic.topicId !== null && { topic_id: topic.topicId }),
      ...(version >= 2 && { adding_replicas: by((set) => set.adding) }),
      ...(version >= 2 && { removing_replicas: by((set) => set.removing) }),
      version,
    });
  },
};

/** The leader that there is when there is none. */
export const noLeader = -1;

export interface PartitionState {
  /** -1: none. */
  readonly leader: number;
  readonly leaderEpoch: number;
  /** The controller that wrote it. A leader's own change of `isr` keeps it. */
  readonly controllerEpoch: number;
  readonly isr: readonly number[];
  /** The leader was taken from outside the ISR, and has not yet said that it is done with that. */
  readonly isRecovering: boolean;
}

export const stateContent: Content<PartitionState> = {
  schema: '{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1,2]}',
  parse(text) {
    const json = parseObject(text);
    return {
      leader: intOf(json, 'leader'),
      leaderEpoch: intOf(json, 'leader_epoch'),
      controllerEpoch: intOf(json, 'controller_epoch'),
      isr: intsOf(json.isr, 'isr'),
      isRecovering: intOf(json, 'leader_recovery_state', 0) === 1,
    };
  },
  format: (state) =>
    toJson({
      controller_epoch: state.controllerEpoch,
      leader: state.leader,
      version: 1,
      leader_epoch: state.leaderEpoch,
      isr: state.isr,
      ...(state.isRecovering && { leader_recovery_state: 1 }),
    }),
};

export function toPartition(text: string): number {
  const number = toInt(text, 'partition');
  if (number < 0) throw new Error(`partition: ${text} is below 0`);
  return number;
}

function replicasBy(json: JsonObject, field: string): Record<string, number[]> {
  const value = json[field];
  if (!isObject(value)) return {};
  const entries = Object.entries(value).map(([key, ids]) => [key, intsOf(ids, `${field}.${key}`)]);
  return Object.fromEntries(entries);
}
