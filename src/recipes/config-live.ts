/**
 * The present state of a few nodes, as one: values that stood together on the server at one moment.
 *
 * In: the nodes below a base, through a Cache. Out: pictures of them, each newer than the one before.
 * The cache may have one node before and another after a transaction that changed both. So before a
 * picture is handed on, every node's Stat is asked for once more: if all are as the cache has them,
 * then all these values were there together when the first was asked. If not, the cache is about to
 * hear of what changed, and it begins again; unless an ACL keeps that from it: then this is told.
 */

import { setImmediate } from 'node:timers';
import { type Client, isZkError, type StatView, ZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { type Clock, systemClock, type Timer } from '../support/index.ts';
import { Cache, type CacheState } from './cache.ts';
import type { CachedNode } from './cache-ledger.ts';

export type Picture = ReadonlyMap<string, CachedNode | undefined>;

export interface LiveHooks {
  onPicture(picture: Picture): void;
  /** The server refuses, and was asked often enough, or an ACL does. The next change begins anew. */
  onFailure(errors: readonly ZkError[]): void;
}

const failuresMax = 10;
const retryMs = 500;

export class LiveNodes {
  /** Resolves, or rejects with what ended it, when there will be no more pictures. */
  readonly ended: Promise<void>;
  readonly #client: Client;
  readonly #base: string;
  readonly #keys: readonly string[];
  readonly #cache: Cache;
  readonly #hooks: LiveHooks;
  readonly #clock: Clock;
  #isLooking = false;
  /** Something has changed since the look that is under way began. */
  #isDue = false;
  #last: Picture | undefined;
  #failures = 0;
  #timer: Timer | undefined;

  constructor(
    client: Client,
    base: string,
    keys: readonly string[],
    hooks: LiveHooks,
    clock: Clock = systemClock,
  ) {
    this.#client = client;
    this.#base = base;
    this.#keys = keys;
    this.#hooks = hooks;
    this.#clock = clock;
    const onChange = () => this.#due();
    this.#cache = new Cache(client, base, {
      scope: 'children',
      onChange,
      onCurrent: onChange,
      clock,
    });
    this.ended = this.#follow();
    this.ended.catch(() => {});
  }

  get state(): CacheState {
    return this.#cache.state;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#cache.close();
  }

  async #follow(): Promise<void> {
    for await (const _ of this.#cache.changes({ initial: false })); // heard by `onChange` already
  }

  #due(): void {
    this.#isDue = true;
    this.#timer?.cancel();
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#look();
  }

  async #look(): Promise<void> {
    while (this.#isDue) {
      // Changes that come together are looked at together.
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#isDue = false;
      if (this.#cache.state.name !== 'current') break; // it will be, and then says so
      const picture = new Map(
        this.#keys.map((key) => [key, this.#cache.get(childOf(this.#base, key))]),
      );
      if (isSame(picture, this.#last) || !(await this.#isStill(picture))) continue;
      if (this.state.name === 'closed') break; // while it was asked for, perhaps over an outage
      this.#last = picture;
      this.#hooks.onPicture(picture);
    }
    this.#isLooking = false;
  }

  async #isStill(picture: Picture): Promise<boolean> {
    try {
      const changed = await Promise.all(
        [...picture].map(async ([key, node]) => {
          const path = childOf(this.#base, key);
          const stat = await this.#client.exists(path);
          return isAs(stat, node?.stat) ? [] : [path];
        }),
      );
      const errors = await this.#refusals(changed.flat());
      this.#failures = 0;
      if (errors.length > 0) this.#hooks.onFailure(errors);
      return changed.flat().length === 0;
    } catch (error) {
      if (!isZkError(error)) throw error;
      this.#failed(error);
      return false;
    }
  }

  /** What may not be read is in no cache, and servers tell of no change of it: nobody else would say why. */
  async #refusals(changed: readonly string[]): Promise<ZkError[]> {
    if (changed.length > 0 && this.#cache.unreadable.includes(this.#base)) {
      return [new ZkError('NO_AUTH', { op: 'getChildren', path: this.#base })];
    }
    const asked = await Promise.all(
      changed.map(async (path) => {
        try {
          await this.#client.get(path);
          return [];
        } catch (error) {
          if (isZkError(error, 'NO_AUTH')) return [error];
          if (isZkError(error, 'NO_NODE')) return [];
          throw error;
        }
      }),
    );
    return asked.flat();
  }

  /** Where the link is over, the cache tells when it is up to date again; else it is asked again. */
  #failed(error: ZkError): void {
    if (this.#cache.state.name !== 'current') return;
    this.#failures += 1;
    if (this.#failures > failuresMax) {
      this.#failures = 0;
      this.#hooks.onFailure([error]);
    } else this.#timer = this.#clock.after(retryMs, () => this.#due(), true);
  }
}

function isSame(picture: Picture, last: Picture | undefined): boolean {
  return (
    last !== undefined && [...picture].every(([key, node]) => isAs(last.get(key)?.stat, node?.stat))
  );
}

/** Of the same node, with the same data; or of none, both. */
function isAs(a: StatView | null | undefined, b: StatView | undefined): boolean {
  return a?.czxid === b?.czxid && a?.mzxid === b?.mzxid;
}
