/**
 * The plain coordinator: for who reads by himself, with whatever consumer, and only wants to be told how
 * far he may go.
 *
 *   if (!coordinator.checkLimit(timestamp)) await coordinator.currentPeriodComplete(myPartitions);
 *
 * In: which partitions there are, and when some of them have reached the limit. Out: the limit. One of
 * the coordinators leads, and moves the limit by a period when every partition has reached it; when the
 * leader dies, or is stopped, or cut off, the next one goes on. Whoever comes late, or again, takes the
 * limit that is stored; the group goes on where it is.
 *
 * NOT promised: anything about offsets, which the caller keeps; and that nobody else reads the same
 * partition, which the caller sees to. A partition of which nobody says anything holds everybody back,
 * and `release` says that it should not.
 */

import { EventEmitter } from 'node:events';
import { ArgumentError, checkClient } from '../client/index.ts';
import { isOver, keyOf, type PartitionId } from '../kafka/index.ts';
import { Election } from '../recipes/index.ts';
import {
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  systemClock,
} from '../support/index.ts';
import { checkGroup } from './align-options.ts';
import type { PartitionReport } from './group-clock.ts';
import { type AlignPaths, alignPaths, formatMember, type StoredLimit } from './layout.ts';
import { Leader } from './leader.ts';
import type { LeaderStep } from './leader-options.ts';
import { LimitView } from './limit-view.ts';
import { completeTable, coordinatorTable } from './option-tables.ts';
import { prepareGroup } from './prepare.ts';
import { Reporter } from './reporter.ts';
import { type Rule, type RuleInput, ruleOf } from './rule.ts';
import type { AlignClient } from './session.ts';

/** What every layout's coordinator shows. */
export interface PeriodCoordinator {
  /** Null before the first is known. */
  readonly limitMs: number | null;
  /** Whether a record of this time may be worked on now. */
  checkLimit(timestampMs: number): boolean;
  /** These partitions have reached the limit. Resolves with the next, once everybody has. */
  currentPeriodComplete(
    partitions: readonly PartitionId[],
    options?: CompleteOptions,
  ): Promise<number>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CompleteOptions {
  /** The time of the record that did not pass: periods in which nobody has any are skipped at once. */
  readonly nextMs?: number;
  readonly signal?: AbortSignal;
}

export interface CoordinatorOptions {
  readonly group: string;
  /** All that there are, of all members. Every member says the same. */
  readonly partitions: readonly PartitionId[];
  readonly mode: RuleInput;
  /** Where the group begins, if it never ran. 0. */
  readonly startMs?: number;
  /** Who we are to others. */
  readonly id?: string;
  readonly root?: string;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly onStep?: (step: LeaderStep, epoch: bigint) => void | Promise<void>;
}

export interface CoordinatorEvents {
  limit: [limit: StoredLimit];
  problem: [where: string, error: unknown];
}

let made = 0;

export class Coordinator extends EventEmitter<CoordinatorEvents> implements PeriodCoordinator {
  readonly id: string;
  readonly #client: AlignClient;
  readonly #options: CoordinatorOptions;
  readonly #rule: Rule;
  readonly #clock: Clock;
  readonly #paths: AlignPaths;
  readonly #reporter: Reporter;
  readonly #limits: LimitView;
  readonly #election: Election;
  readonly #reports = new Map<string, PartitionReport>();
  readonly #waiting = new Set<Deferred<void>>();
  readonly #life = new AbortController();
  readonly #running: Promise<void>;
  #leading: Promise<void> = Promise.resolve();
  #epoch = 0n;
  #failure: { readonly error: unknown } | undefined;

