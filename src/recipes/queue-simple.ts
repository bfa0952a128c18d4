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
 * All items stand in one list, which must fit into a reply: more are refused (LIST_TOO_LONG). Every put
 * wakes everyone who waits.
 */

import { type Acl, type Client, type DataInput, isZkError } from '../client/index.ts';
import { childOf, frameBytesMax, frameOverheadBytes } from '../protocol/index.ts';
import type { Clock } from '../support/index.ts';
import { bounded, lookUntil } from './bounded-wait.ts';
import { unlessAborted, type WaitOptions } from './deadline.ts';
import { inOrder } from './line.ts';
import { withParents } from './parents.ts';
import { QueueError } from './queue-error.ts';
import { Receipt } from './receipt.ts';

export interface SimpleQueueOptions {
  /** The longest list that every client of the queue takes. 1 MiB less a byte. */
  readonly listBytesMax?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

const prefix = 'qn-';
const listedBytes = 4 + prefix.length + 11;
/** How often every item of a list may be taken by others. */
const roundsMax = 100;

export class SimpleQueue {
  readonly path: string;
  readonly #client: Client;
  readonly #options: SimpleQueueOptions;
  readonly #receipt: Receipt;
  readonly #ended = new AbortController();

  constructor(client: Client, path: string, options: SimpleQueueOptions = {}) {
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#receipt = new Receipt(client, `${path}-receipts`, options.acl);
  }

  async put(data: DataInput): Promise<void> {
    this.#ended.signal.throwIfAborted();
    const { acl } = this.#options;
    const path = childOf(this.path, prefix);
    await this.#checkLength(1);
    const create = { op: 'create', path, data, mode: 'persistentSequential' } as const;
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
    const timedOut = () => new QueueError('TIMEOUT', this.path);
    const setting = { clock: this.#options.clock, timedOut, ended: this.#ended.signal };
    return bounded(options, setting, async (signal) => {
      for (;;) {
        const taken = await this.#tryTake(signal);
        if (taken !== null) return taken.data;
        // Only looks for one here: what is removed must not be lost to a wait that was called off.
        await lookUntil(this.#client, signal, async (watching) => {
          const names = await watching.children(this.path);
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
    await this.#receipt.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** So that it can be watched. A container, as Curator makes it. */
  async #make(): Promise<void> {
    const { acl } = this.#options;
    const create = () => this.#client.create(this.path, { mode: 'container', ...(acl && { acl }) });
    await withParents(this.#client, this.path, acl, create).catch((error) => {
      if (isZkError(error) && error.outcomeUnknown) return; // the next look finds out
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    });
  }

  async #names(): Promise<string[]> {
    await this.#checkLength(0);
    try {
      return items(await this.#client.children(this.path));
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

  async #checkLength(added: number): Promise<void> {
    const { listBytesMax = frameBytesMax } = this.#options;
    const count = ((await this.#client.exists(this.path))?.numChildren ?? 0) + added;
    const countMax = Math.floor((listBytesMax - frameOverheadBytes) / listedBytes);
    if (count <= countMax) return;
    const detail = `${count} items are more than the ${countMax} that ${listBytesMax} bytes hold`;
    throw new QueueError('LIST_TOO_LONG', this.path, { detail });
  }
}

function items(names: readonly string[]): string[] {
  return inOrder(
    names.filter((name) => name.startsWith(prefix)),
    [prefix],
  );
}
