/** What the console refuses, as a status, a code for the page and a sentence for its user. */

import { ArgumentError, isZkError, type ZkErrorCode } from '../client/index.ts';

// biome-ignore format: a table is read down its columns
const statuses = {
  BAD_INPUT:     400,
  NEEDS_TOKEN:   401,
  FORBIDDEN:     403,
  CROSS_SITE:    403,
  BAD_TOKEN:     403,
  NO_ROUTE:      404,
  NOT_FOUND:     404,
  WRONG_METHOD:  405,
  CONFLICT:      409,
  TOO_LARGE:     413,
  NOT_JSON:      415,
  UNKNOWN_HOST:  421,
  TOO_MANY:      429,
  BUG:           500,
  UNSUPPORTED:   501,
  NO_LINK:       503,
} as const;
export type ConsoleErrorCode = keyof typeof statuses;

export class ConsoleError extends Error {
  override readonly name = 'ConsoleError';
  readonly code: ConsoleErrorCode;

  constructor(code: ConsoleErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What ZooKeeper says no with. Others are 502: it failed, and not we. */
const zkStatuses: Partial<Record<ZkErrorCode, number>> = {
  NO_NODE: 404,
  NODE_EXISTS: 409,
  BAD_VERSION: 409,
  NOT_EMPTY: 409,
  NO_AUTH: 403,
  INVALID_ACL: 400,
  BAD_ARGUMENTS: 400,
  NO_CHILDREN_FOR_EPHEMERALS: 409,
  CONNECTION_LOSS: 503,
  OPERATION_TIMEOUT: 503,
  SESSION_EXPIRED: 503,
  AUTH_FAILED: 503,
  UNIMPLEMENTED: 501,
};

export interface Refusal {
  readonly status: number;
  readonly body: { error: { code: string; message: string; path?: string } };
  /** Nobody foresaw it: whoever runs the console is told. */
  readonly isBug: boolean;
}

export function refusalOf(error: unknown): Refusal {
  const refusal = (status: number, code: string, message: string, path?: string): Refusal => ({
    status,
    body: { error: { code, message, ...(path !== undefined && { path }) } },
    isBug: status === 500,
  });
  if (error instanceof ConsoleError) {
    return refusal(statuses[error.code], error.code, error.message);
  }
  if (isZkError(error)) {
    return refusal(zkStatuses[error.code] ?? 502, error.code, error.message, error.path);
  }
  if (error instanceof ArgumentError) return refusal(400, 'BAD_INPUT', error.message);
  // Errors that somebody foresaw have a code of their own; Node's ERR_… are ours to mend.
  const { code, message, name } = (error ?? {}) as Record<string, unknown>;
  if (typeof code === 'string' && /^(?!ERR_)[A-Z][A-Z_]+$/.test(code)) {
    return refusal(409, code, String(message));
  }
  if (name === 'AbortError') return refusal(503, 'NO_LINK', 'the console is closing');
  // What went wrong inside may quote anything: the page is told that, and no more.
  return refusal(500, 'BUG', 'the console failed at this; its own output says more');
}
