/**
 * A lock that its owner may take again while it has it.
 *
 * The owner is any object that the caller chooses: a request, a task, a `Symbol` wrapped in one. JavaScript
 * has no threads to tell callers apart by. For one owner there is one node and a count: every `acquire`
 * gives a grant of its own, grants are released in any order, and the node goes with the last. Another
 * owner waits in line, in this process or in any other.
 *
 * Once the lock was lost, the same owner does not get it again by asking again: the grants it has are of
 * a lock that is somebody else's. It has to release all of them first.
 */

import { ArgumentError, type Client, checkClient } from '../client/index.ts';
import { checkOptions, systemClock } from '../support/index.ts';
import { holding } from './acquire.ts';
import type { TryOptions, WaitOptions } from './deadline.ts';
import { Lock, type LockOptions } from './lock.ts';
import { lockTable, reentrantTable, tryReentrantTable } from './option-tables.ts';
import { Reentry, type SharedGrant } from './reentry.ts';

export interface ReentrantOptions extends WaitOptions {
  /** Whose lock it is. */
  readonly owner: object;
}

export class ReentrantLock {
  readonly path: string;
  readonly lock: Lock;
  readonly #owners: Reentry;

  constructor(client: Client, path: string, options: LockOptions = {}) {
    checkClient('ReentrantLock', client);
    checkOptions('ReentrantLock', options, lockTable);
    this.lock = new Lock(client, path, options);
    this.path = path;
    this.#owners = new Reentry(options.clock ?? systemClock);
  }

  /** Waits for the lock, unless the owner has it already. Release once for every time. */
  async acquire(options: ReentrantOptions): Promise<SharedGrant> {
    checkOptions('acquire', options, reentrantTable);
    const { owner, ...wait } = options;
    checkOwner(owner);
    return this.#owners.enter(owner, wait, () => this.lock.acquire(wait));
  }

  /** The lock if the owner has it or it is free at once, else null. */
  async tryAcquire(options: TryOptions & { readonly owner: object }): Promise<SharedGrant | null> {
    checkOptions('tryAcquire', options, tryReentrantTable);
    const { owner, ...wait } = options;
    checkOwner(owner);
    return this.#owners.tryEnter(owner, () => this.lock.tryAcquire(wait));
  }

  /** As `Lock.hold`; inside `work` the owner may take the lock again. */
  async hold<T>(
    work: (lock: SharedGrant) => Promise<T> | T,
    options: ReentrantOptions,
  ): Promise<T> {
    return holding(await this.acquire(options), work);
  }

  /** How many times the owner has it, and has not released it. */
  count(owner: object): number {
    return this.#owners.count(owner);
  }
}

export function checkOwner(owner: unknown): asserts owner is object {
  if ((typeof owner !== 'object' && typeof owner !== 'function') || owner === null) {
    throw new ArgumentError('owner', 'an object is wanted, by which the owner is known');
  }
}
