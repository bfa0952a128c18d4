/**
 * Looks for sessions that are over, tick by tick.
 *
 * When the process was stalled, the time is over for everybody, and what kept the sessions alive is
 * still waiting in the sockets. The event loop comes from its timers before it comes to its sockets,
 * so the look is put off until it has been there: never is a session expired whose bytes were already
 * there to be read.
 */

import type { Clock, Timer } from '../support/index.ts';
import type { ServerSession, SessionLink, Sessions } from './sessions.ts';

export class Expiry<L extends SessionLink> {
  readonly #sessions: Sessions<L>;
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #expire: (session: ServerSession<L>) => void;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    sessions: Sessions<L>,
    clock: Clock,
    tickMs: number,
    expire: (session: ServerSession<L>) => void,
  ) {
    this.#sessions = sessions;
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#expire = expire;
  }

  start(): void {
    if (this.#stopped) return;
    const nowMs = this.#clock.nowMs();
    const dueMs = this.#sessions.roundUp(nowMs);
    const look = () => this.#look();
    this.#timer = this.#clock.after(
      dueMs - nowMs,
      () => {
        // One round reads all that is there of a few hundred links. After a stall a second one sees
        // to the rest, and to those who had to dial again.
        const isLate = this.#clock.nowMs() - dueMs > this.#tickMs / 4;
        setImmediate(isLate ? () => setTimeout(() => setImmediate(look), 1) : look);
      },
      true,
    );
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
