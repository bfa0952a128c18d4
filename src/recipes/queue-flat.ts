/**
 * The layout `curator`: the nodes of Curator's DistributedQueue, DistributedPriorityQueue and
 * DistributedDelayQueue, so that Java processes and ours put and take from one queue.
 *
 *   <path>/queue-…               an item, in Curator's own bytes (queue-payload.ts)
 *   <lockPath>/<item's name>     its claim, ephemeral, as with Curator's `lockPath`
 *   <lockPath>/receipt-…         what each producer's last multi was, ephemeral
 *
 * All items stand in one list, and a reply must fit into a frame: about 49,000 items first in, first
 * out, and fewer with longer names. Apache's server sends a longer list all the same; its clients, and
 * ours, then drop the link, over and over. So before a list is asked for, and before items are put, the
 * node is asked how many it has, and too many are refused (LIST_TOO_LONG) before it comes to that: puts
 * from nine tenths of it, and the fewer at a time the less room there is, so that producers who do not
 * know of each other don't lock the takers out (queue-list-room.ts).
 *
 * An item's tries are counted by its version. Requeued it is a new node, whose count starts over.
 * Every put wakes everyone who waits: for many takers use the layout `buckets`.
 */

import { type Acl, type Client, isZkError, type MultiOp } from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import type { Watching } from './bounded-wait.ts';
import { withParents } from './parents.ts';
import { ListRoom } from './queue-list-room.ts';
import { byTurn, delayText, flatName, type QueueOrder } from './queue-names.ts';
import { decodePayload, encodePayload } from './queue-payload.ts';
import type { Commit, Entry, Found, QueueStore, Waiting } from './queue-store.ts';

/** The longest name of an item of ours, and the four bytes of its length before it. */
const itemBytes: Record<QueueOrder, number> = {
  fifo: 4 + 'queue-'.length + 11,
  priority: 4 + 'queue-'.length + 9 + 11,
  delay: 4 + 'queue-'.length + 13 + 11,
};

export interface FlatOptions {
  readonly order: QueueOrder;
  readonly lockPath: string;
  /** The longest reply that every client of this queue takes. */
  readonly listBytesMax: number;
  readonly acl?: readonly Acl[] | undefined;
}

export class Flat implements QueueStore {
  readonly takersPath = null;
  readonly receiptsPath: string;
  readonly #client: Client;
  readonly #path: string;
  readonly #options: FlatOptions;
  readonly #room: ListRoom;

  constructor(client: Client, path: string, options: FlatOptions) {
    this.#client = client;
    this.#path = path;
    this.#options = options;
    this.receiptsPath = options.lockPath;
    const { listBytesMax, order } = options;
    this.#room = new ListRoom(client, path, { listBytesMax, itemBytes: itemBytes[order] });
  }

  async ensure(): Promise<void> {
    const { acl, lockPath } = this.#options;
    for (const path of [this.#path, lockPath]) {
      try {
        await withParents(this.#client, path, acl, () =>
          this.#client.create(path, '', acl ? { acl } : {}),
        );
      } catch (error) {
        if (isZkError(error) && error.outcomeUnknown) continue; // whoever needs it will find out
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  async fitting(): Promise<number> {
    return this.#room.forPuts();
  }

  /** What is requeued comes here without a look at the room: its old node goes in the same multi. */
  async place(entries: readonly Entry[], commit: Commit): Promise<string[]> {
    const { acl, order } = this.#options;
    const creates = entries.map(
      ({ key, dueMs, data }): MultiOp => ({
        op: 'create',
        path: childOf(this.#path, `queue-${order === 'delay' ? delayText(dueMs) : key}`),
        data,
        mode: 'persistentSequential',
        ...(acl && { acl }),
      }),
    );
    const results = await commit(creates);
    // Where the reply was lost the names are not known; that the items are there is.
    return entries.map(({ id }, i) => {
      const made = results?.[i] as { path: string } | undefined;
      return made === undefined ? id : nameOf(made.path);
    });
  }

  /** Names say nothing of who put them: only the receipt can tell. */
  async has(): Promise<boolean> {
    return false;
  }

  async scan(wanted: number, nowMs: number, watching?: Watching): Promise<Found> {
    const { lockPath, order } = this.#options;
    const names = await this.#room.list(() => this.#list(this.#path, watching));
    const locks = await this.#list(lockPath, watching);
    if (names === null || locks === null) {
      await this.ensure();
      return { ready: [], nextDueMs: nowMs }; // look again at once: it can be watched now
    }
    const claimed = new Set(locks);
    const items = names
      .map((name) => flatName(order, name))
      .filter((item) => item !== null)
      .filter(({ name }) => !claimed.has(name))
      .sort(byTurn);
    const ready = items
      .filter(({ dueMs }) => dueMs <= nowMs)
      .slice(0, wanted)
      .map(
        ({ name, key, dueMs }): Waiting => ({
          id: name,
          path: childOf(this.#path, name),
          claimPath: childOf(lockPath, name),
          tries: 0,
          key,
          dueMs,
        }),
      );
    const nextDueMs = items.find(({ dueMs }) => dueMs > nowMs)?.dueMs ?? null;
    return { ready, nextDueMs };
  }

  async count(): Promise<{ waiting: number; claimed: number }> {
    const { lockPath, order } = this.#options;
    const names = (await this.#room.list(() => this.#list(this.#path))) ?? [];
    const locks = new Set(await this.#list(lockPath));
    const items = names.filter((name) => flatName(order, name) !== null);
    const claimed = items.filter((name) => locks.has(name)).length;
    return { waiting: items.length - claimed, claimed };
  }

  encode(data: Buffer | null): Buffer {
    return encodePayload([data ?? Buffer.alloc(0)]);
  }

  decode(data: Buffer | null): readonly Buffer[] | null {
    return decodePayload(data);
  }

  async #list(path: string, watching?: Watching): Promise<readonly string[] | null> {
    if (watching !== undefined) return watching.children(path);
    try {
      return await this.#client.children(path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}
