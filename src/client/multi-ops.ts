/**
 * Several ops as one: what callers write, what goes out, and what comes back, typed op by op.
 */

import { ProtocolError } from '../jute/index.ts';
import type { Acl } from '../protocol/index.ts';
import {
  type CreateMode,
  createModes,
  errorCodeOf,
  type MultiPart,
  type MultiResult,
  printable,
  type StatView,
  wireOf,
  ZkError,
  type ZkErrorCode,
} from '../protocol/index.ts';
import { ArgumentError, checkOptions } from '../support/index.ts';
import {
  checkAcl,
  checkData,
  checkPath,
  checkSequentialPath,
  checkTtl,
  checkVersion,
  type DataInput,
} from './arguments.ts';
import { opTables } from './option-tables.ts';

export interface CreateInput {
  readonly data?: DataInput;
  /** `persistent` unless said. */
  readonly mode?: CreateMode;
  /** Open to anyone unless said. */
  readonly acl?: readonly Acl[];
  /** How long an empty node of a `…Ttl` mode lives after its last change. */
  readonly ttlMs?: number;
}

export interface Created {
  /** The node's path, with the number that a sequential mode appended. */
  readonly path: string;
  readonly stat: StatView;
}

export interface DataAndStat {
  /** Null where the node was made with no data at all, which is not the same as empty. */
  readonly data: Buffer | null;
  readonly stat: StatView;
}

export type CreateOp = { readonly op: 'create'; readonly path: string } & CreateInput;
export interface DeleteOp {
  readonly op: 'delete';
  readonly path: string;
  readonly version?: number;
}
export interface SetOp {
  readonly op: 'set';
  readonly path: string;
  readonly data: DataInput;
  readonly version?: number;
}
export interface CheckOp {
  readonly op: 'check';
  readonly path: string;
  readonly version?: number;
}
export type MultiOp = CreateOp | DeleteOp | SetOp | CheckOp;

/** As `Created`, but servers before 3.9 give no Stat for a plain create inside a multi. */
export interface MultiCreated {
  readonly path: string;
  readonly stat: StatView | null;
}

export type ResultOf<O> = O extends { op: 'create' }
  ? MultiCreated
  : O extends { op: 'set' }
    ? StatView
    : undefined;
export type ResultsOf<T extends readonly MultiOp[]> = { -readonly [K in keyof T]: ResultOf<T[K]> };

export type ReadOp =
  | { readonly op: 'get'; readonly path: string }
  | { readonly op: 'children'; readonly path: string };
export type ReadResultOf<O> =
  | ZkError
  | (O extends { op: 'get' } ? DataAndStat : O extends { op: 'children' } ? string[] : never);
export type ReadResultsOf<T extends readonly ReadOp[]> = {
  -readonly [K in keyof T]: ReadResultOf<T[K]>;
};

/** A multi failed as a whole, and nothing of it happened. Says which op was the culprit. */
export class MultiError extends ZkError {
  override readonly name = 'MultiError';
  /** Which op failed, counted from 0. */
  readonly index: number;

  constructor(code: ZkErrorCode, index: number, op: MultiOp, count: number) {
    super(code, {
      op: op.op,
      path: op.path,
      detail: `op ${index + 1} of ${count} failed, so none took place`,
    });
    this.index = index;
  }
}

type Part<N extends MultiPart['op']> = Extract<MultiPart, { op: N }>;

/** A create as it goes out: the op that the mode asks for, and its request. */
export function createPart(
  path: string,
  data: DataInput | undefined,
  input: Omit<CreateInput, 'data'>,
  toServer: (path: string) => string,
): Part<'create2'> | Part<'createContainer'> | Part<'createTTL'> {
  const name = input.mode ?? 'persistent';
  if (!Object.hasOwn(createModes, name)) {
    const known = Object.keys(createModes).join(', ');
    throw new ArgumentError(
      'mode',
      `one of ${known} is wanted, not ${printable(String(input.mode))}`,
    );
  }
  const mode = createModes[name];
  if (mode.sequential) checkSequentialPath(path);
  else checkPath(path);
  if (input.ttlMs !== undefined && !mode.ttl) {
    throw new ArgumentError(
      'ttlMs',
      `mode ${input.mode ?? 'persistent'} has none; use persistentTtl`,
    );
  }
  const full = toServer(path);
  // What is appended to the root is a name below it, and no part of the chroot's own.
  const isRoot = mode.sequential && path === '/' && full !== '/';
  const request = {
    path: isRoot ? `${full}/` : full,
    data: checkData(data),
    acl: checkAcl(input.acl),
    flags: mode.flags,
  };
  if (mode.ttl) return { op: 'createTTL', request: { ...request, ttl: checkTtl(input.ttlMs) } };
  return { op: mode.container ? 'createContainer' : 'create2', request };
}

