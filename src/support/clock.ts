/**
 * Time, as something that is handed in.
 *
 * Whatever waits or measures asks a `Clock`, so that a test can move time instead of spending it.
 * `nowMs` never goes back and has nothing to do with the calendar; `wallMs` is the calendar.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds that only grow, from an arbitrary start. */
  nowMs(): number;
  /** Milliseconds since 1970, which an operator or NTP may set back. */
  wallMs(): number;
  /** Calls `fire` once, `delayMs` from now. `background` timers do not keep the process alive. */
  after(delayMs: number, fire: () => void, background?: boolean): Timer;
}

/** `setTimeout` takes a signed 32-bit delay; anything above fires at once, with only a warning. So a longer one takes several. */
export const delayMaxMs = 0x7fff_ffff;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, fire, background = false) {
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, delayMaxMs);
      handle = setTimeout(leftMs > stepMs ? () => wait(leftMs - stepMs) : fire, stepMs);
      if (background) handle.unref();
    };
    wait(Math.max(0, Math.ceil(delayMs)));
    return { cancel: () => clearTimeout(handle) };
  },
};

/** A clock that stands still until it is moved. Timers fire in the order of their due time. */
export class ManualClock implements Clock {
  #nowMs: number;
  #wallOffsetMs: number;
  #order = 0;
  readonly #timers = new Set<{ dueMs: number; order: number; fire: () => void }>();

  constructor(nowMs = 0, wallMs = 1_700_000_000_000) {
    this.#nowMs = nowMs;
    this.#wallOffsetMs = wallMs - nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Math.floor(this.#nowMs + this.#wallOffsetMs);
  }

  after(delayMs: number, fire: () => void): Timer {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, fire };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, or null when none is set. */
  get nextDueMs(): number | null {
    return this.#next()?.dueMs ?? null;
  }

  /** Moves time on, firing each timer at its own moment. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.dueMs > untilMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.fire();
    }
    // A timer may have moved the clock itself, and further.
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Sets the calendar alone, as an operator or NTP would. */
  setWall(wallMs: number): void {
    this.#wallOffsetMs = wallMs - this.#nowMs;
  }

  #next() {
    let first: { dueMs: number; order: number; fire: () => void } | undefined;
    for (const timer of this.#timers) {
      if (
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      ) {
        first = timer;
      }
    }
    return first;
  }
}
