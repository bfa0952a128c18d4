/**
 * Several locks as one: all of them or none.
 *
 * They are taken one after the other, in the order of their paths, whatever order they were named in: two
 * that want the same locks then never wait for each other in a circle. They are the same locks as
 * `new Lock(client, path)` takes, and Curator's InterProcessMutex. When one cannot be had, or one that was
 * had is lost meanwhile, those taken are let go of, the last first.
 *
 * NOT promised: that it is free of deadlock with others who take the same locks in another order.
 */

import { ArgumentError, type Client, checkClient } from '../client/index.ts';
import { checkOptions, onAbort, systemClock } from '../support/index.ts';
import { holding } from './acquire.ts';
import { Deadline, type TryOptions, type WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import { GrantSet } from './grant-set.ts';
import { Lock, type LockOptions } from './lock.ts';
import { lockTable, tryTable, waitTable } from './option-tables.ts';
import { whileLinked } from './while-linked.ts';

export class MultiLock {
  /** In the order in which they are taken. */
  readonly locks: readonly Lock[];
  readonly #client: Client;
  readonly #options: LockOptions;

  constructor(client: Client, paths: readonly string[], options: LockOptions = {}) {
    checkClient('MultiLock', client);
    checkOptions('MultiLock', options, lockTable);
    if (!Array.isArray(paths) || paths.length === 0) {
      throw new ArgumentError('paths', 'a list of at least one path is wanted');
    }
    if (new Set(paths).size < paths.length) {
      throw new ArgumentError('paths', 'one is named twice, and would wait for itself');
    }
    this.#client = client;
    this.#options = options;
    this.locks = [...paths].sort().map((path) => new Lock(client, path, options));
  }

  /** Waits for all. `timeoutMs` is for all together; the error names the lock that was in the way. */
  async acquire(options: WaitOptions = {}): Promise<GrantSet> {
    checkOptions('acquire', options, waitTable);
    const deadline = new Deadline(options, this.#options.clock ?? systemClock);
    const take = async (lock: Lock, signal: AbortSignal) => {
      const { leftMs } = deadline;
      return lock.acquire(leftMs === undefined ? { signal } : { signal, timeoutMs: leftMs });
    };
    return this.#all(take, options.signal).finally(() => deadline.stop()) as Promise<GrantSet>;
  }

  /** All of them at once, or null. */
  async tryAcquire(options: TryOptions = {}): Promise<GrantSet | null> {
    checkOptions('tryAcquire', options, tryTable);
    return this.#all((lock, signal) => lock.tryAcquire({ signal }), options.signal);
  }

  /** Waits for all, runs `work`, lets go. Rejects with what it threw, or when one was lost meanwhile. */
  async hold<T>(work: (locks: GrantSet) => Promise<T> | T, options: WaitOptions = {}): Promise<T> {
    return holding(await this.acquire(options), work);
  }

  async #all(
    take: (lock: Lock, signal: AbortSignal) => Promise<Grant | null>,
    signal?: AbortSignal,
  ): Promise<GrantSet | null> {
    const taken: Grant[] = [];
    // The end of one that we have already ends the wait for the others too.
    const ends = new AbortController();
    const stops = signal ? [onAbort(signal, () => ends.abort(signal.reason))] : [];
    if (signal?.aborted) ends.abort(signal.reason);
    const letGo = () => whileLinked(this.#client, new GrantSet(this.#client, taken).release());
    try {
      for (const lock of this.locks) {
        const grant = await take(lock, ends.signal);
        if (grant === null) {
          await letGo();
          return null;
        }
        taken.push(grant);
        stops.push(onAbort(grant.signal, () => ends.abort(grant.signal.reason)));
      }
      const all = new GrantSet(this.#client, taken);
      all.check();
      return all;
    } catch (error) {
      await letGo();
      throw error;
    } finally {
      for (const stop of stops) stop();
    }
  }
}
