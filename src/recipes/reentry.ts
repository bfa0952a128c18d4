/**
 * Grants that one owner has several times: the count behind re-entrant locks.
 *
 *   owner ──▶ Entry { grant, count }     a grant from the server, shared by all that the owner asked for
 *
 * Two requests of one owner at the same time make one node: the second waits for the outcome of the first,
 * and asks for itself only if that failed. The grant is released when the last share of it is.
 */

import type { CallOptions, MultiOp, ResultsOf } from '../client/index.ts';
import { type Clock, unlessAborted } from '../support/index.ts';
import { Deadline, type WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import { NotHeldError } from './not-held-error.ts';

interface Entry {
  readonly granted: Promise<Grant | null>;
  grant: Grant | undefined;
  count: number;
}

/** Whoever asked first hears of a failure; to the others it only means that they must ask for themselves. */
const outcome = (entry: Entry): Promise<Grant | null> => entry.granted.catch(() => null);

export class Reentry {
  readonly #entries = new Map<object, Entry>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  count(owner: object): number {
    return this.#entries.get(owner)?.count ?? 0;
  }

  /** It has one, or has asked for one. */
  has(owner: object): boolean {
    return this.#entries.has(owner);
  }

  /** What the owner has, or comes to have by what it has asked for already; undefined when nothing. */
  async granted(owner: object, wait: WaitOptions): Promise<Grant | undefined> {
    const entry = this.#entries.get(owner);
    if (entry === undefined || entry.grant !== undefined) return entry?.grant;
    const deadline = new Deadline(wait, this.#clock);
    try {
      return (await unlessAborted(outcome(entry), deadline.signal)) ?? undefined;
    } finally {
      deadline.stop();
    }
  }

  /** What the owner has; undefined when it has nothing. */
  grantOf(owner: object): Grant | undefined {
    return this.#entries.get(owner)?.grant;
  }

  async enter(
    owner: object,
    wait: WaitOptions,
    acquire: () => Promise<Grant>,
  ): Promise<SharedGrant> {
    const deadline = new Deadline(wait, this.#clock);
    try {
      for (;;) {
        const entry = this.#entries.get(owner);
        if (entry === undefined) return (await this.#begin(owner, acquire))!;
        const grant = await unlessAborted(outcome(entry), deadline.signal);
        if (grant !== null && this.#entries.get(owner) === entry) return this.#share(owner, entry);
      }
    } finally {
      deadline.stop();
    }
  }

  async tryEnter(owner: object, acquire: () => Promise<Grant | null>): Promise<SharedGrant | null> {
    const entry = this.#entries.get(owner);
    if (entry === undefined) return this.#begin(owner, acquire);
    return entry.grant === undefined ? null : this.#share(owner, entry);
  }

  async #begin(owner: object, acquire: () => Promise<Grant | null>): Promise<SharedGrant | null> {
    const granted = acquire();
    const entry: Entry = { granted, grant: undefined, count: 0 };
    this.#entries.set(owner, entry);
    try {
      const grant = await granted;
      if (grant !== null) {
        entry.grant = grant;
        return this.#share(owner, entry);
      }
      this.#entries.delete(owner);
      return null;
    } catch (error) {
      this.#entries.delete(owner);
      await entry.grant?.release(); // it was lost before anybody had it
      throw error;
    }
  }

  #share(owner: object, entry: Entry): SharedGrant {
    const grant = entry.grant!;
    grant.check(); // a lock that was lost is not had again by asking again
    entry.count += 1;
    let isOut = false;
    return new SharedGrant(grant, () => {
      if (!isOut) entry.count -= 1;
      isOut = true;
      if (entry.count > 0) return Promise.resolve();
      if (this.#entries.get(owner) === entry) this.#entries.delete(owner);
      return grant.release();
    });
  }
}

/** One of the times that an owner has a grant. */
export class SharedGrant {
  /** What the server knows of it: one for all shares of an owner. */
  readonly grant: Grant;
  readonly #leave: () => Promise<void>;
  #left: Promise<void> | undefined;

  constructor(grant: Grant, leave: () => Promise<void>) {
    this.grant = grant;
    this.#leave = leave;
  }

  get path(): string {
    return this.grant.path;
  }

  get fencingToken(): bigint {
    return this.grant.fencingToken;
  }

  /** Aborts when the grant itself ends: it was lost, or its last share released. */
  get signal(): AbortSignal {
    return this.grant.signal;
  }

  get revocation(): AbortSignal {
    return this.grant.revocation;
  }

  get isHeld(): boolean {
    return this.#left === undefined && this.grant.isHeld;
  }

  check(): void {
    this.grant.check();
    if (this.#left !== undefined) throw new NotHeldError(this.path, 'released');
  }

  async guard<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    this.check();
    return this.grant.guard(ops, options);
  }

  /** Gives this one back, once: again does nothing more. */
  release(): Promise<void> {
    this.#left ??= this.#leave().catch((error: unknown) => {
      this.#left = undefined; // who asks again, tries again
      throw error;
    });
    return this.#left;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
