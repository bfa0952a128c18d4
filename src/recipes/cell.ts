/**
 * One node that is changed by compare-and-set: what counters and shared values stand on.
 *
 *   <path>                    the value
 *   <path>/receipt-<uuid>     one for each writer, ephemeral (receipt.ts)
 *
 * A change reads the node, makes the next value of it, and sets that under the version read, together
 * with the writer's receipt. Somebody else in between, and it is tried again, after a pause, `triesMax`
 * times. When the reply is lost the receipt says whether the change took place, so that no change is
 * made twice, and none that was made is reported as failed. Only when the session ended before it could
 * say so, and the node does not tell either, the outcome is unknown: CounterError OUTCOME_UNKNOWN.
 *
 * With `isExact: false` there is no receipt, and a change of unknown outcome is made again: for values
 * of which some may be skipped, and none used twice.
 */

import {
  type Acl,
  type Client,
  type DataAndStat,
  isZkError,
  type StatView,
} from '../client/index.ts';
import { Backoff, type Clock, systemClock, unlessAborted } from '../support/index.ts';
import { CounterError } from './counter-error.ts';
import { withParents } from './parents.ts';
import { pause } from './pause.ts';
import { Receipt } from './receipt.ts';
import { whileLinked } from './while-linked.ts';

export interface CellOptions {
  /** What the node holds when it is made. */
  readonly seed: Buffer;
  readonly acl?: readonly Acl[] | undefined;
  readonly isExact?: boolean;
  readonly triesMax?: number | undefined;
  readonly clock?: Clock | undefined;
}

export interface UpdateOptions {
  /** Calls it off. A change that has left may still take place. */
  readonly signal?: AbortSignal;
  /** Tries before it is given up. */
  readonly triesMax?: number;
}

export interface Seen {
  readonly data: Buffer;
  readonly stat: StatView;
}

export interface Updated {
  /** False: the change wanted none, and nothing was. */
  readonly isChanged: boolean;
  readonly before: Buffer;
  readonly after: Buffer;
  /** The node's version with `after`. */
  readonly version: number;
  readonly tries: number;
}

/** The next value, or undefined to leave it as it is. */
export type Change = (data: Buffer, stat: StatView) => Buffer | undefined;

/** Who waits for the node may call that off: without a link it takes as long as the outage. */
interface Wait {
  readonly signal?: AbortSignal;
}

/** A change under way; while it is written nobody knows whether it took place. */
interface Attempt {
  isWriting: boolean;
}

/** How often the node may be deleted between making and reading it. */
const deletedMax = 100;
/** How often making the node is tried again when its reply was lost. */
const createTriesMax = 10;
const noSignal = new AbortController().signal;

