/**
 * One-shot watches that can be taken back: what the controller hears by, as Kafka's does, on servers
 * of any age.
 *
 * Each path and kind has one listener, however often it is set. It is told of the next change and has
 * then to be set again by the next read. After `close` nobody is told anything, and the server keeps
 * none of them, as far as there is a link to say so.
 */

import { type Client, isZkError, type Listener, type WatchEvent } from '../client/index.ts';

type Kind = 'data' | 'children';

/** A server that is silent this long loses the link anyway. */
const answerTimeoutMs = 5_000;

export class OneShotWatches {
  readonly #client: Client;
  readonly #listeners = new Map<string, { path: string; kind: Kind; listener: Listener }>();
  #isClosed = false;

  constructor(client: Client) {
    this.#client = client;
  }

  /** The listener to hand to a read of this path. `heard` is kept from the first call. */
  on(kind: Kind, path: string, heard: () => void): Listener {
    const key = `${kind} ${path}`;
    const known = this.#listeners.get(key);
    if (known) return known.listener;
    const listener = (event: WatchEvent) => {
      if (this.#isClosed || !changes.has(event.type)) return;
      heard();
    };
    this.#listeners.set(key, { path, kind, listener });
    return listener;
  }

  /** Takes one watch back, such as that of a topic that is gone. */
  async drop(kind: Kind, path: string): Promise<void> {
    const key = `${kind} ${path}`;
    const known = this.#listeners.get(key);
    if (known === undefined) return;
    this.#listeners.delete(key);
    await this.#remove(known);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const all = [...this.#listeners.values()];
    this.#listeners.clear();
    await Promise.all(all.map((one) => this.#remove(one)));
  }

  async #remove({ path, kind, listener }: { path: string; kind: Kind; listener: Listener }) {
    const limit =
      this.#client.state.name === 'connected'
        ? { timeoutMs: answerTimeoutMs }
        : { signal: AbortSignal.abort() };
    try {
      await this.#client.removeWatches(path, { kind, listener, local: true, ...limit });
    } catch (error) {
      // None set any more, or no link to say so on: forgotten here, and so never set again.
      if (!isZkError(error) && !limit.signal?.aborted) throw error;
    }
  }
}

const changes: ReadonlySet<string> = new Set([
  'created',
  'deleted',
  'dataChanged',
  'childrenChanged',
]);
