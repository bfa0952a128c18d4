/**
 * Several grants that are held as one: all of them or none.
 *
 * `signal` aborts when any of them ends; `release` lets go of all, the last first. With the first that is
 * lost the set is, but the others stay on the server until `release`.
 */

import type { CallOptions, Client, MultiOp, ResultsOf } from '../client/index.ts';
import { HeldSignal } from '../support/index.ts';
import { type Grant, guarded } from './grant.ts';

export class GrantSet {
  /** In the order in which they were taken. */
  readonly grants: readonly Grant[];
  readonly #client: Client;
  readonly #held = new HeldSignal(() => void this.isHeld);
  readonly #stopHearing: readonly (() => void)[];

  constructor(client: Client, grants: readonly Grant[]) {
    this.#client = client;
    this.grants = grants;
    this.#stopHearing = grants.map((grant) => grant.onEnd((why) => this.#held.abort(why)));
  }

  /** One for each grant, in their order. What one lock guards is written under that lock's own token. */
  get fencingTokens(): bigint[] {
    return this.grants.map(({ fencingToken }) => fencingToken);
  }

  /** Aborts with the first of its grants that ends. Looks at the clock whenever it is asked. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  get isHeld(): boolean {
    return this.grants.every((grant) => grant.isHeld);
  }

  /** Throws unless all are held, as far as this process can know. */
  check(): void {
    for (const grant of this.grants) grant.check();
  }

  /** All of these ops or none, and only while all its grants are held, as the server itself sees it. */
  async guard<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    return guarded(this.#client, this.grants, ops, options);
  }

  /** Lets go of all, the last first. One that fails does not keep the others; the first error is thrown. */
  async release(): Promise<void> {
    for (const stop of this.#stopHearing) stop();
    const all = [...this.grants].reverse().map((grant) => grant.release());
    this.#held.abort(this.grants[0] && reasonOf(this.grants[0]));
    const failed = (await Promise.allSettled(all)).find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** Why a grant that has ended is not held any more. */
function reasonOf(grant: Grant): unknown {
  let reason: unknown;
  grant.onEnd((why) => {
    reason = why;
  });
  return reason;
}
