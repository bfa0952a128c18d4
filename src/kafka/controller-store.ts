/**
 * The controller's hands: every read it makes of the cluster, and every write, fenced.
 *
 * A write is one multi that first checks the version of /controller_epoch. Whoever was elected since
 * has changed it, so a controller that is none any more, however late its request arrives, changes
 * nothing and hears `ControllerMovedError`. After `term.signal` has aborted nothing is sent at all.
 *
 * A write whose reply was lost is made again, a bounded number of times. Then the node may already be
 * as wanted: creates take NODE_EXISTS and deletes NO_NODE for done, sets say `null` for a conflict
 * and leave it to the caller to look again. What a node holds that cannot be read goes to `onProblem`.
 */

import {
  type Client,
  type DataAndStat,
  isZkError,
  type Listener,
  MultiError,
  type MultiOp,
} from '../client/index.ts';
import type { KnownState, LiveBroker } from './controller-context.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey, type TopicPartition } from './layout-admin.ts';
import type { PartitionState, TopicAssignment } from './layout-topic.ts';

export interface Term {
  readonly brokerId: number;
  /** What stands in /controller_epoch since this election. */
  readonly epoch: number;
  /** The version of that node, which every write checks. */
  readonly epochVersion: number;
  /** Aborts the moment that this controller is, or may be, none any more. */
  readonly signal: AbortSignal;
}

/** Somebody else is the controller, or may be. What was under way is left to them. */
export class ControllerMovedError extends Error {
  override readonly name = 'ControllerMovedError';
  readonly code = 'CONTROLLER_MOVED';
}

const writeTriesMax = 10;
/** Requests under way at once: enough to hide the way there and back, few enough to share the link. */
const atOnceMax = 500;

export class ControllerStore {
  readonly client: Client;
  readonly term: Term;
  readonly #onProblem: OnProblem;

  constructor(client: Client, term: Term, onProblem: OnProblem) {
    this.client = client;
    this.term = term;
    this.#onProblem = onProblem;
  }

  // ── reads ─────────────────────────────────────────────────────────────────────────────────────

  /** Empty when the node is missing. */
  async children(path: string, watch?: Listener): Promise<string[]> {
    this.#checkTerm();
    return (await orNull(this.client.children(path, { ...(watch && { watch }) }))) ?? [];
  }

  async get(path: string, watch?: Listener): Promise<DataAndStat | null> {
    this.#checkTerm();
    return orNull(this.client.get(path, { ...(watch && { watch }) }));
  }

