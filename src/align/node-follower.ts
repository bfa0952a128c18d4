/**
 * Follows a node, and a folder of nodes: what is in it now, and again after every change, through lost
 * links and new sessions.
 *
 * In: a path. Out: its data and Stat, or null where there is none, one call each time it was read. One
 * watch, set by the read itself: a change costs one event and one read. Changes that come close together
 * may be told as one. Nothing older is told after something newer, whichever server it came from.
 */

import { type DataAndStat, isZkError, type Listener } from '../client/index.ts';
import { connected, dropWatch } from '../kafka/index.ts';
import { Backoff, type Clock, pause, Wakeup } from '../support/index.ts';
import { type AlignClient, isPassing } from './session.ts';

export interface FollowOptions {
  readonly clock: Clock;
  readonly random?: () => number;
  /** It is over, and not by `close`. */
  readonly onFailure: (error: unknown) => void;
}

abstract class Follower {
  readonly path: string;
  protected readonly client: AlignClient;
  protected readonly options: FollowOptions;
  protected readonly life = new AbortController();
  readonly #bell = new Wakeup();
  readonly #backoff: Backoff;
  #listener: Listener | undefined;
  #running: Promise<void> | undefined;

  constructor(client: AlignClient, path: string, options: FollowOptions) {
    this.client = client;
    this.path = path;
    this.options = options;
    const { random = Math.random } = options;
    this.#backoff = new Backoff({ firstMs: 20, maxMs: 2_000, random });
  }

  start(): this {
    this.#running ??= this.#run();
    return this;
  }

  protected abstract read(watch: Listener): Promise<void>;

  protected readAgain(): void {
    this.#bell.ring();
  }

  async #run(): Promise<void> {
    const { signal } = this.life;
    this.#bell.ring();
    while (!signal.aborted) {
      try {
        await this.#bell.rung(signal);
        if ((await connected(this.client, signal)) === undefined) return;
        // The same one again where it is still set: it is one watch, and goes as one.
        this.#listener ??= this.#listen();
        const listener = this.#listener;
        await this.read(listener);
        this.#backoff.reset();
        // Closed while it was read: whoever closed could not yet take this watch away.
        if (signal.aborted) await dropWatch(this.client, this.path, listener);
      } catch (error) {
        if (signal.aborted) return;
        if (!isPassing(error)) {
          this.options.onFailure(error);
          return;
        }
        this.#bell.ring();
        await pause(this.options.clock, this.#backoff.next(), signal);
      }
    }
  }

  #listen(): Listener {
    const listener: Listener = () => {
      if (this.#listener !== listener) return;
      this.#listener = undefined;
      this.#bell.ring();
    };
    return listener;
  }

  async close(): Promise<void> {
    this.life.abort();
    const listener = this.#listener;
    this.#listener = undefined;
    // A read that is under way may set a watch yet. Without a link that would be waited for too long.
    if (this.client.state.name === 'connected') await this.#running;
    if (listener !== undefined) await dropWatch(this.client, this.path, listener);
  }
}

export class NodeFollower extends Follower {
  readonly #onValue: (node: DataAndStat | null) => void;
  readonly #isListed: boolean;
  #zxid = -1n;
  /** Where a list tells: read and not found, so that nothing is watched; or listed since the read began. */
  #isGone = false;
  #isListedSince = false;

  constructor(
    client: AlignClient,
    path: string,
    options: FollowOptions & {
      readonly onValue: (node: DataAndStat | null) => void;
      /** That it comes and goes is told by a list: where there is none, nothing is watched. */
      readonly isListed?: boolean;
    },
  ) {
    super(client, path, options);
    this.#onValue = options.onValue;
    this.#isListed = options.isListed ?? false;
  }

  /** The list has it: where it was not found, it has come again. */
  listed(): void {
    this.#isListedSince = true;
    if (this.#isGone) this.readAgain();
  }

  protected override async read(watch: Listener): Promise<void> {
    this.#isGone = false;
    this.#isListedSince = false;
    for (;;) {
      try {
        const node = await this.client.get(this.path, { watch });
        if (this.life.signal.aborted) return;
        if (node.stat.mzxid < this.#zxid) return; // a server that is behind
        this.#zxid = node.stat.mzxid;
        this.#onValue(node);
        return;
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
      }
      if (this.#isListed) {
        this.#isGone = true;
        if (this.#isListedSince) this.readAgain();
        return;
      }
      // Told of its creation. Made just now: read it.
      if ((await this.client.exists(this.path, { watch })) !== null) continue;
      if (!this.life.signal.aborted) this.#onValue(null);
      return;
    }
  }
}

/** The children of a node, each followed for itself. */
export class FolderFollower extends Follower {
  readonly #nodes = new Map<string, NodeFollower>();
  readonly #onNode: (name: string, node: DataAndStat | null) => void;
  readonly #onListed: () => void;

  constructor(
    client: AlignClient,
    path: string,
    options: FollowOptions & {
      /** Null: it is gone. */
      readonly onNode: (name: string, node: DataAndStat | null) => void;
      /** The list was read. */
      readonly onListed: () => void;
    },
  ) {
    super(client, path, options);
    this.#onNode = options.onNode;
    this.#onListed = options.onListed;
  }

  protected override async read(watch: Listener): Promise<void> {
    const names = new Set(await this.client.children(this.path, { watch }));
    if (this.life.signal.aborted) return;
    for (const [name, node] of this.#nodes) {
      if (names.has(name)) continue;
      this.#nodes.delete(name);
      this.#drop(node);
      this.#onNode(name, null);
    }
    for (const name of names) {
      const known = this.#nodes.get(name);
      known?.listed();
      if (known !== undefined) continue;
      const node = new NodeFollower(this.client, `${this.path}/${name}`, {
        ...this.options,
        isListed: true,
        onValue: (value) => {
          // Its end is told by the list, and once.
          if (value !== null && this.#nodes.get(name) === node) this.#onNode(name, value);
        },
      });
      this.#nodes.set(name, node);
      node.start();
    }
    this.#onListed();
  }

  #drop(node: NodeFollower): void {
    node.close().catch((error: unknown) => {
      if (!isPassing(error)) this.options.onFailure(error);
    });
  }

  override async close(): Promise<void> {
    await super.close();
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    await Promise.all(nodes.map((node) => node.close()));
  }
}