export class Cell {
  readonly path: string;
  readonly #client: Client;
  readonly #options: CellOptions;
  readonly #clock: Clock;
  readonly #receipt: Receipt;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(client: Client, path: string, options: CellOptions) {
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#receipt = new Receipt(client, path, options.acl, false);
  }

  /** The value; the seed where there is no node yet. */
  async read(): Promise<Buffer> {
    return (await this.#get())?.data ?? this.#options.seed;
  }

  /** The value and its Stat; made, with the seed, where there is none. */
  async ensure(wait: Wait = {}): Promise<Seen> {
    for (let tries = 1; tries <= deletedMax; tries++) {
      const found = await this.#get(wait);
      if (found !== null) return { data: found.data ?? Buffer.alloc(0), stat: found.stat };
      await this.create(this.#options.seed, wait);
    }
    throw new CounterError('CONTENTION', this.path, { detail: 'somebody keeps deleting it' });
  }

  /** False: there is one already. Where a reply was lost, nobody knows who made it: false, too. */
  async create(data: Buffer, wait: Wait = {}): Promise<boolean> {
    const { acl } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        await withParents(this.#client, this.path, acl, () =>
          this.#client.create(this.path, data, { ...wait, ...(acl && { acl }) }),
        );
        return true;
      } catch (error) {
        if (isZkError(error, 'NODE_EXISTS')) return false;
        // It may never have arrived: the next try finds out.
        const isUnknown = isZkError(error) && error.outcomeUnknown;
        if (!isUnknown || error.code === 'SESSION_EXPIRED' || tries === createTriesMax) throw error;
      }
    }
  }

  /** One change at a time: those of one writer would only get in each other's way. */
  update(change: Change, options: UpdateOptions = {}): Promise<Updated> {
    const attempt: Attempt = { isWriting: false };
    const done = this.#tail.then(() => this.#update(change, options, attempt));
    this.#tail = done.catch(() => {});
    const { signal } = options;
    return signal ? this.#unlessCalledOff(done, attempt, signal) : done;
  }

  /** A write that is on its way may well arrive: who calls it off is told what came of it, or that nobody knows. */
  async #unlessCalledOff(
    done: Promise<Updated>,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<Updated> {
    try {
      return await unlessAborted(done, signal);
    } catch (error) {
      if (!attempt.isWriting) throw error;
      const settled = done.then(
        () => {},
        () => {},
      );
      await whileLinked(this.#client, settled);
      if (attempt.isWriting) {
        throw new CounterError('OUTCOME_UNKNOWN', this.path, { cause: error });
      }
      return done;
    }
  }

  /** Takes the receipt away, once changes that are under way are done. */
  async close(): Promise<void> {
    await this.#tail;
    await this.#receipt.close();
  }

  async #update(
    change: Change,
    { signal, triesMax }: UpdateOptions,
    attempt: Attempt,
  ): Promise<Updated> {
    const max = triesMax ?? this.#options.triesMax ?? 100;
    const backoff = new Backoff({ firstMs: 1, maxMs: 50 });
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      const seen = await this.ensure();
      signal?.throwIfAborted();
      const after = change(seen.data, seen.stat);
      const before = seen.data;
      const { version } = seen.stat;
      if (after === undefined) return { isChanged: false, before, after: before, version, tries };
      if (version === -1) throw new CounterError('VERSION_SPENT', this.path);
      attempt.isWriting = true;
      const isDone = await this.#set(seen, after).finally(() => {
        attempt.isWriting = false;
      });
      if (isDone) {
        return { isChanged: true, before, after, version: (version + 1) | 0, tries };
      }
      if (tries >= max)
        throw new CounterError('CONTENTION', this.path, { detail: `${tries} tries` });
      await pause(this.#clock, backoff.next(), signal ?? noSignal);
    }
  }

  /** False: somebody else was quicker, or, where that does no harm, it is not known. */
  async #set({ stat, data }: Seen, after: Buffer): Promise<boolean> {
    const set = { op: 'set', path: this.path, data: after, version: stat.version } as const;
    try {
      if (this.#options.isExact === false) await this.#client.multi([set]);
      else await this.#receipt.run([set]);
      return true;
    } catch (error) {
      if (isZkError(error, 'BAD_VERSION', 'NO_NODE')) return false;
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
      if (this.#options.isExact === false) return false;
      if (await this.#isUntouched({ stat, data }, after)) return false;
      throw new CounterError('OUTCOME_UNKNOWN', this.path, { cause: error });
    }
  }

  /** True when the node alone proves that the change did not take place. */
  async #isUntouched({ stat }: Seen, after: Buffer): Promise<boolean> {
    try {
      await this.#client.barrier();
      const now = await this.#get();
      if (now === null || now.stat.czxid !== stat.czxid) return false;
      if (now.stat.version === stat.version) return true;
      // One change since, and not ours. After more than one, ours may have been among them.
      const isOne = now.stat.version === ((stat.version + 1) | 0);
      return isOne && !(now.data ?? Buffer.alloc(0)).equals(after);
    } catch (error) {
      if (isZkError(error)) return false; // it cannot be asked, so it stays unknown
      throw error;
    }
  }

  async #get(wait: Wait = {}): Promise<DataAndStat | null> {
    try {
      return await this.#client.get(this.path, wait);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}
