/**
 * For a call that has to be answered, however long that takes: what has to be known, or taken away, through
 * any outage that its session lives through, whatever deadline calls have otherwise.
 */
export const unbounded = { timeoutMs: Number.POSITIVE_INFINITY } as const;
