import { isZkError } from '../client/index.ts';
import { NotHeldError } from './not-held-error.ts';

/** What a server or the network says no with today and may say yes to tomorrow. */
const codes = [
  'CONNECTION_LOSS',
  'SESSION_EXPIRED',
  'SESSION_MOVED',
  'OPERATION_TIMEOUT',
  'REQUEST_TIMEOUT',
  'THROTTLED_OP',
  'NOT_READ_ONLY',
] as const;

/**
 * Whether it is worth another try, later: a lost link, an overload, a session that ended, a place that
 * was lost with it. Whether there will be another session, `linked` says.
 */
export function isPassing(error: unknown): boolean {
  return error instanceof NotHeldError || isZkError(error, ...codes);
}
