/**
 * How often an address has failed to prove that it is a user, over all of its connections: a client that
 * guesses passwords must wait.
 *
 * After `authFailuresMax` failures within `authWindowMs` no proof for that user is accepted from that
 * address until as long has passed again. Attempts that are refused meanwhile do not count, so that a
 * client that was mistaken and retries does not lock itself out for good.
 *
 * Several clients may share an address, so a failure counts against the user that it named: it does not
 * keep the other users of that address out. All names that no user has count as one. Of IPv6 a whole /64
 * is one address. The table is bounded: the entry that failed longest ago is forgotten first.
 */

import { addressKey } from '../support/index.ts';
import type { Limits } from './limits.ts';

/** For whatever names no user that there is. */
export const nobody = '';

interface Failures {
  count: number;
  /** They count from here on; once there are too many, the refusal does. */
  sinceMs: number;
}

export class AuthAttempts {
  readonly #limits: Limits;
  /** By address and user, in the order of their last failure. */
  readonly #byAddress = new Map<string, Failures>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  isRefused(address: string, nowMs: number, user = nobody): boolean {
    const { authFailuresMax, authWindowMs } = this.#limits;
    const known = this.#byAddress.get(keyOf(address, user));
    if (known === undefined || known.count < authFailuresMax) return false;
    return nowMs - known.sinceMs < authWindowMs;
  }

  failed(address: string, nowMs: number, user = nobody): void {
    const { authFailuresMax, authWindowMs, authAddressesMax } = this.#limits;
    if (authFailuresMax === Infinity) return;
    const key = keyOf(address, user);
    const before = this.#byAddress.get(key);
    const isOver = before === undefined || nowMs - before.sinceMs >= authWindowMs;
    const failures = isOver ? { count: 0, sinceMs: nowMs } : before;
    failures.count += 1;
    if (failures.count === authFailuresMax) failures.sinceMs = nowMs;
    this.#byAddress.delete(key);
    this.#byAddress.set(key, failures);
    if (this.#byAddress.size <= authAddressesMax) return;
    const [oldest] = this.#byAddress.keys();
    this.#byAddress.delete(oldest!);
  }
}

const keyOf = (address: string, user: string): string => `${addressKey(address)} ${user}`;
