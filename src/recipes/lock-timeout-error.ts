/** The time to wait is over. Says who is in the way, as far as it could be asked. */

import { printable } from '../protocol/index.ts';
import type { Contender } from './contenders.ts';

export class LockTimeoutError extends Error {
  override readonly name = 'LockTimeoutError';
  readonly code = 'LOCK_TIMEOUT';
  /** The lock's path. */
  readonly path: string;
  readonly timeoutMs: number;
  /** Whoever had it. None when it was free just then, or when nobody could be asked. */
  readonly holders: readonly Contender[];
  /** How many waited, we among them if we had joined. Undefined when nobody could be asked. */
  readonly waiting: number | undefined;

  constructor(
    path: string,
    timeoutMs: number,
    holders: readonly Contender[],
    waiting: number | undefined,
    options?: ErrorOptions,
  ) {
    super(`${path} ${situation(holders, waiting)}; gave up after ${timeoutMs} ms`, options);
    this.path = path;
    this.timeoutMs = timeoutMs;
    this.holders = holders;
    this.waiting = waiting;
  }
}

/** More than these in one message help nobody. */
const namedMax = 3;

function situation(holders: readonly Contender[], waiting: number | undefined): string {
  if (waiting === undefined) return 'could not be had, and no server could be asked who holds it';
  if (holders.length === 0) return `is held by nobody at this moment, ${waiting} waiting`;
  const named = holders.slice(0, namedMax).map(holderText).join(', ');
  const more = holders.length > namedMax ? ` and ${holders.length - namedMax} more` : '';
  return `held by ${named}${more}, ${waiting} waiting`;
}

function holderText({ data, sessionId, ageMs }: Contender): string {
  const text = printable(data.subarray(0, 100).toString('utf8'));
  const who = text === '' ? 'somebody who left no name' : text;
  return `${who} (session 0x${sessionId.toString(16)}) for ${(ageMs / 1000).toFixed(1)} s`;
}
