/**
 * Requests that no official client would send, written byte by byte, and what the server makes of them.
 *
 * In: a server's port. Out: entries marked `from: 'raw'`. Many requests end their connection, so that each
 * step that may do so has a session of its own.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type OpName, opCode, opName } from './opcodes.ts';
import { type Entry, FrameSplitter } from './recorder.ts';

/** How long a server gets to answer, and then to hang up: long for it, short for whoever records. */
const patienceMs = 400;

const open = vector([struct(int(31), string('world'), string('anyone'))]);
const zeroPassword = buffer(Buffer.alloc(16));

export async function recordRaw(port: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const [name, request] of handshakes) await shakeHands(port, entries, name, request);
  for (const steps of conversations) {
    const socket = await shakeHands(port, entries, null, connectRequest({}));
    for (const [name, code, body, xid = 1] of steps) {
      await ask(socket, entries, name, typeof code === 'number' ? code : opCode(code), body, xid);
    }
    socket.close();
  }
  return entries;
}

/** For a read-only server without local sessions, which refuses even to make a session. */
export async function recordRawReadOnly(port: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const [name, request] of readOnlyHandshakes) await shakeHands(port, entries, name, request);
  return entries;
}

interface Connect {
  protocolVersion?: number;
  lastZxidSeen?: bigint;
  timeoutMs?: number;
  tail?: Buffer;
}

function connectRequest(fields: Connect): Buffer {
  const { protocolVersion = 0, lastZxidSeen = 0n, timeoutMs = 10_000, tail = bool(false) } = fields;
  const identity = [long(0n), zeroPassword];
  return struct(int(protocolVersion), long(lastZxidSeen), int(timeoutMs), ...identity, tail);
}

const handshakes: [string, Buffer][] = [
  ['connect without the readOnly byte', connectRequest({ tail: Buffer.alloc(0) })],
  ['connect with the readOnly byte', connectRequest({})],
  ['connect as one who takes read-only servers', connectRequest({ tail: bool(true) })],
  ['connect with another protocol version', connectRequest({ protocolVersion: 7 })],
  ['connect with no timeout', connectRequest({ timeoutMs: 0 })],
  ['connect with a negative timeout', connectRequest({ timeoutMs: -1 })],
  ['connect having seen the future', connectRequest({ lastZxidSeen: 0x7fff_ffff_ffffn })],
  ['connect with bytes to spare', connectRequest({ tail: Buffer.from('000102', 'hex') })],
  ['connect with a request cut short', connectRequest({}).subarray(0, 20)],
];

const readOnlyHandshakes: [string, Buffer][] = [
  ['connect to a read-only server without the byte', connectRequest({ tail: Buffer.alloc(0) })],
  ['connect to a read-only server as one who needs writes', connectRequest({})],
  ['connect to a read-only server as one who does not', connectRequest({ tail: bool(true) })],
];

type Step = [name: string, code: OpName | number, body: Buffer, xid?: number];

