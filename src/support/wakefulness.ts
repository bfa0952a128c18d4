/**
 * Keeping the event loop awake for a moment, for what is about to come.
 *
 * To be put to sleep and woken again takes longer than to answer a read. Where a client asks, waits and
 * asks again, both sides sleep and wake for each request; while they look for what comes instead, about half
 * as many again are answered in the same time, for no more CPU each: to sleep and wake costs that as well.
 *
 * In: `touch`, after something was sent that is likely to be answered at once, by a reply or by the next
 * request; `expect` before it, where the answer takes longer and is worth it all the same. The loop looks on
 * until so long after the last one. When that was for nothing it does not for the next two, then the next
 * four, up to a thousand: where the other side is far away or takes its time, or where other work needs the
 * core, it hardly ever tries. All the while timers and sockets have their turn.
 */

import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';
import { type Clock, monotonicClock } from './clock.ts';

/** Far more than fit into a fraction of a millisecond, for a clock that somebody has stopped. */
const looksMax = 1000;
const failuresMax = 10;

export class Wakefulness {
  readonly #clock: Clock;
  /** With one core, the other side may need the one that would look for it. */
  readonly #isOff: boolean;
  #isAwake = false;
  #untilMs = 0;
  #looks = 0;
  /** How often in a row it was for nothing. */
  #failures = 0;
  #pauses = 0;
  #expectedMs = 0;

  constructor(clock: Clock = monotonicClock, cores: number = availableParallelism()) {
    this.#clock = clock;
    this.#isOff = cores === 1;
  }

  get isAwake(): boolean {
    return this.#isAwake;
  }

  /** The next touch stays awake for so long at least: what is about to be sent is worth it. */
  expect(awakeMs: number): void {
    this.#expectedMs = awakeMs;
  }

  /** Stays awake for so long, a fraction of a millisecond. */
  touch(awakeMs: number): void {
    if (this.#isOff) return;
    const lookMs = Math.max(awakeMs, this.#expectedMs);
    this.#expectedMs = 0;
    if (this.#isAwake) {
      this.#failures = 0;
    } else if (this.#pauses > 0) {
      this.#pauses -= 1;
      return;
    } else {
      this.#isAwake = true;
      setImmediate(this.#look);
    }
    this.#looks = 0;
    this.#untilMs = Math.max(this.#untilMs, this.#clock.nowMs() + lookMs);
  }

  readonly #look = (): void => {
    this.#looks += 1;
    if (this.#clock.nowMs() < this.#untilMs && this.#looks < looksMax) {
      setImmediate(this.#look);
      return;
    }
    this.#isAwake = false;
    this.#failures = Math.min(this.#failures + 1, failuresMax);
    this.#pauses = 2 ** this.#failures;
  };
}

/** The one of this thread's event loop. */
export const wakefulness: Wakefulness = new Wakefulness();
