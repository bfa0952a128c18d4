/**
 * Reading many partitions in step, over any number of processes: nobody is handed a record at or beyond
 * the limit that the whole group is at.
 *
 *   await using run = align(zk, { group, source, topics, mode: { period: '60s' } });
 *   for await (const batch of run) { …; await batch.done(); }
 *
 * In: a source of records, a group. Out: batches of the partitions that are this member's, in the order
 * of their offsets, and of several partitions the one whose next record is the earliest. A partition's
 * next batch comes when the one before is done. The loop ends when every partition of the group has come
 * to its end, and never where there is none.
 *
 * Partitions are shared out by a consumer group. Who lets go of one leaves word how far it is done; after
 * a crash it is read again from the last cut on. So every record comes at least once, and twice only
 * where it came after the last cut. A batch that a loop left unfinished comes again.
 *
 * Without a link it goes on up to the limit it knows. When no server has answered for two thirds of the
 * session timeout nothing is handed out at all, since somebody else may soon have the partitions.
 *
 * NOT promised: order across partitions within a period, or that late records (later than `outOfOrder`
 * allows) come with their period.
 */

import { EventEmitter } from 'node:events';
import { checkClient } from '../client/index.ts';
import {
  GroupMember,
  isOver,
  type KafkaRecord,
  keyOf,
  type OwnedPartition,
  type PartitionId,
  type TopicDirectory,
} from '../kafka/index.ts';
import { Election } from '../recipes/index.ts';
import { type Clock, checkOptions, onAbort, systemClock } from '../support/index.ts';
import { type AlignOptions, type AlignSettings, settingsOf } from './align-options.ts';
import { type AlignEvents, type AlignedBatch, type AlignStatus, laneStatus } from './aligned.ts';
import type { QuarantineReason } from './event-time.ts';
import { HandOut } from './hand-out.ts';
import { Handovers } from './handovers.ts';
import { Lane } from './lane.ts';
import { type AlignPaths, alignPaths, formatMember, type StoredLimit } from './layout.ts';
import { Leader } from './leader.ts';
import { LeftOut } from './left-out.ts';
import { LimitView } from './limit-view.ts';
import { alignTable } from './option-tables.ts';
import { prepareGroup } from './prepare.ts';
import { Progress } from './progress.ts';
import { Reporter } from './reporter.ts';
import { SeedBridge } from './seed-bridge.ts';
import type { AlignClient } from './session.ts';
import { Starts } from './starts.ts';
import { directoryOf, partitionsOf } from './topics.ts';

export class Aligner extends EventEmitter<AlignEvents> {
  readonly group: string;
  readonly #client: AlignClient;
  readonly #options: AlignOptions;
  readonly #settings: AlignSettings;
  readonly #clock: Clock;
  readonly #paths: AlignPaths;
  readonly #directory: TopicDirectory;
  readonly #member: GroupMember;
  readonly #reporter: Reporter;
  readonly #limits: LimitView;
  readonly #handovers: Handovers;
  readonly #starts: Starts;
  readonly #election: Election;
  readonly #lanes = new Map<string, Lane>();
  readonly #progress = new Progress(this.#lanes);
  readonly #out: HandOut;
  readonly #life = new AbortController();
  readonly #running: Promise<void>;
  readonly #stopHearing: (() => void) | undefined;
  readonly #heardState = () => this.#out.match();
  #leading: Promise<void> = Promise.resolve();
  #joinedZxid: bigint | undefined;
  readonly #leftOut: LeftOut;
  #quarantined = 0;
  #closing: Promise<void> | undefined;

