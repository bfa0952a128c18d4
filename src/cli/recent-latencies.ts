/**
 * Quantiles of what came of late, out of buckets that only grow. Apache's summaries tell of the last ten
 * minutes, in steps of two, and so do these: a night of slow reads is no alarm a month later, nor do weeks
 * of fast ones hide it.
 *
 * In: all metrics, once a step. Out: a quantile of what came since the oldest step that is kept.
 */

import type { Metric } from '../server/index.ts';

type Summary = Extract<Metric, { type: 'summary' }>;
/** How many stayed below each bound, the last without bound. */
type Buckets = NonNullable<Summary['buckets']>;

export const stepMs = 120_000;
const steps = 5;

export class RecentLatencies {
  readonly #marks: ReadonlyMap<string, Buckets>[] = [];

  /** A step is over. */
  mark(metrics: readonly Metric[]): void {
    const buckets = metrics.flatMap((metric) =>
      metric.type === 'summary' && metric.buckets !== undefined
        ? [[metric.name, metric.buckets] as const]
        : [],
    );
    this.#marks.push(new Map(buckets));
    if (this.#marks.length > steps) this.#marks.shift();
  }

  /** NaN where nothing came, as there. */
  quantile({ name, max }: Summary, buckets: Buckets, part: number): number {
    const oldest = this.#marks.length === steps ? this.#marks[0]!.get(name) : undefined;
    // One that went back began anew: with `srst`, or a restore.
    const isAnew = oldest?.some(([, count], at) => count > buckets[at]![1]) ?? false;
    const since = isAnew ? undefined : oldest;
    const below = buckets.map(([, count], at) => count - (since?.[at]?.[1] ?? 0));
    const all = below.at(-1) ?? 0;
    if (all === 0) return NaN;
    const wanted = part * all;
    const at = below.findIndex((count) => count >= wanted && count > 0);
    const before = below[at - 1] ?? 0;
    const from = Math.min(buckets[at - 1]?.[0] ?? 0, max);
    const to = Math.min(buckets[at]![0], max);
    return from + (to - from) * ((wanted - before) / (below[at]! - before));
  }
}
