/**
 * A lock: one holds it at a time, in the order asked.
 *
 * Each contender makes an ephemeral sequential node, `<path>/_c_<uuid>-lock-<number>`, as Curator's
 * InterProcessMutex does, so that both can contend. The lowest holds the lock; every other watches one or
 * two nodes ahead of it, so that letting go wakes three waiters and not all (line.ts): the next, which has
 * the lock then and asks nothing more, the one behind it, which knows then that it is next, and the third,
 * which looks at the line.
 *
 * The lock is as good as the session. Once the session may be over, somebody else may hold it: the grant's
 * `signal` aborts at that moment, and the work has to listen. What must not be written by a holder of
 * before is written through `guard`, or to something that refuses an older `fencingToken`.
 *
 * NOT promised: that nobody else works at the same time. A process that was stopped, or does not listen,
 * may go on after its lock was given away; that is what the token is for. Nor is it re-entrant: who asks
 * twice, waits for itself. `ReentrantLock` is.
 */

import { type Acl, type Client, checkClient, type DataInput, isZkError } from '../client/index.ts';
import { type Clock, checkOptions, systemClock } from '../support/index.ts';
import { acquire, checkLockPath, defaultData, holding, tryAcquire } from './acquire.ts';
import { type Contender, describe } from './contenders.ts';
import type { TryOptions, WaitOptions } from './deadline.ts';
import { type Grant, revokeMessage } from './grant.ts';
import { Line, oneAtATime } from './line.ts';
import { lockTable, tryTable, waitTable } from './option-tables.ts';

export interface LockOptions {
  /** What our node says of us, for whoever looks. `host:pid`. */
  readonly data?: DataInput;
  /** Open to anyone unless said. */
  readonly acl?: readonly Acl[];
  /** For tests. */
  readonly clock?: Clock;
}

/** How often, and how far down the line, a holder is looked for that may let go in between. */
const holderTriesMax = 10;

export class Lock {
  readonly path: string;
  readonly #line: Line;
  readonly #data: DataInput;
  readonly #clock: Clock;

  constructor(client: Client, path: string, options: LockOptions = {}) {
    checkClient('Lock', client);
    checkOptions('Lock', options, lockTable);
    checkLockPath(path);
    this.path = path;
    this.#line = new Line(client, path, options.acl ? { acl: options.acl } : {});
    this.#data = options.data ?? defaultData;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Waits for the lock. Rejects with a `LockTimeoutError` that names the holder when `timeoutMs` are over,
   * with the signal's reason when that aborts, with a `NotHeldError` when our place in line is lost.
   */
  async acquire(options: WaitOptions = {}): Promise<Grant> {
    checkOptions('acquire', options, waitTable);
    return acquire(this.#line, oneAtATime, { data: this.#data }, options, this.#clock);
  }

  /** The lock if it is free at once, else null. Without a link it waits for one; `signal` ends that. */
  async tryAcquire(options: TryOptions = {}): Promise<Grant | null> {
    checkOptions('tryAcquire', options, tryTable);
    return tryAcquire(this.#line, oneAtATime, { ...options, data: this.#data });
  }

  /** Waits for the lock, runs `work`, lets go. Rejects with what `work` threw, or when the lock was lost meanwhile. */
  async hold<T>(work: (lock: Grant) => Promise<T> | T, options: WaitOptions = {}): Promise<T> {
    return holding(await this.acquire(options), work);
  }

  /** Whoever holds it now; null when it is free, or changes hands faster than can be asked. */
  async holder(): Promise<Contender | null> {
    for (let tries = 1; tries <= holderTriesMax; tries++) {
      const names = await this.#line.names();
      if (names.length === 0) return null;
      // Read at one moment: the first of them that is still there, is the holder at that moment.
      const first = names.slice(0, holderTriesMax);
      const [holder] = await describe(this.#line, first, this.#clock.wallMs());
      if (holder !== undefined) return holder;
    }
    return null;
  }

  /** Those who wait, in their order. */
  async queue(): Promise<Contender[]> {
    const [, ...waiting] = await this.#line.names();
    return describe(this.#line, waiting, this.#clock.wallMs());
  }

  /**
   * Asks the holder to let go, as Curator's Revoker does: its `revocation` aborts. Returns whom it asked,
   * null when the lock is free. Whether and when it lets go is up to the holder.
   */
  async requestRevocation(): Promise<Contender | null> {
    const holder = await this.holder();
    if (holder === null) return null;
    try {
      await this.#line.client.set(holder.path, revokeMessage);
      return holder;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null; // it has let go by itself
      throw error;
    }
  }
}
