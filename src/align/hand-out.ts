/**
 * Handing out: who asks for a batch, and which partition's it gets.
 *
 * In: loops that ask, lanes that are ready. Out: of those that have something the one whose next record
 * happened first, so that a single loop reads in the order of time as well as it can. Nothing is handed
 * out while the session is in doubt, nor after the end.
 */

import { type Clock, type Deferred, deferred, type Timer, whileHeld } from '../support/index.ts';
import type { AlignedBatch } from './aligned.ts';
import type { Lane } from './lane.ts';
import type { Handed } from './lane-options.ts';
import { ReadyLanes } from './ready-lanes.ts';
import type { AlignClient } from './session.ts';

interface Waiter {
  readonly result: Deferred<IteratorResult<AlignedBatch, undefined>>;
  readonly take: (lane: Lane, handed: Handed) => void;
}

export interface HandOutOptions {
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly clock: Clock;
  readonly batchRecordsMax: number;
  /** Which share of the session timeout may pass unanswered. */
  readonly doubtShare: number;
}

const over: IteratorResult<AlignedBatch, undefined> = { done: true, value: undefined };

export class HandOut {
  readonly #client: AlignClient;
  readonly #options: HandOutOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #ready = new ReadyLanes();
  readonly #startedMs: number;
  #records = 0;
  #doubtTimer: Timer | undefined;
  #waitingMs = 0;
  #waitingSinceMs: number | undefined;
  #end: { readonly error?: unknown } | undefined;

  constructor(client: AlignClient, options: HandOutOptions) {
    this.#client = client;
    this.#options = options;
    this.#startedMs = options.clock.nowMs();
  }

  get records(): number {
    return this.#records;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  loop(): AsyncIterableIterator<AlignedBatch> {
    const out = new Map<Handed, Lane>();
    let pending: Waiter | undefined;
    let last: readonly [Lane, Handed] | undefined;
    const giveBack = (lane: Lane, handed: Handed) => {
      out.delete(handed);
      lane.giveBack(handed);
    };
    const loop: AsyncIterableIterator<AlignedBatch> = {
      [Symbol.asyncIterator]: () => loop,
      next: () => {
        for (const [handed, lane] of out) if (!lane.hasInHand(handed)) out.delete(handed);
        if (this.#end !== undefined) {
          const { error } = this.#end;
          return error === undefined ? Promise.resolve(over) : Promise.reject(error);
        }
        const waiter: Waiter = {
          result: deferred(),
          take: (lane, handed) => {
            out.set(handed, lane);
            last = [lane, handed];
          },
        };
        pending = waiter;
        this.#waiters.add(waiter);
        this.match();
        return waiter.result.promise.then((result) => {
          // Time may have passed since it was handed out, if the process was stopped or busy meanwhile.
          if (result.done || !result.value.signal.aborted) return result;
          if (last !== undefined) giveBack(...last);
          return loop.next();
        });
      },
      // The loop was left by break or an error: what is not done comes again.
      return: async () => {
        if (pending !== undefined && this.#waiters.delete(pending)) pending.result.resolve(over);
        for (const [handed, lane] of out) giveBack(lane, handed);
        return over;
      },
    };
    return loop;
  }

  /** Something about a lane is different. */
  changed(lane: Lane): void {
    this.#ready.look(lane);
    this.match();
  }

  /** Something about all of them is: the limit. */
  allChanged(): void {
    for (const lane of this.#options.lanes.values()) this.#ready.look(lane);
    this.match();
  }

  /** Somebody asks, or may be answered again. */
  match(): void {
    this.#countWaiting();
    if (this.#waiters.size === 0) return;
    if (this.isInDoubt) {
      this.#lookAgain();
      return;
    }
    for (const waiter of this.#waiters) {
      const lane = this.#ready.first;
      if (lane === undefined) break;
      this.#waiters.delete(waiter);
      waiter.result.resolve({ done: false, value: this.#hand(lane, waiter) });
    }
    this.#countWaiting();
  }

  #hand(lane: Lane, waiter: Waiter): AlignedBatch {
    const { topic, partition, epoch, signal } = lane.owned;
    const handed = lane.take(this.#options.batchRecordsMax);
    this.#ready.look(lane);
    this.#records += handed.records.length;
    waiter.take(lane, handed);
    return {
      topic,
      partition,
      ...handed,
      epoch,
      signal,
      [Symbol.iterator]: () => whileHeld(handed.records, signal),
      done: async () => lane.finish(handed),
    };
  }

  /** Whether so much of the session timeout has passed unanswered that it may soon be over. */
  get isInDoubt(): boolean {
    const { state } = this.#client;
    if (state.name !== 'connected' && state.name !== 'suspended') return true;
    const leftMs = state.deadlineMs - this.#options.clock.nowMs();
    return leftMs < state.identity.timeoutMs * (1 - this.#options.doubtShare);
  }

  /** A ping that is answered is no event: look at the clock again, until it is, or the session ends. */
  #lookAgain(): void {
    const { state } = this.#client;
    if (this.#doubtTimer !== undefined || state.name !== 'connected') return;
    this.#doubtTimer = this.#options.clock.after(state.identity.timeoutMs / 20, () => {
      this.#doubtTimer = undefined;
      this.match();
    });
  }

  #countWaiting(): void {
    const nowMs = this.#options.clock.nowMs();
    if (this.#isWaiting()) this.#waitingSinceMs ??= nowMs;
    else if (this.#waitingSinceMs !== undefined) {
      this.#waitingMs += nowMs - this.#waitingSinceMs;
      this.#waitingSinceMs = undefined;
    }
  }

  /** Somebody asks, and all that there is comes too early. */
  #isWaiting(): boolean {
    return this.#waiters.size > 0 && this.#ready.isHeldBack;
  }

  /** Which share of its time somebody asked, and all that there was came too early. */
  get waitingShare(): number {
    const nowMs = this.#options.clock.nowMs();
    const openMs = this.#waitingSinceMs === undefined ? 0 : nowMs - this.#waitingSinceMs;
    return (this.#waitingMs + openMs) / Math.max(1, nowMs - this.#startedMs);
  }

  finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#doubtTimer?.cancel();
    for (const { result } of this.#waiters) {
      if (end.error === undefined) result.resolve(over);
      else result.reject(end.error);
    }
    this.#waiters.clear();
  }
}
