/**
 * The instances of one service, kept up to date in this process.
 *
 * In: the nodes below `<base>/<service>`, through a Cache. Out: the instances, at once, and changes of
 * them. While ZooKeeper is away the last known answer is given, and says since when it is old. A node
 * that cannot be read as an instance is left out and named in `problems`; where an instance was known
 * before under that name, it stays as it was.
 */

import { type Client, ZkError } from '../client/index.ts';
import { nameOf } from '../protocol/index.ts';
import type { Clock } from '../support/index.ts';
import { Cache, type CacheState } from './cache.ts';
import type { CacheChange } from './cache-ledger.ts';
import type { ServiceInstance } from './discovery-instance.ts';
import { Feed } from './feed.ts';

export interface ServiceAnswer<P = unknown> {
  /** Sorted by id. */
  readonly instances: readonly ServiceInstance<P>[];
  /** Null when it is up to date; else, in milliseconds since 1970, how old it may be. */
  readonly staleSinceMs: number | null;
}

export interface ServiceChange<P = unknown> {
  readonly type: 'added' | 'changed' | 'removed';
  /** As it is now; for `removed`, as it last was. */
  readonly instance: ServiceInstance<P>;
  readonly previous: ServiceInstance<P> | null;
}

/** A node that is there and is not what it should be. */
export interface DiscoveryProblem {
  readonly path: string;
  readonly error: Error;
}

export interface ServiceCacheSetting<P> {
  readonly parse: (data: Uint8Array | null, path: string) => ServiceInstance<P>;
  readonly onProblem?: ((problem: DiscoveryProblem) => void) | undefined;
  readonly onClose?: () => void;
  readonly clock?: Clock | undefined;
}

export class ServiceCache<P = unknown> implements AsyncIterable<ServiceChange<P>> {
  readonly name: string;
  readonly #cache: Cache;
  readonly #setting: ServiceCacheSetting<P>;
  readonly #byNode = new Map<string, ServiceInstance<P>>();
  readonly #problems = new Map<string, DiscoveryProblem>();
  readonly #feeds = new Set<Feed<ServiceChange<P>>>();
  #sorted: readonly ServiceInstance<P>[] | undefined;

  /** `ServiceDiscovery.cache()` makes one. */
  constructor(client: Client, path: string, setting: ServiceCacheSetting<P>) {
    this.name = nameOf(path);
    this.#setting = setting;
    this.#cache = new Cache(client, path, {
      scope: 'children',
      onChange: (change) => this.#changed(change),
      onCurrent: () => this.#looked(),
      ...(setting.clock && { clock: setting.clock }),
    });
    void this.#end();
  }

  /** Resolves once the instances are here. */
  get ready(): Promise<void> {
    return this.#cache.ready;
  }

  get state(): CacheState {
    return this.#cache.state;
  }

  /** What is known now. Before `ready`, an empty answer that is stale since 1970. */
  get answer(): ServiceAnswer<P> {
    const { state } = this;
    const staleSinceMs = 'sinceMs' in state ? state.sinceMs : state.name === 'loading' ? 0 : null;
    return { instances: this.instances, staleSinceMs };
  }

  /** As last known, sorted by id. */
  get instances(): readonly ServiceInstance<P>[] {
    this.#sorted ??= [...this.#byNode.values()].sort((a, b) =>
      a.id < b.id ? -1 : a.id > b.id ? 1 : 0,
    );
    return this.#sorted;
  }

  get problems(): readonly DiscoveryProblem[] {
    return [...this.#problems.values(), ...this.#cache.unreadable.map(denied)];
  }

  /** Begins with what is there. */
  [Symbol.asyncIterator](): AsyncIterableIterator<ServiceChange<P>> {
    const feed: Feed<ServiceChange<P>> = new Feed({
      of: `instances of ${this.name}`,
      bufferMax: 100_000,
      onReturn: async () => void this.#feeds.delete(feed),
    });
    for (const instance of this.instances) feed.push({ type: 'added', instance, previous: null });
    const { state } = this;
    if (state.name === 'closed') feed.end(state.error);
    else this.#feeds.add(feed);
    return feed;
  }

  async close(): Promise<void> {
    this.#setting.onClose?.();
    await this.#cache.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The cache says that it is over through its own loop. */
  async #end(): Promise<void> {
    let failure: { readonly error: unknown } | undefined;
    try {
      for await (const _ of this.#cache.changes({ initial: false })); // heard by `onChange` already
    } catch (error) {
      failure = { error };
    }
    for (const feed of this.#feeds) feed.end(failure?.error);
    this.#feeds.clear();
  }

  /** What may not be read brings no change that would tell of it. */
  #looked(): void {
    for (const path of this.#cache.unreadable) this.#setting.onProblem?.(denied(path));
  }

  #changed({ type, path, node }: CacheChange): void {
    const key = nameOf(path);
    const previous = this.#byNode.get(key) ?? null;
    this.#problems.delete(path);
    if (type === 'removed') {
      this.#byNode.delete(key);
      if (previous !== null) this.#tell({ type, instance: previous, previous });
      return;
    }
    try {
      const instance = this.#setting.parse(node.data, path);
      this.#byNode.set(key, instance);
      this.#tell({ type: previous === null ? 'added' : 'changed', instance, previous });
    } catch (error) {
      const problem = { path, error: error as Error };
      this.#problems.set(path, problem);
      this.#setting.onProblem?.(problem);
    }
  }

  #tell(change: ServiceChange<P>): void {
    this.#sorted = undefined;
    for (const feed of this.#feeds) {
      feed.push(change);
      if (feed.isEnded) this.#feeds.delete(feed);
    }
  }
}

function denied(path: string): DiscoveryProblem {
  return { path, error: new ZkError('NO_AUTH', { op: 'getData', path }) };
}
