/**
 * Topics from the outside, as an administrator or a tool sees them: read, create, grow, delete,
 * reassign, elect. Works on any cluster whose brokers or whose controller use ZooKeeper, Kafka's own
 * up to 3.9 or ours: what is asked for is written where the controller looks.
 *
 * Reading never fails for one bad node: it is told to `onProblem` and left out.
 */

import { ArgumentError, type Client, checkClient, isZkError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import type { OnProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import type { Reassignment, TopicPartition } from './layout-admin.ts';
import { type BrokerRegistration, isBroker07 } from './layout-broker.ts';
import {
  type PartitionState,
  type ReplicaSet,
  steady,
  type TopicAssignment,
  topicVersionNewest,
} from './layout-topic.ts';
import { createTopicTable, growTopicTable } from './option-tables.ts';
import { assignReplicas, type BrokerPlace } from './replica-assignment.ts';
import { collides, newTopicId, topicNameFault } from './topic-names.ts';

/** The topic is there already, is on its way out, or is not there; or no controller reads requests. */
export class TopicError extends Error {
  override readonly name = 'TopicError';
  readonly code:
    | 'TOPIC_EXISTS'
    | 'TOPIC_BEING_DELETED'
    | 'NO_SUCH_TOPIC'
    | 'REQUEST_PENDING'
    | 'LED_BY_KRAFT';
  readonly topic: string;

  constructor(code: TopicError['code'], topic: string, message: string) {
    super(message);
    this.code = code;
    this.topic = topic;
  }
}

export interface ReadOptions {
  readonly onProblem?: OnProblem;
}

export interface BrokerSeen {
  readonly id: number;
  readonly epoch: bigint;
  readonly sessionId: bigint;
  readonly registration: BrokerRegistration;
}

export interface PartitionSeen extends ReplicaSet {
  readonly partition: number;
  /** Null: the controller has not dealt with it yet. */
  readonly state: PartitionState | null;
}

export interface TopicSeen {
  readonly topic: string;
  readonly topicId: string | null;
  readonly config: Readonly<Record<string, string>>;
  readonly isBeingDeleted: boolean;
  readonly partitions: readonly PartitionSeen[];
}

const ignore: OnProblem = () => {};
/** As many reads at once; the client's own queue bounds the rest. */
const atOnce = 500;

// ── reading ─────────────────────────────────────────────────────────────────────────────────────

/** Of any release: the text of 0.7 is told from the JSON of all others by itself, broker by broker. */
export async function readBrokers(
  client: Client,
  { onProblem = ignore }: ReadOptions = {},
): Promise<BrokerSeen[]> {
  const names = await childrenOf(client, layout08.brokerIds.at());
  const found = await each(names, async (name) => {
    const path = layout08.broker.at({ id: name });
    const node = await get(client, path);
    if (node === null) return null;
    if (!/^\d+$/.test(name)) {
      onProblem({ path, why: 'the id of a broker is a number', content: name });
      return null;
    }
    const row = isBroker07(node.data) ? layout07.broker : layout08.broker;
    const registration = row.tryParse(node.data, path, onProblem);
    const { czxid, ephemeralOwner } = node.stat;
    return (
      registration && { id: Number(name), epoch: czxid, sessionId: ephemeralOwner, registration }
    );
  });
  return found.filter((one) => one !== null).sort((a, b) => a.id - b.id);
}

export async function readTopicNames(client: Client): Promise<string[]> {
  return (await childrenOf(client, layout08.topics.at())).sort();
}

/** Null: there is none of that name, or none that can be read. */
export async function readTopic(
  client: Client,
  topic: string,
  { onProblem = ignore }: ReadOptions = {},
): Promise<TopicSeen | null> {
  const path = layout08.topic.at({ topic });
  const node = await get(client, path);
  const assignment = node && layout08.topic.tryParse(node.data, path, onProblem);
  if (assignment === null) return null;
  const partitions = await each([...assignment.partitions], async ([partition, set]) => {
    const at = layout08.partitionState.at({ topic, partition });
    const found = await get(client, at);
    const state = found && layout08.partitionState.tryParse(found.data, at, onProblem);
    return { partition, ...set, state };
  });
  const configPath = layout08.topicConfig.at({ topic });
  const config = await get(client, configPath);
  return {
    topic,
    topicId: assignment.topicId,
    config: (config && layout08.topicConfig.tryParse(config.data, configPath, onProblem)) ?? {},
    isBeingDeleted: (await client.exists(layout08.deleteTopic.at({ topic }))) !== null,
    partitions,
  };
}

export interface ControllerSeen {
  /** Null: none is elected now. */
  readonly brokerId: number | null;
  /** Null: there never was one. */
  readonly epoch: number | null;
  readonly sinceMs: number | null;
}

export async function readController(
  client: Client,
  { onProblem = ignore }: ReadOptions = {},
): Promise<ControllerSeen> {
  const [path, epochPath] = [layout08.controller.at(), layout08.controllerEpoch.at()];
  const [node, epochNode] = await Promise.all([get(client, path), get(client, epochPath)]);
  const holder = node && layout08.controller.tryParse(node.data, path, onProblem);
  const epoch =
    epochNode && layout08.controllerEpoch.tryParse(epochNode.data, epochPath, onProblem);
  return { brokerId: holder?.brokerId ?? null, epoch, sinceMs: holder?.timestampMs ?? null };
}

/**
 * Whether a KRaft controller leads the cluster, as it does while a cluster moves off ZooKeeper.
 *
 * It keeps a copy of its metadata in ZooKeeper and reads no requests there. `/controller` says who leads.
 * Only while that node is missing does `/migration` decide: it stays after a rollback.
 */
export async function isLedByKraft(
  client: Client,
  { onProblem = ignore }: ReadOptions = {},
): Promise<boolean> {
  const [path, migrationPath] = [layout08.controller.at(), layout08.migration.at()];
  const node = await get(client, path);
  if (node !== null) {
    const holder = layout08.controller.tryParse(node.data, path, onProblem);
    return holder !== null && holder.kraftControllerEpoch >= 0;
  }
  const migration = await get(client, migrationPath);
  if (migration === null || migration.data === null) return false;
  const state = layout08.migration.tryParse(migration.data, migrationPath, onProblem);
  return state !== null && state.kraftControllerId >= 0;
}

// ── changing ────────────────────────────────────────────────────────────────────────────────────

export interface CreateTopicOptions extends ReadOptions {
  readonly partitions?: number;
  readonly replicationFactor?: number;
  /** In place of both: the replicas of each partition, from 0 on. */
  readonly assignment?: readonly (readonly number[])[];
  readonly config?: Readonly<Record<string, string>>;
  /** The form of the topic node: 1 to 3. The newest, with an id, unless said. */
  readonly version?: number;
  /** Where the first partition goes. By chance unless said. */
  readonly startIndex?: number;
  readonly random?: () => number;
}

/** Configuration first, then the topic: the controller deals with it as soon as that is there. */
export async function createTopic(
  client: Client,
  topic: string,
  options: CreateTopicOptions,
): Promise<TopicAssignment> {
  checkClient('createTopic', client);
  checkOptions('createTopic', options, createTopicTable);
  const fault = topicNameFault(topic);
  if (fault !== null) throw new ArgumentError('topic', fault);
  await checkRequestsAreRead(client, topic);
  const names = await readTopicNames(client);
  if (names.includes(topic)) throw exists(topic);
  const double = names.find((name) => collides(topic, name));
  if (double !== undefined) {
    throw new ArgumentError('topic', `${topic} and ${double} would be one in metrics; change one`);
  }
  if ((await client.exists(layout08.deleteTopic.at({ topic }))) !== null) throw exists(topic);

  const { version = topicVersionNewest, config = {} } = options;
  const partitions = await placed(client, options);
  const topicId = version >= 3 ? newTopicId() : null;
  const assignment: TopicAssignment = { version, topicId, partitions };
  await put(client, layout08.topicConfig.at({ topic }), layout08.topicConfig.format(config)!);
  const path = layout08.topic.at({ topic });
  try {
    await client.create(path, layout08.topic.format(assignment, version)!);
  } catch (error) {
    if (isZkError(error, 'NODE_EXISTS')) throw exists(topic);
    if (!isZkError(error) || !error.outcomeUnknown) throw error;
    // Ours or another's: the id tells.
    const node = await get(client, path);
    if (node === null) throw error;
    const there = layout08.topic.parse(node.data, path);
    if (topicId === null || there.topicId !== topicId) throw error;
  }
  return assignment;
}

/** Adds partitions. There is no way back: a partition that held records cannot be taken away. */
export async function growTopic(
  client: Client,
  topic: string,
  options: { readonly partitions: number; readonly assignment?: readonly (readonly number[])[] },
): Promise<TopicAssignment> {
  checkClient('growTopic', client);
  checkOptions('growTopic', options, growTopicTable);
  await checkRequestsAreRead(client, topic);
  const path = layout08.topic.at({ topic });
  const node = await get(client, path);
  if (node === null) throw missing(topic);
  if ((await client.exists(layout08.deleteTopic.at({ topic }))) !== null) {
    throw new TopicError('TOPIC_BEING_DELETED', topic, `topic ${topic} is being deleted`);
  }
  const before = layout08.topic.parse(node.data, path);
  const count = before.partitions.size;
  const more = options.partitions - count;
  if (!Number.isSafeInteger(more) || more < 1) {
    const why = `topic ${topic} has ${count}: a larger number is wanted, not ${options.partitions}`;
    throw new ArgumentError('partitions', why);
  }
  const moving = [...before.partitions.values()].some(
    (set) => set.adding.length + set.removing.length > 0,
  );
  if (moving) {
    throw new TopicError(
      'REQUEST_PENDING',
      topic,
      `topic ${topic} is being reassigned; wait for it`,
    );
  }
  const brokers = await places(client);
  const head = before.partitions.get(0)?.replicas ?? [];
  const ids = brokers.map(({ id }) => id).sort((a, b) => a - b);
  const grown = options.assignment
    ? checked(options.assignment, more, brokers, count)
    : assignReplicas(brokers, {
        partitions: more,
        replicationFactor: head.length,
        startIndex: Math.max(
          0,
          ids.findIndex((id) => id >= (head[0] ?? 0)),
        ),
        firstPartition: count,
      });
  const partitions = new Map(before.partitions);
  for (const [partition, replicas] of grown) partitions.set(partition, steady(replicas));
  const assignment = { ...before, partitions };
  const data = layout08.topic.format(assignment, before.version)!;
  await client.set(path, data, { version: node.stat.version });
  return assignment;
}

/** Asks for the deletion. The controller does it when every replica can be reached. */
export async function deleteTopic(client: Client, topic: string): Promise<void> {
  await checkRequestsAreRead(client, topic);
  if ((await client.exists(layout08.topic.at({ topic }))) === null) throw missing(topic);
  try {
    await client.create(layout08.deleteTopic.at({ topic }), null, { parents: true });
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS')) throw error; // asked for already
  }
}

/** Asks for partitions to be moved. One request at a time, as in Kafka: the node is the lock. */
export async function reassignPartitions(
  client: Client,
  reassignments: readonly Reassignment[],
): Promise<void> {
  if (reassignments.length === 0)
    throw new ArgumentError('reassignments', 'at least one is wanted');
  for (const { topic, partition, replicas } of reassignments) {
    if (replicas.length > 0 && new Set(replicas).size === replicas.length) continue;
    const why = `${topic}/${partition}: at least one broker, and none twice, is wanted`;
    throw new ArgumentError('replicas', why);
  }
  await request(client, layout08.reassign.at(), layout08.reassign.format(reassignments)!);
}

/** Asks that the first replica of each lead it, where it is in sync. */
export async function electPreferred(
  client: Client,
  partitions: readonly TopicPartition[],
): Promise<void> {
  if (partitions.length === 0) throw new ArgumentError('partitions', 'at least one is wanted');
  const path = layout08.preferredElection.at();
  await request(client, path, layout08.preferredElection.format(partitions)!);
}

// ── parts ───────────────────────────────────────────────────────────────────────────────────────

/**
 * Throws `LED_BY_KRAFT` where no controller would read a request. One that is written all the same would be
 * carried out by a rollback, perhaps weeks later.
 */
export async function checkRequestsAreRead(client: Client, topic = ''): Promise<void> {
  if (!(await isLedByKraft(client))) return;
  const why = 'a KRaft controller leads this cluster and reads no requests in ZooKeeper';
  throw new TopicError('LED_BY_KRAFT', topic, `${why}; use Kafka's tools with --bootstrap-server`);
}

async function request(client: Client, path: string, data: string): Promise<void> {
  await checkRequestsAreRead(client);
  try {
    await client.create(path, data, { parents: true });
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS')) throw error;
    const why = `${path} is there: the controller has not done with the request before; try later`;
    throw new TopicError('REQUEST_PENDING', '', why);
  }
}

async function placed(
  client: Client,
  options: CreateTopicOptions,
): Promise<Map<number, ReplicaSet>> {
  const brokers = await places(client, options);
  const { assignment, partitions = 1, replicationFactor = 1, startIndex, random } = options;
  const chosen = assignment
    ? checked(assignment, assignment.length, brokers, 0)
    : assignReplicas(brokers, {
        partitions,
        replicationFactor,
        ...(startIndex !== undefined && { startIndex }),
        ...(random && { random }),
      });
  return new Map([...chosen].map(([partition, replicas]) => [partition, steady(replicas)]));
}

async function places(client: Client, options: ReadOptions = {}): Promise<BrokerPlace[]> {
  const brokers = await readBrokers(client, options);
  const all = brokers.map(({ id, registration }) => ({ id, rack: registration.rack }));
  // As Kafka's default: where some have no rack, none counts.
  const known = all.every(({ rack }) => rack !== null);
  return known ? all : all.map(({ id }) => ({ id }));
}

function checked(
  assignment: readonly (readonly number[])[],
  count: number,
  brokers: readonly BrokerPlace[],
  first: number,
): Map<number, number[]> {
  const refuse = (why: string) => new ArgumentError('assignment', why);
  if (assignment.length === 0 || assignment.length !== count) {
    throw refuse(`one list of brokers for each of ${count} partitions is wanted`);
  }
  const live = new Set(brokers.map(({ id }) => id));
  const size = assignment[0]!.length;
  for (const [i, replicas] of assignment.entries()) {
    if (replicas.length === 0 || new Set(replicas).size !== replicas.length) {
      throw refuse(`partition ${first + i}: at least one broker, and none twice, is wanted`);
    }
    if (replicas.length !== size) throw refuse('all partitions need as many replicas');
    const dead = replicas.filter((id) => !live.has(id));
    if (dead.length > 0) throw refuse(`partition ${first + i}: brokers ${dead} do not live`);
  }
  return new Map(assignment.map((replicas, i) => [first + i, [...replicas]]));
}

function exists(topic: string): TopicError {
  const why = `topic ${topic} is there already, or is still being deleted`;
  return new TopicError('TOPIC_EXISTS', topic, why);
}

function missing(topic: string): TopicError {
  return new TopicError('NO_SUCH_TOPIC', topic, `there is no topic ${topic}`);
}

/** Made, or set if it is there: what it says does not hang on what it said. */
async function put(client: Client, path: string, data: string): Promise<void> {
  try {
    await client.create(path, data, { parents: true });
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS') && !(isZkError(error) && error.outcomeUnknown))
      throw error;
    await client.set(path, data);
  }
}

async function get(client: Client, path: string) {
  try {
    return await client.get(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

async function childrenOf(client: Client, path: string): Promise<string[]> {
  try {
    return await client.children(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  }
}

async function each<T, R>(list: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < list.length; from += atOnce) {
    results.push(...(await Promise.all(list.slice(from, from + atOnce).map(work))));
  }
  return results;
}
