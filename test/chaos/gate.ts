/** A log that keeps nothing and acknowledges when it is told to: who waits for whom can be arranged. */

import type { TxnLog } from '../../src/server/index.ts';

export class Gate implements TxnLog {
  #isShut = false;
  #waiting: (() => void)[] = [];
  /** Batches that were handed over so far. */
  batches = 0;

  shut(): void {
    this.#isShut = true;
  }

  open(): void {
    this.#isShut = false;
    for (const go of this.#waiting.splice(0)) go();
  }

  append(): Promise<void> {
    this.batches += 1;
    if (!this.#isShut) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
