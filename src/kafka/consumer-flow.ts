/**
 * One owned partition being read: from its first offset to the moment it is let go of.
 *
 *   opening ──▶ reading ──▶ stopped          by release, loss or close
 *                  └──▶ failed               a record that cannot be read: told to the loop
 *
 * In: an owned partition, a source. Out: batches, one at a time: the next is handed out only when the
 * one before is done, so a partition is never worked on twice at once. One batch waits ready meanwhile,
 * and that is all that is held. A batch that was handed out and given back unfinished comes again.
 *
 * A source that fails is tried again, with growing waits, for as long as the partition is ours.
 */

import { Backoff, type Clock, deferred, pause } from '../support/index.ts';
import { GuardedReader } from './guarded-reader.ts';
import type { OwnedPartition } from './owned-partition.ts';
import {
  isReaderError,
  type PartitionReader,
  type RecordBatch,
  type RecordSource,
} from './reader.ts';

export interface FlowOptions {
  readonly source: RecordSource;
  /** Where to begin; null: nothing was ever committed. */
  readonly start: (owned: OwnedPartition) => Promise<bigint | null>;
  readonly startFrom: 'earliest' | 'latest' | 'none';
  readonly isPaused: boolean;
  readonly clock: Clock;
  /** A batch is ready, or an error. */
  readonly onReady: (flow: PartitionFlow) => void;
  /** Tried again; this says why. */
  readonly onTrouble: (flow: PartitionFlow, error: unknown) => void;
}

export class PartitionFlow {
  readonly owned: OwnedPartition;
  readonly #options: FlowOptions;
  readonly #life = new AbortController();
  readonly #backoff = new Backoff({ firstMs: 100, maxMs: 10_000 });
  #reader: PartitionReader | undefined;
  #isPaused: boolean;
  #ready: RecordBatch | undefined;
  #error: unknown;
  #taken = deferred();
  #handed: RecordBatch | undefined;
  #idle = deferred();
  /** Asked for by `seek`, or where a reader that failed stood; kept until there is a reader there. */
  #seekTo: bigint | undefined;
  #seeks = 0;
  #done: bigint | null = null;

  constructor(owned: OwnedPartition, options: FlowOptions) {
    this.owned = owned;
    this.#options = options;
    this.#isPaused = options.isPaused;
    this.#idle.resolve();
    void this.#run();
  }

  /** There is something to hand out, and nothing of this partition is in anybody's hands. */
  get isReady(): boolean {
    const hasSome = this.#ready !== undefined || this.#error !== undefined;
    return hasSome && this.#handed === undefined && !this.#life.signal.aborted && !this.#isPaused;
  }

  /** Where to go on after all that is done; null before anything was. */
  get done(): bigint | null {
    return this.#done;
  }

  get position(): bigint | null {
    return this.#reader?.position ?? null;
  }

  get highWatermark(): bigint | null {
    return this.#reader?.highWatermark ?? null;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Resolves once nothing of it is in anybody's hands. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  /** Throws the error that stands where the next batch should. */
  take(): RecordBatch {
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      this.#taken.resolve();
      throw error;
    }
    const batch = this.#ready!;
    this.#ready = undefined;
    this.#handed = batch;
    this.#idle = deferred();
    this.#taken.resolve();
    return batch;
  }

