/**
 * A semaphore: so many leases and no more, over all processes.
 *
 *   <path>/locks/_c_<uuid>-lock-<number>       a line in which those who want leases wait their turn
 *   <path>/leases/_c_<uuid>-lease-<number>     the leases, as Curator's InterProcessSemaphoreV2 has them
 *
 * Who is first in line waits, alone, until there is room for all that it wants; then one multi makes its
 * leases, if it is still the first in line as the server sees it; then the next one's turn comes. So a
 * lease that is given back wakes one, a request for several gets all of them or none, and two of those
 * cannot each hold half of what both need. A crash anywhere leaves nothing: all nodes are ephemeral.
 *
 * The limit is a number that all processes must agree on, or it stands in a node (Curator's SharedCount)
 * and may be changed: a lower one takes no lease away, and gives none until there is room.
 *
 * NOT promised: that a small request overtakes a large one that waits before it; it does not. Nor that
 * one who lost its session has stopped using its lease: listen to `signal`.
 */

import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
  isZkError,
  ZkError,
} from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { type Clock, checkOptions, systemClock, unlessAborted } from '../support/index.ts';
import { acquire, checkLockPath, defaultData, holding, tryAcquire } from './acquire.ts';
import { type Contender, contenders } from './contenders.ts';
import { Deadline, type TryOptions, type WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import { GrantSet } from './grant-set.ts';
import { createUnder } from './guarded-create.ts';
import { Line, oneAtATime } from './line.ts';
import type { LockOptions } from './lock.ts';
import { LockTimeoutError } from './lock-timeout-error.ts';
import { watchChildren, watchNode } from './node-watch.ts';
import { leaseTable, semaphoreTable, tryLeaseTable } from './option-tables.ts';
import { whileLinked } from './while-linked.ts';

export interface SemaphoreOptions extends LockOptions {
  /** How many leases there are: a number, or the path of a node that holds it as 4 bytes, big-endian. */
  readonly limit: number | { readonly path: string };
}

export interface LeaseOptions extends WaitOptions {
  /** How many leases, all or none. 1. */
  readonly count?: number;
}

/** How long a time-out may take to find out who was in the way. */
const askHoldersMs = 2_000;

export class Semaphore {
  readonly path: string;
  readonly #client: Client;
  readonly #turns: Line;
  readonly #leases: Line;
  readonly #limit: number | { readonly path: string };
  readonly #data: DataInput;
  readonly #acl: readonly Acl[] | undefined;
  readonly #clock: Clock;

  constructor(client: Client, path: string, options: SemaphoreOptions) {
    checkClient('Semaphore', client);
    checkOptions('Semaphore', options, semaphoreTable);
    checkLockPath(path);
    this.#limit = options?.limit;
    if (typeof this.#limit === 'object' && this.#limit !== null) {
      checkLockPath(this.#limit.path, 'limit.path');
    } else {
      checkLeases('limit', this.#limit, 0);
    }
    this.path = path;
    this.#client = client;
    const acl = options.acl && { acl: options.acl };
    this.#turns = new Line(client, childOf(path, 'locks'), { ...acl });
    this.#leases = new Line(client, childOf(path, 'leases'), { ...acl, prefixes: ['lease-'] });
    this.#data = options.data ?? defaultData;
    this.#acl = options.acl;
    this.#clock = options.clock ?? systemClock;
  }

  /** Waits for `count` leases. Rejects with a `LockTimeoutError` that names holders when the time is over. */
  async acquire(options: LeaseOptions = {}): Promise<GrantSet> {
    checkOptions('acquire', options, leaseTable);
    const { count = 1, ...wait } = options;
    this.#checkCount(count);
    const deadline = new Deadline(wait, this.#clock);
    const { signal } = deadline;
    let turn: Grant | undefined;
    try {
      turn = await acquire(this.#turns, oneAtATime, { data: this.#data }, { signal }, this.#clock);
      while (!(await this.#hasRoom(count, signal))) await this.#change(count, signal, turn);
      return await this.#take(count, turn, signal);
    } catch (error) {
      const isLate = deadline.isLate && error === signal.reason;
      throw isLate ? await this.#lateError(wait.timeoutMs!) : error;
    } finally {
      deadline.stop();
      if (turn !== undefined) await whileLinked(this.#client, turn.release());
    }
  }

  /** The leases if there is room and nobody waits, else null. */
  async tryAcquire(
    options: TryOptions & { readonly count?: number } = {},
  ): Promise<GrantSet | null> {
    checkOptions('tryAcquire', options, tryLeaseTable);
    const { count = 1, signal } = options;
    this.#checkCount(count);
    const turn = await tryAcquire(this.#turns, oneAtATime, {
      ...(signal && { signal }),
      data: this.#data,
    });
    if (turn === null) return null;
    try {
      return (await this.#hasRoom(count, signal)) ? await this.#take(count, turn, signal) : null;
    } finally {
      await whileLinked(this.#client, turn.release());
    }
  }

  /** Waits for the leases, runs `work`, gives them back. Rejects with what it threw, or when one was lost. */
  async hold<T>(
    work: (leases: GrantSet) => Promise<T> | T,
    options: LeaseOptions = {},
  ): Promise<T> {
    return holding(await this.acquire(options), work);
  }

  /** Every lease that is taken, oldest first. */
  async holders(): Promise<Contender[]> {
    return (await contenders(this.#leases, this.#clock.wallMs())).found;
  }

  /** Those who wait, in their order. */
  async queue(): Promise<Contender[]> {
    return (await contenders(this.#turns, this.#clock.wallMs())).found;
  }

  /** How many leases there are in all, taken or not. */
  async limit(): Promise<number> {
    if (typeof this.#limit === 'number') return this.#limit;
    const { path } = this.#limit;
    try {
      return limitOf((await this.#client.get(path)).data, path);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
      throw missingLimit(path);
    }
  }

  async #hasRoom(count: number, signal?: AbortSignal): Promise<boolean> {
    const read = Promise.all([this.limit(), this.#taken()]);
    const [limit, taken] = await (signal ? unlessAborted(read, signal) : read);
    return taken + count <= limit;
  }

  /** All children count, whatever their names, as they do for Curator. */
  async #taken(): Promise<number> {
    try {
      return (await this.#client.children(this.#leases.path)).length;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return 0;
      throw error;
    }
  }

  /** Resolves when there is room, or when something has changed: leases or limit. We are the only one who waits for it. */
  async #change(count: number, signal: AbortSignal, turn: Grant): Promise<void> {
    const shared = typeof this.#limit === 'number' ? undefined : this.#limit.path;
    const watching = Promise.all([
      watchChildren(this.#client, this.#leases.path),
      shared === undefined ? null : watchNode(this.#client, shared),
    ]);
    const stop = async () => {
      const watches = await watching.catch(() => []); // what could not be read is not watched
      await Promise.all(watches.map((watch) => watch?.stop()));
    };
    try {
      const [leases, limit] = await unlessAborted(watching, signal, turn.signal);
      if (shared !== undefined && limit === null) throw missingLimit(shared);
      const most = limit === null ? (this.#limit as number) : limitOf(limit.found.data, shared!);
      if ((leases?.found.length ?? 0) + count <= most) return;
      // Where nobody has a lease, and nothing is there that could be watched, only the limit is in the way.
      const changed = [leases, limit].flatMap((watch) => watch?.changed ?? []);
      await unlessAborted(Promise.race(changed), signal, turn.signal);
    } finally {
      await whileLinked(this.#client, stop());
    }
  }

  async #take(count: number, turn: Grant, signal?: AbortSignal): Promise<GrantSet> {
    const making = createUnder(this.#client, turn, {
      parent: this.#leases.path,
      name: 'lease-',
      count,
      mode: 'ephemeralSequential',
      data: this.#data,
      acl: this.#acl,
    });
    try {
      return new GrantSet(this.#client, await (signal ? unlessAborted(making, signal) : making));
    } catch (error) {
      // Whatever comes of it after all is given back, before our turn is: nobody else counts it meanwhile.
      const undone = making.then(
        (grants) => new GrantSet(this.#client, grants).release(),
        () => {},
      );
      await whileLinked(this.#client, undone);
      throw error;
    }
  }

  #checkCount(count: number): void {
    checkLeases('count', count, 1);
    if (typeof this.#limit === 'number' && count > this.#limit) {
      throw new ArgumentError(
        'count',
        `there are ${this.#limit} leases in all, so ${count} can never be had`,
      );
    }
  }

  async #lateError(timeoutMs: number): Promise<LockTimeoutError> {
    if (this.#client.state.name !== 'connected') {
      return new LockTimeoutError(this.path, timeoutMs, [], undefined);
    }
    try {
      const limit = { timeoutMs: askHoldersMs };
      const { found } = await contenders(this.#leases, this.#clock.wallMs(), limit);
      const waiting = (await this.#turns.names(limit)).length;
      return new LockTimeoutError(this.path, timeoutMs, found, waiting);
    } catch (error) {
      return new LockTimeoutError(this.path, timeoutMs, [], undefined, { cause: error });
    }
  }
}

function checkLeases(argument: string, value: unknown, min: number): void {
  if (!Number.isInteger(value) || (value as number) < min || (value as number) >= 2 ** 31) {
    throw new ArgumentError(argument, `a whole number of at least ${min} is wanted`);
  }
}

function limitOf(data: Buffer | null, path: string): number {
  if (data?.length === 4) return data.readInt32BE(0);
  throw new ZkError('DATA_INCONSISTENCY', {
    path,
    detail: `a limit is 4 bytes, big-endian, as Curator's SharedCount writes it, and here are ${data?.length ?? 0}`,
  });
}

function missingLimit(path: string): ZkError {
  return new ZkError('NO_NODE', {
    path,
    detail: 'the node that holds the limit; make it with 4 bytes, big-endian, as data',
  });
}
