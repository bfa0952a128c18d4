/**
 * The Kafka page: brokers, controller, topics, and what is degraded.
 *
 * Counts over all topics need every partition's state; they are read up to `scanPartitionsMax`, kept for a
 * few seconds, and what was left out is said. A page of topics reads its own rows alone.
 */

import { type Client, isZkError } from '../client/index.ts';
import {
  faultsOf,
  formatEndpoint,
  isLedByKraft,
  type LayoutProblem,
  layout07,
  layout08,
  listGroups,
  type PartitionFault,
  type PartitionSeen,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  standingOf,
  type TopicSeen,
} from '../kafka/index.ts';
import { ConsoleError } from './console-error.ts';
import { ControllerHistory } from './controller-history.ts';
import type { Groups } from './groups.ts';
import { inTurns } from './in-turns.ts';
import { IsrHistory, stateOf } from './isr-history.ts';
import { KafkaAdmin } from './kafka-admin.ts';
import { hex } from './node-text.ts';
import type { ConsoleSources } from './sources.ts';
import { orNull } from './tree.ts';
import type {
  IsrState,
  KafkaView,
  MovesView,
  TimelineView,
  TopicRow,
  TopicsView,
  TopicView,
} from './views.ts';

const scanPartitionsMax = 20_000;
export const scanKeptMs = 3_000;
const topicsAtOnce = 16;
/** A scan is one look at everything: many at once, or it takes a round trip for each few. */
const scanAtOnce = 128;
const problemsMax = 100;
const groupsMax = 200;
const statesMax = 200;
/** Groups that one page of topics asks for their lag. */
const lagGroupsMax = 50;

interface Scan {
  readonly atMs: number;
  readonly topics: ReadonlyMap<string, TopicSeen>;
  readonly names: readonly string[];
  readonly problems: readonly LayoutProblem[];
}

export interface KafkaOptions {
  readonly groups: Pick<Groups, 'topicLag'>;
  readonly history?: ConsoleSources['history'];
  /** What was answered is older than the last change: pages should ask again when it is no longer kept. */
  readonly onStale?: () => void;
}

export class Kafka {
  readonly isr: IsrHistory;
  readonly admin: KafkaAdmin;
  readonly #client: Client;
  readonly #options: KafkaOptions;
  readonly #controllers: ControllerHistory;
  #scan: Promise<Scan> | undefined;
  #scanAtMs = Number.NEGATIVE_INFINITY;
  #isStale = false;

  constructor(client: Client, options: KafkaOptions) {
    this.#client = client;
    this.#options = options;
    this.isr = new IsrHistory(client);
    this.admin = new KafkaAdmin(client);
    this.#controllers = new ControllerHistory(options);
  }

  /** What the live tree tells. */
  changed(path: string): void {
    this.isr.changed(path);
    if (path.startsWith('/config/')) this.admin.forget();
    if (path.startsWith('/brokers/') || path.startsWith('/admin/')) this.#isStale = true;
  }

