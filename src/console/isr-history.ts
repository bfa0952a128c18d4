/**
 * Who was in sync with a partition, and since when: each change of its state node, as far as it was seen.
 *
 * In: paths that changed, as the live tree tells them, and partitions that a page looks at. Out: the states
 * of one partition, oldest first, with the time that ZooKeeper gave them. Each change is read once it is
 * told; a node's version says how many went by unseen between two looks, and that is shown too.
 * Everything is bounded: partitions, states of each, reads that wait. Where the transaction logs are at
 * hand they know it better, from before the console too (see `kafka.ts`).
 */

import { type Client, isZkError } from '../client/index.ts';
import { layout08, noLeader } from '../kafka/index.ts';
import type { IsrState } from './views.ts';

const partitionsMax = 5_000;
const statesMax = 200;
const waitingMax = 2_000;
const readsAtOnce = 16;

const statePath = /^\/brokers\/topics\/([^/]+)\/partitions\/(\d+)\/state$/;

interface Seen {
  readonly states: IsrState[];
  version: number;
  czxid: bigint;
}

export class IsrHistory {
  readonly #client: Client;
  readonly #partitions = new Map<string, Seen>();
  readonly #waiting = new Set<string>();
  #reading = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Something changed at this path; most are none of ours. */
  changed(path: string): void {
    if (!statePath.test(path) || this.#waiting.size >= waitingMax) return;
    this.#waiting.add(path);
    this.#next();
  }

  /** Oldest first. */
  async of(topic: string, partition: number): Promise<readonly IsrState[]> {
    const path = layout08.partitionState.at({ topic, partition });
    // Also after a link that was lost, when nobody told.
    await this.#read(path);
    return this.#partitions.get(path)?.states ?? [];
  }

  /** Changes that were seen of a partition, not counting how it was found. */
  count(topic: string, partition: number): number {
    const seen = this.#partitions.get(layout08.partitionState.at({ topic, partition }));
    return Math.max(0, (seen?.states.length ?? 0) - 1);
  }

  #next(): void {
    for (const path of this.#waiting) {
      if (this.#reading >= readsAtOnce) return;
      this.#waiting.delete(path);
      this.#reading += 1;
      this.#read(path)
        .catch((error: unknown) => {
          if (!isZkError(error)) throw error; // what was missed shows in the version of the next
        })
        .finally(() => {
          this.#reading -= 1;
          this.#next();
        });
    }
  }

  async #read(path: string): Promise<void> {
    let node: Awaited<ReturnType<Client['get']>>;
    try {
      node = await this.#client.get(path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return void this.#partitions.delete(path);
      throw error;
    }
    const { version, czxid, mtime } = node.stat;
    const known = this.#partitions.get(path);
    // Two reads may come in another order than they were asked.
    if (known?.czxid === czxid && version <= known.version) return;
    const state = stateOf(node.data, path);
    if (state === null) return;
    const isSame = known?.czxid === czxid;
    const seen: Seen = known !== undefined && isSame ? known : { states: [], version, czxid };
    const missed = isSame ? version - seen.version - 1 : version;
    seen.version = version;
    seen.states.push({ ...state, atMs: Number(mtime), missed });
    if (seen.states.length > statesMax) seen.states.shift();
    this.#partitions.delete(path);
    this.#partitions.set(path, seen);
    const [oldest] = this.#partitions.keys();
    if (this.#partitions.size > partitionsMax && oldest !== undefined) {
      this.#partitions.delete(oldest);
    }
  }
}

/** Null: it makes no sense, which the page of the topic says. */
export function stateOf(
  data: Buffer | null,
  path: string,
): Pick<IsrState, 'leader' | 'leaderEpoch' | 'isr'> | null {
  const state = layout08.partitionState.tryParse(data, path, () => {});
  if (state === null) return null;
  const { leader, leaderEpoch, isr } = state;
  return { leader: leader === noLeader ? null : leader, leaderEpoch, isr };
}
