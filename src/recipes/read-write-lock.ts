/**
 * A lock that many may have for reading, or one for writing, in the order asked.
 *
 *   <path>/_c_<uuid>-__READ__<number>     <path>/_c_<uuid>-__WRIT__<number>     one line, as Curator's
 *
 * Both sides are re-entrant for whoever names an `owner`. Its writer may also read: that node stands at the
 * writer's own number, so that it keeps its place when the writer lets go (a downgrade), and no writer
 * that waits comes in between (CURATOR-621). It is made only if the write lock is still held when the
 * server makes it. A reader that asks to write is refused, as it would wait for itself.
 *
 * What always holds: never a reader and a writer of different owners, never two writers. A writer that
 * waits holds up readers that come later, so writers do not starve; nor do readers.
 *
 * NOT promised, as with any lock: that a holder which lost its session has stopped. Give its writes the
 * token. A downgraded reader has the token of its writer: a higher one would shut out the next writer.
 */

import type { Acl, Client, DataInput } from '../client/index.ts';
import { checkClient } from '../client/index.ts';
import { type Clock, checkOptions, systemClock, unlessAborted } from '../support/index.ts';
import {
  acquire,
  checkLockPath,
  defaultData,
  holderNames,
  holding,
  tryAcquire,
} from './acquire.ts';
import { type Contender, describe } from './contenders.ts';
import { Deadline, type TryOptions, type WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import { createUnder } from './guarded-create.ts';
import { Line } from './line.ts';
import type { LockOptions } from './lock.ts';
import { LockTimeoutError } from './lock-timeout-error.ts';
import { LockUpgradeError } from './lock-upgrade-error.ts';
import { lockTable } from './option-tables.ts';
import {
  readersOrOneWriter,
  readPrefix,
  readWritePrefixes,
  writePrefix,
} from './read-write-rule.ts';
import { checkOwner } from './reentrant-lock.ts';
import { Reentry, type SharedGrant } from './reentry.ts';
import { whileLinked } from './while-linked.ts';

export interface SideOptions extends WaitOptions {
  /** Whose it is: an object by which re-entry and downgrades are known. Somebody new unless said. */
  readonly owner?: object;
}

/** The read lock or the write lock of the two. */
export interface LockSide {
  acquire(options?: SideOptions): Promise<SharedGrant>;
  /** At once, or null. */
  tryAcquire(options?: TryOptions & { readonly owner?: object }): Promise<SharedGrant | null>;
  /** Acquires, runs `work`, lets go. Rejects with what it threw, or when the lock was lost meanwhile. */
  hold<T>(work: (lock: SharedGrant) => Promise<T> | T, options?: SideOptions): Promise<T>;
}

export class ReadWriteLock {
  readonly path: string;
  readonly read: LockSide;
  readonly write: LockSide;
  readonly #client: Client;
  readonly #line: Line;
  readonly #data: DataInput;
  readonly #acl: readonly Acl[] | undefined;
  readonly #clock: Clock;
  readonly #readers: Reentry;
  readonly #writers: Reentry;

  constructor(client: Client, path: string, options: LockOptions = {}) {
    checkClient('ReadWriteLock', client);
    checkOptions('ReadWriteLock', options, lockTable);
    checkLockPath(path);
    this.path = path;
    this.#client = client;
    this.#acl = options.acl;
    this.#line = new Line(client, path, {
      prefixes: readWritePrefixes,
      ...(options.acl && { acl: options.acl }),
    });
    this.#data = options.data ?? defaultData;
    this.#clock = options.clock ?? systemClock;
    this.#readers = new Reentry(this.#clock);
    this.#writers = new Reentry(this.#clock);
    this.read = side(
      (owner, wait) => this.#acquireRead(owner, wait),
      (owner, options) => this.#tryRead(owner, options),
    );
    this.write = side(
      (owner, wait) => this.#acquireWrite(owner, wait),
      (owner, options) => this.#tryWrite(owner, options),
    );
  }

  /** Those who have it now: one writer, with the reader it may have let in, or all readers up to the next writer. */
  async holders(): Promise<Contender[]> {
    const names = await this.#line.names();
    const held = holderNames(names, readersOrOneWriter);
    return describe(this.#line, held, this.#clock.wallMs());
  }

  /** Those who wait, in their order. */
  async queue(): Promise<Contender[]> {
    const names = await this.#line.names();
    const held = new Set(holderNames(names, readersOrOneWriter));
    const waiting = names.filter((name) => !held.has(name));
    return describe(this.#line, waiting, this.#clock.wallMs());
  }

  async #acquireRead(owner: object, wait: WaitOptions): Promise<SharedGrant> {
    const write = await this.#writers.granted(owner, wait);
    return this.#readers.enter(owner, wait, () =>
      write ? this.#downgrade(write, wait) : this.#wait(readPrefix, wait),
    );
  }

  async #tryRead(owner: object, options: TryOptions): Promise<SharedGrant | null> {
    const write = this.#writers.grantOf(owner);
    return this.#readers.tryEnter(owner, () =>
      write ? this.#downgrade(write, options) : this.#try(readPrefix, options),
    );
  }

  async #acquireWrite(owner: object, wait: WaitOptions): Promise<SharedGrant> {
    this.#refuseUpgrade(owner);
    return this.#writers.enter(owner, wait, () => this.#wait(writePrefix, wait));
  }

  async #tryWrite(owner: object, options: TryOptions): Promise<SharedGrant | null> {
    this.#refuseUpgrade(owner);
    return this.#writers.tryEnter(owner, () => this.#try(writePrefix, options));
  }

  #refuseUpgrade(owner: object): void {
    if (this.#readers.has(owner) && !this.#writers.has(owner)) {
      throw new LockUpgradeError(this.path);
    }
  }

  #wait(prefix: string, wait: WaitOptions): Promise<Grant> {
    const join = { prefix, data: this.#data };
    return acquire(this.#line, readersOrOneWriter, join, wait, this.#clock);
  }

  #try(prefix: string, options: TryOptions): Promise<Grant | null> {
    const join = { ...options, prefix, data: this.#data };
    return tryAcquire(this.#line, readersOrOneWriter, join);
  }

  /** A read node beside the write node, made only while that one is still ours. */
  async #downgrade(write: Grant, wait: WaitOptions): Promise<Grant> {
    const deadline = new Deadline(wait, this.#clock);
    const { signal } = deadline;
    let making: Promise<Grant> | undefined;
    try {
      signal.throwIfAborted();
      making = this.#makeBeside(write);
      return await unlessAborted(making, signal);
    } catch (error) {
      const isLate = deadline.isLate && error === signal.reason;
      // Whatever comes of it after all is given back.
      const undone = making?.then(
        (read) => read.release(),
        () => {},
      );
      if (undone !== undefined) await whileLinked(this.#client, undone);
      throw isLate ? new LockTimeoutError(this.path, wait.timeoutMs!, [], undefined) : error;
    } finally {
      deadline.stop();
    }
  }

  async #makeBeside(write: Grant): Promise<Grant> {
    const number = write.path.slice(write.path.lastIndexOf(writePrefix) + writePrefix.length);
    const [read] = await createUnder(this.#client, write, {
      parent: this.path,
      name: readPrefix + number,
      count: 1,
      mode: 'ephemeral',
      data: this.#data,
      acl: this.#acl,
      fencingToken: write.fencingToken,
    });
    return read!;
  }
}

function side(
  enter: (owner: object, wait: WaitOptions) => Promise<SharedGrant>,
  tryEnter: (owner: object, options: TryOptions) => Promise<SharedGrant | null>,
): LockSide {
  const acquireSide = async ({ owner = {}, ...wait }: SideOptions = {}) => {
    checkOwner(owner);
    return enter(owner, wait);
  };
  return {
    acquire: acquireSide,
    async tryAcquire({ owner = {}, ...options } = {}) {
      checkOwner(owner);
      return tryEnter(owner, options);
    },
    hold: async (work, options) => holding(await acquireSide(options), work),
  };
}
