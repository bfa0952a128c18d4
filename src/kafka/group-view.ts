/**
 * A group as ZooKeeper shows it: who is in it, what each wants, and which partitions there are.
 *
 * In: the children of ids, the registrations, the topics. Out: what an assignor wants. A member whose
 * registration makes no sense is reported and counts as wanting nothing, so that one bad member does not
 * stop a group; it is read again every time, since some clients fill their node after they made it.
 * What a generated id has registered never changes and is read once. One watch for the list of members,
 * one for each topic.
 */

import { isZkError, type Listener } from '../client/index.ts';
import type { AssignorInput } from './assignors.ts';
import { isGenerated } from './consumer-id.ts';
import { dropWatch, type GroupClient } from './group-client.ts';
import type { OnProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import type { ConsumerRegistration } from './layout-consumer.ts';
import { expand, isFilter } from './subscription.ts';
import type { Generation, TopicDirectory } from './topic-directory.ts';

export interface GroupViewOptions {
  readonly group: string;
  readonly generation: Generation;
  readonly topics: TopicDirectory;
  readonly includeInternal: boolean;
  /** Members or topics are not what they were. */
  readonly onChange: (what: 'members' | 'topics') => void;
  readonly onProblem: OnProblem;
}

/** Reads at once: enough to hide the way to the server, few enough to leave room for others. */
const readsAtOnce = 64;

/**
 * Streams: topics times threads, which every member computes with at every rebalance. One registration
 * such as 10,000 threads of `.*` would otherwise take the memory of every other member.
 */
const streamsOfMemberMax = 100_000;
const streamsMax = 1_000_000;

export class GroupView {
  readonly #client: GroupClient;
  readonly #options: GroupViewOptions;
  readonly #known = new Map<string, ConsumerRegistration>();
  readonly #stopHearing: () => void;
  #listener: Listener | undefined;

  constructor(client: GroupClient, options: GroupViewOptions) {
    this.#client = client;
    this.#options = options;
    this.#stopHearing = options.topics.onChange(() => options.onChange('topics'));
  }

  async read(): Promise<AssignorInput> {
    const { topics } = this.#options;
    const registrations = await this.#registrations();
    const needsAll = [...registrations.values()].some(isFilter);
    const all = needsAll ? await topics.list() : [];
    const members = new Map<string, ReadonlyMap<string, number>>();
    let streams = 0;
    for (const [id, registration] of registrations) {
      const wanted = this.#wants(id, registration, all, streamsMax - streams);
      for (const threads of wanted.values()) streams += threads;
      members.set(id, wanted);
    }
    const names = new Set([...members.values()].flatMap((wanted) => [...wanted.keys()]));
    const partitions = new Map<string, readonly string[]>();
    await Promise.all(
      [...names].map(async (topic) => partitions.set(topic, await topics.partitions(topic))),
    );
    return { members, topics: partitions };
  }

  #wants(
    id: string,
    registration: ConsumerRegistration,
    all: readonly string[],
    streamsLeft: number,
  ): ReadonlyMap<string, number> {
    const { includeInternal, onProblem, group } = this.#options;
    try {
      const wanted = expand(registration, all, includeInternal);
      const streams = [...wanted.values()].reduce((sum, threads) => sum + threads, 0);
      if (streams <= Math.min(streamsOfMemberMax, streamsLeft)) return wanted;
      const limit = `${streamsOfMemberMax} of a member and ${streamsMax} of a group are allowed`;
      throw new Error(`its topics times their threads are ${streams}; ${limit}`);
    } catch (error) {
      const path = layout08.consumer.at({ group, consumer: id });
      const content = [...registration.subscription.keys()].join();
      onProblem({ path, why: (error as Error).message, content });
      return new Map();
    }
  }

  async #registrations(): Promise<Map<string, ConsumerRegistration>> {
    const names = await this.#names();
    const present = new Set(names);
    for (const id of this.#known.keys()) if (!present.has(id)) this.#known.delete(id);
    const found = new Map<string, ConsumerRegistration>();
    const unread = names.filter((id) => !this.#known.has(id));
    for (let i = 0; i < unread.length; i += readsAtOnce) {
      await Promise.all(unread.slice(i, i + readsAtOnce).map((id) => this.#read(id, found)));
    }
    const all = names.flatMap((id): [string, ConsumerRegistration][] => {
      const registration = this.#known.get(id) ?? found.get(id);
      return registration === undefined ? [] : [[id, registration]];
    });
    return new Map(all);
  }

  async #names(): Promise<string[]> {
    const path = layout08.consumerIds.at({ group: this.#options.group });
    const listener: Listener =
      this.#listener ??
      (() => {
        if (this.#listener !== listener) return;
        this.#listener = undefined;
        this.#options.onChange('members');
      });
    this.#listener = listener;
    for (;;) {
      try {
        // Sorted here, once: assignors sort by it again for each topic, which is quick when it is done.
        return (await this.#client.children(path, { watch: listener })).sort();
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
      }
      // Somebody deleted the group: nobody is in it until the first registers again.
      if ((await this.#client.exists(path, { watch: listener })) === null) return [];
    }
  }

  async #read(id: string, found: Map<string, ConsumerRegistration>): Promise<void> {
    const { group, generation, onProblem } = this.#options;
    const row = generation === '0.7' ? layout07.consumer : layout08.consumer;
    const path = row.at({ group, consumer: id });
    try {
      const { data } = await this.#client.get(path);
      const registration = row.tryParse(data, path, onProblem);
      if (registration === null) return;
      if (isGenerated(id)) this.#known.set(id, registration);
      else found.set(id, registration);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error; // it left; the watch has told
    }
  }

  /** The session is over, and its watches with it. */
  forget(): void {
    this.#listener = undefined;
    this.#options.topics.forget();
  }

  async close(): Promise<void> {
    this.#stopHearing();
    const listener = this.#listener;
    this.#listener = undefined;
    const path = layout08.consumerIds.at({ group: this.#options.group });
    if (listener !== undefined) await dropWatch(this.#client, path, listener);
  }
}
