/** The one error for all that was held, or waited for, and is not ours (any more). */

export const reasons = {
  released: 'it was released',
  sessionOver: 'the session is over, or may be, and somebody else may hold it',
  nodeDeleted: 'somebody deleted its node',
  readOnly: 'the server has lost its quorum, so that nobody can say whether the session lives',
  unwatched: 'its node can no longer be watched',
} as const;

export type NotHeldReason = keyof typeof reasons;

/** It is not ours: stop what depends on it, and acquire it anew. */
export class NotHeldError extends Error {
  override readonly name = 'NotHeldError';
  readonly code = 'NOT_HELD';
  /** The node by which it was, or would have been, held. */
  readonly path: string;
  readonly reason: NotHeldReason;

  constructor(path: string, reason: NotHeldReason, options?: ErrorOptions) {
    super(`${path} is not held: ${reasons[reason]}`, options);
    this.path = path;
    this.reason = reason;
  }
}
