import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';

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
