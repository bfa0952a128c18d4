/** The tables held against Apache's own, and every record in them under generated values. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bool,
  buffer,
  decode,
  encode,
  type Fields,
  int,
  long,
  ProtocolError,
  Reader,
  type Type,
  ustring,
  ustringOrEmpty,
  ustringOrNull,
} from '../jute/index.ts';
import { MultiRequest, MultiResponse, multiParts } from './multi.ts';
import { opNameOf, ops, specialXids, xidMax } from './ops.ts';
import * as records from './records.ts';
import { txns } from './txns.ts';

/** Every class of `zookeeper.jute` as of 3.9.5, in a notation of ours. */
// biome-ignore format: one record to a line
const apache = `
  Id scheme:ustring id:ustring
  ACL perms:int id:Id
  Stat czxid:long mzxid:long ctime:long mtime:long version:int cversion:int aversion:int ephemeralOwner:long dataLength:int numChildren:int pzxid:long
  StatPersisted czxid:long mzxid:long ctime:long mtime:long version:int cversion:int aversion:int ephemeralOwner:long pzxid:long
  ClientInfo authScheme:ustring user:ustring
  ConnectRequest protocolVersion:int lastZxidSeen:long timeOut:int sessionId:long passwd:buffer readOnly:boolean
  ConnectResponse protocolVersion:int timeOut:int sessionId:long passwd:buffer readOnly:boolean
  SetWatches relativeZxid:long dataWatches:vector<ustring> existWatches:vector<ustring> childWatches:vector<ustring>
  SetWatches2 relativeZxid:long dataWatches:vector<ustring> existWatches:vector<ustring> childWatches:vector<ustring> persistentWatches:vector<ustring> persistentRecursiveWatches:vector<ustring>
  RequestHeader xid:int type:int
  MultiHeader type:int done:boolean err:int
  AuthPacket type:int scheme:ustring auth:buffer
  ReplyHeader xid:int zxid:long err:int
  GetDataRequest path:ustring watch:boolean
  SetDataRequest path:ustring data:buffer version:int
  ReconfigRequest joiningServers:ustring leavingServers:ustring newMembers:ustring curConfigId:long
  SetDataResponse stat:Stat
  GetSASLRequest token:buffer
  SetSASLRequest token:buffer
  SetSASLResponse token:buffer
  CreateRequest path:ustring data:buffer acl:vector<ACL> flags:int
  CreateTTLRequest path:ustring data:buffer acl:vector<ACL> flags:int ttl:long
  DeleteRequest path:ustring version:int
  GetChildrenRequest path:ustring watch:boolean
  GetAllChildrenNumberRequest path:ustring
  GetChildren2Request path:ustring watch:boolean
  CheckVersionRequest path:ustring version:int
  GetMaxChildrenRequest path:ustring
  GetMaxChildrenResponse max:int
  SetMaxChildrenRequest path:ustring max:int
  SyncRequest path:ustring
  SyncResponse path:ustring
  GetACLRequest path:ustring
  SetACLRequest path:ustring acl:vector<ACL> version:int
  SetACLResponse stat:Stat
  AddWatchRequest path:ustring mode:int
  WatcherEvent type:int state:int path:ustring
  ErrorResponse err:int
  CreateResponse path:ustring
  Create2Response path:ustring stat:Stat
  ExistsRequest path:ustring watch:boolean
  ExistsResponse stat:Stat
  GetDataResponse data:buffer stat:Stat
  GetChildrenResponse children:vector<ustring>
  GetAllChildrenNumberResponse totalNumber:int
  GetChildren2Response children:vector<ustring> stat:Stat
  GetACLResponse acl:vector<ACL> stat:Stat
  CheckWatchesRequest path:ustring type:int
  RemoveWatchesRequest path:ustring type:int
  GetEphemeralsRequest prefixPath:ustring
  GetEphemeralsResponse ephemerals:vector<ustring>
  WhoAmIResponse clientInfo:vector<ClientInfo>
  LearnerInfo serverid:long protocolVersion:int configVersion:long
  QuorumPacket type:int zxid:long data:buffer authinfo:vector<Id>
  QuorumAuthPacket magic:long status:int token:buffer
  FileHeader magic:int version:int dbid:long
  TxnDigest version:int treeDigest:long
  TxnHeader clientId:long cxid:int zxid:long time:long type:int
  CreateTxnV0 path:ustring data:buffer acl:vector<ACL> ephemeral:boolean
  CreateTxn path:ustring data:buffer acl:vector<ACL> ephemeral:boolean parentCVersion:int
  CreateTTLTxn path:ustring data:buffer acl:vector<ACL> parentCVersion:int ttl:long
  CreateContainerTxn path:ustring data:buffer acl:vector<ACL> parentCVersion:int
  DeleteTxn path:ustring
  SetDataTxn path:ustring data:buffer version:int
  CheckVersionTxn path:ustring version:int
  SetACLTxn path:ustring acl:vector<ACL> version:int
  SetMaxChildrenTxn path:ustring max:int
  CreateSessionTxn timeOut:int
  CloseSessionTxn paths2Delete:vector<ustring>
  ErrorTxn err:int
  Txn type:int data:buffer
  MultiTxn txns:vector<Txn>
`;