  async overview(): Promise<KafkaView> {
    const problems: LayoutProblem[] = [];
    const onProblem = (problem: LayoutProblem) => problems.push(problem);
    const onMigrationProblem = (problem: LayoutProblem) => {
      // Of /controller it is told once, by its own reader.
      if (problem.path === layout08.migration.at()) onProblem(problem);
    };
    const [brokers, controller, scan, clusterId, is07, isMigrating] = await Promise.all([
      readBrokers(this.#client, { onProblem }),
      readController(this.#client, { onProblem }),
      this.#scanned(),
      this.#clusterId(),
      this.#is07(),
      isLedByKraft(this.#client, { onProblem: onMigrationProblem }),
    ]);
    this.#controllers.seen(controller);
    const partitions = [...scan.topics.values()].flatMap((topic) => topic.partitions);
    const live = new Set(brokers.map(({ id }) => id));
    const placed = new Set(partitions.flatMap(({ replicas }) => replicas));
    const count = (fault: PartitionFault) =>
      partitions.filter((one) => faultsIn(one).includes(fault)).length;
    const nothing = brokers.length === 0 && scan.names.length === 0 && problems.length === 0;
    return {
      found: is07 ? '0.7' : nothing ? 'none' : 'zookeeper',
      isMigrating,
      clusterId,
      controller,
      controllerHistory: this.#controllers.newestFirst,
      brokers: brokers.map(({ id, epoch, sessionId, registration }) => ({
        id,
        endpoints: registration.endpoints.map(formatEndpoint),
        rack: registration.rack,
        session: hex(sessionId),
        epoch: String(epoch),
        sinceMs: registration.timestampMs,
        leaders: partitions.filter(({ state }) => state?.leader === id).length,
        preferred: partitions.filter(({ replicas }) => replicas[0] === id).length,
        replicas: partitions.filter(({ replicas }) => replicas.includes(id)).length,
        isController: controller.brokerId === id,
      })),
      missing: [...placed].filter((id) => !live.has(id)).sort((a, b) => a - b),
      topics: scan.names.length,
      partitions: partitions.length,
      underReplicated: count('out of sync'),
      offline: count('no leader'),
      notPreferred: count('not preferred'),
      reassigning: count('moving'),
      problems: (is07 ? [] : [...problems, ...scan.problems])
        .slice(0, problemsMax)
        .map(problemView),
      skippedTopics: scan.names.length - scan.topics.size,
    };
  }

  async topics(page: {
    offset: number;
    limit: number;
    filter: string;
    only: 'all' | 'faulty';
    names?: string | undefined;
  }): Promise<TopicsView> {
    const scan = page.only === 'faulty' ? await this.#scanned() : null;
    const names = scan?.names ?? (await readTopicNames(this.#client));
    const wanted = page.filter.toLowerCase();
    const named = page.names === undefined ? null : new Set(page.names.split(','));
    const matching = names.filter((name) => {
      if (named !== null && !named.has(name)) return false;
      if (!name.toLowerCase().includes(wanted)) return false;
      const topic = scan?.topics.get(name);
      return scan === null || topic?.partitions.some((one) => faultsIn(one).length > 0) === true;
    });
    const shown = matching.slice(page.offset, page.offset + page.limit);
    const groups = await this.#groupsByTopic();
    const asked = new Set<string>();
    const rows = await inTurns(shown, topicsAtOnce, async (topic) => {
      const seen = scan?.topics.get(topic) ?? (await readTopic(this.#client, topic));
      const readers = groups.get(topic) ?? [];
      for (const group of readers) if (asked.size < lagGroupsMax) asked.add(group);
      const withLag = readers.map(async (group) => ({
        group,
        lag: asked.has(group) ? await this.#options.groups.topicLag(group, topic) : null,
      }));
      return seen === null ? [] : [rowOf(seen, await Promise.all(withLag))];
    });
    return { rows: rows.flat(), total: names.length, matching: matching.length };
  }

  async moves(): Promise<MovesView> {
    return this.admin.moves((await this.#scanned()).topics.values());
  }

  async topic(name: string): Promise<TopicView> {
    const problems: LayoutProblem[] = [];
    const seen = await this.#readTopic(name, (problem) => problems.push(problem));
    if (seen === null && problems.length === 0) {
      throw new ConsoleError('NOT_FOUND', 'there is no such topic');
    }
    return {
      topic: name,
      topicId: seen?.topicId ?? null,
      config: seen?.config ?? {},
      isBeingDeleted: seen?.isBeingDeleted ?? false,
      partitions: (seen?.partitions ?? []).map((one) => {
        const { hasState: _, ...standing } = standingOf(one);
        const changes = this.isr.count(name, one.partition);
        return { partition: one.partition, ...standing, faults: faultsIn(one), changes };
      }),
      problems: problems.slice(0, problemsMax).map(problemView),
    };
  }

  /** Who led and who was in sync, and since when: out of the logs, or as far as it was seen. */
  async timeline({ name, partition }: { name: string; partition: number }): Promise<TimelineView> {
    const topic = await this.#readTopic(name, () => {});
    const found = topic?.partitions.find((one) => one.partition === partition);
    if (found === undefined) throw new ConsoleError('NOT_FOUND', 'there is no such partition');
    const logged = await this.#logged(name, partition);
    const states = logged ?? (await this.isr.of(name, partition));
    const { replicas } = found;
    const from = logged === null ? 'seen' : 'logs';
    return { topic: name, partition, replicas, states, from, nowMs: Date.now() };
  }

  async #logged(topic: string, partition: number): Promise<IsrState[] | null> {
    const path = layout08.partitionState.at({ topic, partition });
    const found = await this.#options.history?.(path, statesMax);
    if (found === undefined) return null;
    const states = found.entries.flatMap(({ atMs, after }) => {
      const state = after === null ? null : stateOf(Buffer.from(after, 'base64'), path);
      return state === null ? [] : [{ ...state, atMs, missed: 0 }];
    });
    return states.reverse();
  }

  /** A name with a slash in it would be the path of another node. */
  async #readTopic(name: string, onProblem: (problem: LayoutProblem) => void) {
    if (name.includes('/')) throw new ConsoleError('BAD_INPUT', 'name: a topic is wanted');
    return readTopic(this.#client, name, { onProblem });
  }

  #scanned(): Promise<Scan> {
    const nowMs = performance.now();
    if (this.#scan === undefined || nowMs - this.#scanAtMs > scanKeptMs) {
      this.#scanAtMs = nowMs;
      this.#isStale = false;
      const scan = this.#scanAll();
      this.#scan = scan;
      scan.catch(() => {
        if (this.#scan === scan) this.#scan = undefined;
      });
    } else if (this.#isStale) this.#options.onStale?.();
    return this.#scan;
  }

  async #scanAll(): Promise<Scan> {
    const names = await readTopicNames(this.#client);
    const problems: LayoutProblem[] = [];
    const onProblem = (problem: LayoutProblem) => {
      if (problems.length < problemsMax) problems.push(problem);
    };
    const topics = new Map<string, TopicSeen>();
    let partitions = 0;
    for (let at = 0; at < names.length && partitions < scanPartitionsMax; at += scanAtOnce) {
      const some = names.slice(at, at + scanAtOnce);
      const seen = await Promise.all(
        some.map((name) => readTopic(this.#client, name, { onProblem })),
      );
      for (const topic of seen) {
        if (topic === null) continue;
        topics.set(topic.topic, topic);
        partitions += topic.partitions.length;
      }
    }
    return { atMs: performance.now(), topics, names, problems };
  }

  async #clusterId(): Promise<string | null> {
    const path = layout08.clusterId.at();
    const node = await this.#client.get(path).catch(orNull);
    return node && layout08.clusterId.tryParse(node.data, path, () => {});
  }

  /** Brokers of 0.7 say `creator:host:port` and no JSON. */
  async #is07(): Promise<boolean> {
    const ids = (await this.#client.children(layout07.brokerIds.at()).catch(orNull)) ?? [];
    if (ids[0] === undefined) return false;
    const path = layout07.broker.at({ id: ids[0] });
    const node = await this.#client.get(path).catch(orNull);
    if (node === null || node.data === null || /^\s*\{/.test(node.data.toString('utf8')))
      return false;
    return layout07.broker.tryParse(node.data, path, () => {}) !== null;
  }

  async #groupsByTopic(): Promise<Map<string, string[]>> {
    const byTopic = new Map<string, string[]>();
    const groups = (await listGroups(this.#client)).slice(0, groupsMax);
    await inTurns(groups, topicsAtOnce, async (group) => {
      const topics = await this.#client
        .children(layout08.offsetTopics.at({ group }))
        .catch((error: unknown) => {
          if (isZkError(error, 'NO_NODE', 'NO_AUTH')) return [];
          throw error;
        });
      for (const topic of topics) byTopic.set(topic, [...(byTopic.get(topic) ?? []), group]);
    });
    return byTopic;
  }
}

function problemView({ path, why }: LayoutProblem): { path: string; why: string } {
  return { path, why };
}

const faultsIn = (partition: PartitionSeen): PartitionFault[] => faultsOf(standingOf(partition));

function rowOf(
  { topic, partitions, isBeingDeleted }: TopicSeen,
  groups: TopicRow['groups'],
): TopicRow {
  const count = (fault: PartitionFault) =>
    partitions.filter((one) => faultsIn(one).includes(fault)).length;
  return {
    topic,
    partitions: partitions.length,
    replication: partitions.reduce((most, { replicas }) => Math.max(most, replicas.length), 0),
    underReplicated: count('out of sync'),
    offline: count('no leader'),
    notPreferred: count('not preferred'),
    reassigning: count('moving'),
    isBeingDeleted,
    groups,
  };
}
