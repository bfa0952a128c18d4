/**
 * The callbacks of a leader's periods, one after the other, in order.
 *
 * In: cuts that were made. Out: calls, and after each a record that it has ended. At most so many wait
 * that every one of them is still in storage: then the leader moves no further until there is room.
 */

import { Wakeup } from '../support/index.ts';
import { cutsKept } from './cuts.ts';
import type { StoredCut } from './layout.ts';

export interface Period {
  readonly start: number;
  readonly end: number;
  /** By `topic/partition`: everything before it is done, and belongs to this period or one before. */
  readonly offsets: ReadonlyMap<string, bigint>;
  /** Of the leader's term: a sink can refuse a call with a lower one than it has seen. */
  readonly epoch: bigint;
  /** Aborts when this leader's term ends: the next one will call again. Looks at the clock when asked. */
  readonly signal: AbortSignal;
}

export interface PeriodCallsOptions {
  readonly onPeriod: (period: Period) => void | Promise<void>;
  readonly epoch: bigint;
  readonly signal: AbortSignal;
  readonly onStep: (step: 'calling') => Promise<void>;
  /** Writes that the callback of this boundary has ended. */
  readonly record: (end: number) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  readonly onRoom: () => void;
}

const waitingMax = cutsKept - 2;

export class PeriodCalls {
  readonly #options: PeriodCallsOptions;
  readonly #waiting: StoredCut[] = [];
  readonly #bell = new Wakeup();
  readonly #running: Promise<void>;

  constructor(options: PeriodCallsOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  get isFull(): boolean {
    return this.#waiting.length >= waitingMax;
  }

  /** Every callback that was due has ended, and that is written. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(cut: StoredCut): void {
    this.#waiting.push(cut);
    this.#bell.ring();
  }

  async #run(): Promise<void> {
    const { signal, onPeriod, epoch, onStep, record, onFailure, onRoom } = this.#options;
    try {
      for (;;) {
        const cut = this.#waiting[0];
        if (signal.aborted) return;
        if (cut === undefined) {
          await this.#bell.rung(signal);
          continue;
        }
        await onStep('calling');
        if (signal.aborted) return;
        await onPeriod({ start: cut.start!, end: cut.end, offsets: cut.offsets, epoch, signal });
        if (signal.aborted) return;
        await record(cut.end);
        this.#waiting.shift();
        onRoom();
      }
    } catch (error) {
      // What it throws after its term ended is told by the signal that it should have heeded.
      if (!signal.aborted) onFailure(error);
    }
  }

  /** Waits for the call that is under way: its signal has told it to stop. */
  async close(): Promise<void> {
    await this.#running;
  }
}