/** Each row is one session. */
const conversations: Step[][] = [
  [
    ['prepare a node', 'create', create('/raw', open, 0)],
    ['create with an empty ACL list', 'create', create('/raw/x', vector([]), 0)],
    ['create with a null ACL list', 'create', create('/raw/x', int(-1), 0)],
    ['create with the container flag', 'create', create('/raw/container', open, 4)],
    ['create with the TTL flag', 'create', create('/raw/ttl', open, 5)],
    ['create with a flag nobody knows', 'create', create('/raw/x', open, 99)],
    ['create2 with the container flag', 'create2', create('/raw/container2', open, 4)],
    ['createContainer with no flag', 'createContainer', create('/raw/container3', open, 0)],
    ['exists of what createContainer made with no flag', 'exists', read('/raw/container3')],
    ['createContainer with the ephemeral flag', 'createContainer', create('/raw/x1', open, 1)],
    ['createTTL of no time', 'createTTL', struct(create('/raw/t0', open, 5), long(0n))],
    ['createTTL of negative time', 'createTTL', struct(create('/raw/t1', open, 5), long(-1n))],
    ['createTTL of too long', 'createTTL', struct(create('/raw/t2', open, 5), long(1n << 40n))],
    ['createTTL with no flag', 'createTTL', struct(create('/raw/t3', open, 0), long(5_000n))],
    ['getChildren2 of what came of it', 'getChildren2', read('/raw')],
  ],
  [
    ['create with a path that ends in a slash', 'create', create('/raw/', open, 0)],
    ['create with a path without a slash', 'create', create('raw', open, 0)],
    ['create with an empty path', 'create', create('', open, 0)],
    ['create with an empty name in the path', 'create', create('/raw//x', open, 0)],
    ['create with a dot in the path', 'create', create('/raw/.', open, 0)],
    ['create with two dots in the path', 'create', create('/raw/..', open, 0)],
    ['create with a zero in the path', 'create', create('/raw/a\0b', open, 0)],
    ['create with an astral character in the path', 'create', create('/raw/😀', open, 0)],
    ['create of the root', 'create', create('/', open, 0)],
    ['create below /zookeeper', 'create', create('/zookeeper/x', open, 0)],
    ['getData of a path that ends in a slash', 'getData', read('/raw/')],
    ['getData of a path without a slash', 'getData', read('raw')],
    ['getData of an empty path', 'getData', read('')],
    ['exists of an empty path', 'exists', read('')],
    ['getChildren of an empty path', 'getChildren', read('')],
    ['setData of an empty path', 'setData', struct(string(''), int(-1), int(-1))],
    ['setData of a path without a slash', 'setData', struct(string('raw'), int(-1), int(-1))],
    ['delete of an empty path', 'delete', struct(string(''), int(-1))],
    ['delete of a path without a slash', 'delete', struct(string('raw'), int(-1))],
    ['sync of an empty path', 'sync', string('')],
    ['getEphemerals with an empty prefix', 'getEphemerals', string('')],
  ],
  [['create with a null path', 'create', struct(int(-1), int(-1), open, int(0))]],
  [['getData of a null path', 'getData', struct(int(-1), bool(false))]],
  [['exists of a null path', 'exists', struct(int(-1), bool(false))]],
  [['sync of a null path', 'sync', int(-1)]],
  [
    ['check by itself', 'check', struct(string('/raw'), int(-1)), 1],
    ['exists after a check by itself', 'exists', read('/raw'), 2],
  ],
  [['deleteContainer by a client', 'deleteContainer', string('/raw/container3')]],
  [['an op nobody knows', 99, string('/raw')]],
  [['an op below all others', -1000, string('/raw')]],
  [['getData cut short', 'getData', read('/raw').subarray(0, 6)]],
  [['getData with no body', 'getData', Buffer.alloc(0)]],
  [['getData with bytes to spare', 'getData', struct(read('/raw'), string('more'))]],
  [['create cut short', 'create', create('/raw/x', open, 0).subarray(0, 20)]],
  [['create with a length past the frame', 'create', struct(string('/raw/x'), int(1_000_000))]],
  [
    ['multi of nothing', 'multi', multi()],
    ['multi with a read in it', 'multi', multi(['getData', read('/raw')])],
    ['multi with create2', 'multi', multi(['create2', create('/raw/m2', open, 0)])],
    [
      'multi with a read after a write',
      'multi',
      multi(['setData', struct(string('/raw'), int(-1), int(-1))], ['getData', read('/raw')]),
    ],
    ['multi with an op nobody knows', 'multi', multi([99, string('/raw')])],
    [
      'multi cut short',
      'multi',
      multi(['delete', struct(string('/raw'), int(-1))]).subarray(0, 12),
    ],
    ['multi that makes a node twice', 'multi', multi(...twice('/raw/twice'))],
    [
      'multi that makes, changes and deletes a node',
      'multi',
      multi(
        ['create', create('/raw/brief', open, 0)],
        ['setData', struct(string('/raw/brief'), int(-1), int(0))],
        ['check', struct(string('/raw/brief'), int(1))],
        ['delete', struct(string('/raw/brief'), int(1))],
      ),
    ],
  ],
  [['multiRead with a write in it', 'multiRead', multi(['delete', struct(string('/x'), int(-1))])]],
  [['multiRead of nothing', 'multiRead', multi()]],
  [['multiRead of exists', 'multiRead', multi(['exists', read('/raw')])]],
  [
    ['addWatch of an unknown mode', 'addWatch', struct(string('/raw'), int(9))],
    ['removeWatches of an unknown type', 'removeWatches', struct(string('/raw'), int(9))],
    ['checkWatches of an unknown type', 'checkWatches', struct(string('/raw'), int(9))],
    ['addWatch persistent', 'addWatch', struct(string('/raw'), int(0))],
    ['addWatch recursive on the same path', 'addWatch', struct(string('/raw'), int(1))],
    ['checkWatches finds any', 'checkWatches', struct(string('/raw'), int(3))],
    ['checkWatches finds a persistent one', 'checkWatches', struct(string('/raw'), int(4))],
    ['checkWatches finds a recursive one', 'checkWatches', struct(string('/raw'), int(5))],
    ['checkWatches finds no data watch', 'checkWatches', struct(string('/raw'), int(2))],
    ['checkWatches finds no child watch', 'checkWatches', struct(string('/raw'), int(1))],
    ['setData under both', 'setData', struct(string('/raw'), int(-1), int(-1))],
    ['removeWatches of any', 'removeWatches', struct(string('/raw'), int(3))],
    ['removeWatches of any again', 'removeWatches', struct(string('/raw'), int(3))],
    ['addWatch on a missing node', 'addWatch', struct(string('/none'), int(0))],
    ['addWatch on a path without a slash', 'addWatch', struct(string('none'), int(0))],
  ],
  [
    [
      'setWatches since the beginning',
      'setWatches',
      struct(long(0n), strings('/raw', '/gone'), strings('/raw', '/new'), strings('/raw', '/gone')),
      -8,
    ],
    [
      'setWatches2 since the future',
      'setWatches2',
      struct(
        long(0x7fff_ffffn),
        ...[strings('/raw'), strings('/new'), strings('/raw'), strings('/raw'), strings('/raw')],
      ),
      -8,
    ],
    ['setData under all of these', 'setData', struct(string('/raw'), int(-1), int(-1))],
    ['create under all of these', 'create', create('/raw/seen', open, 0)],
  ],
  [
    ['ping', 'ping', Buffer.alloc(0), -2],
    ['auth by an empty digest', 'auth', auth('digest', ''), -4],
    ['auth by a digest without a colon', 'auth', auth('digest', 'ann'), -4],
    ['auth by a name with an astral character', 'auth', auth('digest', '😀:secret'), -4],
    ['auth by ip', 'auth', auth('ip', ''), -4],
    ['auth by world', 'auth', auth('world', ''), -4],
  ],
  [
    ['auth by two digests, the first', 'auth', auth('digest', 'ann:1'), -4],
    ['auth by two digests, the second', 'auth', auth('digest', '😀:2'), -4],
    ['whoAmI with two digests', 'whoAmI', Buffer.alloc(0)],
    ['create for two digests', 'create', create('/raw/own', all('auth', ''), 0)],
    ['getACL of two digests', 'getACL', string('/raw/own')],
    ['auth by a scheme nobody knows', 'auth', auth('nope', ''), -4],
  ],
  [['sasl where there is none', 'sasl', buffer(Buffer.alloc(0))]],
  [
    ['getData with xid 0', 'getData', read('/raw'), 0],
    ['getData with a negative xid', 'getData', read('/raw'), -77],
    ['getACL of a missing node', 'getACL', string('/none')],
    ['reconfig with nothing in it', 'reconfig', struct(int(-1), int(-1), int(-1), long(-1n))],
    ['closeSession', 'closeSession', Buffer.alloc(0)],
  ],
];

