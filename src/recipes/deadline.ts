/**
 * How long somebody is willing to wait: a signal, a time, both or neither, as one signal.
 *
 * `stop` must be called when the waiting is over, one way or the other: it lets go of timer and signal.
 */

import { ArgumentError } from '../client/index.ts';
import { type Clock, onAbort, systemClock, type Timer } from '../support/index.ts';

export interface WaitOptions {
  /** Calls the wait off; it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Calls the wait off after a time. */
  readonly timeoutMs?: number;
}

export type TryOptions = Pick<WaitOptions, 'signal'>;

export class Deadline {
  #over: AbortController | undefined;
  readonly #clock: Clock;
  readonly #untilMs: number | undefined;
  #timer: Timer | undefined;
  #stopHearing: (() => void) | undefined;
  #isLate = false;

  constructor({ signal, timeoutMs }: WaitOptions, clock: Clock = systemClock) {
    checkWait(signal, timeoutMs);
    this.#clock = clock;
    if (signal === undefined && timeoutMs === undefined) return;
    if (timeoutMs !== undefined) this.#untilMs = clock.nowMs() + timeoutMs;
    const over = new AbortController();
    this.#over = over;
    if (signal?.aborted) {
      over.abort(signal.reason);
      return;
    }
    if (signal) this.#stopHearing = onAbort(signal, () => over.abort(signal.reason));
    if (timeoutMs !== undefined) {
      this.#timer = clock.after(timeoutMs, () => {
        this.#isLate = true;
        over.abort(new DOMException(`${timeoutMs} ms are over`, 'TimeoutError'));
      });
    }
  }

  get signal(): AbortSignal {
    this.#over ??= new AbortController();
    return this.#over.signal;
  }

  /** The signal, or undefined where nothing limits the wait: most waits are such, and need none. */
  get limit(): AbortSignal | undefined {
    return this.#over?.signal;
  }

  /** It was the time that ended the wait, and not the caller. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** What is left of the time; undefined when there is no limit. */
  get leftMs(): number | undefined {
    if (this.#untilMs === undefined) return undefined;
    return Math.max(0, this.#untilMs - this.#clock.nowMs());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stopHearing?.();
  }
}

export function checkSignal(signal: unknown): asserts signal is AbortSignal {
  if (!(signal instanceof AbortSignal)) {
    throw new ArgumentError('signal', 'an AbortSignal is wanted');
  }
}

function checkWait(signal: unknown, timeoutMs: unknown): void {
  if (signal !== undefined) checkSignal(signal);
  if (
    timeoutMs !== undefined &&
    (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs) || timeoutMs < 0)
  ) {
    throw new ArgumentError('timeoutMs', 'a number of milliseconds, 0 or more, is wanted');
  }
}
