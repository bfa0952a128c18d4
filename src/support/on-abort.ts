/**
 * Listening to an `AbortSignal` that many others listen to as well.
 *
 * A thousand calls may share one signal, and Node warns of a leak from the eleventh listener on. So a
 * signal gets one listener, which tells all that wait; it goes with the last of them.
 */

const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `heard` once, when the signal aborts. What it returns takes `heard` back. */
export function onAbort(signal: AbortSignal, heard: () => void): () => void {
  // A function of its own: the same one may be handed in twice.
  const entry = () => heard();
  let all = waiting.get(signal);
  if (all === undefined) {
    all = new Set();
    waiting.set(signal, all);
    signal.addEventListener('abort', tellAll, { once: true });
  }
  const mine = all;
  mine.add(entry);
  return () => {
    if (!mine.delete(entry) || mine.size > 0 || waiting.get(signal) !== mine) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', tellAll);
  };
}

function tellAll(this: AbortSignal): void {
  const all = waiting.get(this);
  waiting.delete(this);
  for (const entry of all ?? []) entry();
}
