/**
 * An aligned group in a world of its own: partitions grow, members work, crash, are stopped and cut off,
 * at random moments or at a chosen step of the leader's protocol, people change it and hold it, and
 * everything is watched.
 *
 * What is checked, whenever it happens, and in the end, says `judge.ts`. When faults stop the group has to
 * catch up within a bound; held by hand it has to stand still, ask for next to nothing, go as far as it is
 * let on, and go on when it is let go.
 */

import { type Aligner, type AlignOptions, align, type LeaderStep } from '../../src/align/index.ts';
import { ModelServer } from '../kafka-simulation/server.ts';
import { Process, World } from '../kafka-simulation/world.ts';
import type { CampaignOptions, CampaignReport, Fault } from './campaign-options.ts';
import { SimClient } from './client.ts';
import { Judge, Violation } from './judge.ts';
import { People } from './people.ts';
import { Log, SimSource } from './source.ts';

export type { Fault } from './campaign-options.ts';
export { Violation } from './judge.ts';

interface Slot {
  readonly name: string;
  readonly process: Process;
  readonly client: SimClient;
  readonly run: Aligner;
  isOver: boolean;
}

const group = 'g';
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
  readonly #faults: Record<string, number> = {};
  readonly #steps: Record<string, number> = {};
  readonly #catchUpMs: number[] = [];
  readonly #judge: Judge;
  readonly #people: People;
  #quarantined = 0;
  #made = 0;
  #isProducing = true;
  #isFaultDone = false;

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.#allowanceMs = options.allowanceMs ?? 5_000;
    this.world = new World(options.seed);
    this.server = new ModelServer(this.world);
    for (let p = 0; p < options.partitions; p++) this.logs.set(`t/${p}`, new Log());
    const { server, logs } = this;
    this.#judge = new Judge({
      ...{ group, server, logs, allowanceMs: this.#allowanceMs },
      changesRule: options.changesRule === true,
      where: () => this.#where(),
    });
    const { asClient } = this.#client(new Process(this.world));
    this.#people = new People(asClient, this.world, group, (error) =>
      this.#judge.violate(String(error)),
    );
  }

  #client(process: Process): SimClient {
    return new SimClient(this.world, this.server, process, {
      latencyMs: () => this.world.int(1, 15),
      sessionTimeoutMs,
    });
  }

  // ── what happens ──────────────────────────────────────────────────────────────────────────────

  async run(): Promise<CampaignReport> {
    const { minutes, members, faultEveryMs, changesRule, holds } = this.#options;
    for (const log of this.logs.values()) this.#produce(log);
    for (let i = 0; i < members; i++) this.join();
    const endMs = minutes * 60_000;
    let quietAtMs = quietEveryMs;
    while (this.world.nowMs < endMs) {
      const everyMs = faultEveryMs ?? 60_000;
      await this.runFor(this.world.int(1, 2 * everyMs));
      if (faultEveryMs !== undefined) this.#strike();
      if (changesRule && this.world.int(0, 20) === 0) this.#judge.mix(this.#people.changeRule());
      if (holds && this.world.int(0, 4) === 0) this.#judge.mix(this.#people.change());
      while (this.slots.size < members) this.join();
      if (this.world.nowMs < quietAtMs) continue;
      await this.quiet();
      if (holds) await this.held();
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
        this.#judge.called({ start, end });
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
    this.#work(slot).catch((error) =>
      this.#judge.violate(`${name} failed: ${(error as Error).stack}`),
    );
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
      this.#judge.handed(slot.name, key, batch);
      await this.#sleep(slot, this.world.int(1, 200));
      if (await batch.done()) this.#judge.done(key, batch.nextOffset);
    }
    slot.isOver = true;
    this.slots.delete(slot);
    await slot.run.close();
    await slot.client.close();
  }

  #watch(slot: Slot): void {
    slot.run.on('assigned', ({ topic, partition, epoch }) =>
      this.#judge.assigned(`${topic}/${partition}`, epoch),
    );
    slot.run.on('ended', ({ epoch }) => this.#judge.ended(epoch));
    slot.run.on('problem', (where, error) => {
      this.#judge.mix(`${slot.name} ${where} ${(error as Error).message}`);
    });
  }

  // ── faults ────────────────────────────────────────────────────────────────────────────────────

  async #step(slot: Slot, step: LeaderStep): Promise<void> {
    this.#steps[step] = (this.#steps[step] ?? 0) + 1;
    this.#judge.mix(`${this.world.nowMs} ${slot.name} ${step}`);
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
    this.#judge.mix(`${this.world.nowMs} ${fault} ${slot.name}`);
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

  // ── running ───────────────────────────────────────────────────────────────────────────────────

  async runFor(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms, () => this.#judge.violation !== undefined);
    if (this.#judge.violation !== undefined) throw this.#judge.violation;
  }

  /** Everybody goes on, every link is up: now the group must catch up with the present. */
  async quiet(): Promise<void> {
    this.#heal();
    if (this.#options.holds) this.#people.hold('continue');
    const startMs = this.world.nowMs;
    // What was produced until now has to be cut off, however slow the rule is.
    const untilMs = wallMs + startMs;
    const boundMs = 4 * sessionTimeoutMs + 4 * idleAfterMs + 20 * 60_000;
    await this.#until(boundMs, () => (this.#judge.limit?.cut?.end ?? 0) >= untilMs);
    this.#catchUpMs.push(this.world.nowMs - startMs);
  }

  async #until(boundMs: number, isSo: () => boolean): Promise<void> {
    const startMs = this.world.nowMs;
    do {
      await this.runFor(1_000);
      if (this.world.nowMs - startMs > boundMs) {
        throw new Violation(`${this.#where()}: stuck at ${this.state()}`);
      }
    } while (!isSo());
  }

  /** Held while all is well: it stands still, goes a step, and goes on. */
  async held(): Promise<void> {
    const { server, world } = this;
    const limit = () => this.#judge.limit!;
    const boundMs = 4 * idleAfterMs + 20 * 60_000;
    this.#people.hold('pause');
    await this.#until(60_000, () => limit().rule.holdMs !== undefined);
    const heldAtMs = limit().limitMs!;
    await this.runFor(2 * 60_000); // all come to the limit
    const { requests } = server;
    await this.runFor(5 * 60_000);
    if (limit().limitMs !== heldAtMs) this.#judge.violate(`it went on to ${limit().limitMs}`);
    // Partitions that had nothing to read get something, and say so.
    const asked = server.requests - requests;
    const askedMax = 20 * (this.logs.size + this.slots.size);
    if (asked > askedMax) this.#judge.violate(`${asked} requests while nothing was to be done`);
    this.#people.hold('step', world.int(1, 4));
    await this.#until(60_000, () => limit().rule.holdMs! > heldAtMs);
    await this.#until(boundMs, () => limit().limitMs === limit().rule.holdMs);
    this.#people.hold('continue');
    await this.#until(60_000, () => limit().rule.holdMs === undefined);
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
    if (this.#options.holds) this.#people.hold('continue');
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
    this.#judge.checkEnd();
    if (this.#judge.violation !== undefined) throw this.#judge.violation;
  }

  #where(): string {
    const { seed } = this.#options;
    return `seed ${seed}, at ${this.world.nowMs} ms`;
  }

  /** Where everybody is: for whoever has to find out why it is stuck. */
  state(): string {
    const { limit } = this.#judge;
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
      ...this.#judge.counts,
      faults: { ...this.#faults },
      holds: { ...this.#people.holds },
      stepsTaken: { ...this.#steps },
      requests: this.server.requests,
      quarantined: this.#quarantined,
      simulatedMinutes: Math.round(this.world.nowMs / 60_000),
      catchUpMsMax: Math.max(0, ...this.#catchUpMs),
      fingerprint: this.#judge.fingerprint,
    };
  }
}

const quietEveryMs = 30 * 60_000;
