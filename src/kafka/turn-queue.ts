/**
 * One thing after the other: the controller does nothing on any other path, and so has no races with
 * itself. Watches only put something here.
 *
 * What is put again under the same key before its turn has come is done once: a burst of changes is
 * one look at what they led to. So the queue holds no more than there are keys, and of what was asked
 * for by callers no more than `askedMax`.
 */

import { deferred } from '../support/index.ts';

interface Turn {
  readonly key: string | undefined;
  readonly work: () => Promise<void>;
  readonly drop: (reason: unknown) => void;
}

const askedMax = 10_000;

export class TurnQueue {
  #waiting: Turn[] = [];
  #isRunning = false;
  #isClosed = false;
  #idle = deferred();

  constructor() {
    this.#idle.resolve();
  }

  /** `work` must not reject. */
  put(key: string, work: () => Promise<void>): void {
    if (this.#isClosed || this.#waiting.some((turn) => turn.key === key)) return;
    this.#add({ key, work, drop: () => {} });
  }

  /** In its turn; rejects with the reason when the queue is cleared first. */
  async ask<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error('closed');
    if (this.#waiting.length >= askedMax) throw new Error(`${askedMax} requests wait already`);
    const answer = deferred<T>();
    this.#add({
      key: undefined,
      work: () => work().then(answer.resolve, answer.reject),
      drop: answer.reject,
    });
    return answer.promise;
  }

  /** Forgets what waits. What runs, runs on. */
  clear(reason: unknown): void {
    const dropped = this.#waiting;
    this.#waiting = [];
    for (const { drop } of dropped) drop(reason);
  }

  /** Resolves when nothing runs and nothing waits. */
  async idle(): Promise<void> {
    await this.#idle.promise;
  }

  /** Forgets what waits, takes nothing more, and waits for what runs. */
  async close(reason: unknown): Promise<void> {
    this.#isClosed = true;
    this.clear(reason);
    await this.idle();
  }

  #add(turn: Turn): void {
    this.#waiting.push(turn);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#idle = deferred();
    void this.#run();
  }

  async #run(): Promise<void> {
    for (let turn = this.#waiting.shift(); turn !== undefined; turn = this.#waiting.shift()) {
      await turn.work();
    }
    this.#isRunning = false;
    this.#idle.resolve();
  }
}
