/**
 * An item that was taken: ours until it is confirmed, returned, requeued or buried, or until our
 * session is over.
 *
 * Taking sets the item's data to what it was, under its version, and makes the claim, an ephemeral
 * node, in one multi. So the version counts the tries, durably, and is different for each taker: what
 * a taker does to the item it does under its own version, and after its claim is lost it can do nothing
 * (CLAIM_LOST). There is at most one taker for each try.
 *
 * What is NOT promised: that work stops when the claim is lost. Listen to `signal`.
 */

import { type Client, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { requeueTable } from './option-tables.ts';
import { QueueError } from './queue-error.ts';
import type { Waiting } from './queue-store.ts';

/** How often something is done again of which the reply was lost, and which did not take place. */
const triesMax = 10;

export interface RequeueOptions {
  /** In a queue by time: hand it out after so long. At once unless said. */
  readonly delayMs?: number;
  /** In a queue by priority: the new one. The old one unless said. */
  readonly priority?: number;
}

/** What an item needs of its queue. */
export interface ItemHost {
  readonly client: Client;
  requeue(item: QueueItem, removal: MultiOp[], options: RequeueOptions): Promise<void>;
  bury(item: QueueItem, removal: MultiOp[]): Promise<void>;
}

export interface Claim {
  readonly waiting: Waiting;
  /** The item's version since we took it. */
  readonly version: number;
  readonly raw: Buffer | null;
  readonly parts: readonly (Buffer | null)[];
  readonly signal: AbortSignal;
}

type State = 'held' | 'settling' | 'settled' | 'lost';

export class QueueItem {
  /** The same at every try: by it a taker can tell that it has done the work before. */
  readonly id: string;
  /** What was put; of an item that Curator put as several, the first. */
  readonly data: Buffer | null;
  readonly parts: readonly (Buffer | null)[];
  /** Which try this is, from 1. */
  readonly tries: number;
  /** Aborts at the moment from which another process may have the item. Looks at the clock when asked. */
  readonly signal: AbortSignal;
  readonly claim: Claim;
  readonly #host: ItemHost;
  #state: State = 'held';

  constructor(host: ItemHost, claim: Claim) {
    this.#host = host;
    this.claim = claim;
    this.id = claim.waiting.id;
    this.parts = claim.parts;
    this.data = claim.parts[0] ?? null;
    this.tries = claim.waiting.tries + claim.version;
    this.signal = claim.signal;
  }

  /** True until it is settled, one way or another, as far as this process can know. */
  get isHeld(): boolean {
    return this.#state === 'held' && !this.signal.aborted;
  }

  /** It is done: takes it out of the queue for good. */
  async confirm(): Promise<void> {
    const { client } = this.#host;
    await this.#settle(() => client.multi(this.#removal()));
  }

  /** Back to its place, for the next taker. The try counts. Not ours any more is fine. */
  async release(): Promise<void> {
    const { client } = this.#host;
    const { waiting, version } = this.claim;
    const ops: MultiOp[] = [
      { op: 'check', path: waiting.path, version },
      { op: 'delete', path: waiting.claimPath },
    ];
    try {
      await this.#settle(
        () => client.multi(ops),
        async () => (await client.exists(waiting.claimPath))?.ephemeralOwner !== client.sessionId,
      );
    } catch (error) {
      if (!(error instanceof QueueError) || error.code !== 'CLAIM_LOST') throw error;
    }
  }

  /** To the end of the queue. The tries go with it in the layout `buckets`. */
  async requeue(options: RequeueOptions = {}): Promise<void> {
    checkOptions('requeue', options, requeueTable);
    await this.#settle(() => this.#host.requeue(this, this.#removal(), options));
  }

  /** To the dead letters, at once. */
  async bury(): Promise<void> {
    await this.#settle(() => this.#host.bury(this, this.#removal()));
  }

  /** Returns it, unless it is settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === 'held') await this.release();
  }

  #removal(): MultiOp[] {
    const { waiting, version } = this.claim;
    return [
      { op: 'delete', path: waiting.claimPath },
      { op: 'delete', path: waiting.path, version },
    ];
  }

  /** Does it once: where a reply is lost, looks whether it was done, and does it again if it was not. */
  async #settle(act: () => Promise<unknown>, isDone = () => this.#isGone()): Promise<void> {
    if (this.#state === 'lost') throw this.#lost();
    if (this.#state !== 'held') throw new QueueError('SETTLED', this.claim.waiting.path);
    this.#state = 'settling';
    for (let tries = 1; ; tries++) {
      try {
        await act();
        break;
      } catch (error) {
        if (error instanceof MultiError && isForeign(error)) throw this.#lost(error);
        if (isZkError(error, 'SESSION_EXPIRED')) throw this.#lost(error);
        if (!isZkError(error) || !error.outcomeUnknown || tries === triesMax) {
          this.#state = 'held'; // nothing was done, or nobody knows: it may be tried again
          throw error;
        }
        if (await this.#ask(isDone, error)) break;
      }
    }
    this.#state = 'settled';
  }

  async #ask(isDone: () => Promise<boolean>, unknown: Error): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#host.client.barrier();
        const isSo = await isDone();
        // Only while the claim stood could nobody but us have done it: a client that goes on in a new
        // session may be looking at what the next taker did.
        if (this.signal.aborted) throw this.#lost(unknown);
        return isSo;
      } catch (error) {
        if (error instanceof QueueError) throw error;
        if (isZkError(error, 'SESSION_EXPIRED')) throw this.#lost(error);
        if (isZkError(error) && error.retryable && tries < triesMax) continue;
        this.#state = 'held';
        throw unknown;
      }
    }
  }

  async #isGone(): Promise<boolean> {
    return (await this.#host.client.exists(this.claim.waiting.path)) === null;
  }

  #lost(cause?: unknown): QueueError {
    this.#state = 'lost';
    const { path } = this.claim.waiting;
    return new QueueError('CLAIM_LOST', path, cause === undefined ? {} : { cause });
  }
}

/** The item or the claim is not as we left it. */
function isForeign(error: MultiError): boolean {
  return error.code === 'NO_NODE' || error.code === 'BAD_VERSION';
}
