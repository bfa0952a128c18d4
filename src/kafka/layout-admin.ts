/**
 * The smaller contents: the controller's two nodes, requests to it, notifications, configuration.
 *
 * Each is a codec of its own, used by one or more rows of `layout-08.ts`. Bare forms that only the
 * first releases wrote (a plain broker id, a quoted topic) are read, and never written.
 */

import type { Content } from './layout.ts';
import {
  intOf,
  intsOf,
  isObject,
  type JsonObject,
  parseDecimal,
  parseJson,
  parseObject,
  textOf,
  timestampOf,
  toInt,
  toJson,
} from './layout-fields.ts';

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** The name under which maps and sets keep a partition. Topics hold no `/`. */
export function partitionKey({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}

/** Null or empty, and nobody reads it. */
export const nothing: Content<null> = { schema: '', parse: () => null, format: () => null };

/** Text as it stands. */
export const plainText: Content<string> = {
  schema: 'text',
  parse: (text) => text ?? '',
  format: (value) => value,
};

/** JSON that is kept whole: whoever needs it knows its fields. */
export function jsonContent(schema: string): Content<JsonObject> {
  return { schema, parse: parseObject, format: (value) => toJson(value) };
}

export interface ControllerRegistration {
  readonly brokerId: number;
  readonly timestampMs: number | null;
  /** Not -1: a KRaft controller holds the node while a cluster is moved off ZooKeeper. */
  readonly kraftControllerEpoch: number;
}

export const controllerContent: Content<ControllerRegistration> = {
  schema: '{"version":2,"brokerid":1,"timestamp":"ms","kraftControllerEpoch":-1}',
  parse(text) {
    const value = parseJson(text ?? '');
    if (typeof value === 'number') {
      return { brokerId: toInt(value, 'brokerid'), timestampMs: null, kraftControllerEpoch: -1 };
    }
    const json = parseObject(text);
    return {
      brokerId: intOf(json, 'brokerid'),
      timestampMs: timestampOf(json),
      kraftControllerEpoch: intOf(json, 'kraftControllerEpoch', -1),
    };
  },
  format: ({ brokerId, timestampMs, kraftControllerEpoch }, version = 2) =>
    toJson({
      version,
      brokerid: brokerId,
      timestamp: String(timestampMs ?? 0),
      ...(version >= 2 && { kraftControllerEpoch }),
    }),
};

export interface MigrationState {
  /** The controller that moves the cluster off ZooKeeper. -1: none does. */
  readonly kraftControllerId: number;
}

export const migrationContent: Content<MigrationState> = {
  schema:
    '{"version":0,"kraft_controller_id":1,"kraft_controller_epoch":1,"kraft_metadata_offset":1,"kraft_metadata_epoch":1}',
  parse: (text) => ({ kraftControllerId: intOf(parseObject(text), 'kraft_controller_id', -1) }),
  format: ({ kraftControllerId }) => toJson({ version: 0, kraft_controller_id: kraftControllerId }),
};

export const epochContent: Content<number> = {
  schema: 'decimal',
  parse: (text) => Number(parseDecimal(text, 'epoch')),
  format: (value) => String(value),
};

export const clusterIdContent: Content<string> = {
  schema: '{"version":"1","id":"22 characters of base64url"}',
  parse(text) {
    const id = textOf(parseObject(text), 'id');
    if (id === null) throw new Error('id: a string is wanted');
    return id;
  },
  format: (id) => toJson({ version: '1', id }),
};

export const configContent: Content<Readonly<Record<string, string>>> = {
  schema: '{"version":1,"config":{"name":"value"}}',
  parse(text) {
    if (text === null || text === '') return {};
    const { config } = parseObject(text);
    if (!isObject(config)) return {};
    return Object.fromEntries(Object.entries(config).map(([name, value]) => [name, String(value)]));
  },
  format: (config) => toJson({ version: 1, config }),
};

/** What changed: a path below /config, such as `topics/t`. */
export const configChangeContent: Content<string> = {
  schema: '{"version":2,"entity_path":"topics/t"}',
  parse(text) {
    const value = parseJson(text ?? '');
    if (typeof value === 'string') return `topics/${value}`;
    const json = parseObject(text);
    const path = textOf(json, 'entity_path');
    if (path !== null) return path;
    const [type, name] = [textOf(json, 'entity_type'), textOf(json, 'entity_name')];
    if (type === null || name === null) throw new Error('entity_path: a string is wanted');
    return `${type}/${name}`;
  },
  format: (path) => toJson({ version: 2, entity_path: path }),
};

export interface Reassignment extends TopicPartition {
  readonly replicas: readonly number[];
}

export const reassignContent: Content<readonly Reassignment[]> = {
  schema: '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
  parse: (text) =>
    listOf(text).map((json) => ({
      ...topicPartitionOf(json),
      replicas: intsOf(json.replicas, 'replicas'),
    })),
  format: (list) =>
    toJson({
      version: 1,
      partitions: list.map(({ topic, partition, replicas }) => ({ topic, partition, replicas })),
    }),
};

/** Partitions, as a preferred election asks for them and an ISR change tells of them. */
export const partitionsContent: Content<readonly TopicPartition[]> = {
  schema: '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
  parse: (text) => listOf(text).map(topicPartitionOf),
  format: (list) =>
    toJson({
      version: 1,
      partitions: list.map(({ topic, partition }) => ({ topic, partition })),
    }),
};

/** The broker that lost a disk. */
export const logDirEventContent: Content<number> = {
  schema: '{"version":1,"broker":1,"event":1}',
  parse: (text) => intOf(parseObject(text), 'broker'),
  format: (broker) => toJson({ version: 1, broker, event: 1 }),
};

export interface ProducerIdBlock {
  readonly broker: number;
  readonly first: bigint;
  readonly last: bigint;
}

export const producerIdsContent: Content<ProducerIdBlock | null> = {
  schema: '{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
  parse(text) {
    if (text === null || text === '') return null; // made at the first start, filled at the first use
    const json = parseObject(text);
    return {
      broker: intOf(json, 'broker'),
      first: parseDecimal(String(json.block_start ?? ''), 'block_start'),
      last: parseDecimal(String(json.block_end ?? ''), 'block_end'),
    };
  },
  format: (block) =>
    block &&
    toJson({
      version: 1,
      broker: block.broker,
      block_start: String(block.first),
      block_end: String(block.last),
    }),
};

function listOf(text: string | null): JsonObject[] {
  const { partitions } = parseObject(text);
  if (!Array.isArray(partitions)) throw new Error('partitions: a list is wanted');
  return partitions.map((one) => {
    if (!isObject(one)) throw new Error('partitions: objects with topic and partition are wanted');
    return one;
  });
}

function topicPartitionOf(json: JsonObject): TopicPartition {
  const topic = textOf(json, 'topic');
  if (topic === null) throw new Error('topic: a string is wanted');
  return { topic, partition: intOf(json, 'partition') };
}
