/**
 * The plain queue: an item is removed as it is taken. Curator's SimpleDistributedQueue, and the recipe
 * of ZooKeeper's own pages.
 *
 *   <path>/qn-<seq>                an item, persistent; data: as it was put
 *   <path>-receipts/receipt-…      what each user's last write was, ephemeral (receipt.ts)
 *
 * An item goes to one taker, at most once: a taker that dies with it takes it along. Where that must not
 * be, use `Queue`. A lost reply neither doubles nor loses an item, as long as the session lives.
 *
 * All items stand in one list, which must fit into a reply: more are refused (LIST_TOO_LONG), and puts
 * from nine tenths of it (queue-list-room.ts). Every put wakes everyone who waits.
 */

import { type Acl, type Client, checkClient, type DataInput, isZkError } from '../client/index.ts';
import { childOf, frameBytesMax } from '../protocol/index.ts';
import { type Clock, checkOptions, unlessAborted } from '../support/index.ts';
import { bounded, lookUntil } from './bounded-wait.ts';
import type { WaitOptions } from './deadline.ts';
import { inOrder } from './line.ts';
import { simpleQueueTable, waitTable } from './option-tables.ts';
import { ensureNode, withParents } from './parents.ts';
import { QueueError } from './queue-error.ts';
import { ListRoom } from './queue-list-room.ts';
import { Receipt } from './receipt.ts';

export interface SimpleQueueOptions {
  /** The longest list that every client of the queue takes. 1 MiB less a byte. */
  readonly listBytesMax?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

const prefix = 'qn-';
/** The longest name of an item, and the four bytes of its length. */
const itemBytes = 4 + prefix.length + 11;
/** How often every item of a list may be taken by others. */
const roundsMax = 100;

export class SimpleQueue {
  readonly path: string;
  readonly #client: Client;
  readonly #options: SimpleQueueOptions;
  readonly #receipt: Receipt;
  readonly #room: ListRoom;
  /** Puts go one after the other: each knows then what the ones before it have left. */
  #tail: Promise<unknown> = Promise.resolve();
  /** Puts that wait for their turn, and how many may go before the list is looked at again. */
  #putting = 0;
  #permits = 0;
  readonly #ended = new AbortController();

  constructor(client: Client, path: string, options: SimpleQueueOptions = {}) {
    checkClient('SimpleQueue', client);
    checkOptions('SimpleQueue', options, simpleQueueTable);
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#receipt = new Receipt(client, `${path}-receipts`, options.acl);
    const { listBytesMax = frameBytesMax } = options;
    this.#room = new ListRoom(client, path, { listBytesMax, itemBytes });
  }

  async put(data: DataInput): Promise<void> {
    this.#ended.signal.throwIfAborted();
    this.#putting += 1;
    const done = this.#tail.then(() => this.#put(data));
    this.#tail = done.catch(() => {});
    try {
      await done;
    } finally {
      this.#putting -= 1;
      if (this.#putting === 0) this.#permits = 0; // by the next one, others may have taken the room
    }
  }

  async #put(data: DataInput): Promise<void> {
    const { acl } = this.#options;
    const path = childOf(this.path, prefix);
    const create = { op: 'create', path, data, mode: 'persistentSequential' } as const;
    if (this.#permits === 0) this.#permits = await this.#room.forPuts();
    this.#permits -= 1;
    try {
      await withParents(this.#client, path, acl, () =>
        this.#receipt.run([{ ...create, ...(acl && { acl }) }]),
      );
    } catch (error) {
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
      throw new QueueError('OUTCOME_UNKNOWN', this.path, { cause: error });
    }
  }

  /** Waits for an item, and removes it. */
  async take(options: WaitOptions = {}): Promise<Buffer | null> {
    checkOptions('take', options, waitTable);
    const timedOut = () => new QueueError('TIMEOUT', this.path);
    const setting = { clock: this.#options.clock, timedOut, ended: this.#ended.signal };
    return bounded(options, setting, async (signal) => {
      for (;;) {
        const taken = await this.#tryTake(signal);
        if (taken !== null) return taken.data;
        // Only looks for one here: what is removed must not be lost to a wait that was called off.
        await lookUntil(this.#client, signal, async (watching) => {
          const names = await this.#room.list(() => watching.children(this.path));
          if (names === null) await this.#make();
          return names !== null && items(names).length > 0 ? true : undefined;
        });
      }
    });
  }

  /** Removes the first item; null when there is none. */
  tryTake(): Promise<{ readonly data: Buffer | null } | null> {
    return this.#tryTake(this.#ended.signal);
  }

  /** Called off while it looks, and not while it removes: what it has removed must not be lost. */
  async #tryTake(signal: AbortSignal): Promise<{ readonly data: Buffer | null } | null> {
    signal.throwIfAborted();
    for (let round = 0; round < roundsMax; round++) {
      const names = await unlessAborted(this.#names(), signal);
      if (names.length === 0) return null;
      for (const name of names) {
        const path = childOf(this.path, name);
        const node = await unlessAborted(this.#get(path), signal);
        if (node === null) continue;
        try {
          await this.#receipt.run([{ op: 'delete', path, version: node.stat.version }]);
          return { data: node.data };
        } catch (error) {
          if (isZkError(error, 'NO_NODE', 'BAD_VERSION')) continue; // another got it
          if (!isZkError(error) || !error.outcomeUnknown) throw error;
          throw new QueueError('OUTCOME_UNKNOWN', path, { cause: error, detail: 'it may be ours' });
        }
      }
    }
    throw new QueueError('CONTENTION', this.path);
  }

  /** The first item, which stays; null when there is none. */
  async peek(): Promise<{ readonly data: Buffer | null } | null> {
    for (const name of await this.#names()) {
      const node = await this.#get(childOf(this.path, name));
      if (node !== null) return { data: node.data };
    }
    return null;
  }

  async size(): Promise<number> {
    return (await this.#names()).length;
  }

  /** Ends every wait. */
  async close(): Promise<void> {
    this.#ended.abort(new QueueError('CLOSED', this.path));
    await this.#tail;
    await this.#receipt.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** So that it can be watched. */
  async #make(): Promise<void> {
    await ensureNode(this.#client, this.path, this.#options.acl);
  }

  async #names(): Promise<string[]> {
    try {
      return items(await this.#room.list(() => this.#client.children(this.path)));
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    }
  }

  async #get(path: string) {
    try {
      return await this.#client.get(path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}

function items(names: readonly string[]): string[] {
  return inOrder(
    names.filter((name) => name.startsWith(prefix)),
    [prefix],
  );
}
