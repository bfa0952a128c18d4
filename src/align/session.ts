/** What alignment needs of a client, and which of its failures pass. */

import { type Client, isZkError } from '../client/index.ts';

/** A group's member and an election need a little more than alignment itself. */
export type AlignClient = Client;

/** Whether a call that failed so may be made again once there is a link, or a session. */
export function isPassing(error: unknown): boolean {
  return (
    isZkError(error) &&
    (error.retryable || error.outcomeUnknown || isZkError(error, 'SESSION_EXPIRED'))
  );
}