/** Records of theirs that share one of ours, as their bytes are the same. */
const shared: Record<string, string> = {
  CreateResponse: 'PathResponse',
  SyncResponse: 'PathResponse',
  ExistsResponse: 'StatResponse',
  SetDataResponse: 'StatResponse',
  SetACLResponse: 'StatResponse',
  SetSASLRequest: 'GetSASLRequest',
};
/** Spoken among the members of an ensemble. */
const quorum = ['LearnerInfo', 'QuorumPacket', 'QuorumAuthPacket'];
/** In the file, and in no op. */
const unused = [
  'GetMaxChildrenRequest',
  'GetMaxChildrenResponse',
  'SetMaxChildrenRequest',
  'SetMaxChildrenTxn',
];
/** In no class of the file: a header with nothing behind it, and one that Java writes by hand. */
const ours = ['Empty', 'DeleteContainerRequest'];

/** ZooDefs.OpCode of 3.9.5, but for `notification` (0) and `error` (-1), which nobody asks for. */
const apacheOps = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getACL: 6,
  setACL: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  deleteContainer: 20,
  createTTL: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  createSession: -10,
  closeSession: -11,
};

const isType = (value: unknown): value is Type<unknown> & { fields: Fields } =>
  typeof value === 'object' && value !== null && 'fields' in value;

const all = Object.values(records).filter(isType);
const types: Type<unknown>[] = [...all, MultiRequest, MultiResponse];

describe('held against Apache', () => {
  const theirs = apache
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' '))
    .map(([name, ...fields]) => ({ name: name!, fields }));
  /** What we read as a kind of its own, and they write as the plain one. */
  const plainName = (name: string) =>
    name.replace('ustring?', 'ustring').replace('boolean, or nothing', 'boolean');

  test.each(theirs.filter(({ name }) => ![...quorum, ...unused].includes(name)))(
    '$name has the fields that it has there, in their order',
    ({ name, fields }) => {
      const type = all.find((each) => each.name === (shared[name] ?? name));

      expect(
        type && Object.entries(type.fields).map(([field, of]) => `${field}:${plainName(of.name)}`),
      ).toEqual(fields);
    },
  );

  test('there is no record that is not one of theirs', () => {
    const known = new Set([...theirs.map(({ name }) => shared[name] ?? name), ...ours]);

    expect(all.map(({ name }) => name).filter((name) => !known.has(name))).toEqual([]);
    expect(all.length).toBeGreaterThan(55);
  });

  test('every op has its number, and there is no other', () => {
    expect(Object.fromEntries(Object.entries(ops).map(([name, { code }]) => [name, code]))).toEqual(
      apacheOps,
    );
  });

  test('an op is found by its number, and no op by a number that none has', () => {
    for (const [name, { code }] of Object.entries(ops)) expect(opNameOf(code)).toBe(name);
    for (const code of [0, -1, 10, 23, 99, 108, 500, 2 ** 31 - 1]) {
      expect(opNameOf(code)).toBeUndefined();
    }
  });

  test('what stands in a multi and in the log has the number that the op has', () => {
    for (const [name, { code }] of [...Object.entries(multiParts), ...Object.entries(txns)]) {
      expect(code).toBe(name === 'error' ? -1 : apacheOps[name as keyof typeof apacheOps]);
    }
  });

  test('an op that writes is one that the log knows', () => {
    const writing = Object.entries(ops)
      .filter(([, { writes }]) => writes)
      .map(([name]) => name);

    expect(writing.sort()).toEqual(
      Object.keys(txns)
        .filter((name) => name !== 'error')
        .sort(),
    );
  });

  test('the special xids are those of ClientCnxn', () => {
    expect(specialXids).toEqual({ notification: -1, ping: -2, auth: -4, setWatches: -8 });
    expect(xidMax).toBe(2 ** 31 - 1);
  });
});

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.constantFrom('__proto__', 'constructor', '/', '', '/a/b', '\u20ac'.repeat(100)),
);
const anyInt = fc.oneof(fc.integer(), fc.constantFrom(0, -1, 2 ** 31 - 1, -(2 ** 31)));
const anyLong = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)),
);
const anyBuffer = fc.option(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { nil: null },
);

