/**
 * What was read of a partition and not handed out yet: one batch, judged, from some record on.
 *
 * In: the batch, and the limit whenever records are taken. Out: records up to the first that is not
 * allowed yet, in the order of their offsets, each told to the partition's clock. What is to be left out
 * is never seen by anybody. And whether the time of the next record fits those behind it.
 */

import type { KafkaRecord } from '../kafka/index.ts';
import { type Judged, leaveOut } from './judge.ts';
import type { Handed } from './lane-options.ts';
import type { PartitionClock } from './partition-clock.ts';
import { type Verdict, verdictOf } from './verdict.ts';

export class LaneBuffer {
  #judged: Judged;
  #at = 0;

  constructor(judged: Judged) {
    this.#judged = judged;
  }

  get isUsedUp(): boolean {
    return this.#at >= this.#judged.batch.records.length;
  }

  /** Of the next record. NaN: it has none, and moves no clock. */
  get nextMs(): number {
    return this.#judged.times[this.#at]!;
  }

  get next(): KafkaRecord {
    return this.#judged.batch.records[this.#at]!;
  }

  /** The batch that follows, read while this one was not used up. */
  append({ batch, times, isPlain, latestMs, isAtEnd, error }: Judged): void {
    const { batch: before, times: timesBefore, ...judged } = this.#judged;
    this.#judged = {
      batch: { ...batch, records: [...before.records.slice(this.#at), ...batch.records] },
      times: [...timesBefore.slice(this.#at), ...times],
      isPlain: judged.isPlain && isPlain,
      latestMs: Math.max(judged.latestMs, latestMs),
      isAtEnd,
      error,
    };
    this.#at = 0;
  }

  /** Whether the next record fits those behind it, where it lies at `farMs` or later. */
  verdict(farMs: number): Verdict {
    return verdictOf(this.#judged.times, this.#at, farMs);
  }

  /** The next record counts as of this time: also none at all, or to be left out. */
  setNextMs(timeMs: number): void {
    const { times } = this.#judged;
    this.#judged = { ...this.#judged, times: times.with(this.#at, timeMs), isPlain: false };
  }

  /** Nothing from the next record on is handed out. */
  cutShort(): void {
    const { batch, times } = this.#judged;
    const records = batch.records.slice(0, this.#at);
    const nextOffset = this.next.offset;
    const judged = { batch: { ...batch, records, nextOffset }, times: times.slice(0, this.#at) };
    this.#judged = { ...this.#judged, ...judged };
  }

  /** At most so many, and all of them before `beforeMs`. */
  take(clock: PartitionClock, beforeMs: number, recordsMax: number): Handed {
    const { batch, isPlain, latestMs } = this.#judged;
    const isAll = batch.records.length - this.#at <= recordsMax;
    return isAll && isPlain && latestMs < beforeMs
      ? this.#takeAll(clock)
      : this.#takeSome(clock, beforeMs, recordsMax);
  }

  #takeAll(clock: PartitionClock): Handed {
    const { batch, times } = this.#judged;
    const at = this.#at;
    const records = at === 0 ? batch.records : batch.records.slice(at);
    const timesMs = at === 0 ? times : times.slice(at);
    const { nextOffset } = batch;
    clock.handAll(records, timesMs, nextOffset);
    this.#at = batch.records.length;
    return { records, timesMs, nextOffset };
  }

  #takeSome(clock: PartitionClock, beforeMs: number, recordsMax: number): Handed {
    const { batch, times } = this.#judged;
    const { records } = batch;
    const taken: KafkaRecord[] = [];
    const timesMs: (number | null)[] = [];
    let at = this.#at;
    for (; at < records.length && taken.length < recordsMax; at++) {
      const timeMs = times[at]!;
      const record = records[at]!;
      const nextOffset = records[at + 1]?.offset ?? batch.nextOffset;
      if (timeMs === leaveOut) {
        clock.skip(nextOffset);
        continue;
      }
      if (timeMs >= beforeMs) break;
      const known = Number.isNaN(timeMs) ? null : timeMs;
      clock.hand(record.offset, known, nextOffset);
      taken.push(record);
      timesMs.push(known);
    }
    this.#at = at;
    return { records: taken, timesMs, nextOffset: records[at]?.offset ?? batch.nextOffset };
  }

  /** Leaves out what is to be left out before the next record. */
  skip(clock: PartitionClock): void {
    const { batch, times } = this.#judged;
    const { records, nextOffset } = batch;
    while (!this.isUsedUp && times[this.#at] === leaveOut) {
      this.#at += 1;
      clock.skip(records[this.#at]?.offset ?? nextOffset);
    }
  }

  /** Makes the next record known to the clock. */
  expect(clock: PartitionClock): void {
    if (!Number.isNaN(this.nextMs)) clock.expect(this.next.offset, this.nextMs);
  }
}
