/**
 * What random scripts are made of, as tables: names and paths, ids, weights, and bytes that no client
 * sends. The first number of a pair is how often the second is taken, against all of its table.
 *
 * A change here changes every script: a seed that was written down gives another script after it.
 */

import { encode } from '../../src/jute/index.ts';
import { type Acl, ConnectRequest, digestId, type OpName, ops } from '../../src/protocol/index.ts';

export const names = ['a', 'b', 'c', 'q-'];
export const oddNames = [
  '__proto__',
  'constructor',
  'é',
  '日本',
  'a b',
  'A',
  '0000000001',
  'zookeeper',
  '-',
];
export const brokenNames = [
  '',
  '.',
  '..',
  'a\0b',
  '\u0001',
  '\u007f',
  '\ud83d\ude00',
  '\uf8ff',
  '\ufff0',
  'x\u009f',
];
export const systemPaths = [
  '/zookeeper',
  '/zookeeper/quota',
  '/zookeeper/config',
  '/zookeeper/quota/a',
  '/zookeeper/quota/a/zookeeper_limits',
  '/zookeeper/quota/a/zookeeper_stats',
  '/zookeeper/quota/a/b',
  '/zookeeper/quota/a/b/zookeeper_limits',
  '/zookeeper/quota/a/b/zookeeper_stats',
  '/zookeeper/x',
  // Usage of the root; a quota on quotas; and what only begins as they do.
  '/zookeeper/quota/zookeeper_stats',
  '/zookeeper/quota/zookeeper',
  '/zookeeper/quota/zookeeper/zookeeper_limits',
  '/zookeeper/quota/zookeeper/zookeeper_stats',
  '/zookeeper/quotas',
  '/zookeeper/quotas/zookeeper_limits',
  '/zookeeper/quotas/zookeeper_stats',
];
export const users = ['ann:pw', 'bob:pw'];
export const world = { scheme: 'world', id: 'anyone' };
export const open: Acl[] = [{ perms: 31, id: world }];

// biome-ignore format: a table is read down its columns
export const opWeights: readonly (readonly [number, OpName])[] = [
  [160, 'create'],
  [60,  'create2'],
  [15,  'createContainer'],
  [15,  'createTTL'],
  [100, 'delete'],
  [6,   'deleteContainer'],
  [90,  'setData'],
  [25,  'setACL'],
  [60,  'exists'],
  [70,  'getData'],
  [40,  'getChildren'],
  [40,  'getChildren2'],
  [25,  'getACL'],
  [15,  'getAllChildrenNumber'],
  [15,  'getEphemerals'],
  [15,  'sync'],
  [25,  'addWatch'],
  [12,  'checkWatches'],
  [20,  'removeWatches'],
  [10,  'setWatches'],
  [12,  'setWatches2'],
  [90,  'multi'],
  [15,  'multiRead'],
  [10,  'whoAmI'],
  [10,  'ping'],
  [4,   'reconfig'],
];

export const multiWeights = [
  [20, 'create'],
  [10, 'create2'],
  [4, 'createContainer'],
  [4, 'createTTL'],
  [12, 'delete'],
  [16, 'setData'],
  [12, 'check'],
  [1, 'getData'],
] as const;

/** The longer, the surer that one of its parts fails. */
export const multiSizes = [
  [1, 0],
  [5, 1],
  [6, 2],
  [4, 3],
  [2, 4],
  [1, 6],
] as const;

export const depths = [
  [40, 1],
  [35, 2],
  [20, 3],
  [5, 4],
] as const;

const digestIds = users.map((user) => digestId(user));

