/**
 * A copy, in this process, of a node, of a node's children, or of a whole subtree, kept up to date.
 *
 * One watch on the root stays and tells of every change below (3.6 and later); what changed is then
 * read. Servers without such watches get one-shot watches on every node instead. After every
 * reconnect, and in every new session, all nodes are looked at again: what happened meanwhile is
 * found by comparing czxid and mzxid, so that a node deleted and made again is not taken for the
 * same. `changes()` tells what happened, in the order of the transactions.
 *
 * What is promised: once changes stop, the copy is equal to what the server has; nobody is shown an
 * older state of a node after a newer one. What is not: several changes of one node may be told as
 * one, a node that came and went may not be told of, and the copy as a whole is not a picture of one
 * moment. Without a link it is old, and `state` says since when. Past `nodesMax` or `bytesMax` the
 * cache ends with a CacheOverflowError.
 */

import { type Client, checkClient, isZkError, ZkError } from '../client/index.ts';
import { nameOf, parentOf } from '../protocol/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  onAbort,
  systemClock,
} from '../support/index.ts';
import { checkCacheOptions } from './cache-arguments.ts';
import { type CacheChange, type CachedNode, CacheLedger } from './cache-ledger.ts';
import { CacheReader } from './cache-reader.ts';
import { Feed } from './feed.ts';
import { cacheTable, changesTable } from './option-tables.ts';

export type CacheScope = 'node' | 'children' | 'subtree';

export interface CacheOptions {
  /** The node alone, its children without itself, or itself and all below. `subtree` unless said. */
  readonly scope?: CacheScope;
  /** Nodes in it. 100,000. */
  readonly nodesMax?: number;
  /** What they take, about. 256 MiB. */
  readonly bytesMax?: number;
  /** Told of every change as it is taken in, those of the first load too, before any loop is. */
  readonly onChange?: (change: CacheChange) => void;
  /** Told whenever everything is here: once it is loaded, and again after every reconnect. */
  readonly onCurrent?: () => void;
  /** Closes it. */
  readonly signal?: AbortSignal;
  /** For tests. */
  readonly clock?: Clock;
}

export type CacheState =
  | { readonly name: 'loading' }
  /** There is a link, and all that the server has told over it is in. */
  | { readonly name: 'current' }
  /** What is here is as it was at `sinceMs`, milliseconds since 1970, or later. */
  | { readonly name: 'stale'; readonly sinceMs: number }
  /** For good. What was known last can still be asked for. */
  | { readonly name: 'closed'; readonly sinceMs: number; readonly error?: unknown };

export interface ChangesOptions {
  /** Begin with an `added` for every node there is. True unless said. */
  readonly initial?: boolean;
  /** Changes that wait for the reader, beyond `nodesMax`; past that the loop throws. 100,000. */
  readonly bufferMax?: number;
}

/** The tree was too much for the limits that were set. */
export class CacheOverflowError extends Error {
  override readonly name = 'CacheOverflowError';
  readonly code = 'CACHE_OVERFLOW';
}

/** How often in a row a look at the tree may fail, on a link that works, before the cache gives up. */
const failuresMax = 10;

export class Cache implements AsyncIterable<CacheChange> {
  readonly path: string;
  readonly #client: Client;
  readonly #options: Required<Omit<CacheOptions, 'signal' | 'onChange' | 'onCurrent'>>;
  readonly #listeners: Pick<CacheOptions, 'onChange' | 'onCurrent'>;
  readonly #ledger = new CacheLedger();
  readonly #reader: CacheReader;
  readonly #children = new Map<string, Set<string>>();
  readonly #feeds = new Set<Feed<CacheChange>>();
  readonly #late = new Map<Feed<CacheChange>, ChangesOptions>();
  readonly #ready = deferred();
  readonly #stopListening: () => void;
  #state: CacheState = { name: 'loading' };
  /** Resolves when what is being done for the present link is no longer worth doing. */
  #over: Deferred<void> = deferred();
  #failures = 0;
  #closing: Promise<void> | undefined;

