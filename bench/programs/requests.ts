/**
 * The requests of a load, ready to be sent: what can be encoded beforehand is, and only the xid is
 * put in.
 *
 *   frame   length:int  xid:int  op:int  request
 */

import { Writer } from '../../src/jute/index.ts';
import {
  openAcl,
  ops,
  type OpName as ProtocolOp,
  type RequestOf,
} from '../../src/protocol/index.ts';
import { type Load, pathCount, pathOf } from './messages.ts';

/** One in this many of a mixed load is a write. */
const writeEvery = 10;

/** Appends the next request to `writer`. */
export type Requests = (writer: Writer, xid: number) => void;

/** What the creates of a load have made: nodes named `stem` and a number, from 1 up to `count`. */
export interface Made {
  readonly stem: string;
  readonly count: number;
}

export const madePath = (stem: string, number: number): string =>
  stem + String(number).padStart(numberDigits, '0');

export function requestsOf({ op, root, bytes }: Load): { next: Requests; made(): Made } {
  const data = Buffer.alloc(bytes, 0x78);
  const paths = Array.from({ length: pathCount }, (_, i) => pathOf(root, i));
  const gets = op === 'get' || op === 'mixed' ? paths.map(getFrame) : [];
  const sets = op === 'set' || op === 'mixed' ? paths.map((path) => setFrame(path, data)) : [];
  // Where several processes, or several stretches of load, create below one node.
  const mark = `${process.pid}-${performance.now().toString(36).replace('.', '')}`;
  const stem = `${root}/c${mark}-`;
  const creates = new CreateFrame(stem, data);
  let turn = 0;
  const next: Requests = (writer, xid) => {
    turn += 1;
    if (op === 'create') return creates.write(writer, xid, turn);
    const isWrite = op === 'set' || (op === 'mixed' && turn % writeEvery === 0);
    const frame = (isWrite ? sets : gets)[turn % pathCount]!;
    frame.writeInt32BE(xid, 4);
    return writer.raw(frame);
  };
  return { next, made: () => ({ stem, count: op === 'create' ? turn : 0 }) };
}

const getFrame = (path: string) => frameOf('getData', { path, watch: false });
const setFrame = (path: string, data: Buffer) => frameOf('setData', { path, data, version: -1 });

const numberDigits = 9;

/** One frame, whose path ends with a number: only that is put in, and the xid. */
class CreateFrame {
  readonly #frame: Buffer;
  readonly #digitsEnd: number;

  constructor(stem: string, data: Buffer) {
    const numbered = madePath(stem, 0);
    this.#frame = frameOf('create', { path: numbered, data, acl: [...openAcl], flags: 0 });
    this.#digitsEnd = this.#frame.indexOf(numbered) + numbered.length;
  }

  write(writer: Writer, xid: number, number: number): void {
    const frame = this.#frame;
    frame.writeInt32BE(xid, 4);
    let left = number;
    for (let at = this.#digitsEnd - 1; left > 0; at--) {
      frame[at] = 0x30 + (left % 10);
      left = Math.floor(left / 10);
    }
    writer.raw(frame);
  }
}

function frameOf<N extends ProtocolOp>(op: N, request: RequestOf<N>): Buffer {
  const writer = new Writer();
  append(writer, 0, op, request);
  return Buffer.from(writer.written());
}

export function append<N extends ProtocolOp>(
  writer: Writer,
  xid: number,
  op: N,
  request: RequestOf<N>,
): void {
  const start = writer.beginFrame();
  writer.int(xid);
  writer.int(ops[op].code);
  (ops[op].request as { write(writer: Writer, request: unknown): void }).write(writer, request);
  writer.endFrame(start);
}
