/** Brokers, topics, one topic and the controller, as `drover kafka` shows them. */

import type { Client } from '../client/index.ts';
import {
  faultsOf,
  formatEndpoint,
  type Generation,
  type LayoutProblem,
  layout08,
} from '../kafka/index.ts';
import { CommandError } from './exit-codes.ts';
import {
  type Cluster,
  childrenOf,
  countFaults,
  nodeOf,
  readCluster,
  type TopicView,
} from './kafka-cluster.ts';
import { ageText, listText, type View } from './kafka-view.ts';
import { escaped, hex, timeText } from './output.ts';

export interface ViewOptions {
  readonly generation?: Generation;
  readonly nowMs: number;
}

export function problemLines(problems: readonly LayoutProblem[]): string[] {
  return problems.map(({ path, why }) => `! ${escaped(path)}: ${escaped(why)}`);
}

export function problemRecords(problems: readonly LayoutProblem[]): object[] {
  return problems.map((problem) => ({ problem }));
}

export async function brokersView(client: Client, options: ViewOptions): Promise<View> {
  const cluster = await readCluster(client, options);
  const { brokers, controller, problems, generation } = cluster;
  const shares = new Map(brokers.map(({ id }) => [id, sharesOf(cluster, id)]));
  const rows = brokers.map(({ id, registration, epoch }) => {
    const { leads, holds, behind } = shares.get(id)!;
    const { timestampMs, rack, endpoints } = registration;
    return [
      `${id}${controller?.brokerId === id ? '*' : ''}`,
      endpoints.map((one) => escaped(formatEndpoint(one))).join(' '),
      escaped(rack ?? '-'),
      timestampMs === null ? '-' : ageText(options.nowMs - timestampMs),
      String(leads),
      String(holds),
      behind === 0 ? '0' : `${behind} !`,
      hex(epoch),
    ];
  });
  const missing = missingBrokers(cluster);
  return {
    parts: [
      { heads: ['ID', 'LISTENS', 'RACK', 'UP', 'LEADS', 'HOLDS', 'BEHIND', 'EPOCH'], rows },
      ...(missing.length > 0 ? [`! gone, and expected by topics: ${missing.join(', ')}`] : []),
      ...(generation !== '0.7' && controller?.brokerId == null ? ['! there is no controller'] : []),
      ...problemLines(problems),
    ],
    records: [
      ...brokers.map(({ id, registration, epoch, sessionId }) => ({
        id,
        endpoints: registration.endpoints,
        rack: registration.rack,
        timestampMs: registration.timestampMs,
        version: registration.version,
        epoch,
        sessionId,
        isController: controller?.brokerId === id,
        ...shares.get(id)!,
      })),
      ...missing.map((id) => ({ id, isMissing: true })),
      ...problemRecords(problems),
    ],
  };
}

/** Brokers that hold partitions and do not live. */
export function missingBrokers({ brokers, topics }: Cluster): number[] {
  const live = new Set(brokers.map(({ id }) => id));
  const wanted = topics.flatMap(({ partitions }) => partitions.flatMap(({ replicas }) => replicas));
  return [...new Set(wanted)].filter((id) => !live.has(id)).sort((a, b) => a - b);
}

function sharesOf({ topics }: Cluster, id: number) {
  const all = topics.flatMap(({ partitions }) => partitions);
  const held = all.filter(({ replicas }) => replicas.includes(id));
  return {
    leads: all.filter(({ leader }) => leader === id).length,
    holds: held.length,
    behind: held.filter(({ isr, hasState }) => hasState && !isr.includes(id)).length,
  };
}

export async function topicsView(client: Client, options: ViewOptions): Promise<View> {
  const { topics, problems } = await readCluster(client, options);
  const summaries = topics.map((topic) => ({ topic, ...summaryOf(topic) }));
  return {
    parts: [
      {
        heads: ['TOPIC', 'PARTITIONS', 'REPLICAS', 'NO LEADER', 'OUT OF SYNC', 'NOTE'],
        rows: summaries.map(({ topic, replicas, noLeader, outOfSync, notes }) => [
          escaped(topic.topic),
          String(topic.partitions.length),
          replicas,
          noLeader === 0 ? '0' : `${noLeader} !`,
          outOfSync === 0 ? '0' : `${outOfSync} !`,
          notes.join(', '),
        ]),
      },
      ...problemLines(problems),
    ],
    records: [
      ...summaries.map(
        ({ topic: { topic, topicId, partitions, config, isBeingDeleted }, ...rest }) => ({
          topic,
          topicId,
          partitions: partitions.length,
          replicas: rest.replicas,
          noLeader: rest.noLeader,
          outOfSync: rest.outOfSync,
          notPreferred: rest.notPreferred,
          moving: rest.moving,
          isBeingDeleted,
          config,
        }),
      ),
      ...problemRecords(problems),
    ],
  };
}

