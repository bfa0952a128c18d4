/** Tells a reply that no try would read from a link that broke by itself. */

import { isZkError } from '../client/index.ts';

/** The client could make nothing of the reply, as often as it asked: mostly it is too long. */
export function isUnreadable(error: unknown): error is Error {
  return (
    isZkError(error, 'CONNECTION_LOSS') && (error.cause as { code?: string })?.code === 'PROTOCOL'
  );
}
