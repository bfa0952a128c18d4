/** One value to bytes and back, for whoever has a value and not a stream. */

import { Reader } from './reader.ts';
import type { Type } from './types.ts';
import { Writer } from './writer.ts';

export function encode<T>(type: Type<T>, value: T): Buffer {
  const writer = new Writer(64);
  type.write(writer, value);
  return writer.written();
}

/** The whole of `bytes` is one value; bytes left over are an error. */
export function decode<R extends Type<unknown>>(type: R, bytes: Buffer): ReturnType<R['read']> {
  const reader = new Reader(bytes);
  const value = type.read(reader) as ReturnType<R['read']>;
  reader.finish();
  return value;
}