function summaryOf(topic: TopicView) {
  const sizes = [...new Set(topic.partitions.map(({ replicas }) => replicas.length))].sort();
  const count = (fault: Parameters<typeof countFaults>[1]) => countFaults([topic], fault);
  const [noState, moving, notPreferred] = [
    count('no state'),
    count('moving'),
    count('not preferred'),
  ];
  return {
    replicas: listText(sizes),
    noLeader: count('no leader') + noState,
    outOfSync: count('out of sync'),
    notPreferred,
    moving,
    notes: [
      ...(topic.isBeingDeleted ? ['being deleted'] : []),
      ...(moving > 0 ? [`${moving} moving`] : []),
      ...(notPreferred > 0 ? [`${notPreferred} not led by the preferred`] : []),
    ],
  };
}

export async function topicView(client: Client, name: string, options: ViewOptions): Promise<View> {
  const { topics, problems } = await readCluster(client, { ...options, only: [name] });
  const [topic] = topics;
  // In 0.7 a topic is a folder: one without brokers is one that is not there.
  if (topic === undefined || (topic.partitions.length === 0 && topic.topicId === null)) {
    const why = problems[0] === undefined ? '' : ` that can be read: ${problems[0].why}`;
    throw new CommandError('refused', `there is no topic ${escaped(name)}${escaped(why)}`);
  }
  const config = Object.entries(topic.config).map(([key, value]) => `${key}=${value}`);
  return {
    parts: [
      `topic ${escaped(name)}${topic.topicId === null ? '' : `, id ${escaped(topic.topicId)}`}${topic.isBeingDeleted ? ', being deleted' : ''}`,
      ...(config.length > 0 ? [`config ${escaped(config.join(' '))}`] : []),
      {
        heads: ['PARTITION', 'LEADER', 'EPOCH', 'REPLICAS', 'ISR', 'NOTE'],
        rows: topic.partitions.map((partition) => {
          const { name: at, leader, leaderEpoch, replicas, isr, adding, removing } = partition;
          const notes = [
            ...faultsOf(partition),
            ...(adding.length > 0 ? [`adds ${listText(adding)}`] : []),
            ...(removing.length > 0 ? [`removes ${listText(removing)}`] : []),
          ];
          return [
            at,
            leader === null ? 'none !' : String(leader),
            leaderEpoch === null ? '-' : String(leaderEpoch),
            listText(replicas),
            listText(isr),
            notes.join(', '),
          ];
        }),
      },
      ...problemLines(problems),
    ],
    records: [
      ...topic.partitions.map(({ name: partition, hasState: _, ...rest }, i) => ({
        topic: name,
        topicId: topic.topicId,
        partition,
        ...rest,
        faults: faultsOf(topic.partitions[i]!),
      })),
      ...problemRecords(problems),
    ],
  };
}

export interface Pending {
  readonly deletions: readonly string[];
  readonly reassignment: string | null;
  readonly election: string | null;
}

/** What was asked of the controller and is still to be done. */
export async function readPending(client: Client): Promise<Pending> {
  const [deletions, reassign, election] = await Promise.all([
    childrenOf(client, layout08.deleteTopics.at()),
    nodeOf(client, layout08.reassign.at()),
    nodeOf(client, layout08.preferredElection.at()),
  ]);
  const text = (node: typeof reassign) =>
    node === null ? null : (node.data?.toString('utf8') ?? '');
  return { deletions, reassignment: text(reassign), election: text(election) };
}

export async function controllerView(client: Client, options: ViewOptions): Promise<View> {
  const { generation, controller, brokers, problems } = await readCluster(client, {
    ...options,
    only: [],
  });
  if (generation === '0.7' || controller === null) {
    return {
      parts: ['Kafka 0.7 has no controller'],
      records: [{ brokerId: null, epoch: null, generation }],
    };
  }
  const { brokerId, epoch, sinceMs } = controller;
  const pending = await readPending(client);
  const broker = brokers.find(({ id }) => id === brokerId);
  const since =
    sinceMs === null ? '' : `, since ${timeText(sinceMs)} (${ageText(options.nowMs - sinceMs)})`;
  const at = broker?.registration.endpoints.map((one) => escaped(formatEndpoint(one))).join(' ');
  return {
    parts: [
      brokerId === null
        ? `! there is no controller; the last had epoch ${epoch ?? '-'}`
        : `broker ${brokerId}${at === undefined ? '' : ` (${at})`}, epoch ${epoch ?? '-'}${since}`,
      ...(brokerId !== null && broker === undefined
        ? ['! that broker is not registered: a KRaft controller, or one that is going']
        : []),
      ...(pending.deletions.length > 0
        ? [`to delete: ${pending.deletions.map(escaped).join(', ')}`]
        : []),
      ...(pending.reassignment === null ? [] : [`to move: ${escaped(pending.reassignment)}`]),
      ...(pending.election === null ? [] : [`to elect: ${escaped(pending.election)}`]),
      ...problemLines(problems),
    ],
    records: [
      { brokerId, epoch, sinceMs, isRegistered: broker !== undefined, ...pending },
      ...problemRecords(problems),
    ],
  };
}
