/** Which partitions a group has: as many as was said, or what Kafka has written to ZooKeeper. */

import {
  fixedTopics,
  type LayoutProblem,
  type TopicDirectory,
  ZooKeeperTopics,
} from '../kafka/index.ts';
import type { AlignOptions } from './align-options.ts';
import type { AlignClient } from './session.ts';

export function directoryOf(
  client: AlignClient,
  { topics, directory }: AlignOptions,
  onProblem: (problem: LayoutProblem) => void,
): TopicDirectory {
  if (directory !== undefined) return directory;
  if (!Array.isArray(topics)) return fixedTopics(topics as Readonly<Record<string, number>>);
  return new ZooKeeperTopics(client, '0.8', onProblem);
}

export async function partitionsOf(
  directory: TopicDirectory,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (const topic of topics) found.set(topic, await directory.partitions(topic));
  return found;
}
