/**
 * A Kafka cluster as its nodes show it, whichever generation wrote them: brokers, topics, controller.
 *
 * In: a session. Out: one shape for 0.7 and for 0.8 to 3.9. Only reads, sets no watch, and never fails
 * for one bad node: those stand in `problems`. What it costs: a few requests for every topic and one for
 * every partition. Read piece by piece, so it need not be of one moment.
 */

import { type Client, isZkError } from '../client/index.ts';
import {
  type BrokerRegistration,
  type ControllerSeen,
  faultsOf,
  formatBrokerPartition,
  type Generation,
  type LayoutProblem,
  layout07,
  layout08,
  type PartitionFault,
  type PartitionStanding,
  PartitionSum,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  standingOf,
} from '../kafka/index.ts';

export interface BrokerView {
  readonly id: number;
  readonly registration: BrokerRegistration;
  readonly epoch: bigint;
  readonly sessionId: bigint;
}

export interface PartitionView extends PartitionStanding {
  /** `3`, or `29-3` in 0.7. */
  readonly name: string;
}

export interface TopicView {
  readonly topic: string;
  readonly topicId: string | null;
  readonly config: Readonly<Record<string, string>>;
  readonly isBeingDeleted: boolean;
  readonly partitions: readonly PartitionView[];
}

export interface Cluster {
  readonly generation: Generation;
  readonly brokers: readonly BrokerView[];
  /** Null in 0.7, which has none. */
  readonly controller: ControllerSeen | null;
  readonly topics: readonly TopicView[];
  readonly problems: readonly LayoutProblem[];
}

const topicsAtOnce = 32;

/** As 0.7 wrote it, or as all after it. A cluster that holds nothing yet counts as new. */
export async function generationOf(client: Client): Promise<Generation> {
  for (const id of await childrenOf(client, layout08.brokerIds.at())) {
    const data = await dataOf(client, layout08.broker.at({ id }));
    if (data !== null) return data.toString('utf8').trimStart().startsWith('{') ? '0.8' : '0.7';
  }
  for (const topic of await childrenOf(client, layout08.topics.at())) {
    const children = await childrenOf(client, layout08.topic.at({ topic }));
    if (children.includes('partitions')) return '0.8';
    if (children.some((name) => /^\d+$/.test(name))) return '0.7';
  }
  return '0.8';
}

/** `only`: these topics; all unless said. */
export async function readCluster(
  client: Client,
  {
    generation,
    only,
  }: { readonly generation?: Generation; readonly only?: readonly string[] } = {},
): Promise<Cluster> {
  const problems: LayoutProblem[] = [];
  const onProblem = (problem: LayoutProblem) => problems.push(problem);
  const found = generation ?? (await generationOf(client));
  const names = only ?? (await readTopicNames(client));
  const read = found === '0.7' ? readTopic07 : readTopic08;
  const topics: TopicView[] = [];
  const reading = { onProblem, sum: new PartitionSum() };
  for (let from = 0; from < names.length; from += topicsAtOnce) {
    const some = names.slice(from, from + topicsAtOnce);
    const views = await Promise.all(some.map((topic) => read(client, topic, reading)));
    topics.push(...views.filter((view) => view !== null));
  }
  const brokers = await readBrokers(client, { onProblem });
  const controller = found === '0.7' ? null : await readController(client, { onProblem });
  return { generation: found, brokers, controller, topics, problems };
}

/** What reading all topics has in common. */
interface Reading {
  readonly onProblem: (problem: LayoutProblem) => void;
  /** Of the partitions that brokers of 0.7 count. */
  readonly sum: PartitionSum;
}

async function readTopic08(
  client: Client,
  topic: string,
  { onProblem }: Reading,
): Promise<TopicView | null> {
  const seen = await readTopic(client, topic, { onProblem });
  if (seen === null) return null;
  const partitions = seen.partitions.map(
    (one): PartitionView => ({
      name: String(one.partition),
      ...standingOf(one),
    }),
  );
  return { ...seen, partitions };
}

async function readTopic07(
  client: Client,
  topic: string,
  { onProblem, sum }: Reading,
): Promise<TopicView | null> {
  const brokers = await childrenOf(client, layout07.topic.at({ topic }));
  const lists = await Promise.all(
    brokers.map(async (broker): Promise<PartitionView[]> => {
      const path = layout07.topicBroker.at({ topic, broker });
      const data = await dataOf(client, path);
      const stated = (data && layout07.topicBroker.tryParse(data, path, onProblem)) ?? 0;
      const length = sum.take(stated, path, onProblem);
      const id = Number(broker);
      return Array.from({ length }, (_, partition) => ({
        name: formatBrokerPartition({ broker: id, partition }),
        leader: id,
        leaderEpoch: null,
        replicas: [id],
        isr: [id],
        adding: [],
        removing: [],
        hasState: true,
      }));
    }),
  );
  const partitions = lists.flat().sort((a, b) => a.leader! - b.leader!);
  return { topic, topicId: null, config: {}, isBeingDeleted: false, partitions };
}

// ── what is wrong with a partition ──────────────────────────────────────────────────────────────

export function countFaults(topics: readonly TopicView[], fault: PartitionFault): number {
  const all = topics.flatMap(({ partitions }) => partitions);
  return all.filter((partition) => faultsOf(partition).includes(fault)).length;
}

// ── nodes ───────────────────────────────────────────────────────────────────────────────────────

export async function childrenOf(client: Client, path: string): Promise<string[]> {
  try {
    return (await client.children(path)).sort();
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  }
}

export async function nodeOf(client: Client, path: string) {
  try {
    return await client.get(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

async function dataOf(client: Client, path: string): Promise<Buffer | null> {
  return (await nodeOf(client, path))?.data ?? null;
}
