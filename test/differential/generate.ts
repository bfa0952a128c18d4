/**
 * Random scripts. Few names, few users and small versions, so that commands meet: a create finds its
 * node there, a watch fires, a version fits. Everything odd is rare enough to leave the rest alone.
 */

import { neverSent } from './allowed.ts';
import { Requests } from './generate-requests.ts';
import {
  brokenFrames,
  oddGreetings,
  oddTimeouts,
  oddXids,
  open,
  opWeights,
  pokedBytes,
  quotaTexts,
  saslTokens,
  unknownOps,
  users,
} from './generate-tables.ts';
import { Values } from './generate-values.ts';
import { Random } from './random.ts';
import { type Call, type Command, type Script, standsAlone } from './script.ts';

const commandsMin = 50;
const commandsMax = 400;

/** `enforceQuota`: as the servers are told. */
export function generate(seed: number, enforceQuota: boolean): Script {
  const random = new Random(seed);
  const length = commandsMin + random.below(commandsMax - commandsMin + 1);
  const pipelined = random.chance(0.7);
  const maker = new Maker(random, 1 + random.below(4), pipelined, random.chance(0.4));
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

/** Sent only where every node is open. What they ask of ACLs is in the table of test/access. */
const openOnly: ReadonlySet<string> = new Set(['deleteContainer', 'setWatches', 'setWatches2']);

/**
 * Not what could become one of those that are never sent, or has to stand alone: ops with a time to live,
 * quotas, containers.
 */
function bearsPoking({ op, request }: Call): boolean {
  if (op === 'setWatches' || op === 'setWatches2' || op === 'ping') return false;
  const text = JSON.stringify([op, request], noBigInts);
  return !/createTTL|createContainer|zookeeper|quota|count=/.test(text);
}

class Maker {
  readonly #random: Random;
  readonly slots: number;
  readonly #pipelined: boolean;
  /** Every node is open to every connection: only then are `openOnly` ops sent. */
  readonly #isOpen: boolean;
  #slot = 0;
  #lead = 0;
  readonly #values: Values;
  readonly #requests: Requests;
  /** Slots whose link is likely gone: they connect again before they say more. */
  readonly #gone = new Set<number>();

  constructor(random: Random, slots: number, pipelined: boolean, isOpen: boolean) {
    this.#random = random;
    this.#isOpen = isOpen;
    this.#values = new Values(random, isOpen);
    this.#requests = new Requests(random, this.#values);
    this.slots = slots;
    this.#pipelined = pipelined;
  }

  connect(slot: number): Command {
    const random = this.#random;
    const timeOut = random.chance(0.9) ? 60_000 : random.pick(oddTimeouts);
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
      timeOut: random.chance(0.9) ? 60_000 : random.pick(oddTimeouts),
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
      this.#values.nodes.push(path);
      const nodes = [make(at, ''), ...(random.chance(0.5) ? [limits, stats] : [stats, limits])];
      return random.chance(0.5) ? [first, ...nodes] : [...nodes, first];
    });
  }

  #call(slot: number): Call {
    const random = this.#random;
    for (;;) {
      const op = random.weighted(opWeights);
      if (!this.#isOpen && openOnly.has(op)) continue;
      let call: Call = { kind: 'call', slot, op, request: this.#requests.of(op) };
      if (random.chance(0.01)) call = this.#mangled(call);
      else if (random.chance(0.02) && !this.#isOpen && bearsPoking(call)) call = this.#poked(call);
      else if (op === 'setWatches' || op === 'setWatches2') call = { ...call, xid: -8 };
      else if (op === 'ping') call = { ...call, xid: -2 };
      else if (random.chance(0.005)) call = { ...call, xid: random.pick(oddXids) };
      if (!neverSent.some((never) => never.is(call))) return call;
    }
  }

  #mangled(call: Call): Call {
    const random = this.#random;
    if (random.chance(0.2))
      return { ...call, hex: random.pick(['', 'ffffffff', '00', 'fffffffe']) };
    return { ...call, cut: random.chance(0.7) ? 1 + random.below(12) : -1 - random.below(8) };
  }

  #poked(call: Call): Call {
    const random = this.#random;
    return { ...call, poke: { at: random.below(200), byte: random.pick(pokedBytes) } };
  }

  #odd(slot: number): Call {
    const random = this.#random;
    return random.weighted<Call>([
      [3, { kind: 'call', slot, op: random.pick(unknownOps), request: null, hex: '' }],
      [2, { kind: 'call', slot, op: 'check', request: { path: this.#values.path(), version: -1 } }],
      [
        1,
        {
          kind: 'call',
          slot,
          op: 'sasl',
          request: { token: Buffer.from(random.pick(saslTokens)) },
        },
      ],
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
}
