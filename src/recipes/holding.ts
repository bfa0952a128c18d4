/**
 * A shard that is ours: by an ephemeral node that no other member can make while we have it.
 *
 *   held ──asked for by the plan──▶ leaving ──released──▶ gone
 *     └───── session over, node deleted ──────────────────▲
 *
 * `signal` aborts on either way out. While it is leaving the node stays until `release` is called, or
 * until the time for a hand-over is up: the next owner begins after that. `token` is the node's czxid,
 * greater for every next owner of the shard: what is written elsewhere carries it.
 */

import { type Clock, HeldSignal, onAbort, type Timer } from '../support/index.ts';
import type { Grant } from './grant.ts';

/** The reason of `holding.signal` when the plan gives the shard to somebody else, or we leave. */
export class HandOverError extends Error {
  override readonly name = 'HandOverError';
  readonly code = 'HAND_OVER';
  readonly shard: string;

  constructor(shard: string) {
    super(`${shard} is to be handed over: stop its work, then call release()`);
    this.shard = shard;
  }
}

export class Holding {
  readonly shard: string;
  readonly #grant: Grant;
  readonly #clock: Clock;
  readonly #over = new HeldSignal(() => void this.#grant.isHeld);
  readonly #stopHearing: () => void;
  readonly #onGone: (holding: Holding) => void;
  #late: Timer | undefined;
  #releasing: Promise<void> | undefined;

  constructor(shard: string, grant: Grant, clock: Clock, onGone: (holding: Holding) => void) {
    this.shard = shard;
    this.#grant = grant;
    this.#clock = clock;
    this.#onGone = onGone;
    const { signal } = grant;
    const ended = () => {
      this.#over.abort(signal.reason);
      this.#late?.cancel();
      this.#onGone(this);
    };
    this.#stopHearing = onAbort(signal, ended);
    if (signal.aborted) queueMicrotask(ended);
  }

  /** Grows from one owner of the shard to the next. */
  get token(): bigint {
    return this.#grant.fencingToken;
  }

  get path(): string {
    return this.#grant.path;
  }

  /**
   * Aborts when the shard must be handed over, or may belong to another member already. Looks at the clock
   * whenever it is asked, also in a variable.
   */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Whether the node is still ours: also while the shard is being handed over. */
  get isOwned(): boolean {
    return this.#grant.isHeld;
  }

  get isLeaving(): boolean {
    return this.#over.signal.aborted;
  }

  /** The work is done: the next owner may begin. Safe to call again. */
  release(): Promise<void> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  async #release(): Promise<void> {
    try {
      await this.#grant.release(); // ends the grant first, and with it this holding
    } catch (error) {
      this.#releasing = undefined; // it may still be there: who asks again, tries again
      throw error;
    } finally {
      this.#stopHearing();
    }
  }

  /** Asks for it back. Whoever has not let go by then loses the node all the same. */
  handOver(withinMs: number): void {
    if (this.#over.isAborted) return;
    this.#late = this.#clock.after(withinMs, () => {
      this.release().catch(() => {}); // the plan stands: whoever reconciles next asks again
    });
    this.#over.abort(new HandOverError(this.shard));
  }
}
