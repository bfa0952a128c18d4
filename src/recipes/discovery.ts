/**
 * Services and where their instances are, in the layout of Curator's x-discovery, so that Java
 * programs and ours find each other.
 *
 *   <base>/<service>                   container
 *   <base>/<service>/<instance id>     ephemeral (DYNAMIC) or persistent (STATIC, PERMANENT): JSON
 *
 * What is registered here stays registered through new sessions, given a client with `renew`. What is
 * found is what the server has, or, while it is away, what it last had, marked as stale. Not
 * promised: that an instance which is found still runs; its node goes with its session, no sooner.
 */

import { type CallOptions, type Client, checkClient, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { type Clock, checkOptions, unlessAborted } from '../support/index.ts';
import { checkNodeName, checkNodePath } from './cache-arguments.ts';
import { childrenOrNone } from './children-or-none.ts';
import { JsonError } from './config-json.ts';
import { checkOf, type Schema, SchemaError } from './config-schema.ts';
import { Deadline } from './deadline.ts';
import { type DiscoveryProblem, ServiceCache } from './discovery-cache.ts';
import {
  type InstanceInput,
  parseInstance,
  type ServiceInstance,
  serviceInstance,
} from './discovery-instance.ts';
import { type ProviderOptions, ServiceProvider } from './discovery-provider.ts';
import { Registration } from './discovery-registration.ts';
import { discoveryTable } from './option-tables.ts';

export interface DiscoveryOptions<P = unknown> {
  /** What a payload has to be. One that is not leaves its instance out, as a problem. */
  readonly payload?: Schema<P>;
  /** Write `enabled`, which readers older than Curator 3 refuse. False unless said. */
  readonly writeEnabled?: boolean;
  /** Told of every node that cannot be read as an instance. */
  readonly onProblem?: (problem: DiscoveryProblem) => void;
  readonly clock?: Clock;
}

interface Closable {
  close(): Promise<void>;
}

export class ServiceDiscovery<P = unknown> {
  readonly #client: Client;
  readonly #base: string;
  readonly #options: DiscoveryOptions<P>;
  readonly #checkPayload: ((value: unknown) => P) | undefined;
  readonly #open = new Set<Closable>();
  readonly #registered = new Map<string, Registration<P>>();
  /** Those that nobody has found yet, and how many wait for that. */
  readonly #awaited = new Map<Registration<P>, number>();

  constructor(client: Client, basePath: string, options: DiscoveryOptions<P> = {}) {
    checkClient('ServiceDiscovery', client);
    checkOptions('ServiceDiscovery', options, discoveryTable);
    checkNodePath('basePath', basePath);
    this.#client = client;
    this.#base = basePath;
    this.#options = options;
    this.#checkPayload = options.payload && checkOf(options.payload, 'payload');
  }

  // ── registering ───────────────────────────────────────────────────────────────────────────────

  /**
   * Resolves once the instance can be found. Registering the same name and id again, through the same
   * object, changes what it says. Called off, it leaves nothing behind.
   */
  async register(input: InstanceInput<P>, wait: CallOptions = {}): Promise<Registration<P>> {
    wait.signal?.throwIfAborted();
    const { clock, writeEnabled = false } = this.#options;
    const instance = serviceInstance(input, clock?.wallMs());
    const key = `${instance.name}/${instance.id}`;
    let known = this.#registered.get(key);
    while (known !== undefined && !isFit(known, instance)) {
      await known.close();
      known = this.#registered.get(key); // somebody else may have been quicker
    }
    const deadline = new Deadline(wait, clock);
    try {
      if (known !== undefined) {
        const updated = known.update(instance);
        await this.#found(known, updated, deadline.signal);
        return known;
      }
      const path = this.#pathOf(instance.name);
      const registration: Registration<P> = new Registration(this.#client, path, instance, {
        clock,
        writeEnabled,
        onClose: () => {
          if (this.#registered.get(key) === registration) this.#registered.delete(key);
        },
      });
      this.#registered.set(key, registration);
      this.#awaited.set(registration, 0);
      await this.#found(registration, registration.ready, deadline.signal);
      return registration;
    } finally {
      deadline.stop();
    }
  }

  /** The last who waits for an instance that was never found takes it out when it gives up. */
  async #found(
    registration: Registration<P>,
    begun: Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const count = (by: number) => {
      const waiting = this.#awaited.get(registration);
      if (waiting !== undefined) this.#awaited.set(registration, waiting + by);
    };
    count(1);
    try {
      await unlessAborted(
        begun.then(() => registration.ready),
        signal,
      );
      this.#awaited.delete(registration);
    } catch (error) {
      count(-1);
      if (this.#awaited.get(registration) === 0) {
        this.#awaited.delete(registration);
        await registration.close();
      }
      throw error;
    }
  }

  /** Takes out what was registered through this object. False when there is no such instance. */
  async unregister(name: string, id: string): Promise<boolean> {
    const registration = this.#registered.get(`${name}/${id}`);
    await registration?.close();
    return registration !== undefined;
  }

  get registrations(): readonly Registration<P>[] {
    return [...this.#registered.values()];
  }

  // ── finding ───────────────────────────────────────────────────────────────────────────────────

  /** The services that there are or were, sorted; those without instances go after a while. */
  async names(options: CallOptions = {}): Promise<string[]> {
    return (await childrenOrNone(this.#client, this.#base, options)).sort();
  }

  /**
   * The instances of a service, asked of the server now, sorted by id. Those that cannot be read are
   * left out, and `onProblem` is told.
   */
  async instances(name: string, options: CallOptions = {}): Promise<ServiceInstance<P>[]> {
    const path = this.#pathOf(name);
    const ids = await childrenOrNone(this.#client, path, options);
    const read = async (id: string) => {
      try {
        return await this.#read(childOf(path, id), options);
      } catch (error) {
        if (!isProblem(error)) throw error;
        this.#options.onProblem?.({ path: childOf(path, id), error });
        return null;
      }
    };
    const found = await Promise.all(ids.sort().map(read));
    return found.filter((instance) => instance !== null);
  }

  /** One instance, asked of the server now; null when there is none. Throws when it is garbage. */
  async instance(
    name: string,
    id: string,
    options: CallOptions = {},
  ): Promise<ServiceInstance<P> | null> {
    checkNodeName('id', id);
    return this.#read(childOf(this.#pathOf(name), id), options);
  }

  /** The instances of a service, kept up to date here. */
  cache(name: string): ServiceCache<P> {
    const { clock, onProblem } = this.#options;
    const cache: ServiceCache<P> = new ServiceCache(this.#client, this.#pathOf(name), {
      parse: (data, path) => this.#parse(data, path),
      onProblem,
      clock,
      onClose: () => void this.#open.delete(cache),
    });
    this.#open.add(cache);
    return cache;
  }

  /** An instance of a service whenever one is asked for. */
  provider(name: string, options: ProviderOptions<P> = {}): ServiceProvider<P> {
    const { clock } = this.#options;
    const down = { ...(clock && { clock }), ...options.down };
    return new ServiceProvider(this.cache(name), { ...options, down });
  }

  /** Takes out all that was registered, and closes every cache and provider made here. */
  async close(): Promise<void> {
    const all = [...this.#open, ...this.#registered.values()];
    await Promise.all(all.map((one) => one.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #pathOf(name: string): string {
    checkNodeName('name', name);
    return childOf(this.#base, name);
  }

  #parse(data: Uint8Array | null, path: string): ServiceInstance<P> {
    const instance = parseInstance(data, path) as ServiceInstance<P>;
    if (this.#checkPayload === undefined) return instance;
    return { ...instance, payload: this.#checkPayload(instance.payload) };
  }

  async #read(path: string, options: CallOptions): Promise<ServiceInstance<P> | null> {
    try {
      const { data } = await this.#client.get(path, options);
      return this.#parse(data, path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}

/** Whether what is registered can say this, too: it is not over, and of the same type. */
function isFit<P>({ state, instance }: Registration<P>, wanted: ServiceInstance<P>): boolean {
  const isAlive = state.name !== 'failed' && state.name !== 'closed';
  return isAlive && instance.serviceType === wanted.serviceType;
}

/** What is wrong with this one instance, and says nothing of the others. */
function isProblem(error: unknown): error is Error {
  const isGarbage = error instanceof JsonError || error instanceof SchemaError;
  return isGarbage || isZkError(error, 'NO_AUTH');
}
