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
 * from nine tenths of it, so that producers who do not know of each other don't lock the takers out.
 *
 * An item's tries are counted by its version. Requeued it is a new node, whose count starts over.
 * Every put wakes everyone who waits: for many takers use the layout `buckets`.
 */

import { type Acl, type Client, isZkError, type MultiOp } from '../client/index.ts';
import { childOf, frameOverheadBytes, nameOf } from '../protocol/index.ts';
import type { Watching } from './bounded-wait.ts';
import { withParents } from './parents.ts';
import { QueueError } from './queue-error.ts';
import { byTurn, delayText, flatName, type QueueOrder } from './queue-names.ts';
import { decodePayload, encodePayload } from './queue-payload.ts';
import type { Commit, Entry, Found, QueueStore, Waiting } from './queue-store.ts';

/** The longest name of an item, and the four bytes of its length before it. */
const listedBytes: Record<QueueOrder, number> = {
  fifo: 4 + 'queue-'.length + 11,
  priority: 4 + 'queue-'.length + 9 + 11,
  delay: 4 + 'queue-'.length + 13 + 11,
};

/**
 * Items are put up to this part of what a list holds. Others put between a look and the put behind it;
 * what they put must still leave a list that can be taken from.
 */
const putShare = 0.9;

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

  constructor(client: Client, path: string, options: FlatOptions) {
    this.#client = client;
    this.#path = path;
    this.#options = options;
    this.receiptsPath = options.lockPath;
  }

  async ensure(): Promise<void> {
    const { acl, lockPath } = this.#options;
    for (const path of [this.#path, lockPath]) {
      try {
        await withParents(this.#client, path, acl, () =>
          this.#client.create(path, acl ? { acl } : {}),
        );
      } catch (error) {
        if (isZkError(error) && error.outcomeUnknown) continue; // whoever needs it will find out
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  async place(entries: readonly Entry[], commit: Commit): Promise<string[]> {
    const { acl, order } = this.#options;
    // What is requeued has the name of its node, which goes in the same multi: the list does not grow by it.
    const added = entries.filter(({ id }) => flatName(order, id) === null).length;
    if (added > 0) await this.#checkLength(added, putShare);
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
    await this.#checkLength();
    const names = await this.#list(this.#path, watching);
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
    await this.#checkLength();
    const { lockPath, order } = this.#options;
    const names = (await this.#list(this.#path)) ?? [];
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

  async #checkLength(added = 0, share = 1): Promise<void> {
    const { order, listBytesMax } = this.#options;
    const items = ((await this.#client.exists(this.#path))?.numChildren ?? 0) + added;
    const held = Math.floor((listBytesMax - frameOverheadBytes) / listedBytes[order]);
    const itemsMax = Math.floor(held * share);
    if (items <= itemsMax) return;
    const detail =
      share === 1
        ? `${items} items are more than the ${held} that ${listBytesMax} bytes hold`
        : `${items} items are more than the ${itemsMax} up to which items are put; ${listBytesMax} bytes hold ${held}`;
    throw new QueueError('LIST_TOO_LONG', this.#path, { detail });
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
