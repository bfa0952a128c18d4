/**
 * The children of a node with their data, kept current: what membership, monitors, topics and
 * planners stand on.
 *
 * One child watch on the node and one data watch on each child, all one-shot. After a reconnect the
 * client sets them again together with the newest zxid it has seen, and the server tells at once of
 * whatever changed since: nothing is missed, and a reconnect costs one request and not one for each
 * child. A new session reads all of it again. A child that went and came back under the same name is
 * told as gone and as new: its czxid says so.
 *
 * In: changes in the tree. Out: `onChange` for each difference that was found, in no order among
 * children, and `onCurrent` whenever the view becomes current or stops being so. Several changes in
 * quick succession are told as one. A missing parent is an empty roster. A child that may not be read
 * is not an entry: it is in `unreadable`.
 */

import {
  type Client,
  type ClientEvents,
  type DataAndStat,
  isZkError,
  WatchOverflowError,
} from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { Backoff, type Deferred, deferred, systemClock, unlessAborted } from '../support/index.ts';
import { linked } from './linked.ts';
import { type Watched, watchChildren, watchNode } from './node-watch.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import { settled, unwatch } from './unwatch.ts';

export interface Entry extends DataAndStat {
  readonly name: string;
}

export type RosterChange =
  | { readonly type: 'appeared'; readonly entry: Entry }
  | { readonly type: 'changed'; readonly entry: Entry; readonly previous: Entry }
  | { readonly type: 'gone'; readonly entry: Entry };

export interface RosterOptions {
  readonly onChange?: (change: RosterChange) => void;
  /** All changes that were known of have been read and told. */
  readonly onSettled?: () => void;
  /** True: the view was complete a moment ago, and is watched. False: the link is lost. */
  readonly onCurrent?: (isCurrent: boolean) => void;
  /** It is over: the client is closed or expired for good, or something cannot be read. */
  readonly onEnd?: (error: unknown) => void;
  /** Only children that this lets through. All unless said. */
  readonly wanted?: (name: string) => boolean;
  /** Whether changes of the children's data are told too. True. */
  readonly watchData?: boolean;
  /** Children that are kept at most; with more the roster ends. 100,000. */
  readonly entriesMax?: number;
}

/** Children that are read at once. */
const readAtOnce = 64;

export class Roster {
  readonly path: string;
  readonly entries = new Map<string, Entry>();
  readonly unreadable = new Set<string>();
  readonly #client: Client;
  readonly #options: RosterOptions;
  readonly #life = new AbortController();
  readonly #ready = deferred();
  readonly #loop: Promise<void>;
  readonly #nodes = new Map<string, Watched<DataAndStat>>();
  /** Reads under way that will set a watch. */
  readonly #asked = new Set<Promise<void>>();
  #children: Watched<string[]> | undefined;
  readonly #dirty = new Set<string>();
  readonly #backoff = new Backoff(retryBackoff);
  #mustList = true;
  #mustFence = false;
  #isCurrent = false;
  #wake: Deferred<void> = deferred();

