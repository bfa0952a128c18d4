/**
 * One ring of points: a minute, a quarter of an hour or six hours of what was read.
 *
 * In: readings, as often as somebody looks. Out: a point when one is due, and a table by op over all that
 * the ring holds. A point speaks for the whole stretch since the one before: counters become rates over
 * it, peaks the highest in it, ops percentiles of it. What was counted is kept with each point, so that
 * the ring costs a few hundred kilobytes at most.
 */

import { between, type OpTimesSeen, quantileMs, type Stretch } from './op-times.ts';
import type { MetricPoint, MetricsView } from './views.ts';

/** How servers are put together: the sum or the largest of them; `rate` is a sum that grows. */
export type How = 'sum' | 'max' | 'rate';

export interface Reading {
  readonly name: string;
  readonly how: How;
  readonly isPeak: boolean;
  readonly value: number;
  /** Who told it: a sum of others is another counter. */
  readonly from: string;
}

interface Counter {
  readonly value: number;
  readonly from: string;
  readonly atMs: number;
}

export class MetricRing {
  points: MetricPoint[] = [];
  readonly #everyMs: number;
  readonly #keptMs: number;
  readonly #counters = new Map<string, Counter>();
  readonly #peaks = new Map<string, number>();
  /** When each point was taken. Not by the wall's clock, which somebody may set. */
  #takenMs: number[] = [];
  /** What was counted at each point, for the table over the whole ring. */
  #ops: { readonly atMs: number; readonly seen: OpTimesSeen }[] = [];

  constructor({ everyMs, keptMs }: { everyMs: number; keptMs: number }) {
    this.#everyMs = everyMs;
    this.#keptMs = keptMs;
  }

  /** Undefined: its next point is not due yet. */
  take(
    atMs: number,
    nowMs: number,
    readings: readonly Reading[],
    ops: OpTimesSeen | undefined,
  ): MetricPoint | undefined {
    for (const { name, isPeak, value } of readings) {
      if (isPeak) this.#peaks.set(name, Math.max(value, this.#peaks.get(name) ?? value));
    }
    const lastMs = this.#takenMs.at(-1);
    // A little early is on time: timers are never exact.
    if (lastMs !== undefined && nowMs - lastMs < this.#everyMs * 0.8) return undefined;
    const values: Record<string, number> = {};
    for (const { name, how, isPeak, value, from } of readings) {
      if (how !== 'rate') {
        values[name] = isPeak ? this.#peaks.get(name)! : value;
        continue;
      }
      const before = this.#counters.get(name);
      this.#counters.set(name, { value, from, atMs: nowMs });
      if (before === undefined || before.from !== from) continue;
      if (value < before.value || nowMs <= before.atMs) continue;
      values[name] = ((value - before.value) * 1_000) / (nowMs - before.atMs);
    }
    this.#peaks.clear();
    if (ops !== undefined) this.#putOps(values, nowMs, ops);
    const point = { atMs, values };
    this.points.push(point);
    this.#takenMs.push(nowMs);
    while (nowMs - this.#takenMs[0]! > this.#keptMs) {
      this.#takenMs.shift();
      this.points.shift();
    }
    return point;
  }

  /** Op by op over all that the ring holds. */
  table(ops: OpTimesSeen, nowMs: number): NonNullable<MetricsView['ops']> {
    const from = this.#ops[0];
    const overMs = from === undefined ? null : Math.max(1, nowMs - from.atMs);
    return between(from?.seen, ops).map((stretch) => {
      const quantile = (part: number) => quantileMs(part, stretch, ops.boundsMs);
      return {
        op: stretch.op,
        count: stretch.count,
        ratePerS: overMs === null ? null : (stretch.count * 1_000) / overMs,
        p50Ms: quantile(0.5),
        p90Ms: quantile(0.9),
        p99Ms: quantile(0.99),
        p999Ms: quantile(0.999),
        maxMs: stretch.maxMs,
      };
    });
  }

  #putOps(values: Record<string, number>, nowMs: number, ops: OpTimesSeen): void {
    const before = this.#ops.at(-1);
    if (before !== undefined) {
      const overMs = Math.max(1, nowMs - before.atMs);
      for (const stretch of between(before.seen, ops)) putOp(values, stretch, ops, overMs);
    }
    this.#ops.push({ atMs: nowMs, seen: ops });
    while (nowMs - this.#ops[0]!.atMs > this.#keptMs) this.#ops.shift();
  }
}

function putOp(
  values: Record<string, number>,
  stretch: Stretch,
  { boundsMs }: OpTimesSeen,
  overMs: number,
): void {
  values[`op.${stretch.op}.p50`] = quantileMs(0.5, stretch, boundsMs);
  values[`op.${stretch.op}.p99`] = quantileMs(0.99, stretch, boundsMs);
  values[`op.${stretch.op}.rate`] = (stretch.count * 1_000) / overMs;
}
