/**
 * The event times of one partition, judged as a run would judge them, for a caller that reads the partition alone.
 *
 * In: records in the order of their offsets. Out: each time that can be believed, in that order, or the
 * record and why its time cannot be. A run compares a record with where the whole group is; here there is
 * only the partition, so what lies far ahead is found by the latest record before it and those behind it.
 */

import { type Duration, durationMs } from './duration.ts';
import { doubtOf, type QuarantineReason } from './event-time.ts';
import { type Verdict, verdictOf } from './verdict.ts';

/** A record whose event time a run would not believe. */
export interface DoubtedRecord {
  readonly offset: bigint;
  /** NaN where there is none. */
  readonly timeMs: number;
  readonly reason: QuarantineReason;
}

/** As the options of `align` with the same names. */
export interface TimeDoubtsOptions {
  /** @default '5m' */
  readonly futureTolerance?: Duration;
  /** @default '7d' */
  readonly maxAhead?: Duration | false;
  /** @default Date.now() */
  readonly nowMs?: number;
}

/** Tells which event times of a partition a run would believe, without running it. */
export class TimeDoubts {
  readonly #doubt: { readonly nowMs: number; readonly futureToleranceMs: number };
  readonly #maxAheadMs: number;
  readonly #onBelieved: (timeMs: number) => void;
  readonly #onDoubted: (record: DoubtedRecord) => void;
  /** Of the records that were believed. */
  #latestMs = Number.NEGATIVE_INFINITY;
  /** The first of them is in doubt, and the others are those behind it. */
  #waiting: { readonly offset: bigint; readonly timeMs: number }[] = [];

  constructor(
    { futureTolerance = '5m', maxAhead = '7d', nowMs = Date.now() }: TimeDoubtsOptions,
    onBelieved: (timeMs: number) => void,
    onDoubted: (record: DoubtedRecord) => void,
  ) {
    const futureToleranceMs = durationMs('futureTolerance', futureTolerance, 0);
    this.#doubt = { nowMs, futureToleranceMs };
    this.#maxAheadMs =
      maxAhead === false ? Number.POSITIVE_INFINITY : durationMs('maxAhead', maxAhead);
    this.#onBelieved = onBelieved;
    this.#onDoubted = onDoubted;
  }

  add(offset: bigint, timeMs: number): void {
    const reason = doubtOf(timeMs, this.#doubt);
    if (reason !== null) this.#onDoubted({ offset, timeMs, reason });
    else {
      this.#waiting.push({ offset, timeMs });
      this.#judge(false);
    }
  }

  /** There are no more. */
  end(): void {
    this.#judge(true);
  }

  #judge(isEnd: boolean): void {
    while (this.#waiting.length > 0) {
      const [{ offset, timeMs }] = this.#waiting as [{ offset: bigint; timeMs: number }];
      const verdict = this.#verdict(timeMs);
      if (verdict === 'unclear' && !isEnd) return;
      this.#waiting.shift();
      if (verdict === 'odd') {
        this.#onDoubted({ offset, timeMs, reason: 'ahead' });
        continue;
      }
      this.#latestMs = Math.max(this.#latestMs, timeMs);
      this.#onBelieved(timeMs);
    }
  }

  #verdict(timeMs: number): Verdict {
    const isFirst = this.#latestMs === Number.NEGATIVE_INFINITY;
    const farMs = isFirst ? timeMs - this.#maxAheadMs : this.#latestMs + this.#maxAheadMs;
    const times = this.#waiting.map((one) => one.timeMs);
    return verdictOf(times, 0, farMs);
  }
}
