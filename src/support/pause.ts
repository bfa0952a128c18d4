import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';

/** Resolves after a time, or at once when one of the signals aborts: look at them next. */
export function pause(clock: Clock, ms: number, ...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some(({ aborted }) => aborted)) return resolve();
    const over = () => {
      timer.cancel();
      for (const stop of stops) stop();
      resolve();
    };
    const stops = signals.map((signal) => onAbort(signal, over));
    const timer = clock.after(ms, over);
  });
}
