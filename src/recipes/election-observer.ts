/**
 * Who leads, for those who only follow: the present leader, and every change of it.
 *
 * Of a line the first is the leader; of a static election the owner of the one node. An observer
 * watches the leader's node alone: candidates that join or leave behind it cost nothing, and a change
 * of leader costs a list and a read for each observer. It writes nothing.
 *
 * Not promised: that the leader which is shown leads at this very moment, or knows that it does. Send
 * it the epoch along: a leader with another one is another leader. While the link is away the answer
 * is the last one known, and `isCurrent` is false.
 */

import {
  type Client,
  type ClientEvents,
  checkClient,
  type DataAndStat,
  isZkError,
} from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  systemClock,
  unlessAborted,
} from '../support/index.ts';
import { type ElectionLayout, electionPrefixes } from './election.ts';
import { Feed } from './feed.ts';
import { inOrder } from './line.ts';
import { linked } from './linked.ts';
import { type Watched, watchChildren, watchNode } from './node-watch.ts';
import { electionObserverTable } from './option-tables.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import { settled, unwatch } from './unwatch.ts';

export interface Leader {
  readonly id: string;
  readonly epoch: bigint;
  readonly sessionId: bigint;
  readonly path: string;
}

export interface ElectionObserverOptions {
  /** How the election is held. `latch` unless said; `static` is one node, as /currentMaster. */
  readonly layout?: ElectionLayout | 'static';
  readonly clock?: Clock;
}

export class ElectionObserver implements AsyncIterable<Leader | null> {
  readonly path: string;
  readonly clock: Clock;
  readonly #client: Client;
  readonly #layout: ElectionLayout | 'static';
  readonly #life = new AbortController();
  readonly #ready = deferred();
  readonly #feeds = new Set<Feed<Leader | null>>();
  readonly #loop: Promise<void>;
  #leader: Leader | null | undefined;
  #seenMs: number | undefined;
  #isCurrent = false;
  #end: { readonly error?: unknown } | undefined;
  #wake: Deferred<void> = deferred();

