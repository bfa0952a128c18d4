/**
 * A watch that stays: set again in every session, with a word whenever something may have been missed.
 *
 * It keeps nothing in memory and asks for nothing: each event is handed on as the server tells it.
 * What happens while there is no link is not told by any server. So `onArmed` is called each time the
 * watch stands: after the first time, read anew what you depend on. Where every change must be seen,
 * use `client.watch`, which compares for you and costs memory for each node (3.6 and later, both).
 *
 * Events and `onArmed` come in the order of the link. Not promised: that there is an event for every
 * change; see above.
 */

import type { Client, ClientEvents, Listener, WatchEvent } from '../client/index.ts';
import { checkClient } from '../client/index.ts';
import { Backoff, checkOptions, type Deferred, deferred, systemClock } from '../support/index.ts';
import { linked } from './linked.ts';
import { persistentWatcherTable } from './option-tables.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import { settled, unwatch } from './unwatch.ts';

export interface Armed {
  /** Not the first time: what changed since the link was lost was not told. */
  readonly isAgain: boolean;
  readonly sessionId: bigint;
}

export interface PersistentWatcherOptions {
  /** All nodes below too. */
  readonly recursive?: boolean;
  readonly onArmed?: (armed: Armed) => void;
  /** It can be set no more: the client is closed or expired for good, or the server refuses. */
  readonly onEnd?: (error: unknown) => void;
}

export class PersistentWatcher {
  readonly path: string;
  readonly #client: Client;
  readonly #options: PersistentWatcherOptions;
  readonly #listener: Listener;
  readonly #life = new AbortController();
  readonly #ready = deferred();
  readonly #loop: Promise<void>;
  readonly #backoff = new Backoff(retryBackoff);
  #armedIn: bigint | undefined;
  #isLinkNew = true;
  #times = 0;
  #wake: Deferred<void> = deferred();

  constructor(
    client: Client,
    path: string,
    listener: Listener,
    options: PersistentWatcherOptions = {},
  ) {
    checkClient('PersistentWatcher', client);
    checkOptions('PersistentWatcher', options, persistentWatcherTable);
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#ready.promise.catch(() => {}); // told to onEnd, too
    this.#listener = (event: WatchEvent) => {
      if (event.type === 'none') this.#armedIn = undefined;
      const isChange = event.type !== 'none' && event.type !== 'persistentWatchRemoved';
      if (isChange && !this.#life.signal.aborted) listener(event);
    };
    client.on('state', this.#onState);
    this.#loop = this.#run();
  }

  /** Resolves once the watch stands for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  async close(): Promise<void> {
    this.#life.abort(new Error(`${this.path} is no longer watched`));
    this.#wake.resolve();
    await this.#loop;
    await settled(this.#client, this.path);
    const kind = this.#options.recursive ? 'persistentRecursive' : 'persistent';
    await unwatch(this.#client, this.path, kind, this.#listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  readonly #onState = (state: ClientEvents['state'][0]) => {
    if (state.name !== 'connected') this.#isLinkNew = true;
    this.#wake.resolve();
  };

  async #run(): Promise<void> {
    const { signal } = this.#life;
    try {
      while (!signal.aborted) {
        this.#wake = deferred();
        await linked(this.#client, signal);
        await this.#arm(signal);
        await this.#wake.promise;
      }
    } catch (error) {
      if (!signal.aborted) {
        this.#ready.reject(error);
        this.#options.onEnd?.(error);
      }
    } finally {
      this.#client.off('state', this.#onState);
      this.#ready.reject(new Error(`${this.path} is no longer watched`));
    }
  }

  async #arm(signal: AbortSignal): Promise<void> {
    const { recursive = false, onArmed } = this.#options;
    const { sessionId } = this.#client;
    if (sessionId === undefined || !this.#isLinkNew) return;
    this.#isLinkNew = false; // before the wait: the next link may come during it
    try {
      // In the same session the client has set it again by itself, before anything else went out.
      if (this.#armedIn !== sessionId) {
        const mode = recursive ? 'persistentRecursive' : 'persistent';
        await this.#client.addWatch(this.path, mode, this.#listener, { signal });
      }
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#isLinkNew = true;
      // Once more, but never at once: a client that is closing refuses every call, and still says connected.
      await pause(systemClock, this.#backoff.next(), signal);
      this.#wake.resolve();
      return;
    }
    this.#backoff.reset();
    if (sessionId !== this.#client.sessionId) return; // it ended as the reply came, and the watch with it
    this.#armedIn = sessionId;
    this.#ready.resolve();
    onArmed?.({ isAgain: this.#times > 0, sessionId });
    this.#times += 1;
  }
}
