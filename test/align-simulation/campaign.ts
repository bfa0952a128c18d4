/**
 * An aligned group in a world of its own: partitions grow, members work, crash, are stopped and cut off,
 * at random moments or at a chosen step of the leader's protocol, and everything is watched.
 *
 * What is checked, whenever it happens:
 *   - no record is handed out at or beyond the limit and the allowance
 *   - the limit, the cut and its offsets never go back; only the first in the election's line writes them,
 *     with an epoch not below the one before
 *   - a cut holds nothing that is not done, and nothing at or beyond its boundary and the allowance
 *   - nobody begins a partition after what is done of it (that would be a loss), nor before the cut that
 *     was stored when it got the partition (that would be a duplicate outside the window)
 * and when faults stop:
 *   - the group catches up within a bound
 *   - in the end every record was worked off, and every boundary's callback was called
 */

import {
  type Aligner,
  type AlignOptions,
  align,
  alignPaths,
  type LeaderStep,
  parseCut,
  parseLimit,
  type RuleInput,
  type StoredLimit,
  setRule,
} from '../../src/align/index.ts';
import { ModelServer } from '../kafka-simulation/server.ts';
import { Process, World } from '../kafka-simulation/world.ts';
import { SimClient } from './client.ts';
import { Log, SimSource } from './source.ts';

export type Fault = 'kill' | 'pause' | 'cut';

export interface CampaignOptions {
  readonly seed: number;
  /** For so long partitions grow. */
  readonly minutes: number;
  readonly members: number;
  readonly partitions: number;
  readonly mode?: RuleInput;
  readonly allowanceMs?: number;
  /** About so much time lies between two faults; none: no faults at random. */
  readonly faultEveryMs?: number;
  /** The rule is changed now and then. */
  readonly changesRule?: boolean;
  /** One fault, when the leader comes to this step for the n-th time. */
  readonly faultAt?: {
    readonly step: LeaderStep;
    readonly count: number;
    readonly fault: Fault;
    /** So much later: a request has left by then, or its reply has. */
    readonly afterMs?: number;
    readonly forMs?: number;
  };
  /** A record of each partition comes about so often. 20 s. */
  readonly recordEveryMs?: number;
  readonly onProgress?: (minutes: number) => void;
}

export interface CampaignReport {
  readonly records: number;
  readonly handed: number;
  readonly cuts: number;
  readonly calls: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly stepsTaken: Readonly<Record<string, number>>;
  readonly epochs: number;
  readonly requests: number;
  readonly quarantined: number;
  readonly simulatedMinutes: number;
  /** From the end of all faults until everybody had caught up. */
  readonly catchUpMsMax: number;
  readonly fingerprint: string;
}

export class Violation extends Error {}

interface Slot {
  readonly name: string;
  readonly process: Process;
  readonly client: SimClient;
  readonly run: Aligner;
  isOver: boolean;
}

const group = 'g';
const paths = alignPaths(group);
const sessionTimeoutMs = 12_000;
const idleAfterMs = 45_000;
const wallMs = 1_700_000_000_000;