  constructor(client: AlignClient, options: CoordinatorOptions) {
    checkClient('Coordinator', client);
    checkOptions('Coordinator', options, coordinatorTable);
    super();
    checkGroup(options.group);
    if (options.partitions.length === 0) {
      throw new ArgumentError('partitions', 'at least one is wanted');
    }
    this.#client = client;
    this.#options = options;
    this.#rule = ruleOf(options.mode);
    this.#clock = options.clock ?? systemClock;
    this.#paths = alignPaths(options.group, options.root);
    this.id = options.id ?? `${process.pid}-${made++}`;
    const { random } = options;
    const onFailure = (error: unknown) => this.#fail(error);
    this.#reporter = new Reporter(client, {
      id: this.id,
      folder: this.#paths.members,
      content: () => this.#content(),
      clock: this.#clock,
      random,
      onFailure,
      onJoined: (zxid) => {
        // Whoever came last has the say about a partition: its node is younger.
        this.#epoch = zxid;
        if (this.#reports.size > 0) this.#reporter.report();
      },
    });
    this.#limits = new LimitView(client, {
      path: this.#paths.limit,
      clock: this.#clock,
      random,
      failOpenMs: 0,
      onLimit: (limit) => {
        this.emit('limit', limit);
        this.#wake();
      },
      onOpen: () => {},
      onProblem: (error) => this.emit('problem', this.#paths.limit, error),
      onFailure,
    });
    this.#election = new Election(client, this.#paths.election, {
      id: this.id,
      clock: this.#clock,
    });
    this.#running = this.#start();
  }

  get limitMs(): number | null {
    const ms = this.#limits.effectiveMs;
    return ms === Number.NEGATIVE_INFINITY ? null : ms;
  }

  get isLeading(): boolean {
    return this.#election.isLeading;
  }

  checkLimit(timestampMs: number): boolean {
    return timestampMs < this.#limits.effectiveMs;
  }

  async currentPeriodComplete(
    partitions: readonly PartitionId[],
    options: CompleteOptions = {},
  ): Promise<number> {
    checkOptions('currentPeriodComplete', options, completeTable);
    const { nextMs, signal } = options;
    this.#check(partitions);
    const before = this.limitMs;
    const reachedMs = before ?? this.#options.startMs ?? 0;
    this.#report(partitions, 'reading', Math.max(reachedMs, nextMs ?? 0));
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      signal?.throwIfAborted();
      if (this.#life.signal.aborted) throw new Error(`coordinator ${this.id} was closed`);
      const { limitMs } = this;
      if (limitMs !== null && (before === null || limitMs > before)) return limitMs;
      const changed = deferred();
      this.#waiting.add(changed);
      const heard = () => changed.resolve();
      signal?.addEventListener('abort', heard, { once: true });
      await changed.promise;
      signal?.removeEventListener('abort', heard);
      this.#waiting.delete(changed);
    }
  }

  /** They have come to their end, or are given up: nobody waits for them any more. */
  release(partitions: readonly PartitionId[]): void {
    this.#check(partitions);
    this.#report(partitions, 'finished', null);
  }

  #check(partitions: readonly PartitionId[]): void {
    const known = new Set(this.#options.partitions.map(keyOf));
    for (const one of partitions) {
      if (known.has(keyOf(one))) continue;
      throw new ArgumentError('partitions', `${keyOf(one)} is none of the group's`);
    }
  }

  #report(
    partitions: readonly PartitionId[],
    state: PartitionReport['state'],
    positionMs: number | null,
  ): void {
    for (const one of partitions) {
      this.#reports.set(keyOf(one), { epoch: 0n, state, positionMs, offset: 0n, reached: [] });
    }
    this.#reporter.report();
  }

  #content(): string[] {
    const epoch = this.#epoch;
    const partitions = new Map(
      [...this.#reports].map(([key, report]) => [key, { ...report, epoch }]),
    );
    return formatMember({ id: this.id, partitions, records: 0, waitingShare: 0 });
  }

  #wake(): void {
    for (const one of this.#waiting) one.resolve();
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  async #start(): Promise<void> {
    const { signal } = this.#life;
    try {
      await prepareGroup(this.#client, this.#paths, this.#rule, this.#clock, signal);
      if (signal.aborted) return;
      this.#limits.start();
      this.#reporter.start();
      this.#leading = this.#lead();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #lead(): Promise<void> {
    const { partitions, random, onStep } = this.#options;
    const topics = new Map<string, string[]>();
    for (const { topic, partition } of partitions) {
      topics.set(topic, [...(topics.get(topic) ?? []), partition]);
    }
    try {
      for await (const term of this.#election) {
        const leader = new Leader(this.#client, term, {
          paths: this.#paths,
          clock: this.#clock,
          random,
          rule: this.#rule,
          topics: async () => topics,
          onTopics: () => () => {},
          hasCuts: false,
          onStep,
          onProblem: (path, error) => this.emit('problem', path, error),
        });
        await leader.run();
      }
    } catch (error) {
      if (!this.#life.signal.aborted) this.#fail(error);
    }
    if (isOver(this.#client.state)) this.#fail(new Error('the session is over'));
  }

  async close(): Promise<void> {
    this.#life.abort();
    this.#wake();
    await this.#running;
    await this.#reporter.close();
    await this.#election.close();
    await this.#leading;
    await this.#limits.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
