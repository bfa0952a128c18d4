/** What counters and shared values say no with. */

import { printable } from '../protocol/index.ts';

export const counterErrors = {
  CONTENTION: 'others changed the value at every try; nothing was changed by this call: try again',
  OUTCOME_UNKNOWN:
    'the session ended, or the call was called off, before the reply came, so that nobody can say whether the change took place; read the value before you change it again',
  CORRUPT: 'the node holds something else than this kind of value; set it to one that is',
  OVERFLOW: 'the result is beyond what the value can hold; nothing was changed',
  VERSION_SPENT:
    'the node’s version is -1 after 2^32 changes, and no server can compare that; delete the node and make it anew',
} as const;

export type CounterErrorCode = keyof typeof counterErrors;

export class CounterError extends Error {
  override readonly name = 'CounterError';
  readonly code: CounterErrorCode;
  readonly path: string;

  constructor(
    code: CounterErrorCode,
    path: string,
    { detail, ...options }: ErrorOptions & { detail?: string } = {},
  ) {
    const more = detail === undefined ? '' : `: ${detail}`;
    super(`${code}: ${counterErrors[code]}${more} (${printable(path)})`, options);
    this.code = code;
    this.path = path;
  }
}
