/**
 * A clock that runs as the system's does and can be moved on: expiry and TTLs take no time in a test,
 * while clients in the same test live in real time.
 */

import { type Clock, systemClock, type Timer } from '../support/index.ts';

interface Armed {
  readonly dueMs: number;
  readonly fire: () => void;
  readonly background: boolean | undefined;
  handle: Timer;
}

export class MovableClock implements Clock {
  #offsetMs = 0;
  readonly #armed = new Set<Armed>();

  nowMs(): number {
    return systemClock.nowMs() + this.#offsetMs;
  }

  wallMs(): number {
    return Math.floor(systemClock.wallMs() + this.#offsetMs);
  }

  after(delayMs: number, fire: () => void, background?: boolean): Timer {
    const run = () => {
      this.#armed.delete(armed);
      fire();
    };
    const armed: Armed = {
      dueMs: this.nowMs() + delayMs,
      fire: run,
      background,
      handle: systemClock.after(delayMs, run, background),
    };
    this.#armed.add(armed);
    return {
      cancel: () => {
        armed.handle.cancel();
        this.#armed.delete(armed);
      },
    };
  }

  /** Moves time on. Timers that are due by then fire now, in their order, each at its own moment. */
  advance(byMs: number): void {
    const untilMs = this.nowMs() + byMs;
    for (;;) {
      const next = [...this.#armed].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > untilMs) break;
      next.handle.cancel();
      this.#offsetMs += Math.max(0, next.dueMs - this.nowMs());
      next.fire();
    }
    this.#offsetMs += Math.max(0, untilMs - this.nowMs());
    for (const armed of this.#armed) {
      armed.handle.cancel();
      armed.handle = systemClock.after(armed.dueMs - this.nowMs(), armed.fire, armed.background);
    }
  }
}