  constructor(client: Client, path: string, options: RosterOptions = {}) {
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#ready.promise.catch(() => {}); // told to onEnd, too
    client.on('state', this.#onState);
    this.#loop = this.#run();
  }

  /** Resolves once all children were read for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether the view is watched and complete as of now. */
  get isCurrent(): boolean {
    return this.#isCurrent && this.#client.state.name === 'connected';
  }

  /** Takes its watches away. Safe to call again. */
  async close(): Promise<void> {
    this.#life.abort(new Error(`${this.path} is no longer watched`));
    this.#wake.resolve();
    await this.#loop;
    const stopped = this.#unwatch();
    // Without a link they are never set again; only the answer to that must not be waited for.
    if (this.#client.state.name === 'connected') await stopped;
    else stopped.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  readonly #onState = (state: ClientEvents['state'][0]) => {
    // From the loss on: the next link may be there before its own event is.
    this.#mustFence = true;
    if (state.name !== 'connected') this.#setCurrent(false);
    this.#wake.resolve();
  };

  readonly #onCreated = () => {
    this.#mustList = true;
    this.#wake.resolve();
  };

  // ── the loop ──────────────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    const { signal } = this.#life;
    try {
      while (!signal.aborted) {
        this.#wake = deferred();
        await linked(this.#client, signal);
        if (await this.#catchUp()) {
          this.#backoff.reset();
          await this.#wake.promise;
        } else {
          // Never at once: a client that is closing refuses every call, and still says connected.
          await pause(systemClock, this.#backoff.next(), signal);
        }
      }
    } catch (error) {
      if (!signal.aborted) this.#over(error);
    } finally {
      this.#client.off('state', this.#onState);
      this.#setCurrent(false);
      this.#ready.reject(new Error(`${this.path} is no longer watched`));
    }
  }

  #over(error: unknown): void {
    this.#ready.reject(error);
    this.#options.onEnd?.(error);
  }

  /** Reads whatever may have changed. False when the link or the session broke meanwhile, or the server was overloaded. */
  async #catchUp(): Promise<boolean> {
    try {
      while (this.#mustFence || this.#mustList || this.#dirty.size > 0) {
        if (this.#mustFence) await this.#fence();
        else if (this.#mustList) await this.#list();
        else await this.#readDirty();
      }
    } catch (error) {
      if (this.#life.signal.aborted) return false;
      if (!isPassing(error)) throw error;
      return false;
    }
    if (this.#client.state.name !== 'connected') return false;
    this.#ready.resolve();
    this.#setCurrent(true);
    if (!this.#life.signal.aborted) this.#options.onSettled?.();
    return true;
  }

  /** Replies come in order: once this one is here, so are all events that the new link had to tell. */
  async #fence(): Promise<void> {
    this.#mustFence = false;
    await this.#client.exists(this.path, { signal: this.#life.signal });
  }

  async #list(): Promise<void> {
    const names = await this.#names();
    const { wanted, entriesMax = 100_000 } = this.#options;
    const present = new Set(wanted ? names.filter(wanted) : names);
    if (present.size > entriesMax) {
      const why = `${present.size} children, and ${entriesMax} are kept at most; set entriesMax`;
      throw new WatchOverflowError(`${this.path}: ${why}`);
    }
    for (const name of [...this.entries.keys()]) if (!present.has(name)) this.#remove(name);
    for (const name of this.unreadable) if (!present.has(name)) this.unreadable.delete(name);
    for (const name of present) if (!this.entries.has(name)) this.#dirty.add(name);
  }

  async #names(): Promise<string[]> {
    const { signal } = this.#life;
    for (;;) {
      const watched = await this.#kept(watchChildren(this.#client, this.path));
      this.#mustList = false;
      if (watched !== null) {
        this.#children = watched;
        void watched.changed.then(() => {
          this.#children = undefined;
          this.#mustList = true;
          this.#wake.resolve();
        });
        return watched.found;
      }
      const isMissing =
        (await this.#client.exists(this.path, { watch: this.#onCreated, signal })) === null;
      if (isMissing) return [];
      this.#mustList = true;
    }
  }

  /** A watch that comes after the end is taken away as it comes. */
  async #kept<T>(asked: Promise<Watched<T> | null>): Promise<Watched<T> | null> {
    const { signal } = this.#life;
    const late = asked.then(
      (watched) => (signal.aborted ? watched?.stop() : undefined),
      () => {}, // told to whoever waits for it
    );
    this.#asked.add(late);
    void late.finally(() => this.#asked.delete(late));
    return unlessAborted(asked, signal);
  }

  async #readDirty(): Promise<void> {
    const batch = [...this.#dirty].slice(0, readAtOnce);
    for (const name of batch) this.#dirty.delete(name);
    try {
      await Promise.all(batch.map((name) => this.#read(name)));
    } catch (error) {
      for (const name of batch) this.#dirty.add(name);
      throw error;
    }
  }

  async #read(name: string): Promise<void> {
    try {
      const found = await this.#look(name, childOf(this.path, name));
      this.unreadable.delete(name);
      if (found === null) this.#remove(name);
      else this.#put({ name, data: found.data, stat: found.stat });
    } catch (error) {
      if (!isZkError(error, 'NO_AUTH')) throw error;
      this.#remove(name);
      this.unreadable.add(name);
    }
  }

  async #look(name: string, path: string): Promise<DataAndStat | null> {
    if (this.#options.watchData === false) {
      try {
        return await this.#client.get(path, { signal: this.#life.signal });
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return null;
        throw error;
      }
    }
    const watched = await this.#kept(watchNode(this.#client, path));
    if (watched === null) return null;
    this.#nodes.set(name, watched);
    void watched.changed.then(() => {
      this.#nodes.delete(name);
      this.#dirty.add(name);
      this.#wake.resolve();
    });
    return watched.found;
  }

  #put(entry: Entry): void {
    const previous = this.entries.get(entry.name);
    this.entries.set(entry.name, entry);
    if (previous !== undefined && previous.stat.czxid !== entry.stat.czxid) {
      this.#tell({ type: 'gone', entry: previous });
      this.#tell({ type: 'appeared', entry });
    } else if (previous === undefined) {
      this.#tell({ type: 'appeared', entry });
    } else if (previous.stat.mzxid !== entry.stat.mzxid) {
      this.#tell({ type: 'changed', entry, previous });
    }
  }

  #remove(name: string): void {
    const entry = this.entries.get(name);
    if (entry === undefined) return;
    this.entries.delete(name);
    this.#tell({ type: 'gone', entry });
  }

  #tell(change: RosterChange): void {
    if (!this.#life.signal.aborted) this.#options.onChange?.(change);
  }

  #setCurrent(isCurrent: boolean): void {
    if (this.#isCurrent === isCurrent) return;
    this.#isCurrent = isCurrent;
    if (!this.#life.signal.aborted) this.#options.onCurrent?.(isCurrent);
  }

  async #unwatch(): Promise<void> {
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    for (let at = 0; at < nodes.length; at += readAtOnce) {
      await Promise.all(nodes.slice(at, at + readAtOnce).map((node) => node.stop()));
    }
    await this.#children?.stop();
    await Promise.all(this.#asked);
    await settled(this.#client, this.path);
    await unwatch(this.#client, this.path, 'data', this.#onCreated);
  }
}