  /** Begins to watch at once. */
  constructor(client: Client, path: string, options: ElectionObserverOptions = {}) {
    checkClient('ElectionObserver', client);
    checkOptions('ElectionObserver', options, electionObserverTable);
    this.path = path;
    this.clock = options.clock ?? systemClock;
    this.#client = client;
    this.#layout = options.layout ?? 'latch';
    this.#ready.promise.catch(() => {}); // a loop over it throws it, too
    client.on('state', this.#onState);
    this.#loop = this.#run();
  }

  /** Resolves once it is known who leads, or that nobody does. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Null when nobody leads; undefined while nothing is known yet. */
  get leader(): Leader | null | undefined {
    return this.#leader;
  }

  get isCurrent(): boolean {
    return this.#isCurrent && this.#client.state.name === 'connected';
  }

  /** How long ago the answer was last known to be right: 0 while it is watched; undefined before. */
  get ageMs(): number | undefined {
    if (this.isCurrent) return 0;
    return this.#seenMs === undefined ? undefined : this.clock.nowMs() - this.#seenMs;
  }

  /** The present leader, then every change; null while there is none. */
  [Symbol.asyncIterator](): AsyncIterator<Leader | null> {
    const feed: Feed<Leader | null> = new Feed({
      of: `leaders of ${this.path}`,
      onReturn: async () => void this.#feeds.delete(feed),
    });
    if (this.#leader !== undefined) feed.push(this.#leader);
    if (this.#end) feed.end(this.#end.error);
    else this.#feeds.add(feed);
    return feed;
  }

  /** Watches no longer; what was known last can still be read. */
  async close(): Promise<void> {
    this.#over({});
    this.#life.abort(new Error(`${this.path} is no longer observed`));
    this.#wake.resolve();
    await this.#loop;
    await settled(this.#client, this.path);
    await unwatch(this.#client, this.path, 'data', this.#onCreated);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  readonly #onState = (state: ClientEvents['state'][0]) => {
    if (state.name !== 'connected') this.#setCurrent(false);
    this.#wake.resolve();
  };

  readonly #onCreated = () => this.#wake.resolve();

  async #run(): Promise<void> {
    const { signal } = this.#life;
    const backoff = new Backoff(retryBackoff);
    let watched: Watched<unknown> | undefined;
    try {
      while (!signal.aborted) {
        await linked(this.#client, signal);
        this.#wake = deferred();
        try {
          // The client has set the watch again if the link is new: its event comes before this answer.
          if (watched !== undefined) await this.#client.exists(this.path, { signal });
          const stillSo = watched !== undefined && (await isPending(watched.changed));
          if (!stillSo) watched = await this.#look();
          if (this.#client.state.name !== 'connected') continue;
          this.#setCurrent(true);
          this.#ready.resolve();
        } catch (error) {
          if (signal.aborted) break;
          if (!isPassing(error)) throw error;
          // Never at once: a client that is closing refuses every call, and still says connected.
          await pause(systemClock, backoff.next(), signal);
          continue;
        }
        backoff.reset();
        const changed = watched?.changed ?? this.#wake.promise;
        await Promise.race([changed, this.#wake.promise]);
      }
    } catch (error) {
      if (!signal.aborted) this.#over({ error });
    } finally {
      this.#client.off('state', this.#onState);
      this.#setCurrent(false);
      const stopped = watched?.stop();
      if (this.#client.state.name === 'connected') await stopped;
      else stopped?.catch(() => {});
    }
  }

  /** Learns who leads, and sets the one watch that tells when that changes. */
  async #look(): Promise<Watched<unknown> | undefined> {
    for (;;) {
      const found = this.#layout === 'static' ? this.path : await this.#first(this.#layout);
      if (found !== null && typeof found !== 'string') {
        this.#setLeader(null);
        return found;
      }
      if (found === null) return undefined;
      const watched = await this.#kept(watchNode(this.#client, found));
      if (watched !== null) {
        this.#setLeader(leaderOf(found, watched.found));
        return watched;
      }
      if (this.#layout === 'static' && (await this.#isMissing())) return undefined;
    }
  }

  /** The first one's path; the watch on an empty line; or null when there is no line yet. */
  async #first(layout: ElectionLayout): Promise<string | Watched<string[]> | null> {
    const { signal } = this.#life;
    const prefixes = [electionPrefixes[layout]];
    for (;;) {
      const names = await this.#client.children(this.path, { signal }).catch((error) => {
        if (isZkError(error, 'NO_NODE')) return null;
        throw error;
      });
      if (names === null) {
        if (await this.#isMissing()) return null;
        continue;
      }
      const [first] = inOrder(names, prefixes);
      if (first !== undefined) return childOf(this.path, first);
      const watched = await this.#kept(watchChildren(this.#client, this.path));
      if (watched === null) continue;
      const [joined] = inOrder(watched.found, prefixes);
      if (joined === undefined) return watched;
      await watched.stop();
      return childOf(this.path, joined);
    }
  }

  /** True, with a watch that tells of its making, when the election's node is not there. */
  async #isMissing(): Promise<boolean> {
    const { signal } = this.#life;
    const stat = await this.#client.exists(this.path, { watch: this.#onCreated, signal });
    if (stat !== null) return false;
    this.#setLeader(null);
    return true;
  }

  /** A watch that comes after the end is taken away as it comes. */
  async #kept<T>(asked: Promise<Watched<T> | null>): Promise<Watched<T> | null> {
    const { signal } = this.#life;
    void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
    return unlessAborted(asked, signal);
  }

  #setLeader(leader: Leader | null): void {
    const isSame =
      this.#leader !== undefined &&
      this.#leader?.epoch === leader?.epoch &&
      this.#leader?.id === leader?.id;
    this.#leader = leader;
    if (!isSame) for (const feed of this.#feeds) feed.push(leader);
  }

  #setCurrent(isCurrent: boolean): void {
    if (this.#isCurrent) this.#seenMs = this.clock.nowMs();
    this.#isCurrent = isCurrent;
  }

  #over(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#ready.reject(end.error ?? new Error(`${this.path} is no longer observed`));
    for (const feed of this.#feeds) feed.end(end.error);
    this.#feeds.clear();
  }
}

function leaderOf(path: string, { data, stat }: DataAndStat): Leader {
  const id = data?.toString('utf8') ?? '';
  return { id, epoch: stat.czxid, sessionId: stat.ephemeralOwner, path };
}

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol();
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
}
