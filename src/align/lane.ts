/**
 * One owned partition being read in step: from where it is opened to where it is let go of.
 *
 *   opening ──▶ reading ⇄ idle            nothing to read, and quiet for a while
 *                  │ ──▶ finished          its end, or the end that was asked for
 *                  │ ──▶ stopped           a record was refused, or cannot be read: somebody has to look
 *                  └──▶ closed             let go of, or lost
 *
 * In: a reader, the limit. Out: batches, in the order of the offsets, cut short at the first record that
 * lies at or beyond the limit and the allowance. That record is kept, and comes first when the limit has
 * moved. One batch is out at a time, and one waits ready; while the next record is too early the reader
 * is paused, which is its adapter's to bear: it polls on and fetches nothing.
 *
 * A record far beyond the limit (`maxAheadMs`) is in doubt: one wrong time would carry the limit away as
 * soon as the others have nothing to read. It is judged by the records behind it, and while too few are
 * known the partition counts as if nothing had come: it holds nobody back, and moves no limit.
 *
 * Idle is judged by lag: everything up to the high watermark was read and is done, and nothing came for
 * `idleAfterMs`. The time runs only while we wait for the reader, so time in which it was held back, or
 * in which work was under way, or in which people held the whole group, does not count.
 */

import {
  GuardedReader,
  isReaderError,
  type OwnedPartition,
  type PartitionReader,
  ReaderError,
} from '../kafka/index.ts';
import { Backoff, deferred, pause, type Timer } from '../support/index.ts';
import type { StartPoint } from './cuts.ts';
import type { PartitionReport, PartitionState } from './group-clock.ts';
import { judge, leaveOut, QuarantineError, standIn } from './judge.ts';
import { LaneBuffer } from './lane-buffer.ts';
import type { Handed, LaneOptions } from './lane-options.ts';
import type { Handover } from './layout.ts';
import { PartitionClock } from './partition-clock.ts';
import type { Verdict } from './verdict.ts';

export class Lane {
  readonly owned: OwnedPartition;
  readonly #options: LaneOptions;
  readonly #life = new AbortController();
  readonly #backoff: Backoff;
  #reader: PartitionReader | undefined;
  #clock: PartitionClock | undefined;
  #state: PartitionState | 'opening' | 'closed' = 'opening';
  #buffer: LaneBuffer | undefined;
  #drained = deferred();
  #limitMs = Number.NEGATIVE_INFINITY;
  #handed: Handed | undefined;
  #free = deferred();
  #idleTimer: Timer | undefined;
  #isPaused = false;
  /** The end that was asked for lies in front of us. */
  #isAtEnd = false;
  /** What stops the partition once the buffer is used up. */
  #refusal: unknown;
  /** The offset of the next record, where its time is in doubt. */
  #doubted: bigint | undefined;
  /** How often it was moved back: what was read before is then not what comes next. */
  #moves = 0;
  /** The reader that is being waited for. */
  #asked: PartitionReader | undefined;
  #confirming: Promise<void> = Promise.resolve();
  #recordsHanded = 0;

  constructor(owned: OwnedPartition, options: LaneOptions) {
    this.owned = owned;
    this.#options = options;
    const { random = Math.random } = options;
    this.#backoff = new Backoff({ firstMs: 100, maxMs: 10_000, random });
    this.#free.resolve();
    void this.#run();
  }

  get state(): PartitionState | 'opening' | 'closed' {
    return this.#state;
  }

  get recordsHanded(): number {
    return this.#recordsHanded;
  }

  get lateRecords(): number {
    return this.#clock?.lateRecords ?? 0;
  }

  get lag(): bigint | null {
    const high = this.#reader?.highWatermark ?? null;
    return high === null || this.#clock === undefined ? null : high - this.#clock.done;
  }

  /** The event time of the next record, where it is known and can be believed. */
  get nextTimeMs(): number | null {
    const timeMs = this.#buffer?.nextMs ?? Number.NaN;
    return Number.isNaN(timeMs) ? null : timeMs;
  }

  /** The time of the next record, where it lies so far ahead that it is not believed yet. */
  get aheadMs(): number | null {
    return this.#doubted === undefined ? null : this.#buffer!.nextMs;
  }

  get isInHand(): boolean {
    return this.#handed !== undefined;
  }

  hasInHand(handed: Handed): boolean {
    return this.#handed === handed;
  }

