/**
 * Consumer groups that keep themselves in ZooKeeper, as `drover kafka` shows them.
 *
 * A partition of a topic that a member asks for by name is shown even if the group never touched it.
 * Groups that keep their offsets in Kafka alone are not in ZooKeeper, and not here.
 */

import type { Client } from '../client/index.ts';
import {
  describeGroup,
  type GroupInfo,
  type GroupPartitionInfo,
  keyOf,
  listGroups,
  type OffsetSource,
} from '../kafka/index.ts';
import { CommandError } from './exit-codes.ts';
import { type Cluster, readCluster } from './kafka-cluster.ts';
import { problemLines, problemRecords, type ViewOptions } from './kafka-cluster-views.ts';
import { type Lag, lagOf } from './kafka-lag.ts';
import { ageText, offsetJson, type View } from './kafka-view.ts';
import { escaped, hex } from './output.ts';

/** Partitions whose ends are asked for at once. */
const asksAtOnce = 8;

export interface GroupView extends GroupInfo {
  /** Members that own nothing. */
  readonly idle: readonly string[];
}

/** The group, and what it should read and never did. */
export async function readGroup(
  client: Client,
  group: string,
  cluster: Pick<Cluster, 'generation' | 'topics'>,
): Promise<GroupView> {
  const info = await describeGroup(client, { group, generation: cluster.generation });
  const known = new Set(info.partitions.map(keyOf));
  const wanted = new Set(
    info.members.flatMap(({ registration }) =>
      registration?.pattern === 'static' ? [...registration.subscription.keys()] : [],
    ),
  );
  const never = cluster.topics
    .filter(({ topic }) => wanted.has(topic))
    .flatMap(({ topic, partitions }) => partitions.map(({ name }) => ({ topic, partition: name })))
    .filter((id) => !known.has(keyOf(id)));
  const partitions: GroupPartitionInfo[] = [
    ...info.partitions,
    ...never.map((id) => ({ ...id, ...untouched })),
  ];
  const owners = new Set(info.partitions.map(({ consumerId }) => consumerId));
  const idle = info.members.map(({ id }) => id).filter((id) => !owners.has(id));
  const problems = [
    ...info.problems,
    ...never.map(({ topic, partition }) => ({
      path: `/consumers/${group}/owners/${topic}/${partition}`,
      why: 'nobody reads this partition, and nobody ever did',
      content: null,
    })),
  ];
  return { ...info, partitions, problems, idle };
}

const untouched = {
  owner: null,
  consumerId: null,
  ownerSession: null,
  ownedSinceMs: null,
  offset: null,
  committedMs: null,
  latest: null,
  lag: null,
};

async function existing(client: Client, group: string, options: ViewOptions): Promise<GroupView> {
  const cluster = await readCluster(client, options);
  const view = await readGroup(client, group, cluster);
  if (view.members.length + view.partitions.length > 0) return view;
  if ((await listGroups(client)).includes(group)) return view;
  throw new CommandError('refused', `there is no group ${escaped(group)} in ZooKeeper`);
}

export async function groupsView(client: Client, options: ViewOptions): Promise<View> {
  const cluster = await readCluster(client, options);
  const groups: GroupView[] = [];
  for (const group of await listGroups(client))
    groups.push(await readGroup(client, group, cluster));
  const summaries = groups.map(({ group, members, partitions, idle, problems }) => {
    const committed = partitions.flatMap(({ committedMs }) => committedMs ?? []);
    return {
      group,
      members: members.length,
      idle: idle.length,
      topics: new Set(partitions.map(({ topic }) => topic)).size,
      partitions: partitions.length,
      owned: partitions.filter(({ owner }) => owner !== null).length,
      committedMs: committed.reduce<number | null>((last, one) => Math.max(last ?? one, one), null),
      problems: problems.length,
    };
  });
  return {
    parts: [
      {
        heads: [
          'GROUP',
          'MEMBERS',
          'IDLE',
          'TOPICS',
          'PARTITIONS',
          'OWNED',
          'COMMITTED',
          'PROBLEMS',
        ],
        rows: summaries.map((one) => [
          escaped(one.group),
          String(one.members),
          String(one.idle),
          String(one.topics),
          String(one.partitions),
          `${one.owned}${one.members > 0 && one.owned < one.partitions ? ' !' : ''}`,
          one.committedMs === null ? '-' : `${ageText(options.nowMs - one.committedMs)} ago`,
          String(one.problems),
        ]),
      },
    ],
    records: summaries,
  };
}

export async function groupView(
  client: Client,
  group: string,
  options: ViewOptions,
): Promise<View> {
  const { members, partitions, problems, idle } = await existing(client, group, options);
  const owned = (id: string) => partitions.filter(({ consumerId }) => consumerId === id).length;
  const wants = members.map(({ registration }) =>
    registration === null
      ? '?'
      : [...registration.subscription].map(([topic, threads]) => `${topic}:${threads}`).join(' '),
  );
  return {
    parts: [
      {
        heads: ['MEMBER', 'SINCE', 'SESSION', 'OWNS', 'WANTS'],
        rows: members.map(({ id, sinceMs, sessionId }, i) => [
          escaped(id),
          ageText(options.nowMs - sinceMs),
          hex(sessionId),
          idle.includes(id) ? '0 idle' : String(owned(id)),
          escaped(wants[i]!),
        ]),
      },
      '',
      {
        heads: ['TOPIC', 'PARTITION', 'OWNER', 'SINCE', 'OFFSET', 'COMMITTED'],
        rows: partitions.map((one) => [
          escaped(one.topic),
          escaped(one.partition),
          one.owner === null ? 'nobody !' : escaped(one.owner),
          one.ownedSinceMs === null ? '-' : ageText(options.nowMs - one.ownedSinceMs),
          one.offset === null ? '-' : String(one.offset),
          one.committedMs === null ? '-' : `${ageText(options.nowMs - one.committedMs)} ago`,
        ]),
      },
      ...problemLines(problems),
    ],
    records: [
      ...members.map(({ id, sinceMs, sessionId, registration }) => ({
        member: id,
        sinceMs,
        sessionId,
        owns: owned(id),
        pattern: registration?.pattern ?? null,
        subscription: registration === null ? null : Object.fromEntries(registration.subscription),
      })),
      ...partitions.map(partitionRecord),
      ...problemRecords(problems),
    ],
  };
}

