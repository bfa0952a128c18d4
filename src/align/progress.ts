/**
 * When a member has something to tell: its partitions are others than before, one of them changed its
 * state or is known for the first time, or the slowest of them has passed a boundary. Nothing else moves
 * the limit, so nothing else is written: while nothing of this happens, nothing is sent.
 */

import type { PartitionReport } from './group-clock.ts';
import type { Lane } from './lane.ts';
import { boundaryAt } from './rule.ts';

export class Progress {
  #told = new Map<string, string>();
  #toldMs = Number.NEGATIVE_INFINITY;

  /** True when it is worth a write; what `reports` says then is taken as told. */
  isNews(lanes: ReadonlyMap<string, Lane>, stepMs: number): boolean {
    let slowestMs = Number.POSITIVE_INFINITY;
    let isNews = lanes.size < this.#told.size;
    for (const [key, lane] of lanes) {
      const { state, positionMs } = lane;
      if (state === 'opening' || state === 'closed') continue;
      const tag = `${lane.owned.epoch} ${state} ${positionMs === null}`;
      if (this.#told.get(key) !== tag) isNews = true;
      if (state === 'idle' || state === 'finished') continue;
      slowestMs = Math.min(slowestMs, positionMs ?? Number.NEGATIVE_INFINITY);
    }
    if (!isNews && slowestMs === Number.POSITIVE_INFINITY) return false;
    return isNews || boundaryAt(stepMs, slowestMs) > this.#toldMs;
  }

  /** What to tell now. */
  take(lanes: ReadonlyMap<string, Lane>, stepMs: number): Map<string, PartitionReport> {
    const reports = new Map<string, PartitionReport>();
    this.#told = new Map();
    let slowestMs = Number.POSITIVE_INFINITY;
    for (const [key, lane] of lanes) {
      const report = lane.report();
      if (report === null) continue;
      reports.set(key, report);
      this.#told.set(key, `${report.epoch} ${report.state} ${lane.positionMs === null}`);
      if (report.state === 'idle' || report.state === 'finished') continue;
      slowestMs = Math.min(slowestMs, report.positionMs ?? Number.NEGATIVE_INFINITY);
    }
    this.#toldMs = boundaryAt(stepMs, slowestMs);
    return reports;
  }
}
