/**
 * How long to wait between two tries while a session may still be saved.
 *
 * A session that has lost its link lives until its deadline. A wait that does not look at the deadline
 * may end after it, although a server was back in time. So the waits stay short against the timeout,
 * and against what is left of it: the tries come closer together as the deadline draws near.
 */

/** What a client knows of a session that has no link. */
export interface SavingTime {
  /** Until the session must be taken for ended. */
  readonly leftMs: number;
  readonly timeoutMs: number;
}

const waitMaxMs = 1_000;
/** Of the session timeout. */
const waitShareMax = 0.1;
/** Of what is left: whatever the wait was, there is time for another try. */
const leftShareMax = 0.5;
/** A shorter wait would be no wait. The last try begins in about this time before the deadline. */
const waitMinMs = 10;

/** The longest wait that still leaves time for another try. */
export function savingWaitMs({ leftMs, timeoutMs }: SavingTime): number {
  const longestMs = Math.min(waitMaxMs, timeoutMs * waitShareMax, leftMs * leftShareMax);
  return Math.max(waitMinMs, longestMs);
}
