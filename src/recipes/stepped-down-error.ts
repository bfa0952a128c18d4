/** Why a leader was asked to stop although its session is well. */

export const steppedDownReasons = {
  resigned: 'it resigned',
  closed: 'its election was closed',
  appointed: 'an operator has appointed somebody else',
  ended: 'its loop went on to the next term',
} as const;

export type SteppedDownReason = keyof typeof steppedDownReasons;

/** The reason of `term.signal` when the term was ended on purpose. The node goes when the work has. */
export class SteppedDownError extends Error {
  override readonly name = 'SteppedDownError';
  readonly code = 'STEPPED_DOWN';
  readonly path: string;
  readonly reason: SteppedDownReason;

  constructor(path: string, reason: SteppedDownReason) {
    super(`${path} leads no more: ${steppedDownReasons[reason]}`);
    this.path = path;
    this.reason = reason;
  }
}