  /** It was worked off: what comes after may be handed out, and its end committed. */
  finish(batch: RecordBatch): void {
    if (this.#handed !== batch) return;
    this.#done = batch.nextOffset;
    this.#letGo();
  }

  /** It was not worked off: it comes again. */
  giveBack(batch: RecordBatch): void {
    if (this.#handed !== batch) return;
    const first = batch.records[0]!.offset;
    this.#letGo();
    this.seek(first);
  }

  #letGo(): void {
    this.#handed = undefined;
    this.#idle.resolve();
    if (this.isReady) this.#options.onReady(this);
  }

  pause(): void {
    this.#isPaused = true;
    this.#reader?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#reader?.resume();
    if (this.isReady) this.#options.onReady(this);
  }

  /** The next batch begins here. What is in somebody's hands is not recalled. */
  seek(offset: bigint): void {
    this.#seeks += 1;
    this.#ready = undefined;
    this.#error = undefined;
    if (this.#reader === undefined) this.#seekTo = offset;
    else this.#reader.seek(offset);
    this.#taken.resolve();
  }

  /** Hands out nothing more. What is in somebody's hands may still be finished. */
  async stop(): Promise<void> {
    this.#life.abort();
    this.#ready = undefined;
    this.#taken.resolve();
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

  async #run(): Promise<void> {
    const { signal } = this.#life;
    while (!signal.aborted) {
      try {
        if (this.#reader === undefined) await this.#open();
        if (signal.aborted) {
          await this.stop();
          return;
        }
        await this.#readOn(this.#reader!);
        this.#backoff.reset();
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  /** One batch, and waits until it is taken; at the end of the partition, until it is moved. */
  async #readOn(reader: PartitionReader): Promise<void> {
    const seeks = this.#seeks;
    const { value, done } = await reader.next();
    if (this.#life.signal.aborted) return;
    // Moved while it was read: what came, or its end, belongs to where we were.
    if (done ? this.#seeks !== seeks : reader.position !== value.nextOffset) return;
    this.#ready = value;
    await this.#untilTaken();
  }

  async #untilTaken(): Promise<void> {
    this.#taken = deferred();
    if (this.isReady) this.#options.onReady(this);
    await this.#taken.promise;
  }

  async #open(): Promise<void> {
    const { source, start, startFrom, clock } = this.#options;
    const { signal } = this.#life;
    const known = this.#seekTo ?? this.#done ?? (await start(this.owned));
    const seeks = this.#seeks;
    const at = this.#seekTo ?? known; // a seek may have come meanwhile
    if (at === null && startFrom === 'none') {
      throw new NoOffset(this.owned);
    }
    const opened = await this.#openAt(at ?? (startFrom as 'earliest' | 'latest'), signal, source);
    // Its owner may pause, resume or seek at any time: what that throws belongs to the partition alone.
    const reader = new GuardedReader(opened, { clock });
    this.#reader = reader;
    if (this.#isPaused) reader.pause();
    if (this.#seeks !== seeks) reader.seek(this.#seekTo!);
    this.#seekTo = undefined;
  }

  async #openAt(
    from: bigint | 'earliest' | 'latest',
    signal: AbortSignal,
    source: RecordSource,
  ): Promise<PartitionReader> {
    try {
      return await source.open(this.owned, from, { signal });
    } catch (error) {
      const { startFrom, onTrouble } = this.#options;
      if (!isReaderError(error, 'OFFSET_OUT_OF_RANGE') || startFrom === 'none') throw error;
      onTrouble(this, error); // what was committed is gone, or was never there: told, and begun anew
      return source.open(this.owned, startFrom, { signal });
    }
  }

  async #recover(error: unknown): Promise<void> {
    const { signal } = this.#life;
    if (signal.aborted) return;
    const reader = this.#reader;
    const isForLoop =
      isReaderError(error, 'BAD_RECORD') ||
      error instanceof NoOffset ||
      (isReaderError(error, 'OFFSET_OUT_OF_RANGE') && this.#options.startFrom === 'none');
    if (isForLoop) {
      this.#error = error;
      await this.#untilTaken();
      return;
    }
    this.#options.onTrouble(this, error);
    this.#reader = undefined;
    if (reader !== undefined) {
      // What was read ahead is not lost: it goes on where the reader stood, or where it ran out of range.
      if (!isReaderError(error, 'OFFSET_OUT_OF_RANGE')) this.#seekTo = reader.position;
      await this.#shut(reader);
    }
    await pause(this.#options.clock, this.#backoff.next(), signal);
  }
}

/** Nothing was committed, and the consumer was told not to begin by itself. */
export class NoOffset extends Error {
  override readonly name = 'NoOffsetError';
  readonly code = 'NO_OFFSET';

  constructor({ topic, partition }: OwnedPartition) {
    super(
      `NO_OFFSET: nothing was committed for ${topic}/${partition}, and startFrom is none; seek, reset the offset, or set startFrom`,
    );
  }
}
