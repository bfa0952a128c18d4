import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { printable } from '../support/index.ts';
import {
  errorCodeOf,
  errorCodes,
  isZkError,
  meaningOf,
  wireOf,
  ZkError,
  type ZkErrorCode,
} from './errors.ts';

/** KeeperException.Code of 3.9.5, but for OK. */
// biome-ignore format: a table is read down its columns
const apache: Record<ZkErrorCode, number> = {
  SYSTEM_ERROR:                 -1,
  RUNTIME_INCONSISTENCY:        -2,
  DATA_INCONSISTENCY:           -3,
  CONNECTION_LOSS:              -4,
  MARSHALLING_ERROR:            -5,
  UNIMPLEMENTED:                -6,
  OPERATION_TIMEOUT:            -7,
  BAD_ARGUMENTS:                -8,
  UNKNOWN_SESSION:             -12,
  NEW_CONFIG_NO_QUORUM:        -13,
  RECONFIG_IN_PROGRESS:        -14,
  API_ERROR:                  -100,
  NO_NODE:                    -101,
  NO_AUTH:                    -102,
  BAD_VERSION:                -103,
  NO_CHILDREN_FOR_EPHEMERALS: -108,
  NODE_EXISTS:                -110,
  NOT_EMPTY:                  -111,
  SESSION_EXPIRED:            -112,
  INVALID_CALLBACK:           -113,
  INVALID_ACL:                -114,
  AUTH_FAILED:                -115,
  SESSION_MOVED:              -118,
  NOT_READ_ONLY:              -119,
  EPHEMERAL_ON_LOCAL_SESSION: -120,
  NO_WATCHER:                 -121,
  REQUEST_TIMEOUT:            -122,
  RECONFIG_DISABLED:          -123,
  SESSION_CLOSED_REQUIRE_SASL: -124,
  QUOTA_EXCEEDED:             -125,
  THROTTLED_OP:               -127,
};

describe('the codes', () => {
  test('are those of Apache, with the same numbers', () => {
    expect(Object.fromEntries(errorCodes.map((code) => [code, wireOf(code)]))).toEqual(apache);
  });

  test('are found by their numbers, and a number that nobody knows is an API error', () => {
    for (const code of errorCodes) expect(errorCodeOf(wireOf(code))).toBe(code);
    for (const wire of [0, 1, -9, -126, -128, -(2 ** 31)]) {
      expect(errorCodeOf(wire)).toBe('API_ERROR');
    }
  });

  test('each say what they mean, and no two the same', () => {
    const meanings = errorCodes.map(meaningOf);

    expect(new Set(meanings).size).toBe(errorCodes.length);
    for (const meaning of meanings) expect(meaning).toMatch(/^[a-z].*[a-z]$/);
  });
});

describe('an error', () => {
  test('says what went wrong, in which op and on which path, and keeps its cause', () => {
    const cause = new Error('the socket');
    const error = new ZkError('NO_NODE', { op: 'getData', path: '/a', detail: 'gone', cause });

    expect(error.message).toBe('NO_NODE: no such node: gone (getData /a)');
    expect([error.name, error.code, error.path, error.op]).toEqual([
      'ZkError',
      'NO_NODE',
      '/a',
      'getData',
    ]);
    expect(error.cause).toBe(cause);
    expect(error).toBeInstanceOf(Error);
    expect(new ZkError('NO_NODE').message).toBe('NO_NODE: no such node');
    expect('cause' in new ZkError('NO_NODE')).toBe(false);
  });

  test('says whether a write may have happened all the same', () => {
    const unknown = errorCodes.filter((code) => new ZkError(code).outcomeUnknown);

    expect(unknown).toEqual(['CONNECTION_LOSS', 'OPERATION_TIMEOUT', 'REQUEST_TIMEOUT']);
    expect(new ZkError('CONNECTION_LOSS', { outcomeUnknown: false }).outcomeUnknown).toBe(false);
    expect(new ZkError('SESSION_EXPIRED', { outcomeUnknown: true }).outcomeUnknown).toBe(true);
  });

  test('is worth trying again for as it is in few cases', () => {
    expect(errorCodes.filter((code) => new ZkError(code).retryable)).toEqual([
      'CONNECTION_LOSS',
      'OPERATION_TIMEOUT',
      'RECONFIG_IN_PROGRESS',
      'SESSION_MOVED',
      'REQUEST_TIMEOUT',
      'THROTTLED_OP',
    ]);
  });

  test('prints no path as it came', () => {
    const error = new ZkError('NO_NODE', { path: '/a\n\u001b[2Jb\u202e' });

    expect(error.message).toBe('NO_NODE: no such node (/a\\u000a\\u001b[2Jb\\u202e)');
    expect(error.path).toBe('/a\n\u001b[2Jb\u202e');
    expect(inspect(error)).toContain('NO_NODE: no such node');
  });

  test('is told from others by its class and, if asked, its code', () => {
    const error: unknown = new ZkError('NO_NODE');

    expect(isZkError(error)).toBe(true);
    expect(isZkError(error, 'NO_NODE')).toBe(true);
    expect(isZkError(error, 'BAD_VERSION', 'NO_NODE')).toBe(true);
    expect(isZkError(error, 'BAD_VERSION')).toBe(false);
    for (const other of [new Error('NO_NODE'), { code: 'NO_NODE' }, 'NO_NODE', null, undefined]) {
      expect(isZkError(other)).toBe(false);
    }
    if (isZkError(error, 'NO_NODE')) expectTypeOf(error.code).toEqualTypeOf<'NO_NODE'>();
  });
});

describe('text from outside', () => {
  test('is printed as it is where that is safe', () => {
    for (const text of ['/plain', '/ü€漢', '', ' ', '/a b']) expect(printable(text)).toBe(text);
  });

  test('has every character escaped that moves the cursor, hides or turns text, or is half of one', () => {
    const hostile = [
      '\0',
      '\n',
      '\r',
      '\u001b',
      '\u007f',
      '\u009b',
      '\u061c',
      '\u200b',
      '\u200f',
      '\u2028',
      '\u202e',
      '\u2066',
      '\ufeff',
      '\ud800',
      '\udfff',
    ];

    for (const unit of hostile) {
      const hex = unit.charCodeAt(0).toString(16).padStart(4, '0');
      expect(printable(`a${unit}b${unit}`)).toBe(`a\\u${hex}b\\u${hex}`);
    }
  });

  test('is not printed without end', () => {
    const long = printable('x'.repeat(2 ** 20));

    expect(long).toBe(`${'x'.repeat(256)}… (1048576 characters)`);
    expect(printable('x'.repeat(256))).toBe('x'.repeat(256));
  });
});
