/**
 * Taking items, and what a taker may do to those it has: the one place that moves an item.
 *
 * In: items as the lists show them. Out: those of them that are ours now. An item that was tried too
 * often, or whose bytes cannot be read, is not handed out but moved to the dead letters.
 */

import { randomUUID } from 'node:crypto';
import { type Client, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import { unbounded } from '../support/index.ts';
import type { DeadLetters } from './queue-dead-letters.ts';
import { QueueError } from './queue-error.ts';
import { type ItemHost, QueueItem, type RequeueOptions } from './queue-item.ts';
import type { QueueStore, Waiting } from './queue-store.ts';

/** How often a claim is tried, and asked for, when links break under it. */
const triesMax = 10;

/** What came of a try; `unknown` when nothing did, and why nobody could know at first. */
interface Tried {
  readonly result: QueueItem | null;
  readonly unknown?: Error;
}

const notToBeHad: Tried = { result: null };

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

  /**
   * Null when it is not to be had: somebody else has it, it is gone, or it was buried. A try that the
   * server never heard of changes nothing, so that no watch would tell anybody to look at the item again:
   * it is made again here.
   */
  async #claim(waiting: Waiting): Promise<QueueItem | null> {
    for (let tries = 1; ; tries++) {
      const { result, unknown } = await this.#tryToClaim(waiting);
      if (unknown === undefined) return result;
      if (tries === triesMax) throw unknown;
    }
  }

  async #tryToClaim(waiting: Waiting): Promise<Tried> {
    const { client } = this;
    const { path, claimPath, tries } = waiting;
    const node = await client.get(path).catch((error) => {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    });
    if (node === null) return notToBeHad;
    const { data: raw, stat } = node;
    const { version } = stat;
    const parts = this.#store.decode(raw);
    if (parts === null || tries + version >= this.#options.triesMax) {
      return this.#buryUnclaimed(waiting, raw, version);
    }
    const { sessionId, sessionSignal: signal } = client;
    const claim = { waiting, version: version + 1, raw, parts };
    const mark = randomUUID();
    let unknown: Error = new QueueError('CLAIM_LOST', path);
    try {
      await client.multi([
        { op: 'set', path, data: raw, version },
        { op: 'create', path: claimPath, data: mark, mode: 'ephemeral' },
      ]);
      // The session that we had before is the one that we have now, so the claim was made in it.
      if (sessionId !== undefined && sessionId === client.sessionId && !signal.aborted) {
        return { result: new QueueItem(this, { ...claim, signal }) };
      }
    } catch (error) {
      if (error instanceof MultiError && isTaken(error)) return notToBeHad;
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
      unknown = error;
    }
    const held = await this.#askFor(claimPath, mark);
    if (held === null) return { result: null, unknown };
    return { result: new QueueItem(this, { ...claim, signal: held }) };
  }

  /** The signal of the session that holds the claim, if it is ours. */
  async #askFor(claimPath: string, mark: string): Promise<AbortSignal | null> {
    for (let tries = 1; ; tries++) {
      try {
        await this.client.barrier(unbounded);
        const { data, stat } = await this.client.get(claimPath, unbounded);
        const { sessionId, sessionSignal } = this.client;
        const isOurs = String(data) === mark && stat.ephemeralOwner === sessionId;
        return isOurs && !sessionSignal.aborted ? sessionSignal : null;
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return null;
        if (!isZkError(error) || !error.retryable || tries === triesMax) throw error;
      }
    }
  }

  /** Nobody has it: its version sees to it that one alone moves it. */
  async #buryUnclaimed(waiting: Waiting, raw: Buffer | null, version: number): Promise<Tried> {
    const { id, path, tries } = waiting;
    try {
      await this.#dead.add({ id, data: raw, tries: tries + version }, [
        { op: 'delete', path, version },
      ]);
    } catch (error) {
      // Moved or not: it is one multi, so that it is in one place and not in two.
      if (isZkError(error) && error.outcomeUnknown) return { result: null, unknown: error };
      if (!(error instanceof MultiError) || !isTaken(error)) throw error;
    }
    return notToBeHad;
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