  /** Begins to load at once. */
  constructor(client: Client, path: string, options: CacheOptions = {}) {
    checkClient('Cache', client);
    checkOptions('Cache', options, cacheTable);
    checkCacheOptions(client, path, options);
    const { scope = 'subtree', nodesMax = 100_000, bytesMax = 256 * 1024 * 1024 } = options;
    this.path = path;
    this.#client = client;
    this.#listeners = options;
    this.#options = { scope, nodesMax, bytesMax, clock: options.clock ?? systemClock };
    this.#reader = new CacheReader(client, path, scope, this.#ledger, {
      onProgress: () => this.#publish(),
      onFailure: (error) => this.#over.reject(error),
      onBroken: (error) => this.#broken(error),
    });
    const onState = () => this.#moved();
    client.on('state', onState);
    const closed = () => void this.#finish(undefined);
    const stopHearing = options.signal && onAbort(options.signal, closed);
    this.#stopListening = () => {
      client.off('state', onState);
      stopHearing?.();
    };
    this.#ready.promise.catch(() => {}); // told by `state` and by every loop, too
    if (options.signal?.aborted) closed();
    else void this.#run();
  }

  // ── the reader's side ─────────────────────────────────────────────────────────────────────────

  /** Resolves once everything is here. Rejects when the cache ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get state(): CacheState {
    if (this.#state.name === 'current' && this.#client.state.name !== 'connected') this.#moved();
    return this.#state;
  }

  get size(): number {
    return this.#ledger.size;
  }

  /** What the nodes take, about. */
  get bytes(): number {
    return this.#ledger.bytes;
  }

  /** Nodes that are there but may not be read: they are not in the cache. */
  get unreadable(): readonly string[] {
    return [...this.#reader.unreadable];
  }

  /** The node as last known, or undefined when there is none. */
  get(path: string = this.path): CachedNode | undefined {
    return this.#ledger.nodes.get(path);
  }

  /** The names of the children that are in the cache, sorted. */
  children(path: string = this.path): string[] {
    return [...(this.#children.get(path) ?? [])].sort();
  }

  /** All nodes, in no order. */
  nodes(): IterableIterator<CachedNode> {
    return this.#ledger.nodes.values();
  }

  /**
   * What happens, until the loop is left or the cache is closed. Begins with what is there, so that
   * whoever adds up the changes has, at every moment, what the cache had.
   */
  changes(options: ChangesOptions = {}): AsyncIterableIterator<CacheChange> {
    checkOptions('changes', options, changesTable);
    const { bufferMax = 100_000, initial = true } = options;
    const feed: Feed<CacheChange> = new Feed({
      of: `cache ${this.path}`,
      bufferMax: bufferMax + this.#options.nodesMax,
      onReturn: async () => {
        this.#feeds.delete(feed);
        this.#late.delete(feed);
      },
    });
    if (this.#state.name === 'loading') this.#late.set(feed, options);
    else this.#open(feed, initial);
    return feed;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<CacheChange> {
    return this.changes();
  }

  async close(): Promise<void> {
    await this.#finish(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #open(feed: Feed<CacheChange>, initial: boolean): void {
    if (initial) {
      const nodes = [...this.nodes()].sort((a, b) => compare(a.stat.czxid, b.stat.czxid));
      for (const node of nodes) {
        const { path, stat } = node;
        feed.push({ type: 'added', path, node, previous: null, zxid: stat.czxid });
      }
    }
    if (this.#state.name === 'closed') feed.end(this.#state.error);
    else this.#feeds.add(feed);
  }

  // ── the server's side ─────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    const backoff = new Backoff({ firstMs: 50, maxMs: 5_000 });
    while (this.#state.name !== 'closed') {
      const over = this.#over;
      over.promise.catch(() => {});
      try {
        if (this.#client.state.name === 'connected') {
          await Promise.race([this.#reader.look(), over.promise]);
          if (over === this.#over) this.#loaded();
        }
        await over.promise;
      } catch (error) {
        if (over === this.#over) await this.#failed(error, backoff);
      }
    }
  }

  #loaded(): void {
    if (this.#state.name === 'closed') return;
    this.#failures = 0;
    const isFirst = this.#state.name === 'loading';
    this.#publish();
    if (this.#client.state.name !== 'connected') return;
    this.#state = { name: 'current' };
    if (isFirst) {
      for (const [feed, { initial = true }] of this.#late) this.#open(feed, initial);
      this.#late.clear();
      this.#ready.resolve();
    }
    this.#tell(() => this.#listeners.onCurrent?.());
  }

  /** A look that failed is tried again; the link's own troubles are over with the next link. */
  async #failed(error: unknown, backoff: Backoff): Promise<void> {
    this.#stale();
    this.#failures += 1;
    if (!isZkError(error) || this.#failures > failuresMax) {
      void this.#finish(error);
      return;
    }
    this.#over = deferred();
    const waited = deferred();
    const { clock } = this.#options;
    const timer = clock.after(backoff.next(), () => waited.resolve());
    await Promise.race([waited.promise, this.#over.promise]).catch(() => {});
    timer.cancel();
  }

  /** The session's state is another: whatever was under way is begun again when there is a link. */
  #moved(): void {
    const { state } = this.#client;
    if (this.#state.name === 'closed') return;
    if (state.name !== 'connected') this.#stale();
    this.#reader.breakOff();
    const over = this.#over;
    this.#over = deferred();
    over.resolve();
    if (state.name === 'closed') void this.#finish(undefined);
    else if (state.name === 'expired' || state.name === 'authFailed') {
      const code = state.name === 'expired' ? 'SESSION_EXPIRED' : 'AUTH_FAILED';
      const detail = 'the cache ends with the session; connect with renew to have it go on';
      void this.#finish(new ZkError(code, { op: 'cache', path: this.path, detail }));
    }
  }

  #stale(): void {
    if (this.#state.name !== 'current') return;
    this.#state = { name: 'stale', sinceMs: this.#options.clock.wallMs() };
  }

  #publish(): void {
    if (this.#state.name === 'closed') return;
    for (const change of this.#ledger.take()) {
      this.#index(change);
      this.#tell(() => this.#listeners.onChange?.(change));
      for (const feed of this.#feeds) {
        feed.push(change);
        if (feed.isEnded) this.#feeds.delete(feed);
      }
    }
    const { nodesMax, bytesMax } = this.#options;
    const { size, bytes } = this.#ledger;
    if (Math.max(size, this.#reader.expected) > nodesMax) {
      this.#overflow(`more than ${nodesMax} nodes; cache less of the tree, or set nodesMax`);
    } else if (Math.max(bytes, this.#reader.expectedBytes) > bytesMax) {
      this.#overflow(`more than ${bytesMax} bytes; cache less of the tree, or set bytesMax`);
    }
  }

  /** What a listener throws is its own, and does no harm here. */
  #tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #broken(error: Error): void {
    const { message } = error.cause as Error;
    const why = `${message}; set frameBytesMax on the client, or cache less of the tree`;
    this.#overflow(`a reply cannot be read: ${why}`, error);
  }

  #overflow(why: string, cause?: Error): void {
    const options = cause && { cause };
    void this.#finish(new CacheOverflowError(`cache ${this.path}: ${why}`, options));
  }

  #index({ type, path }: CacheChange): void {
    const parent = parentOf(path);
    if (parent === null) return;
    const names = this.#children.get(parent);
    if (type === 'added') {
      if (names === undefined) this.#children.set(parent, new Set([nameOf(path)]));
      else names.add(nameOf(path));
    } else if (type === 'removed') {
      names?.delete(nameOf(path));
      if (names?.size === 0) this.#children.delete(parent);
    }
  }

  #finish(error: unknown): Promise<void> {
    this.#closing ??= this.#end(error);
    return this.#closing;
  }

  async #end(error: unknown): Promise<void> {
    const { state } = this;
    const sinceMs = state.name === 'stale' ? state.sinceMs : this.#options.clock.wallMs();
    this.#state = { name: 'closed', sinceMs, ...(error === undefined ? {} : { error }) };
    this.#stopListening();
    this.#over.resolve();
    for (const feed of [...this.#feeds, ...this.#late.keys()]) feed.end(error);
    this.#feeds.clear();
    this.#late.clear();
    this.#ready.reject(error ?? new Error(`cache ${this.path} was closed before it was loaded`));
    await this.#reader.close();
  }
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