export class AlignCampaign {
  readonly world: World;
  readonly server: ModelServer;
  readonly logs = new Map<string, Log>();
  readonly slots = new Set<Slot>();
  readonly #options: CampaignOptions;
  readonly #allowanceMs: number;
  /** By partition: everything before it was worked off by somebody. */
  readonly #done = new Map<string, number>();
  readonly #faults: Record<string, number> = {};
  readonly #steps: Record<string, number> = {};
  readonly #calls: { start: number; end: number }[] = [];
  readonly #catchUpMs: number[] = [];
  readonly #witness: SimClient;
  #limit: StoredLimit | null = null;
  #cutOffsets = new Map<string, bigint>();
  #stepMaxMs = 0;
  #firstCut: number | null = null;
  #cuts = 0;
  #handed = 0;
  #quarantined = 0;
  #made = 0;
  #hash = 0;
  #epochs = new Set<bigint>();
  #isProducing = true;
  #isFaultDone = false;
  #violation: Violation | undefined;

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.#allowanceMs = options.allowanceMs ?? 5_000;
    this.world = new World(options.seed);
    this.server = new ModelServer(this.world);
    this.server.onChange = (path, _, data, session) => {
      if (path === paths.limit && data !== null) this.#checkLimit(data, session);
    };
    for (let p = 0; p < options.partitions; p++) {
      this.logs.set(`t/${p}`, new Log());
      this.#done.set(`t/${p}`, 0);
    }
    this.#witness = this.#client(new Process(this.world));
  }

  #client(process: Process): SimClient {
    return new SimClient(this.world, this.server, process, {
      latencyMs: () => this.world.int(1, 15),
      sessionTimeoutMs,
    });
  }

  // ── what happens ──────────────────────────────────────────────────────────────────────────────

  async run(): Promise<CampaignReport> {
    const { minutes, members, faultEveryMs, changesRule } = this.#options;
    for (const log of this.logs.values()) this.#produce(log);
    for (let i = 0; i < members; i++) this.join();
    const endMs = minutes * 60_000;
    let quietAtMs = quietEveryMs;
    while (this.world.nowMs < endMs) {
      const everyMs = faultEveryMs ?? 60_000;
      await this.runFor(this.world.int(1, 2 * everyMs));
      if (faultEveryMs !== undefined) this.#strike();
      if (changesRule && this.world.int(0, 20) === 0) this.#changeRule();
      while (this.slots.size < members) this.join();
      if (this.world.nowMs < quietAtMs) continue;
      await this.quiet();
      quietAtMs = this.world.nowMs + quietEveryMs;
      this.#options.onProgress?.(this.world.nowMs / 60_000);
    }
    await this.finish();
    return this.report();
  }

  /** One record after the other, now close together, now with a long silence between. */
  #produce(log: Log): void {
    const { world } = this;
    const { recordEveryMs = 20_000 } = this.#options;
    const isSilent = world.int(0, 60) === 0;
    const waitMs = isSilent ? world.int(60_000, 600_000) : world.int(1, 2 * recordEveryMs);
    world.after(waitMs, () => {
      if (!this.#isProducing) return;
      const dice = world.int(0, 200);
      const nowMs = wallMs + world.nowMs;
      // One in two hundred is in the far future, and one comes later than it may.
      const lateMs = dice === 1 ? 10 * this.#allowanceMs : world.int(0, this.#allowanceMs);
      if (dice === 0) log.junk.add(log.timesMs.length);
      log.append(dice === 0 ? nowMs + 86_400_000 : nowMs - lateMs);
      this.#produce(log);
    });
  }

  join(): Slot {
    const { world } = this;
    const number = this.#made++;
    const name = `host-${number}`;
    const process = new Process(world);
    const client = this.#client(process);
    const source = new SimSource(process, this.logs, {
      latencyMs: () => world.int(1, 30),
      batchMax: 20,
    });
    const options: AlignOptions = {
      group,
      source,
      topics: { t: this.#options.partitions },
      mode: this.#options.mode ?? { period: 60_000 },
      outOfOrder: this.#allowanceMs,
      idleAfter: idleAfterMs,
      consumerId: name,
      batchRecordsMax: 7,
      releaseTimeoutMs: 3_000,
      debounceMs: 100,
      clock: process.clock,
      random: world.random,
      onQuarantine: () => {
        this.#quarantined += 1;
      },
      onPeriod: async ({ start, end }) => {
        await this.#sleep(slot, world.int(0, 300));
        this.#calls.push({ start, end });
      },
      onStep: (step) => this.#step(slot, step),
    };
    const slot: Slot = {
      name,
      process,
      client,
      run: align(client.asClient, options),
      isOver: false,
    };
    this.slots.add(slot);
    this.#watch(slot);
    this.#work(slot).catch((error) => this.#violate(`${name} failed: ${(error as Error).stack}`));
    return slot;
  }

  #sleep({ process }: Slot, ms: number): Promise<void> {
    return new Promise((resolve) => void process.clock.after(ms, resolve));
  }

  async #work(slot: Slot): Promise<void> {
    for await (const batch of slot.run) {
      if (slot.process.state !== 'running') {
        // The model lets promises run on in a stopped process, where the real one would not.
        await new Promise<void>((resolve) => slot.process.deliver(resolve));
        if (batch.signal.aborted) continue;
      }
      const key = `${batch.topic}/${batch.partition}`;
      this.#handed += batch.records.length;
      this.#checkHanded(slot, key, batch.timesMs);
      this.#begun.get(batch.epoch)?.(Number(batch.records[0]!.offset), Number(batch.nextOffset));
      await this.#sleep(slot, this.world.int(1, 200));
      if (await batch.done()) {
        this.#done.set(key, Math.max(this.#done.get(key)!, Number(batch.nextOffset)));
      }
    }
    slot.isOver = true;
    this.slots.delete(slot);
    await slot.run.close();
    await slot.client.close();
  }

  readonly #begun = new Map<bigint, (first: number, next: number) => void>();

  /** Looks at where each ownership begins, and that it goes on without a hole. */
  #watch(slot: Slot): void {
    slot.run.on('assigned', ({ topic, partition, epoch }) => {
      const key = `${topic}/${partition}`;
      const cutOffset = Number(this.#cutOffsets.get(key) ?? 0n);
      let expected: number | undefined;
      this.#begun.set(epoch, (first, next) => {
        const done = this.#done.get(key)!;
        if (expected === undefined) {
          if (first < cutOffset) {
            this.#violate(`${key}: begun at ${first}, and the cut was at ${cutOffset}`);
          }
        }
        // What is left out for its time is done too; more than that would be lost.
        const from = expected ?? Math.min(first, Math.max(done, cutOffset));
        for (let at = from; at < first; at++) {
          if (!this.#isLeftOut(key, at)) this.#violate(`${key}: ${at} was passed over (${first})`);
        }
        expected = next;
      });
    });
    slot.run.on('ended', ({ epoch }) => this.#begun.delete(epoch));
    slot.run.on('problem', (where, error) => {
      this.#mix(`${slot.name} ${where} ${(error as Error).message}`);
    });
  }

  #isLeftOut(key: string, at: number): boolean {
    return this.logs.get(key)!.junk.has(at);
  }

  // ── faults ────────────────────────────────────────────────────────────────────────────────────

  async #step(slot: Slot, step: LeaderStep): Promise<void> {
    this.#steps[step] = (this.#steps[step] ?? 0) + 1;
    this.#mix(`${this.world.nowMs} ${slot.name} ${step}`);
    const { faultAt } = this.#options;
    if (faultAt === undefined || this.#isFaultDone) return;
    if (step !== faultAt.step || this.#steps[step] !== faultAt.count) return;
    this.#isFaultDone = true;
    const { forMs = 2 * sessionTimeoutMs, afterMs } = faultAt;
    if (afterMs !== undefined) {
      this.world.after(afterMs, () => this.strike(slot, faultAt.fault, forMs));
      return;
    }
    this.strike(slot, faultAt.fault, forMs);
    if (faultAt.fault !== 'cut') {
      await new Promise<void>((resolve) => slot.process.deliver(resolve));
    }
  }

  strike(slot: Slot, fault: Fault, forMs: number): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1;
    this.#mix(`${this.world.nowMs} ${fault} ${slot.name}`);
    if (fault === 'kill') {
      slot.process.kill();
      slot.client.cut(Number.MAX_SAFE_INTEGER / 2);
      this.slots.delete(slot);
    } else if (fault === 'pause') {
      slot.process.pause();
      this.world.after(forMs, () => slot.process.resume());
    } else slot.client.cut(forMs);
  }

  #strike(): void {
    const { world } = this;
    const slots = [...this.slots].filter(({ process }) => process.state === 'running');
    const slot = slots[world.int(0, slots.length)];
    if (slot === undefined) return;
    const fault = (['kill', 'pause', 'cut'] as const)[world.int(0, 3)]!;
    const isLong = world.int(0, 3) === 0;
    this.strike(slot, fault, world.int(1, isLong ? 3 * sessionTimeoutMs : 4_000));
  }

  #changeRule(): void {
    const { world } = this;
    const rules: RuleInput[] = [
      { period: 60_000 },
      { period: 30_000 },
      { period: 120_000, lookAhead: 1 },
      { period: 60_000, lookAhead: 3 },
      { drift: 90_000 },
    ];
    const rule = rules[world.int(0, rules.length)]!;
    this.#mix(JSON.stringify(rule));
    setRule(this.#witness.asClient, group, rule).catch((error) => this.#violate(String(error)));
  }

  // ── what must hold ────────────────────────────────────────────────────────────────────────────

  #checkHanded(slot: Slot, key: string, timesMs: readonly (number | null)[]): void {
    const limitMs = this.#limit?.limitMs;
    for (const timeMs of timesMs) {
      if (limitMs == null || timeMs! >= limitMs + this.#allowanceMs) {
        this.#violate(`${slot.name} was handed ${key} at ${timeMs}, and the limit is ${limitMs}`);
      }
    }
  }

  #checkLimit(data: string, session: bigint): void {
    const limit = parseLimit(Buffer.from(data), paths.limit);
    const before = this.#limit;
    this.#mix(data);
    this.#epochs.add(limit.epoch);
    this.#stepMaxMs = Math.max(this.#stepMaxMs, limit.rule.stepMs);
    const first = [...(this.server.nodes.get(paths.election)?.children ?? [])].sort(
      (a, b) => Number(a.slice(-10)) - Number(b.slice(-10)),
    )[0];
    const leader = this.server.nodes.get(`${paths.election}/${first}`);
    if (leader?.stat.ephemeralOwner !== session || leader.stat.czxid !== limit.epoch) {
      this.#violate(`the limit was written by session ${session}, which does not lead`);
    }
    if (before !== null) {
      if (limit.epoch < before.epoch) this.#violate(`epoch ${limit.epoch} after ${before.epoch}`);
      if ((limit.limitMs ?? -1) < (before.limitMs ?? -1)) {
        this.#violate(`the limit went back from ${before.limitMs} to ${limit.limitMs}`);
      }
      if ((limit.cut?.end ?? -1) < (before.cut?.end ?? -1)) this.#violate('the cut went back');
    }
    this.#limit = limit;
    const { cut } = limit;
    if (cut === null || cut.node === before?.cut?.node) return;
    // Its node comes later in the same transaction: look when that is over.
    queueMicrotask(() => this.#checkCut(cut.end, cut.start, paths.cut(cut.node)));
  }

  #checkCut(end: number, start: number | null, path: string): void {
    const node = this.server.nodes.get(path);
    if (node === undefined) {
      this.#violate(`${path} is missing`);
      return;
    }
    this.#cuts += 1;
    if (start === null) this.#firstCut = end;
    const { offsets } = parseCut(node.data, path);
    if (offsets.size !== this.logs.size) this.#violate(`${path}: ${offsets.size} partitions`);
    for (const [key, offset] of offsets) {
      const before = this.#cutOffsets.get(key) ?? 0n;
      if (offset < before) this.#violate(`${key}: the cut went back from ${before} to ${offset}`);
      let done = this.#done.get(key)!;
      while (done < offset && this.#isLeftOut(key, done)) done += 1;
      if (offset > done) this.#violate(`${key}: the cut is at ${offset}, and ${done} are done`);
      const { timesMs } = this.logs.get(key)!;
      for (let at = Number(before); at < offset; at++) {
        const isBeyond = timesMs[at]! >= end + this.#allowanceMs + this.#slackMs;
        if (isBeyond && !this.#isLeftOut(key, at)) {
          this.#violate(`${key}: ${timesMs[at]} at ${at} is in the cut at ${end}`);
        }
      }
    }
    this.#cutOffsets = new Map(offsets);
  }

  /** After a change of the period some have passed boundaries that others never had. */
  get #slackMs(): number {
    return this.#options.changesRule ? this.#stepMaxMs : 0;
  }

  // ── running ───────────────────────────────────────────────────────────────────────────────────

  async runFor(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms, () => this.#violation !== undefined);
    if (this.#violation !== undefined) throw this.#violation;
  }

  /** Everybody goes on, every link is up: now the group must catch up with the present. */
  async quiet(): Promise<void> {
    this.#heal();
    const startMs = this.world.nowMs;
    // What was produced until now has to be cut off, however slow the rule is.
    const untilMs = wallMs + startMs;
    const boundMs = 4 * sessionTimeoutMs + 4 * idleAfterMs + 20 * 60_000;
    for (;;) {
      await this.runFor(1_000);
      const end = this.#limit?.cut?.end ?? 0;
      if (end >= untilMs) break;
      if (this.world.nowMs - startMs > boundMs) {
        throw this.#violation ?? new Violation(`${this.#where()}: stuck at ${this.state()}`);
      }
    }
    this.#catchUpMs.push(this.world.nowMs - startMs);
  }

  #heal(): void {
    for (const { process, client } of this.slots) {
      client.heal();
      process.resume();
    }
  }

  /** No more records come: everybody reads to the end, and every loop ends by itself. */
  async finish(): Promise<void> {
    const { members } = this.#options;
    this.#heal();
    while (this.slots.size < members) this.join();
    this.#isProducing = false;
    for (const log of this.logs.values()) log.end();
    const startMs = this.world.nowMs;
    while (this.slots.size > 0) {
      await this.runFor(500);
      if (this.world.nowMs - startMs > 20 * 60_000) {
        throw new Violation(`${this.#where()}: not finished: ${this.state()}`);
      }
    }
    for (const [key, { timesMs }] of this.logs) {
      let done = this.#done.get(key)!;
      while (done < timesMs.length && this.#isLeftOut(key, done)) done += 1;
      if (done !== timesMs.length) this.#violate(`${key}: ${done} of ${timesMs.length} are done`);
    }
    this.#checkCalls();
    if (this.#violation !== undefined) throw this.#violation;
  }

  #checkCalls(): void {
    let reachedMs = this.#firstCut;
    for (const { start, end } of [...this.#calls].sort((a, b) => a.start - b.start)) {
      if (reachedMs === null || start > reachedMs) {
        this.#violate(`nobody was called for ${reachedMs} to ${start}`);
      } else reachedMs = Math.max(reachedMs, end);
    }
    const end = this.#limit?.cut?.end ?? null;
    if (reachedMs !== end) this.#violate(`called up to ${reachedMs}, and the cut is at ${end}`);
  }

  #where(): string {
    const { seed } = this.#options;
    return `seed ${seed}, at ${this.world.nowMs} ms`;
  }

  #violate(what: string): void {
    this.#violation ??= new Violation(`${this.#where()}: ${what}`);
  }

  #mix(text: string): void {
    for (let i = 0; i < text.length; i++)
      this.#hash = (Math.imul(this.#hash, 31) + text.charCodeAt(i)) | 0;
  }

  /** Where everybody is: for whoever has to find out why it is stuck. */
  state(): string {
    const limit = this.#limit;
    const slots = [...this.slots].map(({ name, process, run, client }) => {
      const { partitions, isLeading, limit: known, member } = run.status();
      const lanes = partitions.map(
        (one) =>
          `${one.partition} ${one.state} ${one.positionMs} @${one.offset}${one.isHeldBack ? ' held' : ''}${one.isInHand ? ' hand' : ''}`,
      );
      return `${name} ${process.state} ${client.state.name} ${isLeading ? 'leads' : ''} ${member.state.name} limit ${known?.limitMs} [${lanes.join('; ')}]`;
    });
    return `limit ${limit?.limitMs} cut ${limit?.cut?.end} epoch ${limit?.epoch} finished ${limit?.isFinished}\n${slots.join('\n')}`;
  }

  report(): CampaignReport {
    let records = 0;
    for (const { timesMs } of this.logs.values()) records += timesMs.length;
    return {
      records,
      handed: this.#handed,
      cuts: this.#cuts,
      calls: this.#calls.length,
      faults: { ...this.#faults },
      stepsTaken: { ...this.#steps },
      epochs: this.#epochs.size,
      requests: this.server.requests,
      quarantined: this.#quarantined,
      simulatedMinutes: Math.round(this.world.nowMs / 60_000),
      catchUpMsMax: Math.max(0, ...this.#catchUpMs),
      fingerprint: (this.#hash >>> 0).toString(16),
    };
  }
}

const quietEveryMs = 30 * 60_000;
