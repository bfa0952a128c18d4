/**
 * `drover kafka doctor`: what is wrong with a cluster and its groups, worst first, and where to look.
 *
 * In: what stands in ZooKeeper, and, where brokers can be asked, how far partitions reach. Out: findings;
 * exit code 0 for none, 1 for warnings and 2 for what needs somebody now. A group whose topics stand
 * still is not at fault: that it commits nothing is one only where records wait.
 */

import { faultsOf, type PartitionFault } from '../kafka/index.ts';
import type { Cluster, TopicView } from './kafka-cluster.ts';
import { missingBrokers, type Pending } from './kafka-cluster-views.ts';
import type { GroupView, PartitionLag } from './kafka-groups.ts';
import { ageText, type View } from './kafka-view.ts';
import { escaped } from './output.ts';

export interface KafkaFinding {
  readonly severity: 'critical' | 'warning';
  readonly what: string;
  /** The command that shows more. */
  readonly more: string;
}

export interface Examined {
  readonly cluster: Cluster;
  readonly pending: Pending;
  readonly groups: readonly GroupView[];
  readonly lags: readonly PartitionLag[];
  readonly nowMs: number;
}

/** Records wait and nothing was committed for so long. */
const stuckMs = 5 * 60_000;
const notPreferredPercentMax = 10;
const namedMax = 5;

type Check = (seen: Examined) => KafkaFinding[];

const checks: readonly Check[] = [
  ({ cluster: { brokers } }) =>
    brokers.length > 0 ? [] : [critical('no broker is registered', 'drover ls /brokers/ids')],
  ({ cluster: { generation, controller, brokers } }) => {
    if (generation === '0.7' || brokers.length === 0 || controller?.brokerId != null) return [];
    return [critical('there is no controller: no leader is elected', 'drover kafka controller')];
  },
  ({ cluster: { controller, brokers } }) => {
    const id = controller?.brokerId;
    if (id == null || brokers.some((broker) => broker.id === id)) return [];
    const what = `the controller ${id} is no registered broker: a KRaft controller, or one that is going`;
    return [warning(what, 'drover kafka controller')];
  },
  ({ cluster }) =>
    partitionsWith(cluster.topics, 'no leader', critical, 'has no leader', 'have no leader'),
  ({ cluster }) =>
    partitionsWith(cluster.topics, 'no state', warning, 'was never dealt with by the controller'),
  ({ cluster }) => {
    const gone = cluster.generation === '0.7' ? [] : missingBrokers(cluster);
    if (gone.length === 0) return [];
    const what = `${plural(gone.length, 'broker')} that topics count on ${gone.length === 1 ? 'is' : 'are'} gone: ${gone.join(', ')}`;
    return [critical(what, 'drover kafka brokers')];
  },
  ({ cluster }) =>
    partitionsWith(
      cluster.topics,
      'out of sync',
      warning,
      'has replicas that are out of sync',
      'have replicas that are out of sync',
    ),
  ({ cluster: { topics } }) => {
    const all = topics.flatMap(({ partitions }) => partitions);
    const led = all.filter((one) => faultsOf(one).includes('not preferred')).length;
    if (100 * led <= notPreferredPercentMax * all.length) return [];
    const what = `${led} of ${plural(all.length, 'partition')} are not led by their preferred replica`;
    return [warning(what, 'drover kafka elect')];
  },
  ({ cluster: { brokers } }) => {
    const seen = new Map<string, number>();
    return brokers.flatMap(({ id, registration }) =>
      registration.endpoints.flatMap(({ host, port }) => {
        const at = `${host}:${port}`;
        const other = seen.get(at);
        seen.set(at, id);
        if (host === null || other === undefined || other === id) return [];
        return [
          critical(`brokers ${other} and ${id} both say they are at ${at}`, 'drover kafka brokers'),
        ];
      }),
    );
  },
  ({ pending: { deletions, reassignment, election } }) => [
    ...(deletions.length > 0
      ? [
          warning(
            `${deletions.join(', ')} waits to be deleted: every replica has to be there`,
            'drover kafka controller',
          ),
        ]
      : []),
    ...(reassignment === null
      ? []
      : [warning('a request to move partitions is not done', 'drover kafka reassign')]),
    ...(election === null
      ? []
      : [warning('a request to elect leaders is not done', 'drover kafka controller')]),
  ],
  ({ cluster: { problems } }) =>
    problems.map(({ path, why }) => warning(`${path}: ${why}`, `drover get ${path}`)),
  ({ groups }) =>
    groups.flatMap(({ group, partitions, members }) => {
      const free = partitions.filter(({ owner }) => owner === null);
      if (members.length === 0 || free.length === 0) return [];
      const what = `group ${group}: ${plural(free.length, 'partition')} without an owner, ${named(free.map(({ topic, partition }) => `${topic}/${partition}`))}`;
      return [critical(what, `drover kafka group ${group}`)];
    }),
  ({ groups }) =>
    groups.flatMap(({ group, idle, members }) =>
      idle.length === 0
        ? []
        : [
            warning(
              `group ${group}: ${idle.length} of ${plural(members.length, 'member')} own nothing: more members than partitions`,
              `drover kafka group ${group}`,
            ),
          ],
    ),
  ({ groups }) =>
    groups.flatMap(({ group, problems }) =>
      problems
        .filter(({ why }) => !why.startsWith('nobody reads'))
        .map(({ path, why }) =>
          warning(`group ${group}: ${path}: ${why}`, `drover kafka group ${group}`),
        ),
    ),
  ({ lags, nowMs }) =>
    lags
      .filter(
        ({ behind, owner, committedMs }) =>
          owner !== null &&
          (behind.records ?? 0n) > 0n &&
          committedMs !== null &&
          nowMs - committedMs > stuckMs,
      )
      .map(({ group, topic, partition, behind, committedMs }) =>
        warning(
          `group ${group}: ${topic}/${partition} stands still for ${ageText(nowMs - committedMs!)}, and ${behind.records} records wait`,
          `drover kafka lag ${group}`,
        ),
      ),
  ({ lags }) =>
    lags
      .filter(({ behind }) => behind.isOutOfRange)
      .map(({ group, topic, partition, offset, behind }) =>
        critical(
          `group ${group}: ${topic}/${partition} is committed at ${offset}, and holds ${behind.earliest} to ${behind.latest}`,
          `drover kafka offsets reset ${group} --topic ${topic}`,
        ),
      ),
];

