/**
 * For what a recipe has to know, or to take away, through any outage that its session lives through,
 * whatever deadline the client gives its calls (`requestTimeoutMs`).
 */
export const unbounded = { timeoutMs: Number.POSITIVE_INFINITY } as const;
