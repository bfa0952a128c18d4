/**
 * What callers hand in, checked before anything is sent: each fault is an `ArgumentError` that names
 * the argument and says why.
 */

import { type Acl, openAcl, pathFault, permissions, ttlMaxMs } from '../protocol/index.ts';
import { ArgumentError, shown } from '../support/index.ts';

/** Bytes as they are, text as UTF-8, null for a node with no data at all. */
export type DataInput = Uint8Array | string | null;

export function checkPath(path: unknown, argument = 'path'): asserts path is string {
  if (typeof path !== 'string') {
    throw new ArgumentError(argument, `a string is wanted, not ${shown(path)}`);
  }
  const fault = pathFault(path);
  if (fault !== null)
    throw new ArgumentError(argument, `${fault}: ${JSON.stringify(path.slice(0, 200))}`);
}

/** As `checkPath`, but the name may end in `/` or be empty, as the server appends to it. */
export function checkSequentialPath(path: unknown): asserts path is string {
  checkPath(typeof path === 'string' ? `${path}0` : path);
}

export function checkVersion(version: unknown): number {
  if (version === undefined) return -1;
  if (
    typeof version !== 'number' ||
    !Number.isInteger(version) ||
    version < -(2 ** 31) ||
    version >= 2 ** 31
  ) {
    throw new ArgumentError(
      'version',
      `a 32-bit integer is wanted, or none for any, not ${shown(version)}`,
    );
  }
  return version;
}

export function checkData(data: unknown): Buffer | null {
  if (data === null) return null;
  if (data === undefined) return Buffer.alloc(0);
  if (typeof data === 'string') {
    // It would go out as U+FFFD, and what is read back would be something else.
    if (!data.isWellFormed()) {
      throw new ArgumentError('data', 'well-formed text is wanted, without a lone surrogate');
    }
    return Buffer.from(data, 'utf8');
  }
  if (Buffer.isBuffer(data)) return data;
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  throw new ArgumentError(
    'data',
    `a Uint8Array, a string or null is wanted, not ${shown(data)}; encode it first, for example with JSON.stringify. Options come after it: create(path, data, options)`,
  );
}

export function checkAcl(acl: unknown): Acl[] {
  if (acl === undefined) return openAcl as Acl[];
  if (!Array.isArray(acl) || acl.length === 0) {
    throw new ArgumentError('acl', `a list of at least one entry is wanted, not ${shown(acl)}`);
  }
  for (const [i, entry] of acl.entries()) checkAclEntry(`acl[${i}]`, entry);
  return acl;
}

function checkAclEntry(argument: string, entry: unknown): void {
  const { perms, id } = (entry ?? {}) as Partial<Acl>;
  if (
    typeof perms !== 'number' ||
    !Number.isInteger(perms) ||
    perms < 0 ||
    perms > permissions.all
  ) {
    throw new ArgumentError(`${argument}.perms`, `0 to 31 is wanted, not ${shown(perms)}`);
  }
  for (const field of ['scheme', 'id'] as const) {
    const text: unknown = id?.[field];
    if (typeof text !== 'string' || !text.isWellFormed()) {
      throw new ArgumentError(
        `${argument}.id.${field}`,
        `well-formed text is wanted, not ${shown(text)}`,
      );
    }
  }
}

export function checkTtl(ttlMs: unknown): bigint {
  if (
    typeof ttlMs !== 'number' ||
    !Number.isInteger(ttlMs) ||
    ttlMs < 1 ||
    ttlMs > Number(ttlMaxMs)
  ) {
    throw new ArgumentError(
      'ttlMs',
      `whole milliseconds from 1 to ${ttlMaxMs} are wanted, not ${shown(ttlMs)}`,
    );
  }
  return BigInt(ttlMs);
}

export function checkListener(argument: string, listener: unknown): void {
  if (listener !== undefined && typeof listener !== 'function') {
    throw new ArgumentError(argument, `a function is wanted, not ${shown(listener)}`);
  }
}

/** What every call takes. */
export function checkLimits(signal: unknown, timeoutMs: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new ArgumentError('signal', `an AbortSignal is wanted, not ${shown(signal)}`);
  }
  if (timeoutMs !== undefined) checkCount('timeoutMs', timeoutMs, 0);
}

export function checkCount(argument: string, value: unknown, min = 1): asserts value is number {
  if (typeof value !== 'number' || Number.isNaN(value) || value < min) {
    throw new ArgumentError(argument, `a number of at least ${min} is wanted, not ${shown(value)}`);
  }
}

/** For constructors that take a client: `new Lock(undefined, '/x')` must not fail at its first use. */
export function checkClient(of: string, client: unknown): void {
  if (typeof client !== 'object' || client === null || Array.isArray(client)) {
    throw new ArgumentError('client', `${of} needs a connected client, got ${shown(client)}`);
  }
}