function partitionsWith(
  topics: readonly TopicView[],
  fault: PartitionFault,
  make: (what: string, more: string) => KafkaFinding,
  one: string,
  many = one,
): KafkaFinding[] {
  const all = topics.flatMap(({ topic, partitions }) =>
    partitions
      .filter((each) => faultsOf(each).includes(fault))
      .map(({ name }) => ({ topic, name })),
  );
  if (all.length === 0) return [];
  const names = named(all.map(({ topic, name }) => `${topic}/${name}`));
  const what = `${plural(all.length, 'partition')} ${all.length === 1 ? one : many}: ${names}`;
  return [make(what, `drover kafka topic ${all[0]!.topic}`)];
}

function critical(what: string, more: string): KafkaFinding {
  return { severity: 'critical', what, more };
}

function warning(what: string, more: string): KafkaFinding {
  return { severity: 'warning', what, more };
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function named(names: readonly string[]): string {
  const some = names.slice(0, namedMax).join(', ');
  return names.length > namedMax ? `${some} and ${names.length - namedMax} more` : some;
}

/** Worst first; within that, in the order of the checks. */
export function kafkaFindings(seen: Examined): KafkaFinding[] {
  const rank = ({ severity }: KafkaFinding) => (severity === 'critical' ? 0 : 1);
  return checks.flatMap((check) => check(seen)).sort((a, b) => rank(a) - rank(b));
}

export function doctorView(seen: Examined): View {
  const findings = kafkaFindings(seen);
  const { brokers, topics } = seen.cluster;
  const counts = { brokers: brokers.length, topics: topics.length, groups: seen.groups.length };
  const isCritical = findings.some(({ severity }) => severity === 'critical');
  return {
    parts:
      findings.length === 0
        ? [
            `${plural(counts.brokers, 'broker')}, ${plural(counts.topics, 'topic')}, ${plural(counts.groups, 'group')}: nothing to find fault with`,
          ]
        : [
            {
              heads: ['', 'FINDING', 'LOOK AT'],
              rows: findings.map(({ severity, what, more }) => [
                severity === 'critical' ? '!!' : '!',
                escaped(what),
                escaped(more),
              ]),
            },
          ],
    records: [...findings, { findings: findings.length, ...counts }],
    code: findings.length === 0 ? 0 : isCritical ? 2 : 1,
  };
}
