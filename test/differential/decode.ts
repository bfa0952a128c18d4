/** Replies from their bytes, where the protocol says what they hold. */

import { Reader, type Type } from '../../src/jute/index.ts';
import { ReplyHeader } from '../../src/protocol/index.ts';

const headerBytes = 16;

export function headerOf(frame: Buffer): { xid: number; zxid: bigint; err: number } {
  return ReplyHeader.read(new Reader(frame)).toObject();
}

/** Null when the reply is an error. */
export function decodeBody<T>(type: Type<T>, frame: Buffer): T | null {
  if (headerOf(frame).err !== 0) return null;
  const reader = new Reader(frame, headerBytes);
  const value = type.read(reader);
  reader.finish();
  return value;
}

export function bodyOf(frame: Buffer): Buffer {
  return frame.subarray(headerBytes);
}