function valuesOf(type: Type<unknown>): fc.Arbitrary<unknown> {
  switch (type) {
    case bool:
      return fc.boolean();
    case int:
      return anyInt;
    case long:
      return anyLong;
    case ustring:
    case ustringOrEmpty:
      return text;
    case ustringOrNull:
      return fc.option(text, { nil: null });
    case buffer:
      return anyBuffer;
    case MultiRequest:
      return fc.array(partsOf('request'), { maxLength: 5 });
    case MultiResponse: {
      const error = anyInt.map((err) => ({ op: 'error', err }));
      return fc.array(fc.oneof(partsOf('response'), error), { maxLength: 5 });
    }
  }
  if (isType(type)) {
    const fields = Object.entries(type.fields).map(([name, of]) => [name, valuesOf(of)]);
    return fc.record(Object.fromEntries(fields));
  }
  if ('item' in type) return fc.array(valuesOf(type.item as Type<unknown>), { maxLength: 4 });
  if (type.name === 'boolean, or nothing') return fc.option(fc.boolean(), { nil: undefined });
  throw new Error(`no values are known for ${type.name}`);
}

function partsOf(side: 'request' | 'response'): fc.Arbitrary<unknown> {
  return fc.oneof(
    ...Object.entries(multiParts).map(([op, part]) =>
      fc.record({ op: fc.constant(op), [side]: valuesOf(part[side]) }),
    ),
  );
}

/** With each view in it as the object that it stands for. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(plain);
  if ('toObject' in value) return (value.toObject as () => unknown)();
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}

const handshakes: readonly Type<unknown>[] = [records.ConnectRequest, records.ConnectResponse];

/** Where else the bytes of a value may end: a handshake's last byte may be there or not. */
function otherEnd(type: Type<unknown>, value: unknown, whole: number): number | undefined {
  if (!handshakes.includes(type)) return undefined;
  return (value as records.ConnectRequest).readOnly === undefined ? whole + 1 : whole - 1;
}

describe.each(types.map((type) => ({ name: type.name, type })))('$name', ({ type }) => {
  test('reads as what was written, and writes again as what was read', () => {
    fc.assert(
      fc.property(valuesOf(type), (value) => {
        const bytes = encode(type, value);
        const read = decode(type, bytes);

        expect(plain(read)).toEqual(value);
        expect(encode(type, read).equals(bytes)).toBe(true);
        expect(encode(type, plain(read)).equals(bytes)).toBe(true);
        if (type.width !== undefined) expect(bytes.length).toBe(type.width);
        expect(bytes.length).toBeGreaterThanOrEqual(type.widthMin);
      }),
      { numRuns: 60 },
    );
  });

  test('is refused when cut short anywhere, or with a byte too many', () => {
    fc.assert(
      fc.property(valuesOf(type), (value) => {
        const bytes = encode(type, value);
        const longer = Buffer.concat([bytes, Buffer.of(0)]);
        for (let end = 0; end <= longer.length; end++) {
          if (end === bytes.length || end === otherEnd(type, value, bytes.length)) continue;
          expect(() => decode(type, longer.subarray(0, end))).toThrow(ProtocolError);
        }
      }),
      { numRuns: 5 },
    );
  });

  test('outlives the memory that it was read from, where that was borrowed', () => {
    fc.assert(
      fc.property(valuesOf(type), (value) => {
        const memory = Buffer.from(encode(type, value));
        const read = type.read(new Reader(memory, 0, memory.length, true));
        memory.fill(0xee);

        expect(plain(read)).toEqual(value);
      }),
      { numRuns: 10 },
    );
  });
});

test('whatever bytes come, every type gives a value or a ProtocolError', () => {
  const random = xorshift(0x2545_f491);
  const seeds = types.map((type) => ({
    type,
    valid: fc.sample(valuesOf(type), { numRuns: 8, seed: 7 }).map((value) => encode(type, value)),
  }));
  const outcomes = { read: 0, refused: 0 };

  for (let i = 0; i < 100_000; i++) {
    const { type, valid } = seeds[i % seeds.length]!;
    const bytes = random() % 2 === 0 ? noise(random) : damaged(valid[random() % 8]!, random);
    try {
      type.read(new Reader(bytes, 0, bytes.length, random() % 2 === 0));
      outcomes.read += 1;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      outcomes.refused += 1;
    }
  }

  expect(outcomes.read).toBeGreaterThan(10_000);
  expect(outcomes.refused).toBeGreaterThan(10_000);
});

/** Numbers that look random and are the same in every run, far faster than fast-check's. */
function xorshift(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** Mostly small bytes, so that many lengths are near the truth. */
function noise(random: () => number): Buffer {
  const bytes = Buffer.alloc(random() % 48);
  for (let i = 0; i < bytes.length; i++) {
    const byte = random();
    bytes[i] = byte % 4 === 0 ? byte >>> 8 : (byte >>> 8) % 3;
  }
  return bytes;
}

function damaged(valid: Buffer, random: () => number): Buffer {
  const bytes = Buffer.from(valid);
  for (let hits = random() % 4; hits > 0 && bytes.length > 0; hits--) {
    bytes[random() % bytes.length] = random();
  }
  return random() % 4 === 0 ? bytes.subarray(0, random() % (bytes.length + 1)) : bytes;
}
