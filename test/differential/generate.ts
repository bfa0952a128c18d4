/**
 * Random scripts. Few names, few users and small versions, so that commands meet: a create finds its
 * node there, a watch fires, a version fits. Everything odd is rare enough to leave the rest alone.
 */

import { encode } from '../../src/jute/index.ts';
import {
  type Acl,
  ConnectRequest,
  digestId,
  type MultiPart,
  type OpName,
  ops,
} from '../../src/protocol/index.ts';
import { neverSent } from './allowed.ts';
import { Random } from './random.ts';
import { type Call, type Command, type Script, standsAlone } from './script.ts';

const commandsMin = 50;
const commandsMax = 400;

/** `enforceQuota`: as the servers are told. */
export function generate(seed: number, enforceQuota: boolean): Script {
  const random = new Random(seed);
  const length = commandsMin + random.below(commandsMax - commandsMin + 1);
  const pipelined = random.chance(0.7);
  const maker = new Maker(random, 1 + random.below(4), pipelined);
  const commands: Command[] = [];
  for (let slot = 0; slot < maker.slots; slot++) commands.push(maker.connect(slot));
  if (random.chance(0.3)) commands.push(...maker.quota());
  while (commands.length < length) commands.push(maker.command());
  // Apache holds a write against the quotas and the usage of the tree as it is, not as it will be: what
  // comes of writes under way depends on its threads.
  const isRace = enforceQuota && JSON.stringify(commands, noBigInts).includes('/zookeeper/quota');
  return { seed, pipelined: pipelined && !isRace, commands };
}

const noBigInts = (_: string, value: unknown) => (typeof value === 'bigint' ? 0 : value);

