/**
 * When a member has something to tell: its partitions are others than before, one of them changed its
 * state or is known for the first time, or the slowest of them has passed a boundary or the limit.
 * Nothing else moves the limit, so nothing else is written: while nothing of this happens, nothing is sent.
 *
 * In: a lane, each time something about it is different. Out: whether that is news. What it costs does not
 * grow with the number of lanes, since each of them changes with every batch.
 */

import type { PartitionReport } from './group-clock.ts';
import type { Lane } from './lane.ts';
import { boundaryAfter } from './rule.ts';

export class Progress {
  readonly #lanes: ReadonlyMap<string, Lane>;
  #told = new Map<string, string>();
  /** Where the slowest was when it was last told; and where it has to be to be told of again. */
  #toldMs = Number.NEGATIVE_INFINITY;
  #nextMs = Number.NEGATIVE_INFINITY;
  /** Lanes that are not there yet. */
  readonly #behind = new Set<string>();

  constructor(lanes: ReadonlyMap<string, Lane>) {
    this.#lanes = lanes;
  }

  /** Something about the lane is different. True when that is worth a write. */
  isNews(key: string, lane: Lane): boolean {
    if (this.#lanes.size < this.#told.size) return true;
    if (isUnknown(lane)) return false;
    if (this.#told.get(key) !== tagOf(lane)) return true;
    return this.#behind.has(key) && !this.#isBehind(lane) && this.#caughtUp(key);
  }

  #caughtUp(key: string): boolean {
    this.#behind.delete(key);
    return this.#behind.size === 0;
  }

  /** There is another rule, or another limit. True when the slowest is past it already. */
  measure(stepMs: number, limitMs: number): boolean {
    const boundaryMs = boundaryAfter(stepMs, this.#toldMs);
    this.#nextMs = this.#toldMs < limitMs ? Math.min(boundaryMs, limitMs) : boundaryMs;
    this.#behind.clear();
    let isHeld = false;
    for (const [key, lane] of this.#lanes) {
      if (isUnknown(lane) || isFree(lane)) continue;
      isHeld = true;
      if (this.#isBehind(lane)) this.#behind.add(key);
    }
    return isHeld && this.#behind.size === 0;
  }

  #isBehind(lane: Lane): boolean {
    const { positionMs } = lane;
    return !isFree(lane) && (positionMs === null || positionMs < this.#nextMs);
  }

  /** What to tell now; it is taken as told. */
  take(stepMs: number, limitMs: number): Map<string, PartitionReport> {
    const reports = new Map<string, PartitionReport>();
    this.#told = new Map();
    this.#toldMs = Number.POSITIVE_INFINITY;
    for (const [key, lane] of this.#lanes) {
      const report = lane.report();
      if (report === null) continue;
      reports.set(key, report);
      this.#told.set(key, tagOf(lane));
      if (isFree(lane)) continue;
      this.#toldMs = Math.min(this.#toldMs, report.positionMs ?? Number.NEGATIVE_INFINITY);
    }
    this.measure(stepMs, limitMs);
    return reports;
  }
}

const isUnknown = ({ state }: Lane) => state === 'opening' || state === 'closed';
/** It holds nobody back. */
const isFree = ({ state }: Lane) => state === 'idle' || state === 'finished';
const tagOf = ({ owned, state, positionMs, aheadMs }: Lane) =>
  `${owned.epoch} ${state} ${positionMs === null} ${aheadMs}`;