  constructor(client: AlignClient, options: AlignOptions) {
    checkClient('Aligner', client);
    checkOptions('Aligner', options, alignTable);
    super();
    this.#settings = settingsOf(options);
    this.#client = client;
    this.#options = options;
    this.group = options.group;
    this.#clock = options.clock ?? systemClock;
    this.#leftOut = new LeftOut({ group: options.group, clock: this.#clock });
    const { batchRecordsMax, doubtShare } = this.#settings;
    this.#out = new HandOut(client, {
      lanes: this.#lanes,
      clock: this.#clock,
      batchRecordsMax,
      doubtShare,
    });
    this.#paths = alignPaths(options.group, options.root);
    this.#directory = directoryOf(client, options, ({ path, why }) =>
      this.#problem(path, new Error(why)),
    );
    const { clock, random } = { clock: this.#clock, random: options.random };
    const { assignment = {}, consumerId, debounceMs, releaseTimeoutMs } = options;
    this.#member = new GroupMember(
      client,
      {
        group: options.group,
        subscribe: { topics: [...this.#settings.topicNames] },
        topics: this.#directory,
        mode: assignment.mode ?? 'planned',
        clock,
        ...(assignment.assignor && { assignor: assignment.assignor }),
        ...(consumerId !== undefined && { consumerId }),
        ...(debounceMs !== undefined && { debounceMs }),
        ...(releaseTimeoutMs !== undefined && { releaseTimeoutMs }),
        ...(random && { random }),
      },
      {
        assigned: (owned) => this.#assigned(owned),
        releasing: (owned) => this.#releasing(owned),
        problem: ({ path, why }) => this.#problem(path, new Error(why)),
        failed: (error) => this.#finish({ error }),
      },
    );
    const onFailure = (error: unknown) => this.#finish({ error });
    this.#reporter = new Reporter(client, {
      id: this.#member.id,
      folder: this.#paths.members,
      content: () => this.#content(),
      clock,
      random,
      onFailure,
      onJoined: (zxid) => {
        this.#joinedZxid = zxid;
        this.#lookForEnd();
      },
    });
    this.#limits = new LimitView(client, {
      path: this.#paths.limit,
      clock,
      random,
      failOpenMs: this.#settings.failOpenMs,
      onLimit: (limit) => this.#moved(limit),
      onOpen: (isOpen) => {
        this.emit('failOpen', isOpen);
        this.#spread();
      },
      onProblem: (error) => this.#problem(this.#paths.limit, error),
      onFailure,
    });
    this.#handovers = new Handovers(client, this.#paths);
    this.#starts = new Starts(
      client,
      this.#paths,
      this.#handovers,
      options,
      this.#settings,
      (where, error) => this.#problem(where, error),
    );
    this.#election = new Election(client, this.#paths.election, { id: this.#member.id, clock });
    client.on('state', this.#heardState);
    this.#stopHearing = options.signal && onAbort(options.signal, () => void this.close());
    this.#running = options.signal?.aborted ? Promise.resolve() : this.#start();
    if (options.signal?.aborted) void this.close();
  }

  get id(): string {
    return this.#member.id;
  }

  /** The limit as last heard. */
  get limit(): StoredLimit | null {
    return this.#limits.limit;
  }

  get isLeading(): boolean {
    return this.#election.isLeading;
  }

  /** Resolves when every partition that is due to this member is its own. */
  settled(): Promise<void> {
    return this.#member.settled();
  }

  status(): AlignStatus {
    return {
      id: this.id,
      limit: this.limit,
      isPaused: this.#limits.isPaused,
      isLeading: this.isLeading,
      isInDoubt: this.#out.isInDoubt,
      isFailingOpen: this.#limits.isOpen,
      partitions: [...this.#lanes.values()].map(laneStatus),
      records: this.#out.records,
      quarantined: this.#quarantined,
      waitingShare: this.#out.waitingShare,
      reports: this.#reporter.writes,
      member: this.#member.status(),
    };
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<AlignedBatch> {
    return this.#out.loop();
  }

  // ── the limit ─────────────────────────────────────────────────────────────────────────────────

  #moved(limit: StoredLimit): void {
    this.#spread();
    this.emit('limit', limit);
    this.#lookForEnd();
  }

  #spread(): void {
    const { effectiveMs, stepMs, cutEnd, isPaused } = this.#limits;
    for (const lane of this.#lanes.values()) {
      lane.isPaused = isPaused;
      if (stepMs !== null) lane.stepMs = stepMs;
      if (cutEnd !== null) lane.settle(cutEnd);
      lane.limitMs = effectiveMs;
    }
    if (this.#progress.measure(this.#stepMs, effectiveMs)) this.#reporter.report();
    this.#out.allChanged();
  }

  /** Everybody is at the end: heard of since we came, or it may be from an earlier run. */
  #lookForEnd(): void {
    const { limit, zxid } = this.#limits;
    if (limit?.isFinished !== true || this.#joinedZxid === undefined) return;
    if (zxid <= this.#joinedZxid) return;
    for (const lane of this.#lanes.values()) if (lane.state !== 'finished') return;
    this.#finish({});
  }

  // ── partitions come and go ────────────────────────────────────────────────────────────────────

  #assigned(owned: OwnedPartition): void {
    const { settings, onPartitionPeriod } = { settings: this.#settings, ...this.#options };
    const { effectiveMs, isPaused } = this.#limits;
    const lane = new Lane(owned, {
      ...settings,
      stepMs: this.#stepMs,
      clock: this.#clock,
      random: this.#options.random,
      open: (one, signal, at) => this.#starts.open(one, signal, at),
      onPartitionPeriod:
        onPartitionPeriod && ((_, period) => onPartitionPeriod(partitionIdOf(owned), period)),
      onQuarantined: (_, record, reason) => this.#quarantine(owned, record, reason),
      onAhead: (_, record, timeMs) =>
        this.emit('ahead', partitionIdOf(owned), record, timeMs, this.limit?.limitMs ?? null),
      onChange: (one) => this.#changed(one),
      onTrouble: (_, error) => this.#problem(keyOf(owned), error),
      onFailure: (error) => this.#finish({ error }),
    });
    lane.limitMs = effectiveMs;
    lane.isPaused = isPaused;
    this.#lanes.set(keyOf(owned), lane);
    onAbort(owned.signal, () => this.#gone(lane));
    this.emit('assigned', owned);
  }

  #changed(lane: Lane): void {
    if (this.#progress.isNews(keyOf(lane.owned), lane)) this.#reporter.report();
    this.#out.changed(lane);
    this.#lookForEnd();
  }

  get #stepMs(): number {
    return this.#limits.stepMs ?? this.#settings.rule.stepMs;
  }

  #content(): string[] {
    const { id } = this;
    const { records, waitingShare } = this.#out;
    const partitions = this.#progress.take(this.#stepMs, this.#limits.effectiveMs);
    return formatMember({ id, partitions, records, waitingShare });
  }

  #gone(lane: Lane): void {
    const key = keyOf(lane.owned);
    lane.close();
    if (this.#lanes.get(key) === lane) this.#lanes.delete(key);
    lane.stop().catch((error) => this.#problem(key, error));
    this.emit('ended', lane.owned);
    this.#changed(lane);
  }

  /** Hands out nothing more, waits for what is in hand, and leaves word how far it is done. */
  async #releasing(owned: OwnedPartition): Promise<void> {
    const lane = this.#lanes.get(keyOf(owned));
    if (lane === undefined || lane.owned !== owned) return;
    await lane.stop();
    await lane.idle();
    const handover = lane.handover();
    if (handover !== null) await this.#handovers.write(owned, handover);
  }

  #quarantine(owned: OwnedPartition, record: KafkaRecord, reason: QuarantineReason): void {
    this.#quarantined += 1;
    const partition = partitionIdOf(owned);
    try {
      this.#options.onQuarantine?.(partition, record, reason);
    } catch (error) {
      this.#finish({ error }); // the caller's own: the source has not failed, and is not tried again
    }
    const isHeard = this.emit('quarantined', partition, record, reason);
    const isLost = this.#settings.quarantine === 'skip';
    if (isLost && !isHeard && this.#options.onQuarantine === undefined) {
      this.#leftOut.add(partition, record, reason);
    }
  }

  #problem(where: string, error: unknown): void {
    this.emit('problem', where, error);
  }

  // ── the life ──────────────────────────────────────────────────────────────────────────────────

  async #start(): Promise<void> {
    try {
      const { signal } = this.#life;
      await prepareGroup(this.#client, this.#paths, this.#settings.rule, this.#clock, signal);
      if (signal.aborted) return;
      this.#limits.start();
      this.#reporter.start();
      this.#member.start();
      this.#leading = this.#lead();
    } catch (error) {
      this.#finish({ error });
    }
  }

  async #lead(): Promise<void> {
    const { onPeriod, onStep, random } = this.#options;
    const { shared } = this.#settings;
    try {
      for await (const term of this.#election) {
        const leader = new Leader(this.#client, term, {
          paths: this.#paths,
          clock: this.#clock,
          random,
          rule: this.#settings.rule,
          topics: () => partitionsOf(this.#directory, this.#settings.topicNames),
          onTopics: (heard) => this.#directory.onChange(heard),
          hasCuts: true,
          onPeriod,
          onStep,
          onProblem: (path, error) => this.#problem(path, error),
          ...(shared && { openOuter: (input) => SeedBridge.open(this.#client, shared, input) }),
        });
        await leader.run();
      }
    } catch (error) {
      if (!this.#life.signal.aborted && !isOver(this.#client.state)) this.#finish({ error });
    }
  }

  #finish(end: { error?: unknown }): void {
    this.#client.off('state', this.#heardState);
    this.#out.finish(end);
    this.#leftOut.close();
  }

  /**
   * Leaves the group: waits for the batches in hand, up to `releaseTimeoutMs`, leaves word how far each
   * partition is, lets go of everything. The source and the client stay open. Call it after the loop.
   */
  close(): Promise<void> {
    this.#finish({});
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#life.abort();
    this.#stopHearing?.();
    await this.#running;
    await this.#member.close();
    await this.#reporter.close();
    await this.#election.close();
    await this.#leading;
    await this.#limits.close();
    if (this.#options.directory === undefined) await this.#directory.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const partitionIdOf = ({ topic, partition }: PartitionId): PartitionId => ({ topic, partition });

/** Joins a group that reads in step. Reading begins with the first loop. */
export function align(client: AlignClient, options: AlignOptions): Aligner {
  return new Aligner(client, options);
}
