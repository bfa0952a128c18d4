/**
 * Taking items, and what a taker may do to those it has: the one place that moves an item.
 *
 * In: items as the lists show them. Out: those of them that are ours now. An item that was tried too
 * often, or whose bytes cannot be read, is not handed out but moved to the dead letters.
 */

import { randomUUID } from 'node:crypto';
import { type Client, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import type { DeadLetters } from './queue-dead-letters.ts';
import { type ItemHost, QueueItem, type RequeueOptions } from './queue-item.ts';
import type { QueueStore, Waiting } from './queue-store.ts';

/** How often it is asked whether a claim was made, when links break under the question. */
const asksMax = 10;

export interface ClaimsOptions {
  readonly triesMax: number;
  keyOf(options: RequeueOptions): { key: string; dueMs: number };
}

export class Claims implements ItemHost {
  readonly client: Client;
  readonly #store: QueueStore;
  readonly #dead: DeadLetters;
  readonly #options: ClaimsOptions;

  constructor(client: Client, store: QueueStore, dead: DeadLetters, options: ClaimsOptions) {
    this.client = client;
    this.#store = store;
    this.#dead = dead;
    this.#options = options;
  }

  /** Those of the list that could be had, in its order. When one fails, none is kept. */
  async claim(list: readonly Waiting[]): Promise<QueueItem[]> {
    const settled = await Promise.allSettled(list.map((waiting) => this.#claim(waiting)));
    const items = settled.flatMap((one) => (one.status === 'fulfilled' ? (one.value ?? []) : []));
    const failed = settled.find((one) => one.status === 'rejected');
    if (failed === undefined) return items;
    // Where that fails too, the session is over, and the items go back with it.
    await Promise.allSettled(items.map((item) => item.release()));
    throw failed.reason;
  }

  /** Null when it is not to be had: somebody else has it, it is gone, or it was buried. */
  async #claim(waiting: Waiting): Promise<QueueItem | null> {
    const { client } = this;
    const { path, claimPath, tries } = waiting;
    const node = await client.get(path).catch((error) => {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    });
    if (node === null) return null;
    const { data: raw, stat } = node;
    const { version } = stat;
    const parts = this.#store.decode(raw);
    if (parts === null || tries + version >= this.#options.triesMax) {
      await this.#buryUnclaimed(waiting, raw, version);
      return null;
    }
    const { sessionId, sessionSignal: signal } = client;
    const claim = { waiting, version: version + 1, raw, parts };
    const mark = randomUUID();
    try {
      await client.multi([
        { op: 'set', path, data: raw, version },
        { op: 'create', path: claimPath, data: mark, mode: 'ephemeral' },
      ]);
      // The session that we had before is the one that we have now, so the claim was made in it.
      if (sessionId !== undefined && sessionId === client.sessionId && !signal.aborted) {
        return new QueueItem(this, { ...claim, signal });
      }
    } catch (error) {
      if (error instanceof MultiError && isTaken(error)) return null;
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
    }
    const held = await this.#askFor(claimPath, mark);
    return held === null ? null : new QueueItem(this, { ...claim, signal: held });
  }

  /** The signal of the session that holds the claim, if it is ours. */
  async #askFor(claimPath: string, mark: string): Promise<AbortSignal | null> {
    for (let tries = 1; ; tries++) {
      try {
        await this.client.barrier();
        const { data, stat } = await this.client.get(claimPath);
        const { sessionId, sessionSignal } = this.client;
        const isOurs = String(data) === mark && stat.ephemeralOwner === sessionId;
        return isOurs && !sessionSignal.aborted ? sessionSignal : null;
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return null;
        if (!isZkError(error) || !error.retryable || tries === asksMax) throw error;
      }
    }
  }

  /** Nobody has it: its version sees to it that one alone moves it. */
  async #buryUnclaimed(waiting: Waiting, raw: Buffer | null, version: number): Promise<void> {
    const { id, path, tries } = waiting;
    try {
      await this.#dead.add({ id, data: raw, tries: tries + version }, [
        { op: 'delete', path, version },
      ]);
    } catch (error) {
      if (error instanceof MultiError && isTaken(error)) return;
      // Moved or not: it is one multi, so that it is in one place and not in two.
      if (isZkError(error) && error.outcomeUnknown) return;
      throw error;
    }
  }

  async requeue(item: QueueItem, removal: MultiOp[], options: RequeueOptions): Promise<void> {
    const { id, tries, claim } = item;
    const at = this.#options.keyOf(options);
    const isMoved = options.priority === undefined && claim.waiting.key !== '' && at.dueMs === 0;
    const key = isMoved ? claim.waiting.key : at.key;
    const entry = { id, tries, data: claim.raw, key, dueMs: at.dueMs };
    await this.#store.place([entry], (ops) => this.client.multi([...ops, ...removal]));
  }

  async bury({ id, tries, claim }: QueueItem, removal: MultiOp[]): Promise<void> {
    await this.#dead.add({ id, data: claim.raw, tries }, removal);
  }
}

function isTaken({ code }: MultiError): boolean {
  return code === 'NO_NODE' || code === 'BAD_VERSION' || code === 'NODE_EXISTS';
}