function partitionRecord(one: GroupPartitionInfo) {
  const { topic, partition, owner, consumerId, ownerSession, ownedSinceMs, committedMs } = one;
  return {
    topic,
    partition,
    owner,
    consumerId,
    ownerSession,
    ownedSinceMs,
    offset: offsetJson(one.offset),
    committedMs,
  };
}

async function chosen(
  client: Client,
  group: string | undefined,
  options: ViewOptions,
): Promise<GroupView[]> {
  if (group !== undefined) return [await existing(client, group, options)];
  const cluster = await readCluster(client, options);
  const views: GroupView[] = [];
  for (const name of await listGroups(client)) views.push(await readGroup(client, name, cluster));
  return views;
}

export async function ownersView(
  client: Client,
  group: string | undefined,
  options: ViewOptions,
): Promise<View> {
  const views = await chosen(client, group, options);
  const all = views.flatMap((view) =>
    view.partitions.map((partition) => ({ group: view.group, ...partition })),
  );
  return {
    parts: [
      {
        heads: ['GROUP', 'TOPIC', 'PARTITION', 'OWNER', 'SESSION', 'SINCE'],
        rows: all.map((one) => [
          escaped(one.group),
          escaped(one.topic),
          escaped(one.partition),
          one.owner === null ? 'nobody' : escaped(one.owner),
          one.ownerSession === null ? '-' : hex(one.ownerSession),
          one.ownedSinceMs === null ? '-' : ageText(options.nowMs - one.ownedSinceMs),
        ]),
      },
    ],
    records: all.map(({ group: name, topic, partition, owner, ownerSession, ownedSinceMs }) => ({
      group: name,
      topic,
      partition,
      owner,
      ownerSession,
      ownedSinceMs,
    })),
  };
}

export interface PartitionLag extends GroupPartitionInfo {
  readonly group: string;
  readonly behind: Lag;
}

/** Each partition with how far it is behind. */
export async function lagsOf(
  views: readonly GroupView[],
  source: OffsetSource | null,
  { nowMs, onUnknown }: { readonly nowMs: number; readonly onUnknown: (why: string) => void },
): Promise<PartitionLag[]> {
  const all = views.flatMap(({ group, partitions }) =>
    partitions.map((partition) => ({ ...partition, group })),
  );
  const lags: PartitionLag[] = [];
  for (let from = 0; from < all.length; from += asksAtOnce) {
    const some = all.slice(from, from + asksAtOnce);
    const found = some.map(async (partition) => ({
      ...partition,
      behind: await lagOf(source, partition, { nowMs, onUnknown }),
    }));
    lags.push(...(await Promise.all(found)));
  }
  return lags;
}

export async function lagView(
  client: Client,
  group: string | undefined,
  source: OffsetSource | null,
  options: ViewOptions & { readonly onUnknown: (why: string) => void },
): Promise<View> {
  const lags = await lagsOf(await chosen(client, group, options), source, options);
  const known = lags.flatMap(({ behind }) => behind.records ?? []);
  const total = known.reduce((sum, one) => sum + one, 0n);
  const isWhole = known.length === lags.length;
  return {
    parts: [
      {
        heads: ['GROUP', 'TOPIC', 'PARTITION', 'OFFSET', 'END', 'LAG', 'TIME', 'OWNER'],
        rows: lags.map(({ group: name, topic, partition, offset, owner, behind }) => [
          escaped(name),
          escaped(topic),
          escaped(partition),
          offset === null ? '-' : String(offset),
          behind.latest === null ? 'unknown' : String(behind.latest),
          behind.records === null
            ? 'unknown'
            : `${behind.records}${behind.isOutOfRange ? ' out of range !' : ''}`,
          behind.timeMs === null ? 'unknown' : ageText(behind.timeMs),
          owner === null ? 'nobody' : escaped(owner),
        ]),
      },
      `lag ${known.length === 0 ? 'unknown' : `${total}${isWhole ? '' : ', and what is unknown'}`}`,
    ],
    records: [
      ...lags.map(({ group: name, topic, partition, offset, owner, committedMs, behind }) => ({
        group: name,
        topic,
        partition,
        offset: offsetJson(offset),
        earliest: offsetJson(behind.earliest),
        latest: offsetJson(behind.latest),
        lag: offsetJson(behind.records),
        lagMs: behind.timeMs,
        isOutOfRange: behind.isOutOfRange,
        owner,
        committedMs,
      })),
      {
        partitions: lags.length,
        known: known.length,
        lag: known.length === 0 ? null : offsetJson(total),
      },
    ],
  };
}