const names = ['a', 'b', 'c', 'q-'];
const oddNames = [
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
const brokenNames = [
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
const systemPaths = [
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
];
const users = ['ann:pw', 'bob:pw'];
const world = { scheme: 'world', id: 'anyone' };
const open: Acl[] = [{ perms: 31, id: world }];

class Maker {
  readonly #random: Random;
  readonly slots: number;
  readonly #pipelined: boolean;
  #slot = 0;
  #lead = 0;
  /** What is likely there, as far as can be known without the answers. */
  readonly #nodes: string[] = ['/'];
  readonly #leaves = new Set<string>();
  readonly #watched: string[] = [];
  /** Slots whose link is likely gone: they connect again before they say more. */
  readonly #gone = new Set<number>();

  constructor(random: Random, slots: number, pipelined: boolean) {
    this.#random = random;
    this.slots = slots;
    this.#pipelined = pipelined;
  }

  connect(slot: number): Command {
    const random = this.#random;
    const timeOut = random.chance(0.9) ? 60_000 : random.pick([-1, 0, 1, 30_001, 0x7fff_ffff]);
    const connect = { kind: 'connect', slot, timeOut, old: random.chance(0.1) } as const;
    if (random.chance(0.01)) return { ...connect, ahead: true };
    if (random.chance(0.9)) return connect;
    const calls = random.times(1 + random.below(5), () => this.#call(slot));
    return { ...connect, eager: calls.filter((call) => !standsAlone(call)) };
  }

  command(): Command {
    const random = this.#random;
    // In a pipelined script one slot says several things in a row.
    if (!this.#pipelined || this.#lead-- <= 0) {
      this.#slot = random.below(this.slots);
      this.#lead = random.below(30);
    }
    const slot = this.#slot;
    if (this.#gone.delete(slot) && random.chance(0.9)) {
      return random.chance(0.6) ? this.#reconnect(slot) : this.connect(slot);
    }
    const command = this.#next(slot);
    const { kind } = command;
    if (kind === 'drop' || kind === 'bytes' || kind === 'greet') this.#gone.add(slot);
    if (kind === 'call' && (command.op === 'closeSession' || typeof command.op === 'number')) {
      this.#gone.add(slot);
    }
    if (kind === 'reconnect' && (command.password !== 'right' || command.ahead))
      this.#gone.add(slot);
    return command;
  }

  #next(slot: number): Command {
    const random = this.#random;
    const kind = random.weighted([
      [965, 'call'],
      [8, 'reconnect'],
      [4, 'connect'],
      [4, 'drop'],
      [1, 'bytes'],
      [1, 'greet'],
      [3, 'odd'],
      [14, 'auth'],
      [2, 'close'],
    ] as const);
    switch (kind) {
      case 'call':
        return this.#call(slot);
      case 'reconnect':
        return this.#reconnect(slot);
      case 'connect':
        return this.connect(slot);
      case 'drop':
        return { kind: 'drop', slot };
      case 'bytes':
        return { kind: 'bytes', slot, hex: random.pick(brokenFrames) };
      case 'greet':
        return { kind: 'greet', slot, hex: random.pick(oddGreetings) };
      case 'odd':
        return this.#odd(slot);
      case 'auth':
        return this.#auth(slot);
      case 'close':
        return { kind: 'call', slot, op: 'closeSession', request: {} };
    }
  }

  #reconnect(slot: number): Command {
    const random = this.#random;
    return {
      kind: 'reconnect',
      slot,
      of: random.chance(0.7) ? slot : random.below(this.slots),
      password: random.weighted([
        [10, 'right'],
        [2, 'wrong'],
        [1, 'short'],
        [1, 'null'],
      ] as const),
      timeOut: 60_000,
      old: random.chance(0.1),
      ahead: random.chance(0.05),
    };
  }

  /** A limit on /a or /a/b, and what is counted against it. */
  quota(): Command[] {
    const random = this.#random;
    const paths = random.pick([['/a'], ['/a', '/a/b'], ['/b']]);
    return paths.flatMap((path) => {
      const at = `/zookeeper/quota${path}`;
      const acl = open;
      const make = (node: string, text: string): Call => {
        const request = { path: node, data: Buffer.from(text), acl, flags: 0 };
        return { kind: 'call', slot: 0, op: 'create', request };
      };
      const limits = make(`${at}/zookeeper_limits`, random.pick(quotaTexts));
      const stats = make(
        `${at}/zookeeper_stats`,
        random.pick(['count=0,bytes=0', 'count=1,bytes=3']),
      );
      const first = make(path, 'x');
      this.#nodes.push(path);
      const nodes = [make(at, ''), ...(random.chance(0.5) ? [limits, stats] : [stats, limits])];
      return random.chance(0.5) ? [first, ...nodes] : [...nodes, first];
    });
  }

  #call(slot: number): Call {
    const random = this.#random;
    for (;;) {
      const op = random.weighted(opWeights);
      let call: Call = { kind: 'call', slot, op, request: this.#request(op) };
      if (random.chance(0.01)) call = this.#mangled(call);
      else if (op === 'setWatches' || op === 'setWatches2') call = { ...call, xid: -8 };
      else if (op === 'ping') call = { ...call, xid: -2 };
      else if (random.chance(0.005)) call = { ...call, xid: random.pick([0, -3, 7, 0x7fff_ffff]) };
      if (!neverSent.some((never) => never.is(call))) return call;
    }
  }

  #mangled(call: Call): Call {
    const random = this.#random;
    if (random.chance(0.2))
      return { ...call, hex: random.pick(['', 'ffffffff', '00', 'fffffffe']) };
    return { ...call, cut: random.chance(0.7) ? 1 + random.below(12) : -1 - random.below(8) };
  }

  #odd(slot: number): Call {
    const random = this.#random;
    return random.weighted<Call>([
      [3, { kind: 'call', slot, op: random.pick(unknownOps), request: null, hex: '' }],
      [2, { kind: 'call', slot, op: 'check', request: { path: this.#path(), version: -1 } }],
      [1, { kind: 'call', slot, op: 'sasl', request: { token: Buffer.from('token') } }],
    ]);
  }

  #auth(slot: number): Call {
    const random = this.#random;
    const text = (value: string) => Buffer.from(value);
    const [scheme, auth] = random.weighted<readonly [string, Buffer | null]>([
      [20, ['digest', text(random.pick(users))]],
      [1, ['digest', text('super:test')]],
      [1, ['digest', text('super:wrong')]],
      [1, ['digest', text('')]],
      [1, ['digest', text('no colon')]],
      [1, ['digest', text('a:b:c')]],
      [1, ['ip', text('1.2.3.4')]],
      [1, ['world', text('anyone')]],
      [1, ['sasl', text('x')]],
      [1, ['x509', text('x')]],
      [1, ['nosuch', text('x')]],
      [1, ['digest', null]],
    ]);
    const call: Call = {
      kind: 'call',
      slot,
      op: 'auth',
      request: { type: 0, scheme, auth },
      xid: -4,
    };
    return random.chance(0.02) ? this.#mangled(call) : call;
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────

  #request(op: OpName): Call['request'] {
    const random = this.#random;
    const path = this.#path();
    switch (op) {
      case 'create':
      case 'create2':
        return this.#create(random.chance(0.93) ? random.below(4) : random.pick([4, 5, 6, 7, -1]));
      case 'createContainer':
        return this.#create(random.chance(0.95) ? 4 : random.below(7));
      case 'createTTL': {
        const flags = random.chance(0.95) ? random.pick([5, 6]) : random.below(8);
        return { ...this.#create(flags), ttl: this.#ttl() };
      }
      case 'delete':
        return this.#delete();
      case 'deleteContainer':
        return { path };
      case 'setData':
        return this.#setData();
      case 'setACL':
        return { path, acl: this.#acl(), version: this.#version() };
      case 'exists':
      case 'getData':
      case 'getChildren':
      case 'getChildren2':
        return random.chance(0.4)
          ? { path: this.#watch(path), watch: true }
          : { path, watch: false };
      case 'getACL':
      case 'getAllChildrenNumber':
      case 'sync':
        return { path };
      case 'getEphemerals':
        return { prefixPath: random.chance(0.5) ? path : random.pick(['', '/', ' ', '/a/', 'a']) };
      case 'addWatch':
        return {
          path: this.#watch(path),
          mode: random.chance(0.97) ? random.below(2) : random.pick([-1, 2, 7]),
        };
      case 'checkWatches':
      case 'removeWatches':
        return {
          path: this.#watchedPath(),
          type: random.chance(0.97) ? 1 + random.below(5) : random.pick([0, 6, -1]),
        };
      case 'setWatches':
      case 'setWatches2':
        return this.#setWatches(op);
      case 'multi':
        return this.#multi();
      case 'multiRead':
        return this.#multiRead();
      case 'reconfig':
        return {
          joiningServers: random.pick([null, 'server.2=127.0.0.1:1:2;3']),
          leavingServers: random.pick([null, '1']),
          newMembers: random.pick([null, 'server.1=127.0.0.1:1:2;3']),
          curConfigId: random.pick([-1n, 0n, 5n]),
        };
      default:
        return {};
    }
  }

  #create(flags: number) {
    const path = this.#newPath();
    const acl = this.#acl();
    const above = path.slice(0, path.lastIndexOf('/')) || '/';
    // What a sequential one will be called is not known; now and then the guess is right.
    const isKnown = (flags & 2) === 0 || flags > 3 || this.#random.chance(0.2);
    if (
      isKnown &&
      this.#nodes.length < 24 &&
      this.#nodes.includes(above) &&
      !this.#leaves.has(above)
    ) {
      const made = flags & 2 && flags < 4 ? `${path}0000000000` : path;
      if (!this.#nodes.includes(made)) this.#nodes.push(made);
      if (flags === 1 || flags === 3) this.#leaves.add(made);
    }
    return { path, data: this.#data(), acl, flags };
  }

  /** Mostly below a node that is likely there and can have children. */
  #newPath(): string {
    const random = this.#random;
    if (random.chance(0.25)) return this.#path();
    const above = random.pick(this.#nodes);
    if (above.length > 40 || (this.#leaves.has(above) && random.chance(0.9))) {
      return `/${random.pick(names)}`;
    }
    return `${above === '/' ? '' : above}/${random.pick(names)}`;
  }

  #delete() {
    const random = this.#random;
    // Those made last are the ones without children.
    const latest = this.#nodes.at(-1 - random.below(Math.min(3, this.#nodes.length)))!;
    const path = random.chance(0.5) ? latest : this.#path();
    const version = this.#version();
    const at = this.#nodes.indexOf(path);
    if (version === -1 && at > 0) this.#nodes.splice(at, 1);
    this.#leaves.delete(path);
    return { path, version };
  }

  #watchedPath(): string {
    const random = this.#random;
    return this.#watched.length > 0 && random.chance(0.8)
      ? random.pick(this.#watched)
      : this.#path();
  }

  #watch(path: string): string {
    if (this.#watched.length < 20) this.#watched.push(path);
    else this.#watched[this.#random.below(20)] = path;
    return path;
  }

  #setData() {
    return { path: this.#path(), data: this.#data(), version: this.#version() };
  }

  #setWatches(op: 'setWatches' | 'setWatches2') {
    const random = this.#random;
    const some = () => random.times(random.below(4), () => this.#watch(this.#path()));
    const request = {
      relativeZxid: random.pick([0n, 1n, 20n, 50n, 100n, 200n, 0x7fff_ffff_ffff_ffffn, -1n]),
      dataWatches: some(),
      existWatches: some(),
      childWatches: some(),
    };
    if (op === 'setWatches') return request;
    return { ...request, persistentWatches: some(), persistentRecursiveWatches: some() };
  }

  #multi(): MultiPart[] {
    const random = this.#random;
    return random.times(random.weighted(multiSizes), (): MultiPart => {
      switch (random.weighted(multiWeights)) {
        case 'create':
          return { op: 'create', request: this.#create(random.chance(0.95) ? random.below(4) : 4) };
        case 'create2':
          return {
            op: 'create2',
            request: this.#create(random.chance(0.95) ? random.below(4) : 4),
          };
        case 'createContainer':
          return {
            op: 'createContainer',
            request: this.#create(random.chance(0.9) ? 4 : random.below(7)),
          };
        case 'createTTL': {
          const flags = random.chance(0.9) ? random.pick([5, 6]) : random.below(8);
          return { op: 'createTTL', request: { ...this.#create(flags), ttl: this.#ttl() } };
        }
        case 'delete':
          return { op: 'delete', request: this.#delete() };
        case 'setData':
          return { op: 'setData', request: this.#setData() };
        case 'check':
          return { op: 'check', request: { path: this.#path(), version: this.#version() } };
        case 'getData':
          return { op: 'getData', request: { path: this.#path(), watch: false } };
      }
    });
  }

  #multiRead(): MultiPart[] {
    const random = this.#random;
    return random.times(random.below(5), (): MultiPart => {
      const request = { path: this.#path(), watch: random.chance(0.3) };
      if (random.chance(0.02)) {
        return { op: 'check', request: { path: this.#path(), version: -1 } };
      }
      return { op: random.pick(['getData', 'getChildren'] as const), request };
    });
  }

  // ── values ────────────────────────────────────────────────────────────────────────────────────

  #path(): string {
    const random = this.#random;
    const kind = random.weighted([
      [700, 'there'],
      [200, 'usual'],
      [40, 'odd'],
      [20, 'broken'],
      [25, 'system'],
      [15, 'root'],
    ] as const);
    switch (kind) {
      case 'there':
        return random.pick(this.#nodes);
      case 'usual':
        return this.#joined(names, random.weighted(depths));
      case 'odd':
        return `${this.#joined(names, random.below(2))}/${random.pick(oddNames)}`;
      case 'broken':
        return random.chance(0.3)
          ? random.pick(['', 'a', 'a/b', '//', '/a//b', '/a/', '/a/b/', '/./a', '/../a'])
          : `${this.#joined(names, random.below(2))}/${random.pick(brokenNames)}`;
      case 'system':
        return random.pick(systemPaths);
      case 'root':
        return '/';
    }
  }

  #joined(from: readonly string[], depth: number): string {
    const random = this.#random;
    const path = random.times(depth, () => `/${random.pick(from)}`).join('');
    // Now and then the node that a sequential create made.
    return random.chance(0.04) ? `${path}/q-000000000${random.below(4)}` : path;
  }

  #version(): number {
    const random = this.#random;
    if (random.chance(0.7)) return -1;
    return random.weighted<number>([
      [10, random.below(3)],
      [1, -2],
      [1, 0x7fff_ffff],
    ]);
  }

  #data(): Buffer | null {
    const random = this.#random;
    return random.weighted<Buffer | null>([
      [12, Buffer.from('data'.repeat(random.below(4)))],
      [3, null],
      [2, Buffer.from(random.pick(quotaTexts))],
      [1, Buffer.alloc(random.below(300), 0xff)],
    ]);
  }

  #ttl(): bigint {
    const random = this.#random;
    if (random.chance(0.8)) return 1_000_000n;
    return random.pick([0n, -1n, 1n << 39n, (1n << 40n) - 1n, 1n << 40n, 1n << 62n]);
  }

  #acl(): Acl[] {
    const random = this.#random;
    if (random.chance(0.85)) return open;
    return random.times(random.below(4), () => {
      const perms = random.weighted([
        [4, 31],
        [2, 1],
        [2, random.below(32)],
        [1, random.pick([0, -1, 64])],
      ]);
      return { perms, id: random.weighted(ids) };
    });
  }
}

// biome-ignore format: a table is read down its columns
const opWeights: readonly (readonly [number, OpName])[] = [
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

const multiWeights = [
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
const multiSizes = [
  [1, 0],
  [5, 1],
  [6, 2],
  [4, 3],
  [2, 4],
  [1, 6],
] as const;

const depths = [
  [40, 1],
  [35, 2],
  [20, 3],
  [5, 4],
] as const;

const digestIds = users.map((user) => digestId(user));

const ids: readonly (readonly [number, { scheme: string; id: string }])[] = [
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
  [1, { scheme: 'x509', id: 'CN=ann' }],
  [1, { scheme: 'super', id: '' }],
  [1, { scheme: '', id: '' }],
  [1, { scheme: 'nosuch', id: 'x' }],
];

const quotaTexts = [
  'count=3,bytes=100',
  'count=1,bytes=-1=;byteHardLimit=10;countHardLimit=2',
  'count=-1,bytes=-1=;byteHardLimit=40;countHardLimit=-1',
  'count=5,bytes=5=;byteHardLimit=5;countHardLimit=5',
  'count=2',
  'not a quota',
  '',
];

/** A length below 0 or far too high; frames too short to hold a header. */
const brokenFrames = [
  'ffffffff',
  '7fffffff',
  '00000000',
  '0000000400000001',
  '00000007000000010000',
];

/** Handshakes that a client of no version sends, each with its length in front. */
const oddGreetings = [
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

const unknownOps = [10, 23, 50, 99, 108, 1000, -5, -1, -12, 0, ops.check.code];
