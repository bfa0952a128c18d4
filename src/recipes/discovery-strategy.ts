/**
 * Which of several instances to take next, and which to leave alone for a while.
 *
 * A strategy is handed the instances that may be taken, sorted by id, never an empty list, and names
 * one. It may keep a state of its own, so every provider needs its own.
 */

import { type Clock, systemClock } from '../support/index.ts';
import type { ServiceInstance } from './discovery-instance.ts';

export interface ProviderStrategy<P = unknown> {
  pick(instances: readonly ServiceInstance<P>[]): ServiceInstance<P> | null;
}

type Random = () => number;

export function random<P>(chance: Random = Math.random): ProviderStrategy<P> {
  return { pick: (instances) => instances[Math.floor(chance() * instances.length)] ?? null };
}

export function roundRobin<P>(): ProviderStrategy<P> {
  let turn = 0;
  return {
    pick(instances) {
      turn = turn >= Number.MAX_SAFE_INTEGER ? 0 : turn + 1;
      return instances[(turn - 1) % instances.length] ?? null;
    },
  };
}

/** The same one for as long as it is there; then another, which `first` picks. */
export function sticky<P>(first: ProviderStrategy<P> = random()): ProviderStrategy<P> {
  let mine: ServiceInstance<P> | null = null;
  return {
    pick(instances) {
      const still = instances.find(
        ({ id, registrationTimeUTC }) =>
          id === mine?.id && registrationTimeUTC === mine.registrationTimeUTC,
      );
      mine = still ?? first.pick(instances);
      return mine;
    },
  };
}

/** By chance, in proportion to a weight. One of weight 0 is never taken; nor is any if all are. */
export function weighted<P>(
  weightOf: (instance: ServiceInstance<P>) => number,
  chance: Random = Math.random,
): ProviderStrategy<P> {
  return {
    pick(instances) {
      const weights = instances.map((instance) => {
        const weight = weightOf(instance);
        return Number.isFinite(weight) && weight > 0 ? weight : 0;
      });
      let left = chance() * weights.reduce((sum, weight) => sum + weight, 0);
      let last: ServiceInstance<P> | null = null;
      for (const [i, weight] of weights.entries()) {
        if (weight === 0) continue;
        last = instances[i]!;
        left -= weight;
        if (left < 0) return last;
      }
      return last; // rounding
    },
  };
}

export const strategies = { random, roundRobin, sticky, weighted } as const;

export interface DownPolicyOptions {
  /** How long, from the first error on, errors are counted and the instance stays away. 30 s. */
  readonly timeoutMs?: number;
  /** So many errors within that time and it is taken for down. 2. */
  readonly errorsMax?: number;
  readonly clock?: Clock;
}

/** Instances whose errors are remembered: far more than a service has. */
const rememberedMax = 10_000;

/** Which instances have failed too often of late. */
export class DownInstances {
  readonly #timeoutMs: number;
  readonly #errorsMax: number;
  readonly #clock: Clock;
  readonly #errors = new Map<string, { readonly sinceMs: number; count: number }>();

  constructor({ timeoutMs = 30_000, errorsMax = 2, clock = systemClock }: DownPolicyOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#errorsMax = errorsMax;
    this.#clock = clock;
  }

  noteError(instance: ServiceInstance): void {
    this.#forget();
    const key = keyOf(instance);
    const known = this.#errors.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#errors.size < rememberedMax) {
      this.#errors.set(key, { sinceMs: this.#clock.nowMs(), count: 1 });
    }
  }

  isDown(instance: ServiceInstance): boolean {
    this.#forget();
    return (this.#errors.get(keyOf(instance))?.count ?? 0) >= this.#errorsMax;
  }

  /** In the order of their first errors, so the old ones come first. */
  #forget(): void {
    const nowMs = this.#clock.nowMs();
    for (const [key, { sinceMs }] of this.#errors) {
      if (nowMs - sinceMs < this.#timeoutMs) return;
      this.#errors.delete(key);
    }
  }
}

/** A restarted instance is another one: its errors are its own. */
function keyOf({ name, id, registrationTimeUTC }: ServiceInstance): string {
  return `${name}/${id}/${registrationTimeUTC}`;
}
