/**
 * How long each op took within a stretch of time, out of counters that only grow.
 *
 * In: what a server has counted so far, op by op, in buckets. Out: count and percentiles of what came
 * between two looks. Percentiles are as good as the buckets: a line is drawn within each.
 * A counter that went back (a restart, `srst`) begins anew: what is counted since then is the stretch.
 */

export interface OpTimes {
  readonly op: string;
  /** Since the server started. */
  readonly maxMs: number;
  /** How many took no longer than each bound, and in the last all others. */
  readonly buckets: readonly number[];
}

export interface OpTimesSeen {
  /** Upper bounds of all buckets but the last. */
  readonly boundsMs: readonly number[];
  readonly ops: readonly OpTimes[];
}

export interface Stretch {
  readonly op: string;
  readonly count: number;
  readonly maxMs: number;
  readonly buckets: readonly number[];
}

/** What came since `before`, for each op that came at all. */
export function between(before: OpTimesSeen | undefined, now: OpTimesSeen): Stretch[] {
  const old = new Map(before?.ops.map((times) => [times.op, times]));
  return now.ops.flatMap(({ op, maxMs, buckets }) => {
    const since = old.get(op)?.buckets;
    const isAnew = since?.some((count, at) => (buckets[at] ?? 0) < count) ?? false;
    const came = buckets.map((count, at) => (isAnew ? count : count - (since?.[at] ?? 0)));
    const count = came.reduce((sum, one) => sum + one, 0);
    return count > 0 ? [{ op, maxMs, count, buckets: came }] : [];
  });
}

/** The time that this part of all stayed below. */
export function quantileMs(
  part: number,
  { count, maxMs, buckets }: Stretch,
  boundsMs: readonly number[],
): number {
  let left = part * count;
  for (const [at, inBucket] of buckets.entries()) {
    if (inBucket === 0 || inBucket < left) {
      left -= inBucket;
      continue;
    }
    const fromMs = Math.min(at === 0 ? 0 : boundsMs[at - 1]!, maxMs);
    const toMs = Math.min(boundsMs[at] ?? maxMs, maxMs);
    return fromMs + Math.max(0, toMs - fromMs) * (left / inBucket);
  }
  return maxMs;
}
