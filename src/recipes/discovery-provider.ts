/**
 * An instance of a service, whenever one is asked for.
 *
 * In: the instances that a ServiceCache knows. Out: one of them, which a strategy picks among those
 * that are enabled, pass every filter, and have not failed too often of late (`noteError`). Asking
 * costs no request. Not promised: that the instance answers. Null when none is left.
 */

import { ArgumentError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import type { CacheState } from './cache.ts';
import type { ServiceAnswer, ServiceCache } from './discovery-cache.ts';
import type { ServiceInstance } from './discovery-instance.ts';
import {
  DownInstances,
  type DownPolicyOptions,
  type ProviderStrategy,
  roundRobin,
} from './discovery-strategy.ts';
import { providerTable } from './option-tables.ts';

export type InstanceFilter<P = unknown> = (instance: ServiceInstance<P>) => boolean;

export interface ProviderOptions<P = unknown> {
  /** `roundRobin()` unless said. */
  readonly strategy?: ProviderStrategy<P>;
  readonly filters?: readonly InstanceFilter<P>[];
  /** When an instance counts as down. 2 errors in 30 s unless said. */
  readonly down?: DownPolicyOptions;
}

export class ServiceProvider<P = unknown> {
  readonly #cache: ServiceCache<P>;
  readonly #strategy: ProviderStrategy<P>;
  readonly #filters: readonly InstanceFilter<P>[];
  readonly #down: DownInstances;

  /** `ServiceDiscovery.provider()` makes one. The cache is closed with it. */
  constructor(cache: ServiceCache<P>, options: ProviderOptions<P> = {}) {
    checkOptions('ServiceProvider', options, providerTable);
    const { strategy = roundRobin(), filters = [], down } = options;
    if (typeof strategy?.pick !== 'function') {
      throw new ArgumentError(
        'strategy',
        'random(), roundRobin(), sticky() or weighted() is wanted',
      );
    }
    this.#cache = cache;
    this.#strategy = strategy;
    this.#filters = filters;
    this.#down = new DownInstances(down);
  }

  get ready(): Promise<void> {
    return this.#cache.ready;
  }

  get state(): CacheState {
    return this.#cache.state;
  }

  /** Those that may be taken now, and whether that is up to date. */
  get answer(): ServiceAnswer<P> {
    const { instances, staleSinceMs } = this.#cache.answer;
    const isFit = (instance: ServiceInstance<P>) =>
      instance.enabled &&
      !this.#down.isDown(instance) &&
      this.#filters.every((passes) => passes(instance));
    return { instances: instances.filter(isFit), staleSinceMs };
  }

  /** One instance, or null when there is none. */
  get(): ServiceInstance<P> | null {
    const { instances } = this.answer;
    return instances.length === 0 ? null : this.#strategy.pick(instances);
  }

  /** It did not answer, or not well: after so many of these it is left alone for a while. */
  noteError(instance: ServiceInstance<P>): void {
    this.#down.noteError(instance);
  }

  async close(): Promise<void> {
    await this.#cache.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
