/**
 * Who is there, as all see it: members of a group, machines under watch, Dubbo's providers.
 *
 * What must hold: a node is made once for each session; one that is gone does not come back in its old
 * session, in nobody's eyes; and after the faults each worker sees all the others, with the sessions that
 * they have now, and the server has their nodes as owned by these. Guests come and go meanwhile, and none
 * is seen once it has left. The server is looked at now and then: what was made twice between two looks
 * is seen by the workers alone.
 */

import { setTimeout as delay } from 'node:timers/promises';
import {
  DubboRegistry,
  encodeDubbo,
  GroupMember,
  Machine,
  MachineMonitor,
} from '../../src/recipes/index.ts';
import { type Asked, type Hand, Judge, type Situation, type Workload } from './workload.ts';

interface SightSetting {
  readonly pathOf: (worker: string) => string;
  /** What a worker shows of another one in its view. */
  readonly sightsOf: (worker: string, session: bigint) => readonly string[];
}

class Sights extends Judge {
  readonly #setting: SightSetting;
  /** For each worker and session the transaction that made its node. */
  readonly #births = new Map<string, bigint>();
  /** By viewer, who has gone in which session. */
  readonly #gone = new Set<string>();
  readonly #views = new Map<string, readonly string[]>();
  readonly #guestsHere = new Set<string>();
  /** What was wrong when it was last asked whether all is well. */
  #unwell: string | undefined;

  constructor(setting: SightSetting) {
    super();
    this.#setting = setting;
  }

