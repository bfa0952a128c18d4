/** Replies as bytes: a header, and behind it what the op answers with. */

import type { Type, Writer } from '../jute/index.ts';
import { MultiHeader, multiParts, type OpName } from '../protocol/index.ts';
import type { Applied, Tree } from '../tree/index.ts';

const high = 0x1_0000_0000;

/** What stands before each frame. */
export const lengthBytes = 4;
/** The frame of a reply that is a header alone. */
export const headerReplyBytes = lengthBytes + 16;

/** Begins a frame with its header; `endFrame` with what this returns ends it. */
export function beginReply(writer: Writer, xid: number, zxid: number, err: number): number {
  const start = writer.beginFrame();
  writer.int(xid);
  writer.longHalves(Math.floor(zxid / high), zxid >>> 0);
  writer.int(err);
  return start;
}

/** A reply that is a header alone: an error, a ping, a delete. */
export function headerReply(writer: Writer, xid: number, zxid: number, err: number): void {
  writer.endFrame(beginReply(writer, xid, zxid, err));
}

export function recordReply<T>(
  writer: Writer,
  xid: number,
  zxid: number,
  type: Type<T>,
  value: T,
): void {
  const start = beginReply(writer, xid, zxid, 0);
  type.write(writer, value);
  writer.endFrame(start);
}

/** The reply to a write, right after its txn was applied: the tree still shows what it made. */
export function writeReply(
  writer: Writer,
  tree: Tree,
  op: OpName,
  xid: number,
  applied: Applied,
): void {
  const zxid = tree.lastZxid;
  if (applied.err !== 0 && applied.type !== 'multi') {
    headerReply(writer, xid, zxid, applied.err);
    return;
  }
  const start = beginReply(writer, xid, zxid, 0);
  switch (op) {
    case 'create':
      writer.ustring(applied.path);
      break;
    case 'create2':
    case 'createContainer':
    case 'createTTL':
      writer.ustring(applied.path);
      if (applied.stat === undefined) tree.nodes.writeStat(writer, applied.node);
      else writer.raw(applied.stat);
      break;
    case 'setData':
    case 'setACL':
      tree.nodes.writeStat(writer, applied.node);
      break;
    case 'multi':
      for (const part of applied.parts ?? []) writePart(writer, part);
      MultiHeader.write(writer, { type: -1, done: true, err: -1 });
      break;
  }
  writer.endFrame(start);
}

function writePart(writer: Writer, part: Applied): void {
  const header = (type: number, err: number) =>
    MultiHeader.write(writer, { type, done: false, err });
  switch (part.type) {
    case 'error':
      header(-1, part.err);
      writer.int(part.err);
      return;
    case 'create':
      header(multiParts.create.code, 0);
      writer.ustring(part.path);
      return;
    case 'create2':
    case 'createContainer':
    case 'createTTL':
      header(multiParts.create2.code, 0);
      writer.ustring(part.path);
      writer.raw(part.stat!);
      return;
    case 'setData':
      header(multiParts.setData.code, 0);
      writer.raw(part.stat!);
      return;
    case 'check':
    case 'delete':
      header(multiParts[part.type].code, 0);
      return;
    default:
      throw new Error(`a multi can't have a part of type ${part.type}`);
  }
}

/** A part of a multiRead, or the error in its place. */
export function writeReadPart(writer: Writer, code: number, err: number, body: () => void): void {
  MultiHeader.write(writer, { type: err === 0 ? code : -1, done: false, err });
  if (err === 0) body();
  else writer.int(err);
}
