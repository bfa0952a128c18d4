/**
 * Looks for sessions that are over, tick by tick.
 *
 * When the process was stalled, the time is over for everybody, and what kept the sessions alive is
 * still waiting in the sockets. The event loop comes from its timers before it comes to its sockets,
 * so the look is put off until it has been there: never is a session expired whose bytes were already
 * there to be read.
 */

import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers';
import type { Clock, Timer } from '../support/index.ts';
import type { ServerSession, SessionLink, Sessions } from './sessions.ts';

const waitMsMax = 1_000;
/** How often a look is put off: where somebody always comes, or all is always late, sessions end too. */
const waitsMax = 20;

export class Expiry<L extends SessionLink> {
  readonly #sessions: Sessions<L>;
  readonly #clock: Clock;
  readonly #tickMs: number;
  /** What is later than this was stalled. */
  readonly #stallMs: number;
  readonly #expire: (session: ServerSession<L>) => void;
  readonly #arrivals: () => number;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    sessions: Sessions<L>,
    clock: Clock,
    tickMs: number,
    expire: (session: ServerSession<L>) => void,
    /** Links that came and sessions that were asked for so far. */
    arrivals: () => number,
  ) {
    this.#sessions = sessions;
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#stallMs = tickMs / 4;
    this.#expire = expire;
    this.#arrivals = arrivals;
  }

  start(): void {
    if (this.#stopped) return;
    const nowMs = this.#clock.nowMs();
    const dueMs = this.#sessions.roundUp(nowMs);
    this.#timer = this.#clock.after(
      dueMs - nowMs,
      () => this.#onceHeard(this.#clock.nowMs() - dueMs, waitsMax),
      true,
    );
  }

  /**
   * Looks when everybody who spoke has been heard. One round of the event loop reads what is there of a
   * few hundred links, but takes no more than one new link (measured on Node 20), so that those who
   * dialled again during a stall come in one by one: after a stall we wait until nobody comes any more.
   */
  #onceHeard(lateMs: number, waitsLeft: number): void {
    const startMs = performance.now(); // real time, since stalls are: a test may have moved the clock
    if (lateMs <= this.#stallMs || waitsLeft === 0) {
      setImmediate(() => {
        const tookMs = performance.now() - startMs;
        if (tookMs > this.#stallMs && waitsLeft > 0) this.#onceHeard(tookMs, waitsLeft);
        else this.#look();
      });
      return;
    }
    const waitMs = Math.min(this.#tickMs / 2, waitMsMax);
    const arrivals = this.#arrivals();
    setTimeout(() => {
      const isQuiet = this.#arrivals() === arrivals;
      this.#onceHeard(isQuiet ? performance.now() - startMs - waitMs : Infinity, waitsLeft - 1);
    }, waitMs).unref();
  }

  #look(): void {
    if (this.#stopped) return;
    for (const session of this.#sessions.due(this.#clock.nowMs())) this.#expire(session);
    this.start();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
