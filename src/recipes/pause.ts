import { type Clock, onAbort } from '../support/index.ts';

/** Between tries of what a lost link or an ending session has broken off. */
export const retryBackoff = { firstMs: 10, maxMs: 1_000 };

/** Resolves after a time, or at once when the signal aborts: whoever waits looks at the signal next. */
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
