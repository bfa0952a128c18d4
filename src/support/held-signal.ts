/**
 * The `AbortSignal` of something that is held: it looks at the clock whenever it is asked.
 *
 * An ordinary signal tells what an event handler has noticed. After a pause of the process (SIGSTOP, a long
 * computation, a suspended host) the first code that runs may ask before any timer has fired, and is told
 * "not aborted" about a session that ended long ago. A held signal runs `look` first, so `aborted`,
 * `reason` and `throwIfAborted()` are right in a synchronous loop, in a variable, and wherever it was passed.
 *
 * Not covered: a signal that `AbortSignal.any` makes from this one, and the `abort` event.
 * Both follow when something looks: this signal, the client, or a timer one turn of the event loop later.
 */

import { setMaxListeners } from 'node:events';

const isAborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')!.get!;
const { addEventListener } = EventTarget.prototype;
const reasonOf = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'reason')!.get!;

export class HeldSignal {
  /** Any number may listen to it. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();

  /** `look` calls `abort` if what is held may have ended by now. */
  constructor(look: () => void) {
    // `any` asserts that the sources of a combined signal have not aborted since it made it. So the source is
    // the plain signal, whose answer changes only with its event, and the one that looks depends on it.
    const signal = AbortSignal.any([this.#controller.signal]);
    setMaxListeners(0, signal);
    let isAdding = false;
    Object.defineProperties(signal, {
      aborted: {
        get: () => {
          if (isAdding) return true;
          look();
          return isAborted.call(signal);
        },
      },
      reason: {
        get: () => {
          look();
          return reasonOf.call(signal);
        },
      },
      throwIfAborted: {
        value: () => {
          if (signal.aborted) throw signal.reason;
        },
      },
      // Node asks a combined signal whether it has aborted before it adds a listener, and keeps one that has
      // not in memory for good. A look at that moment would tell all listeners but the one that is being added.
      addEventListener: {
        value: (...listener: Parameters<AbortSignal['addEventListener']>) => {
          isAdding = true;
          try {
            addEventListener.apply(signal, listener);
          } finally {
            isAdding = false;
          }
        },
      },
    });
    this.signal = signal;
  }

  /** Whether `abort` was called. Does not look. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** The first reason counts. */
  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }
}

/**
 * The items of something that is held, each after a look at the clock. Throws the signal's reason instead of
 * the next item once that is not certain any more.
 */
export function* whileHeld<T>(
  items: readonly T[],
  signal: AbortSignal,
): Generator<T, void, undefined> {
  for (const item of items) {
    signal.throwIfAborted();
    yield item;
  }
}
