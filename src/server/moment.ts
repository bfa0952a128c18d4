/**
 * When the chunk at hand came in, or the batch at hand was durable: one moment for all that is in it. The
 * calendar is asked for it only where somebody wants to know.
 */

import type { Clock } from '../support/index.ts';

const unknownMs = -1;

export class Moment {
  readonly #clock: Clock;
  nowMs: number;
  #wallMs = unknownMs;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.nowMs = clock.nowMs();
  }

  /** Another one begins. */
  begin(nowMs: number): void {
    this.nowMs = nowMs;
    this.#wallMs = unknownMs;
  }

  /** Who begins neither chunk nor batch has a calendar day of its own. */
  beginAside(): void {
    this.#wallMs = unknownMs;
  }

  /** By the calendar: what a txn says of when it was. */
  get wallMs(): number {
    if (this.#wallMs < 0) this.#wallMs = this.#clock.wallMs();
    return this.#wallMs;
  }
}
