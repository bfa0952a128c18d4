/**
 * A group under a storm: members join, leave, crash, are stopped and cut off, at random moments of a
 * seeded world; then it is quiet, and everything must be as it should.
 *
 * What is checked, at every step:
 *   - no two running members take a partition for theirs at one moment, and no epoch has two owners
 *   - every commit that the server takes comes from the owner, and no offset goes back
 * and after each storm, within a bound:
 *   - every partition is owned, by a member that knows it, and shared out as fairly as it should be
 *   - nobody waits, nothing is left of those who went
 */

import {
  fixedTopics,
  GroupMember,
  type GroupMemberOptions,
  keyOf,
  OffsetStore,
  type OwnedPartition,
} from '../../src/kafka/index.ts';
import { ModelClient, type Network } from './client.ts';
import { ModelServer } from './server.ts';
import { Process, World } from './world.ts';

export interface CampaignOptions {
  readonly seed: number;
  readonly events: number;
  readonly membersMax: number;
  readonly partitions: number;
  readonly topics?: number;
  readonly mode: NonNullable<GroupMemberOptions['mode']>;
  readonly assignor?: GroupMemberOptions['assignor'];
  /** Events between two quiet times. 20. */
  readonly stormEvents?: number;
  /** The longest time between two events of a storm, but for a few. 300 ms. */
  readonly gapMs?: number;
  readonly onProgress?: (report: CampaignReport) => void;
}

export interface CampaignReport {
  readonly events: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly simulatedHours: number;
  readonly storms: number;
  readonly claims: number;
  readonly commits: number;
  /** Commits of members that did not own what they wanted to commit. */
  readonly refused: number;
  readonly requests: number;
  readonly requestsPerStorm: number;
  readonly watchEvents: number;
  /** From the last event of a storm until everything was settled. */
  readonly settleMsMax: number;
  readonly settleMsMean: number;
  /** A hash over all that happened: equal for equal seeds. */
  readonly fingerprint: string;
}

export class Violation extends Error {}

interface Slot {
  readonly name: string;
  readonly process: Process;
  readonly client: ModelClient;
  readonly member: GroupMember;
  readonly store: OffsetStore;
  /** What this process takes for its own. */
  readonly believed: Map<string, OwnedPartition>;
  isLeaving: boolean;
}

const group = 'g';
const sessionTimeoutMs = 10_000;
/** All who crashed or were cut off have expired, and what they had was claimed, several times over. */
const settleBoundMs = 4 * sessionTimeoutMs;