  override hear({ worker, what, args }: Asked): void {
    if (what === 'view') {
      this.count('views');
      this.#views.set(worker, args as string[]);
      return;
    }
    if (what === 'guest' || what === 'guestLeft') {
      const [guest] = args as [string];
      if (what === 'guest') this.#guestsHere.add(guest);
      else this.#guestsHere.delete(guest);
      this.count(what);
      return;
    }
    const [other, session, czxid] = args as [string, bigint, bigint | undefined];
    const one = `${other} in session ${session}`;
    const seen = `${worker} sees ${one}`;
    this.count(what);
    if (what === 'gone') this.#gone.add(seen);
    else if (this.#gone.has(seen)) this.broken.push(`${seen} again, after it was gone`);
    if (czxid !== undefined) this.#born(one, czxid);
  }

  override async look({ witness, sessions }: Situation): Promise<void> {
    const { pathOf } = this.#setting;
    for (const worker of sessions.keys()) {
      const stat = await witness.exists(pathOf(worker));
      if (stat) this.#born(`${worker} in session ${stat.ephemeralOwner}`, stat.czxid);
    }
    this.count('looks');
  }

  override async isWell({ witness, sessions }: Situation): Promise<boolean> {
    const { pathOf, sightsOf } = this.#setting;
    const all = [...sessions].flatMap(([worker, session]) => sightsOf(worker, session));
    const wanted = all.sort().join();
    for (const [worker, session] of sessions) {
      const stat = await witness.exists(pathOf(worker));
      const view = this.#viewOf(worker);
      if (stat?.ephemeralOwner === session && view === wanted) continue;
      this.#unwell = `${worker} of ${session} has a node of ${stat?.ephemeralOwner}, and sees ${view}`;
      return false;
    }
    this.#unwell = undefined;
    return true;
  }

  override async end(): Promise<void> {
    if (this.#unwell !== undefined) this.broken.push(`at the last look ${this.#unwell}`);
  }

  /** Without guests that are here. One that has left is none of those who are wanted. */
  #viewOf(worker: string): string {
    const view = this.#views.get(worker) ?? [];
    const others = view.filter((sight) => !this.#guestsHere.has(sight.split(' ')[0]!));
    return others.sort().join();
  }

  #born(one: string, czxid: bigint): void {
    const before = this.#births.get(one) ?? czxid;
    if (before !== czxid) this.broken.push(`${one}: made twice, at ${before} and ${czxid}`);
    this.#births.set(one, czxid);
  }
}

interface Guest {
  close(): Promise<void>;
}

const lookMs = 20;
const guestRounds = 10;

/** Tells the view whenever it is another one, and waits between two looks. */
function teller(tell: (fact: string, ...args: unknown[]) => void) {
  let told: string | undefined;
  return async (view: readonly string[]): Promise<void> => {
    const text = view.join();
    if (text !== told) tell('view', ...view);
    told = text;
    await delay(lookMs);
  };
}

/** One guest after the other, each for some rounds. It need not have come when it leaves. */
function guests({ name, tell }: Hand, open: (guest: string) => Guest | Promise<Guest>) {
  let rounds = 0;
  let here: { readonly guest: string; readonly leave: Guest['close'] } | undefined;
  return async (): Promise<void> => {
    rounds += 1;
    if (rounds % guestRounds > 0) return;
    const before = here;
    here = undefined;
    try {
      await before?.leave();
    } finally {
      if (before) tell('guestLeft', before.guest);
    }
    const guest = `${name}-guest${rounds}`;
    tell('guest', guest);
    try {
      const opened = await open(guest);
      here = { guest, leave: () => opened.close() };
    } catch (error) {
      tell('guestLeft', guest);
      throw error;
    }
  };
}

const withSession = (worker: string, session: bigint | null) => [`${worker} ${session}`];
const unsure = ['not current'];

const dubboService = 'org.example.Faults';
const dubboUrl = (worker: string) => `dubbo://127.0.0.1:20880/${dubboService}?worker=${worker}`;
const dubboPath = (worker: string) =>
  `/dubbo/${dubboService}/providers/${encodeDubbo(dubboUrl(worker))}`;

export const seenWorkloads: Readonly<Record<string, Workload>> = {
  groupMember: {
    async begin(hand) {
      const { client, name, tell } = hand;
      const member = new GroupMember(client, '/group', name);
      await member.ready;
      void (async () => {
        for await (const { type, member: other } of member) {
          const { sessionId, incarnation } = other;
          if (type === 'joined') tell('joined', other.name, sessionId, incarnation);
          else if (type === 'left') tell('gone', other.name, sessionId);
        }
      })();
      const show = teller(tell);
      const invite = guests(hand, (guest) => new GroupMember(client, '/group', guest));
      return {
        async round() {
          await invite();
          await client.get(`/group/${name}`);
          const { isCurrent, members } = member;
          const view = members.flatMap((one) => withSession(one.name, one.sessionId));
          await show(isCurrent ? view : unsure);
        },
        close: () => member.close(),
      };
    },
    judge: () => new Sights({ pathOf: (worker) => `/group/${worker}`, sightsOf: withSession }),
  },

  machineMonitor: {
    async begin(hand) {
      const { client, name, tell } = hand;
      const options = { path: '/machines', beatMs: 500 };
      const machine = new Machine(client, { ...options, name });
      const monitor = new MachineMonitor(client, options);
      await Promise.all([machine.ready, monitor.ready]);
      void (async () => {
        for await (const { machine: other, to } of monitor) {
          if (to !== 'suspect') tell(to === 'up' ? 'up' : 'gone', other.name, other.sessionId);
        }
      })();
      const show = teller(tell);
      const invite = guests(hand, (guest) => new Machine(client, { ...options, name: guest }));
      return {
        async round() {
          await invite();
          await client.get(`/machines/${name}`);
          const up = monitor.machines.filter(({ state }) => state === 'up');
          const view = up.flatMap((one) => withSession(one.name, one.sessionId));
          await show(monitor.isCurrent ? view : unsure);
        },
        async close() {
          await machine.close();
          await monitor.close();
        },
      };
    },
    judge: () => new Sights({ pathOf: (worker) => `/machines/${worker}`, sightsOf: withSession }),
  },

  dubbo: {
    async begin(hand) {
      const { client, name, tell } = hand;
      const registry = new DubboRegistry(client);
      const { path } = await registry.register(dubboUrl(name));
      if (path !== dubboPath(name)) throw new Error(`${path} is not where Dubbo looks`);
      const consumer = `consumer://127.0.0.1/${dubboService}?category=providers`;
      const subscription = await registry.subscribe(consumer);
      const monitor = registry.monitor(dubboService);
      await Promise.all([subscription.ready, monitor.ready]);
      const show = teller(tell);
      const invite = guests(hand, (guest) => registry.register(dubboUrl(guest)));
      return {
        async round() {
          await invite();
          await registry.lookup(consumer);
          const isCurrent = subscription.staleSinceMs === null && monitor.staleSinceMs === null;
          const found = subscription.urls().map((one) => `${one.parameters.worker} found`);
          const watched = monitor.providers.map((one) => `${one.parameters.worker} watched`);
          await show(isCurrent ? [...found, ...watched] : unsure);
        },
        close: () => registry.close(),
      };
    },
    judge: () =>
      new Sights({
        pathOf: dubboPath,
        sightsOf: (worker) => [`${worker} found`, `${worker} watched`],
      }),
  },
};
