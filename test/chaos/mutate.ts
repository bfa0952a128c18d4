/**
 * Frames that no decent client would send, made from those that decent ones did: the golden recordings
 * of the Java and C clients, cut, flipped, spliced, lengthened and told under other names.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ops } from '../../src/protocol/index.ts';
import type { Random } from '../differential/random.ts';

export interface Corpus {
  readonly greetings: readonly Buffer[];
  readonly requests: readonly Buffer[];
}

export function readCorpus(): Corpus {
  const folder = join(import.meta.dirname, '../golden');
  const greetings: Buffer[] = [];
  const requests: Buffer[] = [];
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.json')) continue;
    const entries = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      connectRequest?: string;
      request?: string;
    }[];
    for (const { connectRequest, request } of entries) {
      if (connectRequest !== undefined) greetings.push(Buffer.from(connectRequest, 'hex'));
      // The largest only cost time.
      if (request !== undefined && request.length < 4_000)
        requests.push(Buffer.from(request, 'hex'));
    }
  }
  return { greetings, requests };
}

const codes: readonly number[] = Object.values(ops).map(({ code }) => code);
/** Those that end the link, or that the server ends it for: else hardly any link would see ten frames. */
const { auth, sasl, closeSession, createSession, check } = ops;
const endings = new Set<number>(
  [auth, sasl, closeSession, createSession, check].map(({ code }) => code),
);
const lasting = codes.filter((code) => !endings.has(code));
const ints = [
  -1, 0, 1, 2, 4, 15, 31, 255, 256, 65_535, 1_048_575, 0x7fff_ffff, -0x8000_0000, -2, -4,
];
const bytes = [0x00, 0x01, 0x2f, 0x2e, 0x7f, 0x80, 0xc0, 0xed, 0xf4, 0xff];
const words = [
  '/',
  '//',
  '/a/',
  '/.',
  '/..',
  '/\0',
  '/zookeeper',
  '/zookeeper/quota',
  '/zookeeper/config',
  '__proto__',
  'constructor',
  '\ud800',
  '\u202e',
  'world',
  'anyone',
  'digest',
  'ip',
  'auth',
  'super:x',
  '0.0.0.0/0',
];

type Change = (frame: Buffer, random: Random, corpus: readonly Buffer[]) => Buffer;

const at = (frame: Buffer, random: Random) => random.below(Math.max(1, frame.length));

const changes: readonly Change[] = [
  function flipABit(frame, random) {
    if (frame.length > 0) frame[at(frame, random)]! ^= 1 << random.below(8);
    return frame;
  },
  function setAByte(frame, random) {
    if (frame.length > 0) frame[at(frame, random)] = random.pick(bytes);
    return frame;
  },
  function setAnInt(frame, random) {
    if (frame.length >= 4) frame.writeInt32BE(random.pick(ints), random.below(frame.length - 3));
    return frame;
  },
  function nudgeAnInt(frame, random) {
    if (frame.length < 12) return frame;
    const where = random.below(frame.length - 3);
    frame.writeInt32BE((frame.readInt32BE(where) + random.below(5) - 2) | 0, where);
    return frame;
  },
  function cutShort(frame, random) {
    return frame.subarray(0, at(frame, random));
  },
  function addBytes(frame, random) {
    return Buffer.concat([
      frame,
      Buffer.from(random.times(random.below(40), () => random.below(256))),
    ]);
  },
  function dropAStretch(frame, random) {
    const from = at(frame, random);
    return Buffer.concat([frame.subarray(0, from), frame.subarray(from + random.below(16))]);
  },
  function repeatAStretch(frame, random) {
    const from = at(frame, random);
    const stretch = frame.subarray(from, from + random.below(64));
    return Buffer.concat([frame.subarray(0, from), stretch, stretch, frame.subarray(from)]);
  },
  function splice(frame, random, corpus) {
    const other = random.pick(corpus);
    return Buffer.concat([
      frame.subarray(0, at(frame, random)),
      other.subarray(random.below(other.length)),
    ]);
  },
  function otherOp(frame, random) {
    if (frame.length < 8) return frame;
    const code = random.chance(0.9) ? random.pick(codes) : random.below(256) - 128;
    frame.writeInt32BE(code, 4);
    return frame;
  },
  function otherXid(frame, random) {
    if (frame.length >= 4) frame.writeInt32BE(random.pick([-1, -2, -4, -8, 0, 0x7fff_ffff]), 0);
    return frame;
  },
  function putAWord(frame, random) {
    const word = Buffer.from(random.pick(words));
    const length = Buffer.alloc(4);
    length.writeInt32BE(word.length);
    const from = 8 + random.below(Math.max(1, frame.length - 8));
    return Buffer.concat([frame.subarray(0, from), length, word, frame.subarray(from)]);
  },
];

/** Most ops on a mutated frame, some on frames as they were, some on none at all. */
export function mutated(random: Random, corpus: readonly Buffer[]): Buffer {
  let frame: Buffer = Buffer.from(random.pick(corpus));
  const kind = random.below(20);
  if (kind === 0) return frame;
  if (kind === 1) return Buffer.from(random.times(random.below(64), () => random.below(256)));
  for (let count = 1 + random.below(4); count > 0; count--) {
    frame = random.pick(changes)(frame, random, corpus);
  }
  if (frame.length < 8 && random.chance(0.95)) frame = Buffer.concat([frame, Buffer.alloc(8)]);
  if (frame.length >= 8 && !lasting.includes(frame.readInt32BE(4)) && random.chance(0.95)) {
    frame.writeInt32BE(random.pick(lasting), 4);
  }
  return frame;
}

/** With its length before it, or, for a liar, with another. */
export function framed(random: Random, frame: Buffer, isLiar = random.chance(0.002)): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(isLiar ? random.pick([...ints, frame.length + 1]) : frame.length);
  return Buffer.concat([length, frame]);
}
