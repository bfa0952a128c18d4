/**
 * The way of a write behind its checks: log, then tree, then watches, then reply. The order is the
 * guarantee: nobody hears of a write that the log does not hold, and nobody reads a change before
 * they were told of it.
 *
 * While one batch is in the log's hands the next collects, so that many writes share one sync. A
 * batch starts once the event loop has read what all links had to say, those included that were just answered
 * (gathering.ts), and under a load as soon as it is worth a sync: while the rest is read, or before it is told
 * what came of the batch before it. The disk is at work meanwhile.
 */

import { clearImmediate, setImmediate } from 'node:timers';
import type { Clock } from '../support/index.ts';
import type { Call } from './call.ts';
import type { ServerStats } from './stats.ts';
import type { TxnLog } from './txn-log.ts';

export interface PipelineEnds {
  /** More is about to be asked: a few writes wait a turn of the event loop for it. */
  isGathering(nowMs: number): boolean;
  /** A batch is durable; its calls follow. */
  batchBegun(nowMs: number): void;
  /** The call is durable: apply it, tell of it, answer it. Called in the order of submission. */
  committed(call: Call): void;
  /** All calls of a batch were committed. */
  batchDone(): void;
  /** The log took long for a batch. */
  slow(tookMs: number, txns: number): void;
  /** Nothing more will be committed. */
  failed(error: Error): void;
}

/** How often it is looked at how much is asked. */
const rateWindowMs = 5;
/** So many may come while a sync is waited for. */
const heldUpMax = 10;
/** How fast it is learned how long a sync takes, with each that was waited for: one slow one says little. */
const learns = 1 / 8;
/** No sync is faster than this, whatever was learned: where more come in that time, none is waited for. */
const syncMsMin = 0.1;
/** How fast it is forgotten that syncs took long, with each that was not waited for. */
const forgets = 0.99;
/** More at a time is a load, where reading and writing side by side gains more. */
const quietTxnsMax = 4;
/** So many go to the log before their turn; fewer wait until more have come, and share a sync with them. */
const aheadTxnsMin = 32;

export class Pipeline {
  readonly #log: TxnLog;
  readonly #ends: PipelineEnds;
  readonly #clock: Clock;
  readonly #stats: ServerStats;
  #next: Call[] = [];
  #busy = false;
  /** A batch that begins once all links were read. */
  #start: NodeJS.Immediate | undefined;
  #hasFailed = false;
  #idle: (() => void)[] = [];
  /** Requests of late, and since when they are counted. Nothing is known at first. */
  #packetsPerMs = Infinity;
  /** How long syncs took that were waited for. To hand one to another thread takes longer. */
  #syncMs = 0;
  #rateFromMs: number;
  #rateFromPackets = 0;

  constructor(log: TxnLog, clock: Clock, stats: ServerStats, ends: PipelineEnds) {
    this.#log = log;
    this.#clock = clock;
    this.#stats = stats;
    this.#ends = ends;
    this.#rateFromMs = clock.nowMs();
  }

  /** Calls that wait for the log to take them. */
  get queued(): number {
    return this.#next.length;
  }

  submit(call: Call): void {
    if (this.#hasFailed) return;
    this.#next.push(call);
    if (!this.#busy) {
      this.#busy = true;
      this.#start = setImmediate(() => this.#run());
    } else if (this.#start !== undefined && this.#next.length >= aheadTxnsMin) {
      clearImmediate(this.#start);
      this.#run();
    }
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (!this.#busy || this.#hasFailed) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #run(): void {
    this.#start = undefined;
    const startMs = this.#clock.nowMs();
    if (this.#next.length < aheadTxnsMin && this.#ends.isGathering(startMs)) {
      this.#start = setImmediate(() => this.#run());
      return;
    }
    this.#append(startMs, this.#isQuiet(this.#next.length, startMs));
  }

  #append(startMs: number, isQuiet: boolean): void {
    const batch = this.#next;
    this.#next = [];
    this.#log.append(batch, isQuiet).then(
      () => this.#commit(batch, startMs, isQuiet),
      (error) => this.#fail(error),
    );
  }

  /** Whether so little is asked that a sync could be waited for. */
  #isQuiet(txns: number, nowMs: number): boolean {
    const elapsedMs = nowMs - this.#rateFromMs;
    if (elapsedMs >= rateWindowMs) {
      const { packetsReceived, connectionsAccepted } = this.#stats;
      const asked = packetsReceived + connectionsAccepted; // a new link waits for its turn as a request does
      this.#packetsPerMs = (asked - this.#rateFromPackets) / elapsedMs;
      this.#rateFromMs = nowMs;
      this.#rateFromPackets = asked;
    }
    return (
      txns <= quietTxnsMax && this.#packetsPerMs * Math.max(this.#syncMs, syncMsMin) <= heldUpMax
    );
  }

  #commit(batch: readonly Call[], startMs: number, isQuiet: boolean): void {
    if (this.#hasFailed) return;
    const nowMs = this.#clock.nowMs();
    const tookMs = nowMs - startMs;
    if (isQuiet) this.#syncMs += (tookMs - this.#syncMs) * learns;
    else this.#syncMs *= forgets;
    const isSlow = this.#stats.appended(tookMs, batch.length);
    const isAhead = this.#next.length >= aheadTxnsMin;
    if (isAhead) this.#append(nowMs, false);
    try {
      this.#ends.batchBegun(nowMs);
      if (isSlow) this.#ends.slow(tookMs, batch.length);
      for (const call of batch) this.#ends.committed(call);
      this.#ends.batchDone();
    } catch (error) {
      this.#fail(error); // a txn that the log holds and the tree can't take: we are wrong
      return;
    }
    if (isAhead) return;
    if (this.#next.length > 0) {
      this.#run();
      return;
    }
    this.#busy = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#next = [];
    for (const resolve of this.#idle.splice(0)) resolve();
    this.#ends.failed(error instanceof Error ? error : new Error(String(error)));
  }
}
