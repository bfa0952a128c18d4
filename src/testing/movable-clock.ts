/**
 * A clock that runs as the system's does and can be moved on: expiry and TTLs take no time in a test,
 * while clients in the same test live in real time.
 */

import { type Clock, systemClock, type Timer } from '../support/index.ts';

interface Armed {
  readonly dueMs: number;
  readonly fire: () => void;
  readonly background: boolean | undefined;
  /** None while time is being moved. */
  handle: Timer | undefined;
}

/** As of the system's timers: who comes a hair too early and waits again would do so for ever in a time that stands. */
const waitMsMin = 1;

/** While time is being moved it does not run by itself, and is exactly what a timer waited for. */
interface Move {
  readonly fromMs: number;
  readonly fromWallMs: number;
  nowMs: number;
  /** What is armed, or was and is cancelled, the last due first. */
  readonly line: Armed[];
}

export class MovableClock implements Clock {
  #offsetMs = 0;
  readonly #armed = new Set<Armed>();
  #move: Move | undefined;

  nowMs(): number {
    return this.#move?.nowMs ?? systemClock.nowMs() + this.#offsetMs;
  }

  wallMs(): number {
    const move = this.#move;
    if (move === undefined) return Math.floor(systemClock.wallMs() + this.#offsetMs);
    return Math.floor(move.fromWallMs + (move.nowMs - move.fromMs));
  }

  after(delayMs: number, fire: () => void, background?: boolean): Timer {
    const run = () => {
      this.#armed.delete(armed);
      fire();
    };
    const armed: Armed = {
      dueMs: this.nowMs() + (this.#move === undefined ? delayMs : Math.max(delayMs, waitMsMin)),
      fire: run,
      background,
      handle: undefined,
    };
    this.#armed.add(armed);
    const line = this.#move?.line;
    if (line === undefined) armed.handle = systemClock.after(delayMs, run, background);
    else line.splice(placeOf(line, armed.dueMs), 0, armed);
    return {
      cancel: () => {
        armed.handle?.cancel();
        this.#armed.delete(armed);
      },
    };
  }

  /**
   * Moves time on. Timers that are due by then fire now, in their order, each at its own moment. What they
   * set going, as a session's end, takes its turns of the event loop afterwards.
   */
  advance(byMs: number): void {
    if (!Number.isFinite(byMs) || byMs < 0) {
      throw new RangeError(`advance(${byMs}): milliseconds are wanted, 0 or more`);
    }
    if (this.#move !== undefined) {
      fireFor(byMs, this.#move, this.#armed); // a timer moves time itself
      return;
    }
    const fromMs = this.nowMs();
    const line = [...this.#armed].reverse().sort((a, b) => b.dueMs - a.dueMs);
    const move = { fromMs, fromWallMs: systemClock.wallMs() + this.#offsetMs, nowMs: fromMs, line };
    this.#move = move;
    for (const armed of this.#armed) armed.handle?.cancel();
    try {
      fireFor(byMs, move, this.#armed);
    } finally {
      this.#move = undefined;
      this.#offsetMs += move.nowMs - fromMs;
      for (const armed of this.#armed) {
        const delayMs = armed.dueMs - this.nowMs();
        armed.handle = systemClock.after(delayMs, armed.fire, armed.background);
      }
    }
  }
}

function fireFor(byMs: number, move: Move, armed: ReadonlySet<Armed>): void {
  const { line } = move;
  const untilMs = move.nowMs + byMs;
  for (let next = line.at(-1); next !== undefined && next.dueMs <= untilMs; next = line.at(-1)) {
    line.pop();
    if (!armed.has(next)) continue;
    move.nowMs = Math.max(move.nowMs, next.dueMs);
    next.fire();
  }
  move.nowMs = Math.max(move.nowMs, untilMs);
}

/** Before all that are due earlier, and those due at the same moment, which were there first. */
function placeOf(line: readonly Armed[], dueMs: number): number {
  let from = 0;
  let to = line.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (line[middle]!.dueMs > dueMs) from = middle + 1;
    else to = middle;
  }
  return from;
}
