/**
 * A loop's bell: whoever rings it wakes the loop, and a ring while it is busy is kept, as one.
 *
 * In: `ring`, from anywhere. Out: `rung`, which resolves at once when it has been rung since the last time.
 */

import { type Clock, type Deferred, deferred, onAbort } from '../support/index.ts';

export class Wakeup {
  #isRung = false;
  #waiting: Deferred<void> | undefined;

  ring(): void {
    this.#isRung = true;
    this.#waiting?.resolve();
  }

  /** Also resolves when the signal aborts: look at it next. */
  async rung(signal: AbortSignal): Promise<void> {
    if (!this.#isRung && !signal.aborted) {
      const waiting = deferred();
      this.#waiting = waiting;
      const stopHearing = onAbort(signal, () => waiting.resolve());
      await waiting.promise;
      stopHearing();
      this.#waiting = undefined;
    }
    this.#isRung = false;
  }
}

/** Resolves after a time, or at once when the signal aborts: look at it next. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const stopHearing = onAbort(signal, () => {
      timer.cancel();
      resolve();
    });
    const timer = clock.after(ms, () => {
      stopHearing();
      resolve();
    });
  });
}
