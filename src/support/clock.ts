/**
 * Time, as something that is handed in.
 *
 * Whatever waits or measures asks a `Clock`, so that a test can move time instead of spending it.
 * `nowMs` never goes back and has nothing to do with the calendar; `wallMs` is the calendar.
 *
 *   systemClock      counts the time in which the host was suspended: for what a session holds
 *   monotonicClock   does not: for the server, which gives its clients their full timeout after it wakes
 */

import { uptime } from 'node:os';

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

/** What a host tells of time. */
export interface TimeSources {
  /** Only grows. On Linux it stands still while the host is suspended. */
  monotonicMs(): number;
  /** The calendar: runs on while the host is suspended, and may be set at any moment. */
  wallMs(): number;
  /** Since the host started, suspended time included. About 100 times as expensive to read as the others. */
  uptimeMs(): number;
}

/** `setTimeout` takes a signed 32-bit delay; anything above fires at once, with only a warning. So a longer one takes several. */
export const delayMaxMs = 0x7fff_ffff;

/** How far calendar and monotonic clock may move apart before the uptime is asked. NTP comes to this in minutes. */
const apartMaxMs = 50;
/** An uptime comes in hundredths of a second, on some hosts in whole ones. Less growth than this is rounding. */
const fine = { resolutionMs: 10, sleepMinMs: 50 };
const coarse = { resolutionMs: 1_000, sleepMinMs: 2_500 };
/** Uptime and monotonic clock were read together if no more than this passed meanwhile. */
const togetherMs = 2;
const readTriesMax = 5;
/** The system's timers stand still with the host. Longer ones than this are set anew when it goes on. */
const watchMs = 1_000;

/**
 * A clock that counts the time in which the host was suspended.
 *
 * Each look compares the monotonic clock with the calendar, which is cheap. Only where the two have moved
 * apart does it ask for the uptime: if that has grown by more than the monotonic clock has, the host was
 * suspended for the difference. If it has not, the calendar was set, and nothing happens.
 *
 * Not covered: a virtual machine that was paused from outside. All its clocks stood still.
 */
export function hostClock({ monotonicMs, wallMs, uptimeMs }: TimeSources): Clock {
  let sleptMs = 0;
  let calendarApartMs = wallMs() - monotonicMs();
  let uptimeApartMs = readUptime().apartMs;

  function readUptime(): { readonly apartMs: number; readonly upMs: number } {
    for (let tries = 1; ; tries++) {
      const beforeMs = monotonicMs();
      const upMs = uptimeMs();
      const afterMs = monotonicMs();
      // The process may have been stopped between the two, which is no sleep of the host.
      const isTogether = afterMs - beforeMs <= togetherMs;
      if (isTogether || tries === readTriesMax) return { apartMs: upMs - afterMs, upMs };
    }
  }

  function crossCheck(): void {
    const { apartMs, upMs } = readUptime();
    calendarApartMs = wallMs() - monotonicMs();
    if (Number.isNaN(apartMs)) return; // it cannot be read: nothing is known of a sleep
    const { resolutionMs, sleepMinMs } = upMs % coarse.resolutionMs === 0 ? coarse : fine;
    const grewMs = apartMs - uptimeApartMs;
    uptimeApartMs = apartMs;
    // Rounded up: a deadline that comes too early is safe, one that comes too late is not.
    if (grewMs >= sleepMinMs) sleptMs += grewMs + resolutionMs;
  }

  function nowMs(): number {
    const monotonic = monotonicMs();
    const movedMs = wallMs() - monotonic - calendarApartMs;
    if (movedMs <= apartMaxMs && movedMs >= -apartMaxMs) return monotonic + sleptMs;
    crossCheck();
    return monotonicMs() + sleptMs;
  }

  const longTimers = new LongTimers(nowMs, () => sleptMs);
  return {
    nowMs,
    wallMs,
    after: (delayMs, fire, background = false) =>
      delayMs > watchMs
        ? longTimers.add(nowMs() + delayMs, fire, background)
        : setTimer(delayMs, fire, background),
  };
}

/** One call of `setTimeout`. */
function setTimer(delayMs: number, fire: () => void, background: boolean): Timer {
  const handle = setTimeout(fire, Math.max(0, Math.ceil(delayMs)));
  if (background) handle.unref();
  return { cancel: () => clearTimeout(handle) };
}

interface LongTimer {
  readonly dueMs: number;
  readonly fire: () => void;
  readonly background: boolean;
  step: Timer | undefined;
}

/** Timers that are set anew when the host has slept, so that what is due by then fires within a second. */
class LongTimers {
  readonly #nowMs: () => number;
  readonly #sleptMs: () => number;
  readonly #timers = new Set<LongTimer>();
  #watch: NodeJS.Timeout | undefined;
  #setAtSleptMs = 0;

  constructor(nowMs: () => number, sleptMs: () => number) {
    this.#nowMs = nowMs;
    this.#sleptMs = sleptMs;
  }

  add(dueMs: number, fire: () => void, background: boolean): Timer {
    const timer: LongTimer = { dueMs, fire, background, step: undefined };
    this.#timers.add(timer);
    this.#set(timer);
    this.#watch ??= setInterval(() => this.#look(), watchMs).unref();
    return { cancel: () => this.#remove(timer) };
  }

  #set(timer: LongTimer): void {
    const leftMs = timer.dueMs - this.#nowMs();
    const stepMs = Math.min(leftMs, delayMaxMs);
    const next = () => {
      if (leftMs > stepMs) return this.#set(timer);
      this.#remove(timer);
      timer.fire();
    };
    timer.step = setTimer(stepMs, next, timer.background);
  }

  #remove(timer: LongTimer): void {
    timer.step?.cancel();
    this.#timers.delete(timer);
    if (this.#timers.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  #look(): void {
    this.#nowMs(); // finds out whether the host has slept
    const sleptMs = this.#sleptMs();
    if (sleptMs === this.#setAtSleptMs) return;
    this.#setAtSleptMs = sleptMs;
    for (const timer of this.#timers) {
      timer.step?.cancel();
      this.#set(timer);
    }
  }
}

const performanceMs = () => performance.now();
const calendarMs = () => Date.now();

/** NaN where the host does not tell. */
function hostUptimeMs(): number {
  try {
    return uptime() * 1_000;
  } catch {
    return Number.NaN;
  }
}

/** The time of this host, with the time in which it was suspended. */
export const systemClock: Clock = hostClock({
  monotonicMs: performanceMs,
  wallMs: calendarMs,
  uptimeMs: hostUptimeMs,
});

/** The time in which this host was running: it stands still while the host is suspended. */
export const monotonicClock: Clock = {
  nowMs: performanceMs,
  wallMs: calendarMs,
  after(delayMs, fire, background = false) {
    let step: Timer;
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, delayMaxMs);
      step = setTimer(stepMs, leftMs > stepMs ? () => wait(leftMs - stepMs) : fire, background);
    };
    wait(delayMs);
    return { cancel: () => step.cancel() };
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