export class Campaign {
  readonly #options: CampaignOptions;
  readonly world: World;
  readonly server: ModelServer;
  readonly #network: Network;
  readonly #counts: Readonly<Record<string, number>>;
  readonly slots = new Set<Slot>();
  readonly #believers = new Map<string, Set<Slot>>();
  readonly #epochs = new Map<string, bigint>();
  readonly #byKind: Record<string, number> = {};
  readonly #settleMs: number[] = [];
  #violation: Violation | undefined;
  #made = 0;
  #claims = 0;
  #commits = 0;
  #refused = 0;
  #hash = 0;
  #done = 0;

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.world = new World(options.seed);
    this.server = new ModelServer(this.world);
    this.#network = { latencyMs: () => this.world.int(1, 20), sessionTimeoutMs };
    const { topics = 5, partitions } = options;
    const each = Math.ceil(partitions / topics);
    const names = Array.from({ length: topics }, (_, i) => `t${i}`);
    this.#counts = Object.fromEntries(
      names.map((name, i) => [name, Math.min(each, partitions - i * each)]),
    );
    this.server.onChange = (path, before, data, session) => {
      const found = /^\/consumers\/g\/offsets\/([^/]+)\/([^/]+)$/.exec(path);
      if (found !== null) this.#checkCommit(path, before?.data?.toString(), data, session);
    };
  }

  // ── what happens ──────────────────────────────────────────────────────────────────────────────

  async run(): Promise<CampaignReport> {
    const { events, membersMax, stormEvents = 20, gapMs = 300 } = this.#options;
    for (let i = 0; i < Math.ceil(membersMax / 2); i++) this.join();
    await this.quiet();
    while (this.#done < events) {
      const until = Math.min(events, this.#done + stormEvents);
      while (this.#done < until) {
        this.#happen();
        this.#done += 1;
        const isLull = this.world.int(0, 5_000) < gapMs;
        await this.#runFor(this.world.int(0, isLull ? 8_000 : gapMs));
      }
      await this.quiet();
      this.#options.onProgress?.(this.report());
    }
    for (const slot of [...this.slots]) this.leave(slot);
    await this.#runUntil(() => this.slots.size === 0, 'all have left');
    return this.report();
  }

  #happen(): void {
    const running = [...this.slots].filter(
      ({ process, isLeaving }) => process.state === 'running' && !isLeaving,
    );
    const dice = this.world.int(0, 100);
    const isRoom = this.slots.size < this.#options.membersMax;
    const slot = running[this.world.int(0, running.length)];
    const isLong = this.world.int(0, 2) === 0;
    const forMs = this.world.int(1, isLong ? 3 * sessionTimeoutMs : 3_000);
    if (slot === undefined || running.length < 2 || (dice < 30 && isRoom)) {
      this.#note('join', this.join().name);
    } else if (dice < 50) {
      this.leave(slot);
      this.#note('leave', slot.name);
    } else if (dice < 65) {
      this.crash(slot);
      this.#note('crash', slot.name);
    } else if (dice < 85) {
      slot.process.pause();
      this.world.after(forMs, () => slot.process.resume());
      this.#note('pause', slot.name);
    } else {
      slot.client.cut(forMs);
      this.#note('cut', slot.name);
    }
  }

  #note(kind: string, name: string): void {
    this.#byKind[kind] = (this.#byKind[kind] ?? 0) + 1;
    this.#mix(`${this.world.nowMs} ${kind} ${name}`);
  }

  #mix(text: string): void {
    for (let i = 0; i < text.length; i++)
      this.#hash = (Math.imul(this.#hash, 31) + text.charCodeAt(i)) | 0;
  }

  join({ commits = true } = {}): Slot {
    const { world } = this;
    const number = this.#made++;
    // The shape of a generated id, so that others read it once; unlike those, the same for every run.
    const name = `host${number % 40}-1700000000000-${number.toString(16).padStart(8, '0')}`;
    const process = new Process(world);
    const client = new ModelClient(world, this.server, process, this.#network);
    const store = new OffsetStore(client.asGroupClient, { group, onProblem: () => {} });
    const { mode, assignor } = this.#options;
    const member = new GroupMember(
      client.asGroupClient,
      {
        group,
        consumerId: name,
        subscribe: { topics: Object.keys(this.#counts) },
        topics: fixedTopics(this.#counts),
        mode,
        ...(assignor && { assignor }),
        releaseTimeoutMs: 2_000,
        clock: process.clock,
        random: world.random,
      },
      {
        assigned: (owned) => this.#assigned(slot, owned),
        releasing: (owned) => (commits ? this.#releasing(slot, owned) : Promise.resolve()),
        failed: (error) => this.#violate(`${name} failed: ${error}`),
      },
    );
    const slot: Slot = {
      name,
      process,
      client,
      member,
      store,
      believed: new Map(),
      isLeaving: false,
    };
    this.slots.add(slot);
    member.start();
    if (commits) this.#work(slot);
    return slot;
  }

  leave(slot: Slot): void {
    slot.isLeaving = true;
    const gone = () => this.slots.delete(slot);
    slot.member
      .close()
      .then(() => slot.client.close())
      .then(gone, (error) => this.#violate(`${slot.name} could not leave: ${error}`));
  }

  crash(slot: Slot): void {
    slot.process.kill();
    slot.client.cut(Number.POSITIVE_INFINITY);
    for (const key of slot.believed.keys()) this.#believers.get(key)?.delete(slot);
    this.slots.delete(slot);
  }

  // ── what members do ───────────────────────────────────────────────────────────────────────────

  #assigned(slot: Slot, owned: OwnedPartition): void {
    const key = keyOf(owned);
    this.#claims += 1;
    this.#mix(`${this.world.nowMs} ${slot.name} ${key} ${owned.epoch}`);
    const last = this.#epochs.get(key) ?? 0n;
    if (owned.epoch <= last) this.#violate(`${key}: epoch ${owned.epoch} after ${last}`);
    this.#epochs.set(key, owned.epoch);
    const believers = this.#believers.get(key) ?? new Set();
    this.#believers.set(key, believers);
    for (const other of believers) {
      // One that is stopped looks at its clock before anything else when it goes on.
      if (other === slot || other.process.state !== 'running') continue;
      void other.client.state;
      if (other.believed.get(key)?.signal.aborted === false) {
        this.#violate(`${key}: ${slot.name} and ${other.name} both take it for theirs`);
      }
    }
    believers.add(slot);
    slot.believed.set(key, owned);
    owned.signal.addEventListener('abort', () => {
      if (slot.believed.get(key) !== owned) return;
      slot.believed.delete(key);
      believers.delete(slot);
    });
  }

  /** Now and then a member commits what it has read, of all that it has. */
  #work(slot: Slot): void {
    slot.process.clock.after(this.world.int(500, 4_000), () => {
      if (!this.slots.has(slot)) return;
      const some = [...slot.believed.values()].filter(() => this.world.int(0, 3) === 0);
      this.#commit(slot, some).catch((error) => this.#violate(`${slot.name}: ${error}`));
      this.#work(slot);
    });
  }

  async #releasing(slot: Slot, owned: OwnedPartition): Promise<void> {
    // What is under way takes a while; now and then longer than it may.
    const workMs = this.world.int(0, 20) === 0 ? 3_000 : this.world.int(0, 200);
    await new Promise<void>((resolve) => {
      slot.process.clock.after(workMs, resolve);
    });
    await this.#commit(slot, [owned]);
  }

  async #commit(slot: Slot, owned: readonly OwnedPartition[]): Promise<void> {
    if (owned.length === 0) return;
    const requests = owned.map((one) => ({
      owned: one,
      // Sometimes less than before: what was read again after a step back must not count.
      offset: (one.offset ?? 0n) + BigInt(this.world.int(-3, 20)),
    }));
    try {
      const results = await slot.store.commit(
        requests.map((one) => (one.offset < 0n ? { ...one, offset: 0n } : one)),
      );
      this.#commits += results.length;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== 'NOT_OWNER' && code !== 'SESSION_EXPIRED' && code !== 'CONNECTION_LOSS')
        throw error;
      this.#refused += 1;
    }
  }

  // ── what must hold ────────────────────────────────────────────────────────────────────────────

  #checkCommit(
    path: string,
    before: string | undefined,
    data: string | null,
    session: bigint,
  ): void {
    if (data === null) {
      this.#violate(`${path} was deleted`);
      return;
    }
    if (before !== undefined && BigInt(data) < BigInt(before)) {
      this.#violate(`${path} went back from ${before} to ${data}`);
    }
    const owner = this.server.nodes.get(path.replace('/offsets/', '/owners/'));
    if (owner?.stat.ephemeralOwner !== session) {
      this.#violate(`${path}: a commit of session ${session}, which does not own it`);
    }
  }

  #violate(what: string): void {
    const { seed, mode, assignor } = this.#options;
    this.#violation ??= new Violation(
      `${what} (at ${this.world.nowMs} ms, event ${this.#done}, seed ${seed}, ${mode} ${assignor ?? ''})`,
    );
  }

  async #runFor(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms, () => this.#violation !== undefined);
    if (this.#violation !== undefined) throw this.#violation;
  }

  async #runUntil(isDone: () => boolean, what: string): Promise<void> {
    const endMs = this.world.nowMs + settleBoundMs;
    while (!isDone()) {
      if (this.world.nowMs >= endMs)
        this.#violate(`not within ${settleBoundMs} ms: ${what}: ${this.#state()}`);
      await this.#runFor(50);
    }
  }

  /** Everybody goes on, every link is up: now it must settle. */
  async quiet(): Promise<void> {
    for (const { process, client } of this.slots) {
      client.heal();
      process.resume();
    }
    const startMs = this.world.nowMs;
    await this.#runUntil(() => this.#isSettled(), 'everything is owned and settled');
    this.#settleMs.push(this.world.nowMs - startMs);
    this.#checkSettled();
  }

  #isSettled(): boolean {
    for (const { isLeaving, member } of this.slots) {
      if (isLeaving || member.state.name !== 'settled') return false;
    }
    const loads = [...this.slots].map(({ believed }) => believed.size);
    if (loads.reduce((a, b) => a + b, 0) !== this.#options.partitions) return false;
    // Each topic alone is fair to one; those that look at all of them together do no worse.
    const { topics = 5, assignor } = this.#options;
    return assignor === 'ceil' || Math.max(...loads) - Math.min(...loads) <= topics;
  }

  #checkSettled(): void {
    for (const slot of this.slots) {
      for (const [key, { epoch, path }] of slot.believed) {
        const node = this.server.nodes.get(path);
        if (node?.stat.czxid !== epoch) this.#violate(`${key}: ${slot.name} owns nothing`);
      }
    }
    if (this.#violation !== undefined) throw this.#violation;
  }

  #state(): string {
    return [...this.slots]
      .filter(({ member, isLeaving }) => isLeaving || member.state.name !== 'settled')
      .slice(0, 5)
      .map(({ name, member, isLeaving, process }) => {
        const { state, blocked, short, releasing, problems } = member.status();
        const waits = blocked.map((one) => `${keyOf(one)} held by ${one.holder}`).slice(0, 3);
        return `${name} ${process.state} ${isLeaving ? 'leaving' : ''} ${JSON.stringify(state)} blocked ${blocked.length} [${waits}] short ${short} releasing ${releasing.length} ${problems.at(-1)?.why ?? ''}`;
      })
      .join('; ');
  }

  report(): CampaignReport {
    const sum = this.#settleMs.reduce((a, b) => a + b, 0);
    const { requests } = this.server;
    return {
      events: this.#done,
      byKind: { ...this.#byKind },
      simulatedHours: Number((this.world.nowMs / 3_600_000).toFixed(2)),
      storms: this.#settleMs.length,
      claims: this.#claims,
      commits: this.#commits,
      refused: this.#refused,
      requests,
      requestsPerStorm: Math.round(requests / Math.max(1, this.#settleMs.length)),
      watchEvents: this.server.events,
      settleMsMax: Math.max(0, ...this.#settleMs),
      settleMsMean: Math.round(sum / Math.max(1, this.#settleMs.length)),
      fingerprint: (this.#hash >>> 0).toString(16).padStart(8, '0'),
    };
  }
}
