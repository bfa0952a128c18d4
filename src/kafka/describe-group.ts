/**
 * A consumer group as it stands in ZooKeeper, for people and monitors: members, owners, offsets.
 *
 * In: a group, of whatever client wrote it. Out: who is in it, which partition is whose and since when,
 * how far it was read and when that was written last, and what does not fit together. Only reads, and
 * sets no watch. Lag is told where a source can be asked, else null: "unknown" is not 0.
 */

import { checkClient, isZkError, type StatView } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import type { GroupClient } from './group-client.ts';
import type { LayoutProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import { type ConsumerRegistration, ownerOf } from './layout-consumer.ts';
import { describeTable } from './option-tables.ts';
import { type PartitionId, sortPartitions } from './partition.ts';
import type { RecordSource } from './reader.ts';
import type { Generation } from './topic-directory.ts';

export interface GroupMemberInfo {
  readonly id: string;
  /** Null where it makes no sense; `problems` says why. */
  readonly registration: ConsumerRegistration | null;
  readonly sessionId: bigint;
  readonly sinceMs: number;
}

export interface GroupPartitionInfo extends PartitionId {
  /** As in the owner node; null: nobody reads it. */
  readonly owner: string | null;
  readonly consumerId: string | null;
  readonly ownerSession: bigint | null;
  readonly ownedSinceMs: number | null;
  /** The next offset to read; null: nothing was ever committed. */
  readonly offset: bigint | null;
  readonly committedMs: number | null;
  readonly latest: bigint | null;
  readonly lag: bigint | null;
}

export interface GroupInfo {
  readonly group: string;
  readonly members: readonly GroupMemberInfo[];
  readonly partitions: readonly GroupPartitionInfo[];
  /** Nodes that make no sense, owners that are no members, partitions that nobody reads. */
  readonly problems: readonly LayoutProblem[];
}

export interface DescribeOptions {
  readonly group: string;
  readonly generation?: Generation;
  readonly source?: Pick<RecordSource, 'bounds'>;
}

const readsAtOnce = 64;

type Reader = Pick<GroupClient, 'children' | 'get'>;

export async function describeGroup(client: Reader, options: DescribeOptions): Promise<GroupInfo> {
  checkClient('describeGroup', client);
  checkOptions('describeGroup', options, describeTable);
  const { group } = options;
  const problems: LayoutProblem[] = [];
  const members = await readMembers(client, options, problems);
  const ids = new Set(members.map(({ id }) => id));
  const topics = new Set([
    ...(await childrenOf(client, layout08.ownerTopics.at({ group }))),
    ...(await childrenOf(client, layout08.offsetTopics.at({ group }))),
  ]);
  const partitions: GroupPartitionInfo[] = [];
  for (const topic of [...topics].sort()) {
    const names = new Set([
      ...(await childrenOf(client, layout08.owners.at({ group, topic }))),
      ...(await childrenOf(client, layout08.offsets.at({ group, topic }))),
    ]);
    const all = sortPartitions([...names]).map((partition) => ({ topic, partition }));
    for (let i = 0; i < all.length; i += readsAtOnce) {
      const some = all.slice(i, i + readsAtOnce);
      partitions.push(
        ...(await Promise.all(some.map((id) => readPartition(client, id, ids, options, problems)))),
      );
    }
  }
  return { group, members, partitions, problems };
}

async function readMembers(
  client: Reader,
  { group, generation = '0.8' }: DescribeOptions,
  problems: LayoutProblem[],
): Promise<GroupMemberInfo[]> {
  const row = generation === '0.7' ? layout07.consumer : layout08.consumer;
  const names = (await childrenOf(client, layout08.consumerIds.at({ group }))).sort();
  const found = await Promise.all(
    names.map(async (id): Promise<GroupMemberInfo[]> => {
      const path = row.at({ group, consumer: id });
      const node = await nodeAt(client, path);
      if (node === null) return [];
      const registration = row.tryParse(node.data, path, (problem) => problems.push(problem));
      const { ephemeralOwner, ctime } = node.stat;
      return [{ id, registration, sessionId: ephemeralOwner, sinceMs: Number(ctime) }];
    }),
  );
  return found.flat();
}

async function readPartition(
  client: Reader,
  id: PartitionId,
  members: ReadonlySet<string>,
  { group, source }: DescribeOptions,
  problems: LayoutProblem[],
): Promise<GroupPartitionInfo> {
  const { topic, partition } = id;
  const ownerPath = layout08.owner.at({ group, topic, partition });
  const offsetPath = layout08.offset.at({ group, topic, partition });
  const [ownerNode, offsetNode] = await Promise.all([
    nodeAt(client, ownerPath),
    nodeAt(client, offsetPath),
  ]);
  const onProblem = (problem: LayoutProblem) => problems.push(problem);
  const owner = ownerNode && layout08.owner.tryParse(ownerNode.data, ownerPath, onProblem);
  const offset = offsetNode && layout08.offset.tryParse(offsetNode.data, offsetPath, onProblem);
  const consumerId = owner === null ? null : ownerOf(owner, members).consumerId;
  if (consumerId !== null && !members.has(consumerId)) {
    onProblem({ path: ownerPath, why: 'its owner is no member of the group', content: owner });
  }
  if (ownerNode === null && members.size > 0) {
    onProblem({ path: ownerPath, why: 'nobody reads this partition', content: null });
  }
  const latest = source === undefined ? null : (await source.bounds(id)).latest;
  return {
    topic,
    partition,
    owner,
    consumerId,
    ownerSession: ownerNode?.stat.ephemeralOwner ?? null,
    ownedSinceMs: ownerNode === null ? null : Number(ownerNode.stat.ctime),
    offset,
    committedMs: offsetNode === null ? null : Number(offsetNode.stat.mtime),
    latest,
    lag: latest === null || offset === null ? null : latest - offset,
  };
}

async function childrenOf(client: Reader, path: string): Promise<string[]> {
  try {
    return await client.children(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  }
}

async function nodeAt(
  client: Reader,
  path: string,
): Promise<{ readonly data: Buffer | null; readonly stat: StatView } | null> {
  try {
    return await client.get(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null; // it went meanwhile
    throw error;
  }
}

/** Every group that keeps itself in ZooKeeper. */
export async function listGroups(client: Reader): Promise<string[]> {
  return (await childrenOf(client, layout08.groups.at())).sort();
}