export const ids: readonly (readonly [number, { scheme: string; id: string }])[] = [
  [6, world],
  [6, digestIds[0]!],
  [6, digestIds[1]!],
  [5, { scheme: 'auth', id: '' }],
  [3, { scheme: 'ip', id: '127.0.0.1' }],
  [1, { scheme: 'ip', id: '10.0.0.0/8' }],
  [1, { scheme: 'ip', id: '127.0.0.0/8' }],
  [1, { scheme: 'ip', id: '::1' }],
  [1, { scheme: 'ip', id: 'nonsense' }],
  [1, { scheme: 'world', id: 'nobody' }],
  [1, { scheme: 'digest', id: 'nocolon' }],
  [1, { scheme: 'digest', id: 'a:b:c' }],
  [1, { scheme: 'digest', id: 'a:' }],
  [1, { scheme: 'sasl', id: 'ann' }],
  [1, { scheme: 'sasl', id: '' }],
  [1, { scheme: 'sasl', id: 'zk/host@REALM' }],
  [1, { scheme: 'sasl', id: 'a@b@c' }],
  [1, { scheme: 'x509', id: 'CN=ann' }],
  [1, { scheme: 'x509', id: '' }],
  [1, { scheme: 'x509', id: 'ann' }],
  [1, { scheme: 'x509', id: 'CN="a,b" + 1.2.3=#0500; O=' }],
  [1, { scheme: 'x509', id: 'CN=a,E=b' }],
  [1, { scheme: 'super', id: '' }],
  [1, { scheme: '', id: '' }],
  [1, { scheme: 'nosuch', id: 'x' }],
];

/** Sessions last from 20 to 200 s here. */
export const oddTimeouts = [
  ...[
    -0x8000_0000, -1, 0, 1, 19_999, 20_000, 20_001, 30_001, 199_999, 200_000, 200_001, 0x7fff_ffff,
  ],
];

/** Those of events, pings, proofs and watches set again are taken as any other. */
export const oddXids = [-0x8000_0000, -8, -4, -3, -2, 0, 7, 0x7fff_ffff];

/** Of a proof by SASL; the second begins none, and is taken all the same. */
export const saslTokens = ['', 'token', 'username="ann"', 'a=b,'];

/** What a byte becomes. None is above 0x7f: text stays text, and no length turns to less than none. */
export const pokedBytes = [0x00, 0x01, 0x02, 0x07, 0x20, 0x2f, 0x7f];

export const quotaTexts = [
  'count=3,bytes=100',
  'count=1,bytes=-1=;byteHardLimit=10;countHardLimit=2',
  'count=-1,bytes=-1=;byteHardLimit=40;countHardLimit=-1',
  'count=5,bytes=5=;byteHardLimit=5;countHardLimit=5',
  'count=2',
  'count=9223372036854775807,bytes=9223372036854775807=;x=1',
  'not a quota',
  '',
];

/** A length below 0 or far too high; frames too short to hold a header. */
export const brokenFrames = [
  'ffffffff',
  '7fffffff',
  '00000000',
  '0000000400000001',
  '00000007000000010000',
];

/** Handshakes that a client of no version sends, each with its length in front. */
export const oddGreetings = [
  greeting({ protocolVersion: 7 }),
  greeting({ readOnly: true }),
  greeting({ passwd: null }),
  greeting({ passwd: Buffer.alloc(0) }),
  greeting({ passwd: Buffer.alloc(40) }),
  greeting({ lastZxidSeen: -1n }),
  greeting({ sessionId: 12345n }),
  greeting({ sessionId: -1n, readOnly: undefined }),
  greeting({}, 1),
  greeting({}, 9),
  greeting({}, 30),
  greeting({}, -3),
];

function greeting(changes: Partial<ConnectRequest>, cut = 0): string {
  const whole = encode(ConnectRequest, {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 60_000,
    sessionId: 0n,
    passwd: Buffer.alloc(16),
    readOnly: false,
    ...changes,
  });
  const body =
    cut < 0 ? Buffer.concat([whole, Buffer.alloc(-cut)]) : whole.subarray(0, -cut || undefined);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]).toString('hex');
}

export const unknownOps = [10, 23, 50, 99, 108, 1000, -5, -1, -12, 0, ops.check.code];
