/**
 * A lock in the layout of Curator's InterProcessSemaphoreMutex: a semaphore of one.
 *
 * For whoever has to contend with that one. It is a lock as `Lock` is, never re-entrant, and takes more
 * requests to get: where nobody asks for this layout, use `Lock`.
 */

import type { Client } from '../client/index.ts';
import { checkClient } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { holding } from './acquire.ts';
import type { Contender } from './contenders.ts';
import type { TryOptions, WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import type { LockOptions } from './lock.ts';
import { lockTable } from './option-tables.ts';
import { Semaphore } from './semaphore.ts';

export class SemaphoreMutex {
  readonly path: string;
  readonly #semaphore: Semaphore;

  constructor(client: Client, path: string, options: LockOptions = {}) {
    checkClient('SemaphoreMutex', client);
    checkOptions('SemaphoreMutex', options, lockTable);
    this.#semaphore = new Semaphore(client, path, { ...options, limit: 1 });
    this.path = path;
  }

  async acquire(options: WaitOptions = {}): Promise<Grant> {
    return (await this.#semaphore.acquire(options)).grants[0]!;
  }

  /** The lock if it is free and nobody waits, else null. */
  async tryAcquire(options: TryOptions = {}): Promise<Grant | null> {
    return (await this.#semaphore.tryAcquire(options))?.grants[0] ?? null;
  }

  /** Waits for the lock, runs `work`, lets go. Rejects with what it threw, or when the lock was lost. */
  async hold<T>(work: (lock: Grant) => Promise<T> | T, options: WaitOptions = {}): Promise<T> {
    return holding(await this.acquire(options), work);
  }

  async holder(): Promise<Contender | null> {
    return (await this.#semaphore.holders())[0] ?? null;
  }

  /** Those who wait, in their order. */
  queue(): Promise<Contender[]> {
    return this.#semaphore.queue();
  }
}
