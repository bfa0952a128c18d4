/**
 * Our tables against bytes that Apache ZooKeeper and its clients wrote: `test/golden/*.json`, each a
 * list of handshakes, exchanges and events, in hex and without the length before each frame.
 *
 * Entries marked `raw` were asked by no client but by hand, many of them wrong on purpose.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ProtocolError, Reader, type Type, Writer } from '../src/jute/index.ts';
import {
  ConnectRequest,
  ConnectResponse,
  errorCodeOf,
  type OpName,
  opNameOf,
  ops,
  ReplyHeader,
  RequestHeader,
  specialXids,
  WatcherEvent,
  type ZkErrorCode,
} from '../src/protocol/index.ts';

interface Handshake {
  readonly connectRequest: string;
  readonly connectResponse: string | null;
}
interface Exchange {
  readonly op: string;
  readonly code: number;
  readonly request: string;
  readonly reply: string | null;
}
interface Event {
  readonly event: string;
}
type Entry = { readonly name: string; readonly from?: 'raw' } & (Handshake | Exchange | Event);

/** A stretch of bytes and the values that should be in it, one behind the other. */
interface Frame {
  readonly title: string;
  readonly bytes: Buffer;
  readonly types: readonly Type<unknown>[];
  readonly isHandshake: boolean;
}

const folder = join(import.meta.dirname, 'golden');
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => ({
    file,
    entries: JSON.parse(readFileSync(join(folder, file), 'utf8')) as Entry[],
  }));
const entries = files.flatMap((each) => each.entries);
const exchanges = entries.filter((entry) => 'op' in entry);

/**
 * Ops whose exchange no client shows: a server asks them of itself, or takes them in a multi alone.
 */
const notAsked: readonly OpName[] = ['check', 'deleteContainer', 'createSession'];

/** Asked by hand, and wrong on purpose. By title. */
const wrongQuestions = new Set([
  'connect request: connect with bytes to spare',
  'connect request: connect with a request cut short',
  'create request: create with a null path',
  'create request: create cut short',
  'create request: create with a length past the frame',
  'exists request: exists of a null path',
  'getData request: getData of a null path',
  'getData request: getData cut short',
  'getData request: getData with no body',
  'getData request: getData with bytes to spare',
  'multi request: multi with an op nobody knows',
  'multi request: multi cut short',
  'multiRead request: multiRead of exists',
  'sync request: sync of a null path',
]);

/** Answers to careless questions that are none by the tables, and should be refused. By title. */
const wrongAnswers = new Set([
  // A null path is echoed.
  'sync reply: sync of a null path',
  // An error with the results so far behind it: who reads the error must not expect the end there.
  'multiRead reply: multiRead with a write in it',
  // A read-only server that has no local sessions: a bare ReplyHeader with NOT_READ_ONLY.
  'connect response: connect to a read-only server as one who does not',
]);

/** Frames that say the same in other bytes than we would. By title. */
const otherBytes = new Set([
  // A null vector, which reads as an empty one and gets the same answer.
  'create request: create with a null ACL list',
  // Java writes the halves of an astral character one by one, and so can't read it back either.
  'whoAmI reply: whoAmI with two digests',
  'getACL reply: getACL of two digests',
]);

/** Errors of which the bytes have been seen. */
const errorsSeen: readonly ZkErrorCode[] = [
  'AUTH_FAILED',
  'BAD_ARGUMENTS',
  'BAD_VERSION',
  'INVALID_ACL',
  'MARSHALLING_ERROR',
  'NEW_CONFIG_NO_QUORUM',
  'NODE_EXISTS',
  'NOT_EMPTY',
  'NOT_READ_ONLY',
  'NO_AUTH',
  'NO_CHILDREN_FOR_EPHEMERALS',
  'NO_NODE',
  'NO_WATCHER',
  'QUOTA_EXCEEDED',
  'RECONFIG_DISABLED',
  'SESSION_CLOSED_REQUIRE_SASL',
  'UNIMPLEMENTED',
];

function framesOf(entry: Entry): Frame[] {
  const frame = (what: string, hex: string | null, ...types: Type<unknown>[]): Frame[] =>
    hex === null
      ? []
      : [
          {
            title: `${what}: ${entry.name}`,
            bytes: Buffer.from(hex, 'hex'),
            types,
            isHandshake: 'connectRequest' in entry,
          },
        ];
  if ('connectRequest' in entry) {
    return [
      ...frame('connect request', entry.connectRequest, ConnectRequest),
      ...frame('connect response', entry.connectResponse, ConnectResponse),
    ];
  }
  if ('event' in entry) return frame('event', entry.event, ReplyHeader, WatcherEvent);
  const op = opNameOf(entry.code);
  if (op === undefined) return [];
  const failed = entry.reply !== null && errOf(entry.reply) !== 0;
  return [
    ...frame(`${op} request`, entry.request, RequestHeader, ops[op].request),
    ...frame(`${op} reply`, entry.reply, ReplyHeader, ...(failed ? [] : [ops[op].response])),
  ];
}