  /** The next record is known, and too early. */
  get isHeldBack(): boolean {
    if (this.#buffer === undefined) return false;
    const { nextMs } = this.#buffer;
    if (Number.isNaN(nextMs)) return false; // no limit is about it, and only the next tells where it is
    return nextMs >= this.#beforeMs;
  }

  get isReady(): boolean {
    if (this.#buffer === undefined || this.#handed !== undefined) return false;
    return this.#state === 'reading' && !this.isHeldBack && !this.#life.signal.aborted;
  }

  /** Records from here on are too early. */
  get #beforeMs(): number {
    return this.#limitMs + this.#options.allowanceMs;
  }

  /** Where it stands; null while that is not known. */
  get positionMs(): number | null {
    return this.#clock?.positionMs ?? null;
  }

  /** Null while it is not known where it begins. */
  report(): PartitionReport | null {
    const { epoch } = this.owned;
    const clock = this.#clock;
    if (clock === undefined || this.#state === 'closed' || this.#state === 'opening') return null;
    const isOver = this.#state === 'finished';
    // No more can come, so there is nothing to allow for; and what lies before the last cut is settled.
    const positionMs = isOver ? clock.lastTimeMs : clock.positionMs;
    return {
      epoch,
      state: this.#state,
      positionMs,
      offset: clock.done,
      reached: clock.reached,
      ...(this.#doubted !== undefined && { aheadMs: this.#buffer!.nextMs }),
    };
  }

  /** What whoever has it next needs to know. */
  handover(): Handover | null {
    const clock = this.#clock;
    if (clock === undefined) return null;
    const { epoch } = this.owned;
    const { done: offset, positionMs, lastTimeMs: lastMs, reached } = clock;
    return { epoch, offset, positionMs, lastMs, reached };
  }

  // ── the limit ─────────────────────────────────────────────────────────────────────────────────

  /** It only ever grows, but for a rule that was off. */
  set limitMs(limitMs: number) {
    if (limitMs === this.#limitMs) return;
    const isFirst = this.#limitMs === Number.NEGATIVE_INFINITY;
    this.#limitMs = limitMs;
    // By a limit it can be told whether the next record is far ahead, or is so no more.
    if (isFirst || this.#doubted !== undefined) this.#advance();
    else this.#steer();
    if (this.isReady) this.#options.onChange(this);
  }

  set stepMs(stepMs: number) {
    if (this.#clock !== undefined) this.#clock.stepMs = stepMs;
  }

  /** People hold the whole group: who has nothing to read is not left behind meanwhile. */
  set isPaused(isPaused: boolean) {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (this.#idleTimer !== undefined && this.#reader !== undefined) this.#armIdle(this.#reader);
  }

  /** A cut was made here: its boundaries need no telling any more. */
  settle(end: number): void {
    this.#clock?.settle(end);
  }

  /** Paused while the next record is too early, and only then. */
  #steer(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    // A record in doubt is judged by those behind it, so they are read.
    const isHeld = this.isHeldBack && this.#doubted === undefined;
    if (isHeld && !reader.isPaused) reader.pause();
    else if (!isHeld && reader.isPaused) reader.resume();
  }

  // ── handing out ───────────────────────────────────────────────────────────────────────────────

  /** The next records up to the limit. Call it only when ready. */
  take(recordsMax: number): Handed {
    const handed = this.#buffer!.take(this.#clock!, this.#beforeMs, recordsMax);
    this.#handed = handed;
    this.#free = deferred();
    this.#recordsHanded += handed.records.length;
    this.#advance();
    return handed;
  }

  /** It was worked off. False when the partition was lost meanwhile: then somebody else does it again. */
  finish(handed: Handed): boolean {
    if (this.#handed !== handed) return false;
    this.#handed = undefined;
    const isOurs = !this.owned.signal.aborted;
    if (isOurs) this.#clock!.finish();
    this.#free.resolve();
    if (isOurs) this.#told();
    return isOurs;
  }

  /** It was not worked off: it comes again, from its first record on. */
  giveBack(handed: Handed): void {
    if (this.#handed !== handed) return;
    this.#handed = undefined;
    this.#free.resolve();
    if (this.#life.signal.aborted) return;
    const { done, positionMs, lastTimeMs, reached } = this.#clock!;
    this.#clock = this.#newClock({
      offset: done,
      passes: reached,
      ...(positionMs !== null && { positionMs }),
      ...(lastTimeMs !== null && { lastMs: lastTimeMs }),
    });
    this.#dropBuffer();
    this.#isAtEnd = false;
    this.#refusal = undefined;
    this.#moves += 1;
    this.#reader?.seek(done); // one that is being opened is moved then
    this.#drained.resolve();
    this.#options.onChange(this);
  }

  /** What comes next is known to the clock, or all is used up. */
  #advance(): void {
    const buffer = this.#buffer;
    if (buffer === undefined) return;
    const clock = this.#clock!;
    buffer.skip(clock);
    while (!buffer.isUsedUp && this.#verdict(buffer) === 'odd') {
      clock.withdraw();
      this.#refuse(buffer);
      buffer.skip(clock);
    }
    if (buffer.isUsedUp) {
      this.#dropBuffer();
      this.#drained.resolve();
    } else if (this.#verdict(buffer) === 'unclear') {
      clock.withdraw();
      this.#doubt(buffer);
    } else {
      this.#doubted = undefined;
      buffer.expect(clock);
      if (this.#state === 'idle') this.#believed();
    }
    this.#steer();
  }

  /** Whether the next record's time fits where the group is, or else the records behind it. */
  #verdict(buffer: LaneBuffer): Verdict {
    const { maxAheadMs } = this.#options;
    const doneMs = this.#clock!.doneTimeMs ?? Number.NEGATIVE_INFINITY;
    const hereMs = Math.max(this.#beforeMs, doneMs);
    if (hereMs === Number.NEGATIVE_INFINITY) {
      // Nothing is known to compare it with, but what lies behind it.
      return buffer.verdict(buffer.nextMs - maxAheadMs) === 'odd' ? 'odd' : 'fits';
    }
    const verdict = buffer.verdict(hereMs + maxAheadMs);
    // What comes last has nothing behind it that could tell.
    const isLast = this.#isAtEnd || this.#refusal !== undefined;
    return verdict === 'unclear' && isLast ? 'fits' : verdict;
  }

  /** The records behind it are read until they tell. */
  #doubt(buffer: LaneBuffer): void {
    const { next } = buffer;
    const isNew = this.#doubted !== next.offset;
    this.#doubted = next.offset;
    this.#drained.resolve();
    if (isNew) this.#options.onAhead(this, next, buffer.nextMs);
  }

  /** Its time is wrong, as the records behind it show. */
  #refuse(buffer: LaneBuffer): void {
    const { quarantine, onQuarantined } = this.#options;
    const { next } = buffer;
    onQuarantined(this, next, 'ahead');
    if (quarantine === 'stop') {
      this.#refusal = new QuarantineError(this.owned, next, 'ahead');
      buffer.cutShort();
    } else buffer.setNextMs(standIn(quarantine, this.#clock!.doneTimeMs ?? leaveOut));
  }

  /** The record that was in doubt counts. From its end on the partition may become idle again. */
  #believed(): void {
    this.#move('reading');
    if (this.#asked !== undefined) this.#armIdle(this.#asked);
  }

  #dropBuffer(): void {
    this.#buffer = undefined;
    this.#doubted = undefined;
  }

  /** More is done, or known: boundaries may be reached, and the end. */
  #told(): void {
    this.#confirm();
    if (this.#isAtEnd && this.#buffer === undefined && this.#clock!.isDone) this.#end();
    this.#options.onChange(this);
  }

  #confirm(): void {
    const { onPartitionPeriod, onFailure } = this.#options;
    const clock = this.#clock!;
    for (const { start, end, offset } of clock.takeReached()) {
      if (onPartitionPeriod === undefined || start === null) {
        clock.confirm(end);
        continue;
      }
      this.#confirming = this.#confirming
        .then(async () => {
          if (this.#life.signal.aborted) return;
          await onPartitionPeriod(this, { start, end, offset });
          clock.confirm(end);
          this.#options.onChange(this);
        })
        .catch(onFailure);
    }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    const { signal } = this.#life;
    while (!signal.aborted) {
      try {
        if (this.#reader === undefined) await this.#open(signal);
        if (signal.aborted) return;
        await this.#readOn(this.#reader!);
        this.#backoff.reset();
      } catch (error) {
        if (signal.aborted) return;
        await this.#recover(error);
      }
    }
  }

  async #open(signal: AbortSignal): Promise<void> {
    const moves = this.#moves;
    const { clock, open } = this.#options;
    const opened = await open(this.owned, signal, this.#clock?.handed);
    const { from } = opened;
    // It is told what to do from a watch, where nobody could catch what it throws.
    const reader = new GuardedReader(opened.reader, { clock });
    if (signal.aborted) return reader.close();
    this.#reader = reader;
    this.#clock ??= this.#newClock(from ?? { offset: reader.position, passes: [] });
    if (this.#moves !== moves) reader.seek(this.#clock.handed);
    this.#move('reading');
  }

  #newClock(from: StartPoint): PartitionClock {
    const { allowanceMs, stepMs, onPartitionPeriod } = this.#options;
    return new PartitionClock({
      allowanceMs,
      stepMs,
      ...from,
      isConfirming: onPartitionPeriod !== undefined,
    });
  }

  /** One batch, and waits until it is used up; at the end, until it is moved back. */
  async #readOn(reader: PartitionReader): Promise<void> {
    const { clock } = this.#options;
    const moves = this.#moves;
    this.#armIdle(reader);
    this.#asked = reader;
    const { value, done } = await reader.next().finally(() => {
      this.#asked = undefined;
      this.#disarmIdle();
    });
    if (this.#life.signal.aborted) return;
    if (this.#refusal !== undefined) throw this.#refusal; // found meanwhile, in what was read before
    if (done) {
      if (this.#moves !== moves) return;
      if (reader.isClosed) throw new ReaderError('CLOSED', 'the source was closed before its end');
      this.#isAtEnd = true;
      this.#advance();
      this.#told();
      return this.#untilMoved(moves);
    }
    if (reader.position !== value.nextOffset) return; // moved while it was read
    this.#drained = deferred();
    const known = { nowMs: clock.wallMs(), latestMs: this.#clock!.doneTimeMs ?? leaveOut };
    const judged = judge(value, this.#options, known, (record, reason) =>
      this.#options.onQuarantined(this, record, reason),
    );
    if (this.#buffer === undefined) this.#buffer = new LaneBuffer(judged);
    else this.#buffer.append(judged); // the record before it is in doubt
    this.#refusal = judged.error;
    this.#isAtEnd = judged.isAtEnd;
    this.#advance(); // first: what is to be left out is not to be seen by anybody
    if (this.#state === 'idle' && this.#doubted === undefined) this.#move('reading');
    this.#told();
    await this.#drained.promise;
    if (this.#moves !== moves || this.#doubted !== undefined) return;
    if (this.#refusal !== undefined) throw this.#refusal;
    if (this.#isAtEnd) await this.#untilMoved(moves);
  }

  /** Nothing more comes, unless what is in hand is given back. */
  async #untilMoved(moves: number): Promise<void> {
    if (this.#moves !== moves || this.#life.signal.aborted) return; // moved by who was told
    this.#drained = deferred();
    await this.#drained.promise;
  }

  #armIdle(reader: PartitionReader): void {
    const { clock, idleAfterMs } = this.#options;
    this.#disarmIdle();
    this.#idleTimer = clock.after(
      idleAfterMs,
      () => {
        const { highWatermark, position } = reader;
        const isRead = highWatermark !== null && position >= highWatermark;
        const hasNext = this.#buffer !== undefined && this.#doubted === undefined;
        const isQuiet = isRead && this.#clock!.isDone && !hasNext;
        if (this.#state !== 'reading' || this.#life.signal.aborted) return;
        // Behind, or not known: it is being fetched. Work under way: its own time counts from its end.
        if (isQuiet && !this.#isPaused) this.#move('idle');
        else this.#armIdle(reader);
      },
      true,
    );
  }

  #disarmIdle(): void {
    this.#idleTimer?.cancel();
    this.#idleTimer = undefined;
  }

  #end(): void {
    if (this.#state === 'finished' || this.#life.signal.aborted) return;
    this.#move('finished');
  }

  async #recover(error: unknown): Promise<void> {
    const isForPeople = isReaderError(error, 'BAD_RECORD') || error instanceof QuarantineError;
    if (isForPeople) {
      const moves = this.#moves;
      await this.#untilUsedUp(error);
      await this.#free.promise;
      // What was in hand and was given back comes again before it.
      if (this.#life.signal.aborted || this.#moves !== moves) return;
      this.#move('stopped');
      this.#options.onTrouble(this, error);
      this.#life.abort(); // nothing more comes from it; what it has done stays told
      await this.#shut(this.#reader);
      return;
    }
    this.#options.onTrouble(this, error);
    const reader = this.#reader;
    this.#reader = undefined;
    this.#dropBuffer(); // read again: it is opened where nothing more was handed out
    await this.#shut(reader);
    await pause(this.#options.clock, this.#backoff.next(), this.#life.signal);
  }

  /** Records that were read before the one that stops the partition are handed out first. */
  async #untilUsedUp(refusal: unknown): Promise<void> {
    if (this.#buffer === undefined) return;
    this.#refusal = refusal;
    this.#drained = deferred();
    this.#advance();
    await this.#drained.promise;
  }

  #move(state: PartitionState): void {
    if (this.#state === 'closed') return;
    this.#state = state;
    this.#options.onChange(this);
  }

  /** Hands out nothing more. */
  async stop(): Promise<void> {
    this.#life.abort();
    this.#dropBuffer();
    this.#disarmIdle();
    this.#drained.resolve();
    const reader = this.#reader;
    this.#reader = undefined;
    await this.#shut(reader);
  }

  /** A reader that fails to close is a trouble of its own, and stops nothing else. */
  async #shut(reader: PartitionReader | undefined): Promise<void> {
    try {
      await reader?.close();
    } catch (error) {
      this.#options.onTrouble(this, error);
    }
  }

  /** Resolves once nothing of it is in anybody's hands, and no callback of it runs. */
  async idle(): Promise<void> {
    await this.#free.promise;
    await this.#confirming;
  }

  close(): void {
    this.#state = 'closed';
  }
}
