/**
 * The clock of one partition: how far in event time it has come, and at which offset it has passed each
 * boundary.
 *
 *   records   90  70  130  125 | 200                A = 20, step = 60
 *   highest   90  90  130  130 | 200                what was seen so far, in the order of the offsets
 *   clock     70  70  110  110 | 180                highest minus A: nothing earlier is still to come
 *   passes    60               | 120, 180           boundary 120 is passed at the record 200
 *
 * In: records as they are handed out, the next that is known, and how far the work is done. Out: the
 * position that the group is told. A boundary is reached when the clock has passed it and everything
 * before the record that passed it is done: that record's offset is where a cut at the boundary goes.
 * A gap of days passes all its boundaries with one record, and is one entry.
 *
 * Pure: it knows no time but the records'. Records later than the allowance are handed out all the same,
 * and counted; they move nothing back.
 */

import { boundaryAt } from './rule.ts';

/** All boundaries up to `end`, from the one before on, were passed at this offset. */
export interface Pass {
  readonly end: number;
  readonly offset: bigint;
}

export interface PartitionClockInput {
  readonly allowanceMs: number;
  readonly stepMs: number;
  /** The first record that is not done. */
  readonly offset: bigint;
  /** Boundaries up to here are settled: by the cut that we begin at, or by who had the partition before. */
  readonly passes?: readonly Pass[];
  /** Where the partition is known to stand already; unknown until its first record otherwise. */
  readonly positionMs?: number;
  /** The latest of the records before, where it is known: a cut tells only that none is still to come. */
  readonly lastMs?: number;
  /** Reached boundaries count only once they are confirmed, by `confirm`. */
  readonly isConfirming?: boolean;
}

export class PartitionClock {
  readonly #allowanceMs: number;
  readonly #isConfirming: boolean;
  #stepMs: number;
  /** The highest event time of the records handed out, and of those that are done. */
  #highestMs = Number.NEGATIVE_INFINITY;
  #doneMs = Number.NEGATIVE_INFINITY;
  /** As the two above, of records alone: where the partition was known to stand is no record. */
  #latestMs = Number.NEGATIVE_INFINITY;
  #lastMs = Number.NEGATIVE_INFINITY;
  #done: bigint;
  #handed: bigint;
  /** The next record, where it is known. */
  #next: { readonly offset: bigint; readonly timeMs: number } | undefined;
  /** The last boundary passed before the next record was known. */
  #passedBeforeMs = Number.NEGATIVE_INFINITY;
  #passes: Pass[];
  /** The last boundary passed, done or not, and the last that was told by `takeReached`. */
  #passedMs: number;
  #takenMs: number;
  #confirmedMs: number;
  #lateRecords = 0;

  constructor(input: PartitionClockInput) {
    const { allowanceMs, stepMs, offset, passes = [], positionMs, isConfirming = false } = input;
    this.#allowanceMs = allowanceMs;
    this.#stepMs = stepMs;
    this.#isConfirming = isConfirming;
    this.#done = offset;
    this.#handed = offset;
    this.#passes = [...passes];
    this.#passedMs = passes.at(-1)?.end ?? Number.NEGATIVE_INFINITY;
    if (positionMs !== undefined) {
      this.#highestMs = positionMs + allowanceMs;
      this.#doneMs = this.#highestMs;
      this.#passedMs = Math.max(this.#passedMs, boundaryAt(stepMs, positionMs));
    }
    this.#latestMs = input.lastMs ?? Number.NEGATIVE_INFINITY;
    this.#lastMs = this.#latestMs;
    // What stands from before was confirmed by who had it then.
    this.#takenMs = this.#passedMs;
    this.#confirmedMs = this.#passedMs;
  }

  /** The first record that is not done. */
  get done(): bigint {
    return this.#done;
  }

  /** The first record that was not handed out. */
  get handed(): bigint {
    return this.#handed;
  }

  /** Everything that was handed out is done. */
  get isDone(): boolean {
    return this.#done === this.#handed;
  }

  /** Records that came later than the allowance. */
  get lateRecords(): number {
    return this.#lateRecords;
  }

