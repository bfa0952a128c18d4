/**
 * What a Dubbo consumer is told of: for each category that it asked for, all URLs that match it.
 *
 * In: the URLs of a service. Out: a whole list for each category, at first and whenever one changes.
 * A category with nothing in it is told as one URL of protocol `empty`, as Dubbo does. A reader that
 * is slow misses lists that were replaced meanwhile, and never the newest; so nothing piles up.
 */

import type { Client } from '../client/index.ts';
import { type Deferred, deferred } from '../support/index.ts';
import type { CacheState } from './cache.ts';
import { DubboService, type DubboServiceSetting } from './dubbo-service.ts';
import { categoriesOf, type DubboUrl, isDubboMatch } from './dubbo-url.ts';

export interface DubboNotice {
  readonly category: string;
  /** All of them. One with protocol `empty` when there are none. */
  readonly urls: readonly DubboUrl[];
}

export class DubboSubscription implements AsyncIterableIterator<DubboNotice> {
  readonly consumer: DubboUrl;
  readonly #service: DubboService;
  readonly #categories: readonly string[];
  /** Categories that the reader has not seen as they are now. */
  readonly #news: Set<string>;
  #wake: Deferred<void> = deferred();
  #end: { readonly error?: unknown } | undefined;

  /** `DubboRegistry.subscribe()` makes one. */
  constructor(client: Client, path: string, consumer: DubboUrl, setting: DubboServiceSetting) {
    this.consumer = consumer;
    this.#categories = categoriesOf(consumer);
    this.#news = new Set(this.#categories);
    this.#service = new DubboService(client, path, setting, ({ category }) => {
      if (!this.#categories.includes(category)) return;
      this.#news.add(category);
      this.#wake.resolve();
    });
    this.ready.then(
      () => this.#wake.resolve(),
      () => {}, // told as the end, too
    );
    this.#service.ended().then(
      () => this.#finish({}),
      (error: unknown) => this.#finish({ error }),
    );
  }

  get ready(): Promise<void> {
    return this.#service.ready;
  }

  get state(): CacheState {
    return this.#service.state;
  }

  /** Null when `urls` is up to date; else, in milliseconds since 1970, how old it may be. */
  get staleSinceMs(): number | null {
    return this.#service.staleSinceMs;
  }

  /** What matches in a category, as last known; an `empty` URL when nothing does. */
  urls(category = 'providers'): readonly DubboUrl[] {
    const { consumer } = this;
    const wanted = { ...consumer, parameters: { ...consumer.parameters, category } };
    const found = this.#service.urls(category).filter((url) => {
      const parameters = { ...url.parameters, category: url.parameters.category || category };
      return isDubboMatch(wanted, { ...url, parameters });
    });
    return found.length > 0 ? found : [{ ...wanted, protocol: 'empty' }];
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<DubboNotice>> {
    for (;;) {
      const [category] = this.#news;
      if (category !== undefined && this.#service.state.name !== 'loading' && !this.#end) {
        this.#news.delete(category);
        return { done: false, value: { category, urls: this.urls(category) } };
      }
      if (this.#end !== undefined) {
        const { error } = this.#end;
        this.#end = {}; // an iterator fails once; then it is done
        if (error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      const wake = this.#wake;
      await wake.promise;
      if (wake === this.#wake) this.#wake = deferred();
    }
  }

  async return(): Promise<IteratorResult<DubboNotice>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    await this.#service.close();
    this.#finish({});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake.resolve();
  }
}
