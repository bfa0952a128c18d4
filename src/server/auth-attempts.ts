/**
 * How often an address has failed to prove who it is, over all of its links: whoever guesses must wait.
 *
 * After `authFailuresMax` failures within `authWindowMs` nothing more is taken for a proof from there
 * until as long has passed again. Tries that are turned away meanwhile do not count, so that one who
 * was mistaken and tries on does not lock themselves out for good.
 *
 * Whoever shares an address shares its failures. Of IPv6 a whole /64 is one address: it mostly is one
 * machine's. The table is bounded: who failed longest ago is forgotten first.
 */

import { addressBytes } from './addresses.ts';
import type { Limits } from './limits.ts';

interface Failures {
  count: number;
  /** They count from here on; once there are too many, the refusal does. */
  sinceMs: number;
}

export class AuthAttempts {
  readonly #limits: Limits;
  /** In the order of their last failure. */
  readonly #byAddress = new Map<string, Failures>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  isRefused(address: string, nowMs: number): boolean {
    const { authFailuresMax, authWindowMs } = this.#limits;
    const known = this.#byAddress.get(keyOf(address));
    if (known === undefined || known.count < authFailuresMax) return false;
    return nowMs - known.sinceMs < authWindowMs;
  }

  failed(address: string, nowMs: number): void {
    const { authFailuresMax, authWindowMs, authAddressesMax } = this.#limits;
    if (authFailuresMax === Infinity) return;
    const key = keyOf(address);
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

/** Of IPv6 by its bytes: zeros are left out of its text wherever most of them stand. */
function keyOf(address: string): string {
  if (!address.includes(':')) return address;
  const bytes = addressBytes(address.split('%', 1)[0]!);
  return bytes === null ? address : Buffer.from(bytes.subarray(0, 8)).toString('hex');
}
