/**
 * What a ZooKeeper can say no with: KeeperException.Code of 3.9.5, each with its number on the wire
 * and what it means for the caller.
 */

import { printable } from '../support/index.ts';

// biome-ignore format: a table is read down its columns
const table = {
  SYSTEM_ERROR:                   [-1,   'the server failed in a way it has no name for'],
  RUNTIME_INCONSISTENCY:          [-2,   'another op of the same multi failed, so this one did not happen'],
  DATA_INCONSISTENCY:             [-3,   'the server found its data inconsistent'],
  CONNECTION_LOSS:                [-4,   'the link broke before the reply; a write may or may not have happened'],
  MARSHALLING_ERROR:              [-5,   'the server could not read the request'],
  UNIMPLEMENTED:                  [-6,   'the server does not know this op, or has it switched off'],
  OPERATION_TIMEOUT:              [-7,   'no reply within the deadline; a write may or may not have happened'],
  BAD_ARGUMENTS:                  [-8,   'the server refused the arguments'],
  UNKNOWN_SESSION:                [-12,  'the server does not know this session'],
  NEW_CONFIG_NO_QUORUM:           [-13,  'no quorum of the new configuration is up and in sync'],
  RECONFIG_IN_PROGRESS:           [-14,  'another reconfiguration is under way'],
  API_ERROR:                      [-100, 'the request failed for a reason the server did not name'],
  NO_NODE:                        [-101, 'no such node'],
  NO_AUTH:                        [-102, 'the ACL does not permit it'],
  BAD_VERSION:                    [-103, 'the node has changed: its version is another'],
  NO_CHILDREN_FOR_EPHEMERALS:     [-108, 'an ephemeral node can have no children'],
  NODE_EXISTS:                    [-110, 'the node is there already'],
  NOT_EMPTY:                      [-111, 'the node has children'],
  SESSION_EXPIRED:                [-112, 'the session is over and its ephemeral nodes are gone'],
  INVALID_CALLBACK:               [-113, 'the callback is not valid'],
  INVALID_ACL:                    [-114, 'the ACL is empty or names an id that is not valid here'],
  AUTH_FAILED:                    [-115, 'the server refused the credentials'],
  SESSION_MOVED:                  [-118, 'the session has moved to another link'],
  NOT_READ_ONLY:                  [-119, 'the server is read-only now, as it has lost its quorum'],
  EPHEMERAL_ON_LOCAL_SESSION:     [-120, 'a local session can own no ephemeral nodes'],
  NO_WATCHER:                     [-121, 'no such watch is set'],
  REQUEST_TIMEOUT:                [-122, 'the server gave up on the request; it may or may not have happened'],
  RECONFIG_DISABLED:              [-123, 'reconfiguration is switched off on the server'],
  SESSION_CLOSED_REQUIRE_SASL:    [-124, 'the server closed the session, as it wants SASL authentication first'],
  QUOTA_EXCEEDED:                 [-125, 'the quota above this node would be exceeded'],
  THROTTLED_OP:                   [-127, 'the server is overloaded and dropped the request'],
} as const satisfies Record<string, readonly [wire: number, meaning: string]>;

export type ZkErrorCode = keyof typeof table;

export const errorCodes = Object.keys(table) as readonly ZkErrorCode[];

const byWire = new Map<number, ZkErrorCode>(errorCodes.map((code) => [table[code][0], code]));

/** The number that stands for a code in a reply. */
export function wireOf(code: ZkErrorCode): number {
  return table[code][0];
}

/** A number that no version known to us sends is an API_ERROR: the caller hears of it all the same. */
export function errorCodeOf(wire: number): ZkErrorCode {
  return byWire.get(wire) ?? 'API_ERROR';
}

export function meaningOf(code: ZkErrorCode): string {
  return table[code][1];
}

/** Worth trying again as it is, perhaps on another server. After a write, look first: see `outcome`. */
const retryable: ReadonlySet<ZkErrorCode> = new Set<ZkErrorCode>([
  'CONNECTION_LOSS',
  'OPERATION_TIMEOUT',
  'REQUEST_TIMEOUT',
  'THROTTLED_OP',
  'SESSION_MOVED',
  'RECONFIG_IN_PROGRESS',
]);

/** The reply never came, so that only the server knows whether a write took place. */
const outcomeUnknown: ReadonlySet<ZkErrorCode> = new Set<ZkErrorCode>([
  'CONNECTION_LOSS',
  'OPERATION_TIMEOUT',
  'REQUEST_TIMEOUT',
]);

export interface ZkErrorOptions extends ErrorOptions {
  readonly path?: string | undefined;
  /** The op that was asked for, by its name in the table of ops. */
  readonly op?: string | undefined;
  /** False when it is certain that nothing was changed, although the code alone would leave it open. */
  readonly outcomeUnknown?: boolean;
  /** More than the table knows, for the message. */
  readonly detail?: string | undefined;
}

/** The server or the session said no. */
export class ZkError extends Error {
  override readonly name: string = 'ZkError';
  readonly code: ZkErrorCode;
  readonly path: string | undefined;
  readonly op: string | undefined;
  readonly retryable: boolean;
  /**
   * True when a write may or may not have happened. Read back before trying again: `docs/outcomes.md`
   * says how for each op.
   */
  readonly outcomeUnknown: boolean;

  constructor(code: ZkErrorCode, options: ZkErrorOptions = {}) {
    super(messageOf(code, options), 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.path = options.path;
    this.op = options.op;
    this.retryable = retryable.has(code);
    this.outcomeUnknown = options.outcomeUnknown ?? outcomeUnknown.has(code);
  }
}

function messageOf(code: ZkErrorCode, { op, path, detail }: ZkErrorOptions): string {
  const where = [op, path === undefined ? undefined : printable(path)].filter(Boolean).join(' ');
  return `${code}: ${meaningOf(code)}${detail ? `: ${detail}` : ''}${where ? ` (${where})` : ''}`;
}

export function isZkError<C extends ZkErrorCode>(
  error: unknown,
  ...codes: C[]
): error is ZkError & { code: C } {
  return (
    error instanceof ZkError &&
    (codes.length === 0 || (codes as readonly ZkErrorCode[]).includes(error.code))
  );
}