function errOf(reply: string): number {
  return ReplyHeader.read(new Reader(Buffer.from(reply, 'hex'))).err;
}

function read({ types }: Frame, bytes: Buffer): unknown[] {
  const reader = new Reader(bytes);
  const values = types.map((type) => type.read(reader));
  reader.finish();
  return values;
}

function written({ types }: Frame, values: readonly unknown[]): Buffer {
  const writer = new Writer();
  types.forEach((type, i) => {
    type.write(writer, values[i]);
  });
  return writer.written();
}

/** The one frame that is whole without its last byte: a handshake as before 3.4. */
function isWholeToo(frame: Frame, cut: number): boolean {
  if (!frame.isHandshake || cut !== frame.bytes.length - 1) return false;
  const [value] = read(frame, frame.bytes) as [ConnectRequest];
  return value.readOnly !== undefined;
}

const isWrong = (frame: Frame, entry: Entry): boolean =>
  wrongAnswers.has(frame.title) || (entry.from === 'raw' && wrongQuestions.has(frame.title));

test('golden bytes are there', () => {
  expect(files.map(({ file }) => file)).not.toEqual([]);
});

describe.each(files)('$file', ({ entries }) => {
  const all = entries.flatMap((entry) => framesOf(entry).map((frame) => ({ frame, entry })));
  const frames = all.filter(({ frame, entry }) => !isWrong(frame, entry)).map(({ frame }) => frame);
  const wrong = all.filter(({ frame, entry }) => isWrong(frame, entry)).map(({ frame }) => frame);

  test('every frame reads by the tables and writes again as the same bytes', () => {
    for (const frame of frames) {
      const again = written(frame, read(frame, frame.bytes));

      expect(again.equals(frame.bytes), frame.title).toBe(!otherBytes.has(frame.title));
    }
  });

  test('every frame, cut short anywhere, is refused', () => {
    for (const frame of frames) {
      for (let cut = 0; cut < frame.bytes.length; cut++) {
        if (isWholeToo(frame, cut)) continue;
        expect(() => read(frame, frame.bytes.subarray(0, cut)), frame.title).toThrow(ProtocolError);
      }
    }
  });

  test('what is wrong on purpose is refused', () => {
    for (const frame of wrong) {
      expect(() => read(frame, frame.bytes), frame.title).toThrow(ProtocolError);
    }
  });

  test('a reply carries the xid of its request, and a notification its own', () => {
    for (const { frame, entry } of all) {
      const xid = () => frame.bytes.readInt32BE(0);
      if ('event' in entry) expect(xid(), frame.title).toBe(specialXids.notification);
      else if ('op' in entry && !isWrong(frame, entry)) {
        expect(xid(), frame.title).toBe(Number.parseInt(entry.request.slice(0, 8), 16) | 0);
      }
    }
  });
});

test('every op that was recorded has its name in the table', () => {
  const wrong = exchanges.filter(({ op, code }) => (opNameOf(code) ?? 'unknown') !== op);

  expect(wrong).toEqual([]);
});

test('every op is shown by an exchange that a client had and that went well', () => {
  const shown = new Set(
    exchanges
      .filter(({ from, reply }) => from !== 'raw' && reply !== null && errOf(reply) === 0)
      .map(({ code }) => opNameOf(code)),
  );
  const names = Object.keys(ops) as OpName[];

  expect(names.filter((op) => !shown.has(op))).toEqual(notAsked);
});

test('the main errors are shown', () => {
  const shown = new Set(
    exchanges
      .filter((entry) => entry.reply !== null && !framesOf(entry).some((it) => isWrong(it, entry)))
      .map(({ reply }) => errOf(reply!))
      .filter((err) => err !== 0)
      .map(errorCodeOf),
  );

  expect(errorsSeen.filter((code) => !shown.has(code))).toEqual([]);
});

test('nothing is named here that is not in the files', () => {
  const titles = new Set(entries.flatMap(framesOf).map(({ title }) => title));
  const named = [...wrongQuestions, ...wrongAnswers, ...otherBytes];

  expect(named.filter((title) => !titles.has(title))).toEqual([]);
});