export function multiPart(op: MultiOp, toServer: (path: string) => string): MultiPart {
  if (Object.hasOwn(opTables, op?.op)) checkOptions(`a multi's ${op.op}`, op, opTables[op.op]);
  switch (op?.op) {
    case 'create':
      return createPart(op.path, op.data, op, toServer);
    case 'delete':
      checkPath(op.path);
      return {
        op: 'delete',
        request: { path: toServer(op.path), version: checkVersion(op.version) },
      };
    case 'set': {
      checkPath(op.path);
      const version = checkVersion(op.version);
      return {
        op: 'setData',
        request: { path: toServer(op.path), data: checkData(op.data), version },
      };
    }
    case 'check':
      checkPath(op.path);
      return {
        op: 'check',
        request: { path: toServer(op.path), version: checkVersion(op.version) },
      };
    default:
      throw new ArgumentError(
        'op',
        `create, delete, set or check is wanted, not ${printable(String((op as MultiOp)?.op))}`,
      );
  }
}

export function readPart(op: ReadOp, toServer: (path: string) => string): MultiPart {
  if (op?.op !== 'get' && op?.op !== 'children') {
    throw new ArgumentError(
      'op',
      `get or children is wanted, not ${printable(String((op as ReadOp | undefined)?.op))}`,
    );
  }
  checkOptions(`a multiRead's ${op.op}`, op, opTables[op.op]);
  checkPath(op.path);
  const request = { path: toServer(op.path), watch: false };
  return op.op === 'get' ? { op: 'getData', request } : { op: 'getChildren', request };
}

/** The server answers op by op; anything else is not the answer to what was asked. */
export function checkCounts(asked: readonly unknown[], results: readonly unknown[]): void {
  if (asked.length !== results.length) {
    throw new ProtocolError(`${results.length} results for a multi of ${asked.length} ops`);
  }
}

/** What answers each op: servers before 3.9 answer a plain create as the older op has it. */
const answers: Readonly<Record<MultiOp['op'] | ReadOp['op'], readonly MultiResult['op'][]>> = {
  create: ['create', 'create2', 'createContainer', 'createTTL'],
  delete: ['delete'],
  set: ['setData'],
  check: ['check'],
  get: ['getData'],
  children: ['getChildren'],
};

/** A result of another op than was asked for is no answer to it. */
export function checkAnswer({ op }: MultiOp | ReadOp, result: MultiResult): void {
  if (!answers[op].includes(result.op)) {
    throw new ProtocolError(`a result of ${result.op}, where ${op} was asked for`);
  }
}

const notTried: ReadonlySet<number> = new Set([0, wireOf('RUNTIME_INCONSISTENCY')]);

/** The results op by op, or the error of the one that failed. */
export function multiResults(
  ops: readonly MultiOp[],
  results: readonly MultiResult[],
  toClient: (path: string) => string,
): unknown[] {
  checkCounts(ops, results);
  const failed = (isMeant: (err: number) => boolean) =>
    results.findIndex((result) => result.op === 'error' && isMeant(result.err));
  const named = failed((err) => !notTried.has(err));
  // Where all say that they were not tried, the first of them is what failed: those before it say 0.
  const culprit = named === -1 ? failed((err) => err !== 0) : named;
  if (culprit !== -1) {
    const { err } = results[culprit] as { err: number };
    throw new MultiError(errorCodeOf(err), culprit, ops[culprit]!, ops.length);
  }
  return results.map((result, i) => {
    checkAnswer(ops[i]!, result);
    switch (result.op) {
      case 'create':
        return { path: toClient(result.response.path), stat: null };
      case 'create2':
      case 'createContainer':
      case 'createTTL':
        return { path: toClient(result.response.path), stat: result.response.stat };
      case 'setData':
        return result.response.stat;
      default:
        return undefined;
    }
  });
}