  async broker(id: number | string, watch?: Listener): Promise<LiveBroker | null> {
    const path = layout08.broker.at({ id });
    const node = await this.get(path, watch);
    if (node === null) return null;
    if (!/^\d+$/.test(String(id))) {
      this.#onProblem({ path, why: 'the id of a broker is a number', content: String(id) });
      return null;
    }
    const registration = layout08.broker.tryParse(node.data, path, this.#onProblem);
    return registration && { id: Number(id), epoch: node.stat.czxid, registration };
  }

  /** Null: no such topic, or none that can be read. */
  async topic(topic: string, watch?: Listener): Promise<TopicAssignment | null> {
    const path = layout08.topic.at({ topic });
    const node = await this.get(path, watch);
    return node && layout08.topic.tryParse(node.data, path, this.#onProblem);
  }

  /** Only those that have a state that can be read. */
  async states(partitions: readonly TopicPartition[]): Promise<Map<string, KnownState>> {
    const found = await this.inTurn(partitions, async (at) => {
      const path = layout08.partitionState.at(at);
      const node = await this.get(path);
      const state = node && layout08.partitionState.tryParse(node.data, path, this.#onProblem);
      return state && { state, version: node.stat.version, mzxid: node.stat.mzxid };
    });
    const entries = found.map((known, i) => [partitionKey(partitions[i]!), known] as const);
    return new Map(entries.filter((entry): entry is [string, KnownState] => entry[1] !== null));
  }

  // ── writes ────────────────────────────────────────────────────────────────────────────────────

  /** The state of a new partition, and the nodes above it. Null: another state was there already. */
  async createState(at: TopicPartition, state: PartitionState): Promise<KnownState | null> {
    const path = layout08.partitionState.at(at);
    await this.create(layout08.partitions.at(at), null);
    await this.create(layout08.partition.at(at), null);
    const made = await this.create(path, layout08.partitionState.format(state));
    const known = (await this.states([at])).get(partitionKey(at)) ?? null;
    return made || (known && sameState(known.state, state)) ? known : null;
  }

  /** Null: the node is not of that version any more, or gone. */
  async setState(
    at: TopicPartition,
    state: PartitionState,
    version: number,
  ): Promise<KnownState | null> {
    const path = layout08.partitionState.at(at);
    const data = layout08.partitionState.format(state);
    try {
      const [stat] = await this.fenced([{ op: 'set', path, data: data!, version }]);
      const { version: next, mzxid } = stat as { version: number; mzxid: bigint };
      return { state, version: next, mzxid };
    } catch (error) {
      if (isZkError(error, 'BAD_VERSION') || isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  /**
   * Changes what stands in a topic's node, to which somebody else may just have added partitions: these
   * stay. Null: there is no such topic, or none that can be read.
   */
  async changeTopic(
    topic: string,
    change: (now: TopicAssignment) => TopicAssignment,
  ): Promise<TopicAssignment | null> {
    const path = layout08.topic.at({ topic });
    for (let tries = 1; ; tries++) {
      const node = await this.get(path);
      const now = node && layout08.topic.tryParse(node.data, path, this.#onProblem);
      if (node === null || now === null) return null;
      const next = change(now);
      try {
        const data = layout08.topic.format(next)!;
        await this.fenced([{ op: 'set', path, data, version: node.stat.version }]);
        return next;
      } catch (error) {
        // A reply was lost, or it has changed: either is seen by reading it again.
        const isOld = isZkError(error, 'BAD_VERSION') || isZkError(error, 'NO_NODE');
        if (!isOld || tries === writeTriesMax) throw error;
      }
    }
  }

  /** Whether it is there now; false: there is no such topic. */
  async setTopic(topic: string, assignment: TopicAssignment): Promise<boolean> {
    return this.set(layout08.topic.at({ topic }), layout08.topic.format(assignment)!);
  }

  async set(path: string, data: string): Promise<boolean> {
    try {
      await this.fenced([{ op: 'set', path, data }]);
      return true;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return false;
      throw error;
    }
  }

  /** False: it was there already. */
  async create(path: string, data: string | null): Promise<boolean> {
    try {
      await this.fenced([{ op: 'create', path, data }]);
      return true;
    } catch (error) {
      if (isZkError(error, 'NODE_EXISTS')) return false;
      throw error;
    }
  }

  /** Gone already is fine. */
  async remove(path: string): Promise<void> {
    try {
      await this.fenced([{ op: 'delete', path }]);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
  }

  /** Deepest first. What is made below it meanwhile is taken too, a bounded number of times. */
  async removeTree(path: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      const names = await this.children(path);
      await this.inTurn(names, (name) => this.removeTree(`${path}/${name}`));
      try {
        return await this.remove(path);
      } catch (error) {
        if (!isZkError(error, 'NOT_EMPTY') || tries === writeTriesMax) throw error;
      }
    }
  }

  async fenced(ops: readonly MultiOp[]): Promise<readonly unknown[]> {
    const version = this.term.epochVersion;
    const check = { op: 'check', path: layout08.controllerEpoch.at(), version } as const;
    for (let tries = 1; ; tries++) {
      this.#checkTerm();
      try {
        const [, ...results] = await this.client.multi([check, ...ops]);
        return results;
      } catch (error) {
        if (error instanceof MultiError && error.index === 0)
          throw this.#moved('another was elected', error);
        if (isZkError(error, 'SESSION_EXPIRED')) throw this.#moved('its session is over', error);
        if (!isZkError(error) || !error.outcomeUnknown || tries === writeTriesMax) throw error;
      }
    }
  }

  /** What a term that is over would learn, or watch, is nothing to it. */
  #checkTerm(): void {
    const { signal } = this.term;
    if (signal.aborted) throw this.#moved('it has resigned', signal.reason);
  }

  #moved(why: string, cause: unknown): ControllerMovedError {
    const { brokerId, epoch } = this.term;
    const what = `broker ${brokerId} is not the controller of epoch ${epoch} any more`;
    return new ControllerMovedError(`${what}: ${why}`, { cause });
  }

  /** Many at once, but not all; results in the order of the list. */
  async inTurn<T, R>(list: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
    const results: R[] = [];
    for (let from = 0; from < list.length; from += atOnceMax) {
      results.push(...(await Promise.all(list.slice(from, from + atOnceMax).map(work))));
    }
    return results;
  }
}

export function sameState(a: PartitionState, b: PartitionState): boolean {
  return layout08.partitionState.format(a) === layout08.partitionState.format(b);
}

async function orNull<T>(reply: Promise<T>): Promise<T | null> {
  try {
    return await reply;
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}
