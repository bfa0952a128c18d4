/**
 * The way into a queue: puts that come while one is under way go together in the next, as one multi.
 *
 * In: entries, one by one or many. Out: their ids, in the order in which they were handed in. Each is
 * put once, though a reply may be lost: the receipt tells (receipt.ts). Only where the session ended
 * before it could tell, and none of the items is found, the put rejects with OUTCOME_UNKNOWN.
 */

import { type Acl, type Client, isZkError } from '../client/index.ts';
import { type Deferred, deferred } from '../support/index.ts';
import { QueueError } from './queue-error.ts';
import type { Entry, QueueStore } from './queue-store.ts';
import { Receipt } from './receipt.ts';

/** Far below the frame, so that paths and the Stat of every reply fit as well. */
const batchBytesMax = 512 * 1024;
const batchItemsMax = 500;
/** An item's own name, and the lengths, flags and numbers around it, or the Stat in its reply. */
const itemBytes = 200;
const waitingMax = 100_000;
/** How often the queue may be deleted under us, or the session end, before a put is given up. */
const goneMax = 10;

interface Put {
  readonly entry: Entry;
  readonly done: Deferred<string>;
  isCalledOff: boolean;
}

export class Puts {
  readonly #client: Client;
  readonly #store: QueueStore;
  readonly #path: string;
  readonly #receipt: Receipt;
  readonly #ensure: (isGone: boolean) => Promise<void>;
  /** What an item takes beside its data. */
  readonly #itemBytes: number;
  #waiting: Put[] = [];
  #draining: Promise<void> | undefined;

  /** `ensure` makes the queue, and does so again when it is gone. */
  constructor(
    client: Client,
    store: QueueStore,
    path: string,
    ensure: (isGone: boolean) => Promise<void>,
    acl?: readonly Acl[],
  ) {
    this.#ensure = ensure;
    this.#client = client;
    this.#store = store;
    this.#path = path;
    this.#itemBytes = itemBytes + Buffer.byteLength(client.chroot + path) + aclBytes(acl);
    this.#receipt = new Receipt(client, store.receiptsPath, acl);
  }

  /** `callOff` keeps it from being sent, if it has not been. */
  put(entry: Entry): { readonly done: Promise<string>; readonly callOff: () => void } {
    if (this.#waiting.length >= waitingMax) throw new QueueError('OVERLOADED', this.#path);
    const put: Put = { entry, done: deferred(), isCalledOff: false };
    this.#waiting.push(put);
    this.#draining ??= this.#drain();
    const callOff = () => {
      put.isCalledOff = true;
    };
    return { done: put.done.promise, callOff };
  }

  /** Waits for what was handed in; then the receipt goes. */
  async close(): Promise<void> {
    await this.#draining;
    await this.#receipt.close();
  }

  async #drain(): Promise<void> {
    // A turn later, so that what is put in one go is one batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      if (batch.length === 0) continue;
      try {
        const ids = await this.#place(batch);
        for (const [i, put] of batch.entries()) put.done.resolve(ids[i]!);
      } catch (error) {
        for (const put of batch) put.done.reject(error);
      }
    }
    this.#draining = undefined; // in this very turn: whoever puts in the next one begins anew
  }

  /** The first ones, as long as they have the same key and fit. */
  #nextBatch(): Put[] {
    const batch: Put[] = [];
    let bytes = 0;
    let taken = 0;
    for (const put of this.#waiting) {
      const { key, data } = put.entry;
      bytes += this.#itemBytes + (data?.length ?? 0);
      if (batch.length > 0) {
        if (key !== batch[0]!.entry.key || bytes > batchBytesMax) break;
        if (batch.length === batchItemsMax) break;
      }
      taken += 1;
      if (!put.isCalledOff) batch.push(put);
    }
    this.#waiting = this.#waiting.slice(taken);
    return batch;
  }

  /** Puts those of the batch for which there is room, and keeps only these in it: the others wait again. */
  async #place(batch: Put[]): Promise<string[]> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#ensure(tries > 1);
        await this.#receipt.ready(); // by these a store knows how many producers there are
        const count = await this.#store.fitting(batch.map(({ entry }) => entry));
        this.#waiting.unshift(...batch.splice(count));
        const entries = batch.map(({ entry }) => entry);
        return await this.#store.place(entries, (ops) => this.#receipt.run(ops));
      } catch (error) {
        if (isZkError(error, 'NO_NODE') && tries < goneMax) continue;
        if (this.#isForNext(error) && tries < goneMax) continue;
        if (!isZkError(error) || !error.outcomeUnknown) throw error;
        const entries = batch.map(({ entry }) => entry);
        if (await this.#isThere(entries)) return entries.map(({ id }) => id);
        throw new QueueError('OUTCOME_UNKNOWN', this.#path, { cause: error });
      }
    }
  }

  /** The session ended before anything was sent, and the client has begun another. */
  #isForNext(error: unknown): boolean {
    const { name } = this.#client.state;
    const isRenewed = name === 'connecting' || name === 'connected';
    return isRenewed && isZkError(error, 'SESSION_EXPIRED') && !error.outcomeUnknown;
  }

  /** One of them there means all of them: they went in one multi. None may mean that they were taken. */
  async #isThere(entries: readonly Entry[]): Promise<boolean> {
    try {
      await this.#client.barrier();
      return await this.#store.has(new Set(entries.map(({ id }) => id)));
    } catch (error) {
      if (isZkError(error)) return false; // not found, and not known: the caller hears of it
      throw error;
    }
  }
}

/** As every create has it anew: three numbers or lengths for each entry, and its two texts. */
function aclBytes(acl: readonly Acl[] = []): number {
  return acl.reduce(
    (sum, { id }) => sum + 12 + Buffer.byteLength(id.scheme ?? '') + Buffer.byteLength(id.id ?? ''),
    0,
  );
}
