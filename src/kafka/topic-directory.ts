/**
 * Which topics there are, and which partitions they have: from ZooKeeper, in either generation, or from
 * a table of the caller's where there is no Kafka.
 *
 * In: names. Out: partitions in the order of their generation, and one call of `onChange` for each
 * change after. What has been read is kept until its watch fires, so a group that rebalances for other
 * reasons asks nothing here. A topic that is not there has no partitions, and is waited for. One whose
 * node makes no sense keeps the partitions known before, and is reported.
 */

import { isZkError, type Listener } from '../client/index.ts';
import { dropWatch, type GroupClient } from './group-client.ts';
import type { OnProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import { formatBrokerPartition } from './layout-consumer.ts';
import { PartitionSum } from './layout-fields.ts';
import { sortPartitions } from './partition.ts';

export interface TopicDirectory {
  /** Every topic there is. Asked for only where somebody subscribes by a filter. */
  list(): Promise<readonly string[]>;
  /** Sorted; none when there is no such topic. */
  partitions(topic: string): Promise<readonly string[]>;
  /** Told, perhaps more than once, after what was asked for has changed. */
  onChange(heard: () => void): () => void;
  /** A new session watches nothing yet. */
  forget(): void;
  close(): Promise<void>;
}

/** Topics that are known beforehand: how many partitions each has. */
export function fixedTopics(counts: Readonly<Record<string, number>>): TopicDirectory {
  const names = (count: number) => Array.from({ length: count }, (_, i) => String(i));
  return {
    list: async () => Object.keys(counts),
    partitions: async (topic) => names(counts[topic] ?? 0),
    onChange: () => () => {},
    forget() {},
    async close() {},
  };
}

export type Generation = '0.7' | '0.8';

export class ZooKeeperTopics implements TopicDirectory {
  readonly #client: GroupClient;
  readonly #generation: Generation;
  readonly #onProblem: OnProblem;
  readonly #heard = new Set<() => void>();
  readonly #partitions = new Map<string, readonly string[]>();
  /** Known before the last change: what stands while a node makes no sense. */
  readonly #before = new Map<string, readonly string[]>();
  readonly #watched = new Map<string, Listener>();
  /** Partitions by topic as brokers of 0.7 count them: bounded in sum. */
  readonly #counted = new Map<string, number>();
  #list: readonly string[] | undefined;

  constructor(client: GroupClient, generation: Generation, onProblem: OnProblem) {
    this.#client = client;
    this.#generation = generation;
    this.#onProblem = onProblem;
  }

  async list(): Promise<readonly string[]> {
    if (this.#list !== undefined) return this.#list;
    const path = layout08.topics.at();
    const watch = this.#watch(path, () => {
      this.#list = undefined;
    });
    const names = (await this.#childrenOf(path, watch)).sort();
    // Changed while we were told of it: then it is old already, and nothing would say so again.
    if (this.#watched.has(path)) this.#list = names;
    return names;
  }

  async partitions(topic: string): Promise<readonly string[]> {
    const known = this.#partitions.get(topic);
    if (known !== undefined) return known;
    const path = layout08.topic.at({ topic });
    const watch = this.#watch(path, () => this.#partitions.delete(topic));
    const found =
      this.#generation === '0.7'
        ? await this.#partitions07(topic, path, watch)
        : await this.#partitions08(topic, path, watch);
    const names = found === null ? (this.#before.get(topic) ?? []) : sortPartitions(found);
    if (this.#watched.has(path)) this.#partitions.set(topic, names);
    this.#before.set(topic, names);
    return names;
  }

  async #partitions08(topic: string, path: string, watch: Listener): Promise<string[] | null> {
    try {
      const { data } = await this.#client.get(path, { watch });
      const assignment = layout08.topic.tryParse(data, path, this.#onProblem);
      return assignment && [...assignment.partitions.keys()].map(String);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
    // Told of its creation. Made just now: then the change is told at once, and it is read again.
    if ((await this.#client.exists(path, { watch })) !== null)
      return this.#partitions08(topic, path, watch);
    return [];
  }

  async #partitions07(topic: string, path: string, watch: Listener): Promise<string[]> {
    const brokers = (await this.#childrenOf(path, watch)).sort();
    const counts = await Promise.all(
      brokers.map(async (broker) => {
        const at = layout07.topicBroker.at({ topic, broker });
        try {
          const { data } = await this.#client.get(at);
          return layout07.topicBroker.tryParse(data, at, this.#onProblem) ?? 0;
        } catch (error) {
          if (isZkError(error, 'NO_NODE')) return 0;
          throw error;
        }
      }),
    );
    this.#counted.delete(topic);
    const sum = new PartitionSum([...this.#counted.values()].reduce((all, one) => all + one, 0));
    const others = sum.sum;
    const names = brokers.flatMap((broker, i) => {
      const at = layout07.topicBroker.at({ topic, broker });
      const length = sum.take(counts[i]!, at, this.#onProblem);
      return Array.from({ length }, (_, partition) =>
        formatBrokerPartition({ broker: Number(broker), partition }),
      );
    });
    this.#counted.set(topic, sum.sum - others);
    return names;
  }

  async #childrenOf(path: string, watch: Listener): Promise<string[]> {
    try {
      return await this.#client.children(path, { watch });
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
    if ((await this.#client.exists(path, { watch })) !== null) return this.#childrenOf(path, watch);
    return [];
  }

  onChange(heard: () => void): () => void {
    this.#heard.add(heard);
    return () => this.#heard.delete(heard);
  }

  forget(): void {
    this.#list = undefined;
    this.#partitions.clear();
    this.#watched.clear();
  }

  async close(): Promise<void> {
    this.#heard.clear();
    const all = [...this.#watched];
    this.forget();
    await Promise.all(all.map(([path, listener]) => dropWatch(this.#client, path, listener)));
  }

  #watch(path: string, changed: () => void): Listener {
    const listener: Listener = () => {
      if (this.#watched.get(path) !== listener) return; // of a session before
      this.#watched.delete(path);
      changed();
      for (const heard of this.#heard) heard();
    };
    this.#watched.set(path, listener);
    return listener;
  }
}
