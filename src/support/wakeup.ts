/**
 * A loop's bell: whoever rings it wakes the loop, and a ring while it is busy is kept, as one.
 *
 * In: `ring`, from anywhere. Out: `rung`, which resolves at once when it has been rung since the last time.
 */

import { type Deferred, deferred } from './deferred.ts';
import { onAbort } from './on-abort.ts';

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
