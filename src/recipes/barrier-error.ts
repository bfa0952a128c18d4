/** What barriers and gatherings say no with. */

import { printable } from '../protocol/index.ts';

export const barrierErrors = {
  TIMEOUT: 'the time is over, and it did not come to pass',
  DUPLICATE_NAME:
    'somebody of this name is in already; give every member a name of its own, or wait until the session of the other is over',
  NOT_IN: 'this member is not in; enter first',
  LOST_PLACE:
    'this member’s node is gone, with its session or by somebody’s hand; it no longer counts, and must enter again',
  NO_SIZE: 'nobody has said how many must come together: write a whole number, or give `size`',
} as const;

export type BarrierErrorCode = keyof typeof barrierErrors;

export class BarrierError extends Error {
  override readonly name = 'BarrierError';
  readonly code: BarrierErrorCode;
  readonly path: string;

  constructor(
    code: BarrierErrorCode,
    path: string,
    { detail, ...options }: ErrorOptions & { detail?: string } = {},
  ) {
    const more = detail === undefined ? '' : `: ${detail}`;
    super(`${code}: ${barrierErrors[code]}${more} (${printable(path)})`, options);
    this.code = code;
    this.path = path;
  }
}
