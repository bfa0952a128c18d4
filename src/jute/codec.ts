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
export function decode<T>(type: Type<T>, bytes: Buffer): T {
  const reader = new Reader(bytes);
  const value = type.read(reader);
  reader.finish();
  return value;
}
