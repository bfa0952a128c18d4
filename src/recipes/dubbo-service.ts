/**
 * What is registered for one Dubbo service, kept up to date in this process.
 *
 *   <root>/<service>/providers|consumers|routers|configurators/<URL, encoded>
 *
 * In: that subtree, through a Cache: one watch for all categories. Out: the URLs of each category. A
 * node whose name is no URL is left out and told of. While ZooKeeper is away the last known answer is
 * given, with the time since when it may be old.
 */

import type { Client } from '../client/index.ts';
import { nameOf, parentOf } from '../protocol/index.ts';
import type { Clock } from '../support/index.ts';
import { Cache, type CacheState } from './cache.ts';
import type { CacheChange } from './cache-ledger.ts';
import { type DubboUrl, decodeDubbo, parseDubboUrl } from './dubbo-url.ts';

export interface DubboProblem {
  readonly path: string;
  readonly error: Error;
}

export interface DubboServiceSetting {
  readonly onProblem?: ((problem: DubboProblem) => void) | undefined;
  readonly onClose?: (() => void) | undefined;
  readonly clock?: Clock | undefined;
}

export interface UrlChange {
  /** It came, or it went. */
  readonly type: 'up' | 'down';
  readonly category: string;
  readonly url: DubboUrl;
}

export class DubboService {
  readonly #path: string;
  readonly #cache: Cache;
  readonly #setting: DubboServiceSetting;
  readonly #categories = new Map<string, Map<string, DubboUrl>>();
  readonly #heard: (change: UrlChange) => void;

  constructor(
    client: Client,
    path: string,
    setting: DubboServiceSetting,
    heard: (change: UrlChange) => void,
  ) {
    this.#path = path;
    this.#setting = setting;
    this.#heard = heard;
    this.#cache = new Cache(client, path, {
      onChange: (change) => this.#changed(change),
      ...(setting.clock && { clock: setting.clock }),
    });
  }

  get ready(): Promise<void> {
    return this.#cache.ready;
  }

  get state(): CacheState {
    return this.#cache.state;
  }

  get staleSinceMs(): number | null {
    const { state } = this;
    if ('sinceMs' in state) return state.sinceMs;
    return state.name === 'loading' ? 0 : null;
  }

  /** Sorted by node name, so that the same set is always the same list. */
  urls(category: string): DubboUrl[] {
    const urls = this.#categories.get(category) ?? new Map<string, DubboUrl>();
    return [...urls.keys()].sort().map((name) => urls.get(name)!);
  }

  /** Resolves, or rejects with what ended it, when there will be no more changes. */
  async ended(): Promise<void> {
    for await (const _ of this.#cache.changes({ initial: false })); // told by `heard` already
  }

  async close(): Promise<void> {
    this.#setting.onClose?.();
    await this.#cache.close();
  }

  #changed({ type, path }: CacheChange): void {
    const parent = parentOf(path);
    if (type === 'changed' || parent === null || parentOf(parent) !== this.#path) return;
    const [category, name] = [nameOf(parent), nameOf(path)];
    const urls = this.#categories.get(category) ?? new Map<string, DubboUrl>();
    this.#categories.set(category, urls);
    if (type === 'removed') {
      const url = urls.get(name);
      urls.delete(name);
      if (url !== undefined) this.#heard({ type: 'down', category, url });
      return;
    }
    try {
      const url = parseDubboUrl(decodeDubbo(name));
      urls.set(name, url);
      this.#heard({ type: 'up', category, url });
    } catch (error) {
      this.#setting.onProblem?.({ path, error: error as Error });
    }
  }
}
