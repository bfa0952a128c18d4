/** What a queue says no with. Each message says what it means for the items and what to do. */

import { printable } from '../protocol/index.ts';

export const queueErrors = {
  CLOSED: 'the queue object was closed; items that were taken can still be confirmed',
  TIMEOUT: 'nothing could be taken in time',
  CLAIM_LOST:
    'the item is no longer ours: the session that took it is over, or somebody removed the claim; what was done for it may be done again by another taker',
  SETTLED: 'the item was confirmed, returned, requeued or buried before; once is all',
  LIST_TOO_LONG:
    'the list of waiting items does not fit into one reply; take items, raise jute.maxbuffer on every client and `listBytesMax` here, or use the layout `buckets`, which has no such limit',
  OUTCOME_UNKNOWN:
    'the session ended before the reply came, so that nobody can say whether the items were put; put them again only if takers bear an item twice',
  WRONG_LAYOUT: 'the path holds a queue of another kind',
  OVERLOADED: 'too many puts wait for their turn; await each, or put lists',
  CONTENTION: 'others changed the queue again and again in between; try again',
} as const;

export type QueueErrorCode = keyof typeof queueErrors;

export class QueueError extends Error {
  override readonly name = 'QueueError';
  readonly code: QueueErrorCode;
  readonly path: string;
  /** Of those that were to be put, the ids of which it is certain that they were. */
  readonly ids: readonly string[];

  constructor(
    code: QueueErrorCode,
    path: string,
    { detail, ids = [], ...options }: ErrorOptions & { detail?: string; ids?: string[] } = {},
  ) {
    const more = detail === undefined ? '' : `: ${detail}`;
    super(`${code}: ${queueErrors[code]}${more} (${printable(path)})`, options);
    this.code = code;
    this.path = path;
    this.ids = ids;
  }
}
