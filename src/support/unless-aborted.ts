import { onAbort } from './on-abort.ts';

/** The promise's outcome, or a signal's reason if that comes first. The work itself goes on. */
export function unlessAborted<T>(promise: Promise<T>, ...signals: AbortSignal[]): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) {
      promise.catch(() => {}); // nobody waits for it any more; who cleans up looks at it again
      reject(aborted.reason);
      return;
    }
    const stops = signals.map((signal) => onAbort(signal, () => reject(signal.reason)));
    const settled = () => {
      for (const stop of stops) stop();
    };
    promise.then(resolve, reject).finally(settled);
  });
}
