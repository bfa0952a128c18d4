/**
 * Staying awake for a moment after an answer, for the one who asks again at once.
 *
 * To be put to sleep by the event loop and woken by the next request takes longer than a read itself: a
 * lone client that asks, waits and asks again is served half as often again by a server that looks for
 * its next request until it is there, and for no more CPU an answer.
 *
 * In: `touch`, after whatever was sent. It looks on until nobody has been answered for `awakeMs`. When
 * that was for nothing it does not try the next two times, then the next four, up to a thousand: on a server
 * whose clients take their time, or on a machine whose other work needs the core, it hardly ever tries.
 * Timers and sockets have their turn all the while, and a busy server never sleeps anyway.
 */

import { availableParallelism } from 'node:os';
import { type Clock, systemClock } from '../support/index.ts';

/** Longer than a client on the same machine takes to ask again; short beside the sleep that it saves. */
const awakeMs = 0.1;
const pausesMax = 10;

export class Wakefulness {
  readonly #clock: Clock;
  /** With one core, whoever asks next needs the one that would look for it. */
  readonly #isOff: boolean;
  #isAwake = false;
  #untilMs = 0;
  /** How often in a row it was for nothing. */
  #failures = 0;
  #pauses = 0;

  /** By the real time: one that a test has stopped would keep it awake for ever. */
  constructor(clock: Clock = systemClock, cores: number = availableParallelism()) {
    this.#clock = clock;
    this.#isOff = cores === 1;
  }

  get isAwake(): boolean {
    return this.#isAwake;
  }

  /** Somebody was answered at this time. */
  touch(): void {
    if (this.#isOff) return;
    if (this.#isAwake) {
      this.#failures = 0;
    } else if (this.#pauses > 0) {
      this.#pauses -= 1;
      return;
    } else {
      this.#isAwake = true;
      setImmediate(this.#look);
    }
    this.#untilMs = this.#clock.nowMs() + awakeMs;
  }

  readonly #look = (): void => {
    if (this.#clock.nowMs() < this.#untilMs) {
      setImmediate(this.#look);
      return;
    }
    this.#isAwake = false;
    this.#failures = Math.min(this.#failures + 1, pausesMax);
    this.#pauses = 2 ** this.#failures;
  };
}
