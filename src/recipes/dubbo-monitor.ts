/**
 * Who provides and who consumes a Dubbo service, and when that changes.
 *
 * In: the URLs of a service. Out: both lists, at once, and each arrival and departure. A provider is
 * `down` when its node goes: with its session, a while after the process died.
 */

import type { Client } from '../client/index.ts';
import type { CacheState } from './cache.ts';
import { DubboService, type DubboServiceSetting, type UrlChange } from './dubbo-service.ts';
import type { DubboUrl } from './dubbo-url.ts';
import { Feed } from './feed.ts';

export class DubboMonitor implements AsyncIterable<UrlChange> {
  readonly service: string;
  readonly #service: DubboService;
  readonly #feeds = new Set<Feed<UrlChange>>();

  /** `DubboRegistry.monitor()` makes one. */
  constructor(client: Client, path: string, service: string, setting: DubboServiceSetting) {
    this.service = service;
    this.#service = new DubboService(client, path, setting, (change) => {
      if (!isWatched(change.category)) return;
      for (const feed of this.#feeds) feed.push(change);
    });
    this.#service.ended().then(
      () => this.#end(undefined),
      (error: unknown) => this.#end(error),
    );
  }

  get ready(): Promise<void> {
    return this.#service.ready;
  }

  get state(): CacheState {
    return this.#service.state;
  }

  /** Null when the lists are up to date; else, in milliseconds since 1970, how old they may be. */
  get staleSinceMs(): number | null {
    return this.#service.staleSinceMs;
  }

  get providers(): readonly DubboUrl[] {
    return this.#service.urls('providers');
  }

  get consumers(): readonly DubboUrl[] {
    return this.#service.urls('consumers');
  }

  /** Begins with an `up` for each that is there. */
  [Symbol.asyncIterator](): AsyncIterableIterator<UrlChange> {
    const feed: Feed<UrlChange> = new Feed({
      of: `providers and consumers of ${this.service}`,
      bufferMax: 200_000,
      onReturn: async () => void this.#feeds.delete(feed),
    });
    for (const category of watched) {
      for (const url of this.#service.urls(category)) feed.push({ type: 'up', category, url });
    }
    const { state } = this;
    if (state.name === 'closed') feed.end(state.error);
    else this.#feeds.add(feed);
    return feed;
  }

  async close(): Promise<void> {
    await this.#service.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #end(error: unknown): void {
    for (const feed of this.#feeds) feed.end(error);
    this.#feeds.clear();
  }
}

const watched = ['providers', 'consumers'] as const;

function isWatched(category: string): boolean {
  return (watched as readonly string[]).includes(category);
}
