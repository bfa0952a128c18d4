/**
 * A term: one stretch of leadership, from the election to the end of the work done in it.
 *
 *   leading ──asked to stop──▶ stopping ──work done, or the grace is over──▶ over: the node is gone
 *       └──────session over, node deleted──────────────────────────────────────▲
 *
 * `signal` aborts on either way out, and always before the node is given back: whoever is elected next
 * is elected after this leader was told. `epoch` is the czxid of the node that won, and grows with
 * every term: what the leader writes elsewhere carries it, and what is written to refuses a lower one.
 *
 * NOT promised: that the work stops when told. Work that goes on past the grace, or through a pause of
 * the whole process, overlaps with the next leader. Only the epoch, or `guard`, can refuse its writes.
 */

import type { CallOptions, MultiOp, ResultsOf } from '../client/index.ts';
import { type Clock, HeldSignal, type Timer } from '../support/index.ts';
import type { Grant } from './grant.ts';
import { SteppedDownError, type SteppedDownReason } from './stepped-down-error.ts';

export class Term {
  /** Who leads: the id that the candidate gave itself. */
  readonly id: string;
  readonly #grant: Grant;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #canGuard: boolean;
  readonly #over = new HeldSignal(() => void this.#grant.isHeld);
  readonly #stopHearing: () => void;
  #grace: Timer | undefined;
  #ending: Promise<void> | undefined;

  constructor(id: string, grant: Grant, clock: Clock, graceMs: number, canGuard = true) {
    this.id = id;
    this.#grant = grant;
    this.#clock = clock;
    this.#graceMs = graceMs;
    this.#canGuard = canGuard;
    this.#stopHearing = grant.onEnd((why) => this.#over.abort(why));
  }

  /** The czxid of the node that won: greater in every term than in all before it. */
  get epoch(): bigint {
    return this.#grant.fencingToken;
  }

  get path(): string {
    return this.#grant.path;
  }

  get sessionId(): bigint {
    return this.#grant.sessionId;
  }

  /**
   * Aborts from the moment at which another process may lead, or when this leader must stop. `aborted` and
   * `throwIfAborted()` look at the clock first, also in a signal that was kept or passed on.
   */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isLeading(): boolean {
    return !this.signal.aborted;
  }

  /**
   * All of these ops or none, and only while this term lasts: the server looks in the same transaction.
   * Not in a static election, whose node has the same name in every term.
   */
  async guard<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    this.signal.throwIfAborted();
    if (!this.#canGuard) {
      throw new Error(
        `${this.path} has the same name in every term, so that a check cannot tell them apart; compare epochs, or use Election`,
      );
    }
    return this.#grant.guard(ops, options);
  }

  /** Asks the work to stop. The node stays until it has, or until the grace is over. */
  stepDown(reason: SteppedDownReason = 'resigned'): void {
    if (this.#over.isAborted) return;
    this.#grace = this.#clock.after(this.#graceMs, () => {
      // A failure is not lost: whoever ends the term asks again, and is told.
      this.#grant.release().catch(() => {});
    });
    this.#over.abort(new SteppedDownError(this.path, reason));
  }

  /** The work is done: gives the node back. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (!this.#over.isAborted) this.#over.abort(new SteppedDownError(this.path, 'ended'));
    this.#grace?.cancel();
    this.#stopHearing();
    await this.#grant.release();
  }
}