/** Pushes no entry if it has no name. */
async function shakeHands(
  port: number,
  entries: Entry[],
  name: string | null,
  request: Buffer,
): Promise<Raw> {
  const raw = await Raw.connect(port);
  raw.send(request);
  const response = await raw.next();
  if (name !== null) {
    const connectResponse = response?.toString('hex') ?? null;
    entries.push({ name, from: 'raw', connectRequest: request.toString('hex'), connectResponse });
    raw.close();
  }
  return raw;
}

async function ask(
  raw: Raw,
  entries: Entry[],
  name: string,
  code: number,
  body: Buffer,
  xid: number,
): Promise<void> {
  const request = struct(int(xid), int(code), body);
  raw.send(request);
  let reply = await raw.next();
  while (reply?.readInt32BE(0) === -1) {
    entries.push({ name, event: reply.toString('hex') });
    reply = await raw.next();
  }
  const isOver = await raw.ends(reply === undefined ? 0 : patienceMs / 4);
  entries.push({
    name,
    from: 'raw',
    op: opName(code),
    code,
    request: request.toString('hex'),
    reply: reply?.toString('hex') ?? null,
    ...(isOver ? { closes: true } : {}),
  });
}

class Raw {
  readonly #socket: Socket;
  readonly #payloads: Buffer[] = [];
  #isOver = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const splitter = new FrameSplitter((payload) => this.#payloads.push(payload));
    socket.on('data', (chunk) => splitter.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isOver = true;
    });
  }

  static async connect(port: number): Promise<Raw> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Raw(socket);
  }

  send(payload: Buffer): void {
    if (!this.#isOver) this.#socket.write(struct(int(payload.length), payload));
  }

  async next(): Promise<Buffer | undefined> {
    const deadlineMs = Date.now() + patienceMs;
    while (this.#payloads.length === 0 && !this.#isOver && Date.now() < deadlineMs) await delay(2);
    return this.#payloads.shift();
  }

  async ends(withinMs: number): Promise<boolean> {
    const deadlineMs = Date.now() + withinMs;
    while (!this.#isOver && Date.now() < deadlineMs) await delay(2);
    return this.#isOver;
  }

  close(): void {
    this.#socket.destroy();
  }
}

function create(path: string, acl: Buffer, flags: number): Buffer {
  return struct(string(path), int(-1), acl, int(flags));
}

/** What exists, getData and getChildren take: a path, and no watch. */
function read(path: string): Buffer {
  return struct(string(path), bool(false));
}

function auth(scheme: string, id: string): Buffer {
  return struct(int(0), string(scheme), string(id));
}

function all(scheme: string, id: string): Buffer {
  return vector([struct(int(31), string(scheme), string(id))]);
}

function twice(path: string): [OpName, Buffer][] {
  return [
    ['create', create(path, open, 0)],
    ['create', create(path, open, 0)],
  ];
}

function multi(...ops: [OpName | number, Buffer][]): Buffer {
  const header = (code: number, done: boolean, err: number) =>
    struct(int(code), bool(done), int(err));
  const parts = ops.map(([op, body]) =>
    struct(header(typeof op === 'number' ? op : opCode(op), false, -1), body),
  );
  return struct(...parts, header(-1, true, -1));
}

function struct(...parts: Buffer[]): Buffer {
  return Buffer.concat(parts);
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function bool(value: boolean): Buffer {
  return Buffer.from([value ? 1 : 0]);
}

function buffer(value: Buffer): Buffer {
  return struct(int(value.length), value);
}

function string(value: string): Buffer {
  return buffer(Buffer.from(value, 'utf8'));
}

function vector(items: Buffer[]): Buffer {
  return struct(int(items.length), ...items);
}

function strings(...values: string[]): Buffer {
  return vector(values.map(string));
}