  /** The highest event time that nothing done is beyond; null before any is known. */
  get doneTimeMs(): number | null {
    return finite(this.#doneMs);
  }

  /** The latest record that is done; null where none is known: all of them lie before the last cut. */
  get lastTimeMs(): number | null {
    return finite(this.#lastMs);
  }

  set stepMs(stepMs: number) {
    this.#stepMs = stepMs;
  }

  /** Known to come next, and not handed out. Offsets before it that nobody saw hold no record. */
  expect(offset: bigint, timeMs: number): void {
    if (this.#next?.offset === offset) return;
    if (offset > this.#handed) this.skip(offset);
    this.#next = { offset, timeMs };
    this.#passedBeforeMs = this.#passedMs;
    this.#pass(offset, timeMs);
  }

  /** The time of the next record is not believed any more: it has passed nothing. */
  withdraw(): void {
    if (this.#next === undefined) return;
    const { offset } = this.#next;
    this.#next = undefined;
    this.#passes = this.#passes.filter((pass) => pass.offset < offset);
    this.#passedMs = this.#passedBeforeMs;
    this.#takenMs = Math.min(this.#takenMs, this.#passedMs);
    this.#confirmedMs = Math.min(this.#confirmedMs, this.#passedMs);
  }

  /** Handed out. `timeMs` null: a record that moves no clock. `nextOffset`: where to go on after it. */
  hand(offset: bigint, timeMs: number | null, nextOffset: bigint): void {
    if (timeMs !== null) this.#see(offset, timeMs);
    this.#next = undefined;
    this.#handed = nextOffset;
  }

  /** Handed out, all of them, and every one has a time: the way that nearly all records go. */
  handAll(
    records: readonly { readonly offset: bigint }[],
    timesMs: readonly number[],
    nextOffset: bigint,
  ): void {
    let highestMs = this.#highestMs;
    let latestMs = this.#latestMs;
    let passAtMs = this.#passAtMs;
    for (let i = 0; i < timesMs.length; i++) {
      const timeMs = timesMs[i]!;
      if (timeMs > latestMs) latestMs = timeMs;
      if (timeMs < highestMs) {
        if (timeMs < highestMs - this.#allowanceMs) this.#lateRecords += 1;
        continue;
      }
      highestMs = timeMs;
      if (timeMs < passAtMs) continue;
      this.#pass(records[i]!.offset, timeMs);
      passAtMs = this.#passAtMs;
    }
    this.#highestMs = highestMs;
    this.#latestMs = latestMs;
    this.#next = undefined;
    this.#handed = nextOffset;
  }

  #see(offset: bigint, timeMs: number): void {
    if (timeMs < this.#highestMs - this.#allowanceMs) this.#lateRecords += 1;
    this.#pass(offset, timeMs);
    this.#highestMs = Math.max(this.#highestMs, timeMs);
    this.#latestMs = Math.max(this.#latestMs, timeMs);
  }

  /** A record before this time passes no boundary. */
  get #passAtMs(): number {
    return this.#passedMs + this.#stepMs + this.#allowanceMs;
  }

  #pass(offset: bigint, timeMs: number): void {
    const end = boundaryAt(this.#stepMs, timeMs - this.#allowanceMs);
    if (end <= this.#passedMs) return;
    this.#passes.push({ end, offset });
    this.#passedMs = end;
  }

  /** Everything handed out so far is done. */
  finish(): void {
    this.#done = this.#handed;
    this.#doneMs = this.#highestMs;
    this.#lastMs = this.#latestMs;
  }

  /** Records without a time, or skipped, up to here: done without ever being handed out. */
  skip(nextOffset: bigint): void {
    if (this.#next !== undefined && this.#next.offset < nextOffset) this.#next = undefined;
    const wasDone = this.isDone;
    this.#handed = nextOffset;
    if (wasDone) this.#done = nextOffset;
  }

  /** Boundaries that were reached since the last call, as one stretch each. */
  takeReached(): {
    readonly start: number | null;
    readonly end: number;
    readonly offset: bigint;
  }[] {
    const found = this.#passes.filter(
      ({ end, offset }) => end > this.#takenMs && offset <= this.#done,
    );
    return found.map(({ end, offset }) => {
      const start = Number.isFinite(this.#takenMs) ? this.#takenMs : null;
      this.#takenMs = end;
      return { start, end, offset };
    });
  }

  /** What `takeReached` told up to here has been dealt with. */
  confirm(end: number): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, end);
  }

  /**
   * Where it stands: the clock after all that is done, or after the next record where nothing is left
   * before it. Null when nothing is known. Never beyond a boundary that is not confirmed.
   */
  get positionMs(): number | null {
    const { offset, timeMs } = this.#next ?? {};
    const isNext = timeMs !== undefined && offset === this.#done;
    const highestMs = Math.max(this.#doneMs, isNext ? timeMs : Number.NEGATIVE_INFINITY);
    if (!Number.isFinite(highestMs)) return null;
    const clockMs = highestMs - this.#allowanceMs;
    if (!this.#isConfirming) return clockMs;
    const open = this.#passes.find(({ end }) => end > this.#confirmedMs);
    if (open === undefined || open.offset > this.#done) return clockMs;
    const beforeMs = Number.isFinite(this.#confirmedMs)
      ? this.#confirmedMs + this.#stepMs - 1
      : boundaryAt(this.#stepMs, clockMs) - 1;
    return Math.min(clockMs, beforeMs);
  }

  /** The boundaries reached and not settled yet, first to last: told to the group, and to who has it next. */
  get reached(): readonly Pass[] {
    return this.#passes.filter(
      ({ end, offset }) =>
        offset <= this.#done && (!this.#isConfirming || end <= this.#confirmedMs),
    );
  }

  /** A cut was made at this boundary: what lies before needs no telling. */
  settle(end: number): void {
    this.#passes = this.#passes.filter((pass) => pass.end > end);
  }
}

const finite = (ms: number) => (Number.isFinite(ms) ? ms : null);
