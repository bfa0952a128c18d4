/**
 * What is registered for one Dubbo service, kept up to date in this process.
 *
 *   <root>/<service>/providers|consumers|routers|configurators/<URL, encoded>
 *
 * In: that subtree, through a Cache: one watch for all categories. Out: the URLs of each category. A node
 * whose name is no URL is left out and reported. While ZooKeeper is away the last known answer is given,
 * with the time since when it may be old.
 *
 * A name says everything, so a node that may not be read counts too. A server sends no events of such a
 * node, but it does tell of its folder: each category is also listed whenever its list changes.
 */

import { type Client, ZkError } from '../client/index.ts';
import { childOf, nameOf, parentOf } from '../protocol/index.ts';
import { type Clock, systemClock, unlessAborted } from '../support/index.ts';
import { Cache, type CacheState } from './cache.ts';
import type { CacheChange } from './cache-ledger.ts';
import { type DubboUrl, decodeDubbo, parseDubboUrl } from './dubbo-url.ts';
import { linked } from './linked.ts';
import { watchChildren } from './node-watch.ts';
import { isPassing } from './passing.ts';
import { pause } from './pause.ts';
import { whileLinked } from './while-linked.ts';

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

/** After a list that could not be read. */
const listAgainMs = 100;

/** A category whose list is followed. */
interface Folder {
  readonly life: AbortController;
  /** Names that the cache does not have, because they may not be read or have not been read yet. */
  readonly hidden: Set<string>;
  readonly following: Promise<void>;
}

export class DubboService {
  readonly #client: Client;
  readonly #path: string;
  readonly #cache: Cache;
  readonly #setting: DubboServiceSetting;
  readonly #categories = new Map<string, Map<string, DubboUrl>>();
  readonly #heard: (change: UrlChange) => void;
  readonly #folders = new Map<string, Folder>();
  /** Nodes whose name is no URL. */
  readonly #refused = new Set<string>();
  /** First lists that are under way. */
  readonly #listing = new Set<Promise<void>>();

  constructor(
    client: Client,
    path: string,
    setting: DubboServiceSetting,
    heard: (change: UrlChange) => void,
  ) {
    this.#client = client;
    this.#path = path;
    this.#setting = setting;
    this.#heard = heard;
    this.#cache = new Cache(client, path, {
      onChange: (change) => this.#changed(change),
      onCurrent: () => this.#looked(),
      ...(setting.clock && { clock: setting.clock }),
    });
  }

  get ready(): Promise<void> {
    return this.#cache.ready.then(async () => void (await Promise.all(this.#listing)));
  }

  get state(): CacheState {
    const { state } = this.#cache;
    return state.name === 'current' && this.#listing.size > 0 ? { name: 'loading' } : state;
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
    const following = [...this.#folders.keys()].map((folder) => this.#unfollow(folder));
    await Promise.all([this.#cache.close(), ...following]);
  }

  #changed({ type, path }: CacheChange): void {
    if (type === 'changed') return;
    if (parentOf(path) === this.#path) {
      if (type === 'added') this.#follow(path);
      else void this.#unfollow(path);
    }
    if (!this.#isUrl(path)) return;
    if (type === 'added') this.#add(path);
    else if (!this.#cache.unreadable.includes(path)) this.#remove(path);
  }

  /** What stands in a folder that may not be read is not known at all. */
  #looked(): void {
    for (const path of this.#cache.unreadable) {
      if (!this.#isUrl(path)) this.#problem(path, new ZkError('NO_AUTH', { op: 'getData', path }));
    }
  }

  #problem(path: string, error: unknown): void {
    this.#setting.onProblem?.({ path, error: error as Error });
  }

  // ── names that the cache cannot have ──────────────────────────────────────────────────────────

  #follow(folder: string): void {
    if (this.#folders.has(folder)) return;
    const [life, hidden] = [new AbortController(), new Set<string>()];
    let isListed!: () => void;
    const listed = new Promise<void>((resolve) => {
      isListed = resolve;
    });
    this.#listing.add(listed);
    const first = () => {
      this.#listing.delete(listed);
      isListed();
    };
    const following = this.#list(folder, hidden, life.signal, first).finally(first);
    this.#folders.set(folder, { life, hidden, following });
  }

  async #unfollow(path: string): Promise<void> {
    const folder = this.#folders.get(path);
    if (folder === undefined) return;
    this.#folders.delete(path);
    folder.life.abort();
    for (const name of folder.hidden) this.#remove(childOf(path, name));
    await folder.following;
  }

  /** Lists the names, and again whenever there are others, until the folder is gone or we close. */
  async #list(
    folder: string,
    hidden: Set<string>,
    signal: AbortSignal,
    first: () => void,
  ): Promise<void> {
    const client = this.#client;
    while (!signal.aborted) {
      try {
        await linked(client, signal);
        const asked = watchChildren(client, folder);
        try {
          const watched = await unlessAborted(asked, signal);
          if (watched === null) return; // the cache tells of its end, and of its return
          this.#named(folder, hidden, new Set(watched.found));
          first();
          await unlessAborted(watched.changed, signal);
        } finally {
          const stopped = asked.then((watched) => watched?.stop()).catch(() => {});
          await whileLinked(client, stopped);
        }
      } catch (error) {
        if (signal.aborted || client.sessionSignal.aborted) return; // told as the end of the cache
        if (!isPassing(error)) return this.#problem(folder, error);
        await pause(this.#setting.clock ?? systemClock, listAgainMs, signal);
      }
    }
  }

  #named(folder: string, hidden: Set<string>, names: ReadonlySet<string>): void {
    const isCached = (name: string) => this.#cache.get(childOf(folder, name)) !== undefined;
    for (const name of [...hidden]) {
      if (names.has(name)) continue;
      hidden.delete(name);
      if (!isCached(name)) this.#remove(childOf(folder, name));
    }
    for (const name of names) {
      if (hidden.has(name) || isCached(name)) continue;
      hidden.add(name);
      this.#add(childOf(folder, name));
    }
  }

  // ── URLs ──────────────────────────────────────────────────────────────────────────────────────

  #isUrl(path: string): boolean {
    const parent = parentOf(path);
    return parent !== null && parentOf(parent) === this.#path;
  }

  #urlsOf(path: string): { category: string; name: string; urls: Map<string, DubboUrl> } {
    const [category, name] = [nameOf(parentOf(path)!), nameOf(path)];
    const urls = this.#categories.get(category) ?? new Map<string, DubboUrl>();
    this.#categories.set(category, urls);
    return { category, name, urls };
  }

  #remove(path: string): void {
    const { category, name, urls } = this.#urlsOf(path);
    const url = urls.get(name);
    urls.delete(name);
    this.#refused.delete(path);
    if (url !== undefined) this.#heard({ type: 'down', category, url });
  }

  #add(path: string): void {
    const { category, name, urls } = this.#urlsOf(path);
    if (urls.has(name) || this.#refused.has(path)) return; // the list and the cache both have it
    try {
      const url = parseDubboUrl(decodeDubbo(name));
      urls.set(name, url);
      this.#heard({ type: 'up', category, url });
    } catch (error) {
      this.#refused.add(path);
      this.#problem(path, error);
    }
  }
}
