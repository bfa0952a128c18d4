/**
 * The document's coordinator, in its own layout or beside the Java program: whoever is at the end of the
 * period says so and waits until everybody is.
 *
 *   const coordinator = await SeedCoordinator.open(client, { layout: 'java', topicPartitions: { t: [0, 1] }, … });
 *   if (!coordinator.checkLimit(timestampMs)) await coordinator.currentPeriodComplete([{ topic: 't', partition: '0' }]);
 *
 * One cache of the whole root tells of every change, and one turn at a time puts right whatever is not as
 * it should be: our node in the election, our progress, and, as the leader, the plan and the limit. So
 * nothing is asked for again and again, and it is the same whether a member is new, was promoted while
 * it waited, or comes back with a new session. The leader moves the limit in one transaction with a check
 * of its own node: one that was away too long can't.
 *
 * What always holds: the limit never goes back, and moves only when every partition of the plan has
 * reached it. What the layout can't promise: a partition that says nothing holds all others, unless its
 * owner says `finish`; empty periods are gone through one by one, since the Java program follows no
 * longer step. `align()` has neither trouble.
 */

import { ArgumentError, type Client, checkClient, isZkError, ZkError } from '../client/index.ts';
import { keyOf, type PartitionId } from '../kafka/index.ts';
import { Cache } from '../recipes/index.ts';
import { checkOptions, type Deferred, deferred, onAbort } from '../support/index.ts';
import type { PeriodCoordinator } from './coordinator.ts';
import { type Duration, durationMs } from './duration.ts';
import { javaLayout, javaRoot } from './java-layout.ts';
import { currentPeriodCompleteTable, seedCoordinatorTable } from './option-tables.ts';
import {
  type PartitionPlan,
  parseSeconds,
  type SeedLayout,
  type SeedPaths,
  seedLayout,
  textOf,
  wholeSeconds,
} from './seed-layout.ts';

export interface SeedCoordinatorOptions {
  readonly layout: 'seed' | 'java';
  /** `/kafka-consumer-coordinator` unless said. */
  readonly root?: string;
  /** All of the group's, the same everywhere. */
  readonly topicPartitions: Readonly<Record<string, readonly (number | string)[]>>;
  /** Where the first period begins, in milliseconds since 1970, whole seconds. 0. */
  readonly startMs?: number;
  /** Whole seconds. */
  readonly period: Duration;
  /** How far the group is known to have come, for when nothing of it is stored any more. */
  readonly knownMs?: number;
  /** The limit has moved. */
  readonly onLimit?: (limitMs: number) => void;
  /** Ends it: whoever waits is told. */
  readonly signal?: AbortSignal;
}

const electing = /^electing(\d{10})$/;
/** Turns that may fail in a row while there is a link. */
const failuresMax = 10;

export class SeedCoordinator implements PeriodCoordinator {
  readonly #client: Client;
  readonly #layout: SeedLayout;
  readonly #paths: SeedPaths;
  readonly #plan: PartitionPlan;
  readonly #start: number;
  readonly #known: number;
  readonly #onLimit: (limitMs: number) => void;
  readonly #cache: Cache;
  readonly #own = new Map<string, number>();
  readonly #finished = new Set<string>();
  readonly #stopListening: () => void;
  readonly #ready = deferred();
  readonly #ended = deferred<never>();
  #periodSeconds: number;
  /** The end of the present period. In seconds, as everything here that does not say otherwise. */
  #limit: number;
  #place: string | undefined;
  #moved: Deferred<void> = deferred();
  #isAsked = false;
  #isTurning = false;
  #turning: Promise<void> | undefined;
  #failures = 0;
  #end: { readonly error: unknown } | undefined;

  constructor(client: Client, options: SeedCoordinatorOptions) {
    checkClient('SeedCoordinator', client);
    checkOptions('SeedCoordinator', options, seedCoordinatorTable);
    this.#client = client;
    this.#layout = layoutOf(options.layout);
    const { root = javaRoot, startMs = 0 } = options;
    this.#paths = this.#layout.paths(root);
    const entries = Object.entries(options.topicPartitions);
    this.#plan = new Map(entries.map(([topic, all]) => [topic, all.map(String)]));
    if (this.#keys().length === 0) throw new ArgumentError('topicPartitions', 'there are none');
    this.#layout.formatPlan(this.#plan); // refuses names that cannot be written
    this.#start = wholeSeconds('startMs', startMs);
    this.#periodSeconds = wholeSeconds('period', durationMs('period', options.period, 1_000));
    this.#limit = this.#start + this.#periodSeconds;
    this.#known = wholeSeconds('knownMs', options.knownMs ?? 0);
    this.#onLimit = options.onLimit ?? (() => {});
    this.#moved.promise.catch(() => {});
    this.#ready.promise.catch(() => {});
    this.#ended.promise.catch(() => {});
    const again = () => this.#ask();
    this.#cache = new Cache(client, root, { onChange: again, onCurrent: again });
    const onState = () => this.#stateMoved();
    client.on('state', onState);
    const { signal } = options;
    const stopHearing = signal && onAbort(signal, () => this.#finish(signal.reason));
    this.#stopListening = () => {
      client.off('state', onState);
      stopHearing?.();
    };
    if (signal?.aborted) this.#finish(signal.reason);
  }

  /** Resolves once it is in the election and knows the limit. */
  static async open(client: Client, options: SeedCoordinatorOptions): Promise<SeedCoordinator> {
    checkOptions('open', options, seedCoordinatorTable);
    const coordinator = new SeedCoordinator(client, options);
    try {
      await coordinator.#ready.promise;
      return coordinator;
    } catch (error) {
      await coordinator.close();
      throw error;
    }
  }

  /** The end of the present period. Only grows. */
  get limitMs(): number {
    return this.#limit * 1_000;
  }

  get isLeader(): boolean {
    return this.#place !== undefined && this.#line()[0] === this.#place;
  }

  /** Rejects with what ended it, if not `close`. */
  get ended(): Promise<never> {
    return this.#ended.promise;
  }

  /** What the leader adds when everybody is there. Matters on the leader, from the next move on. */
  set period(period: Duration) {
    this.#periodSeconds = wholeSeconds('period', durationMs('period', period, 1_000));
  }

  /** May a record of this time be worked on now? */
  checkLimit(timestampMs: number): boolean {
    return timestampMs < this.limitMs;
  }

  /** These have nothing left before the limit. */
  reached(partitions: readonly PartitionId[]): void {
    for (const key of this.#named(partitions)) this.#own.set(key, this.#limit);
    this.#ask();
  }

  /** As `reached`, and waits for everybody. Resolves with the new limit when it has moved. */
  async currentPeriodComplete(
    partitions: readonly PartitionId[],
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<number> {
    checkOptions('currentPeriodComplete', options, currentPeriodCompleteTable);
    const { signal } = options;
    signal?.throwIfAborted();
    const limit = this.#limit;
    this.reached(partitions);
    while (this.#limit === limit) {
      if (this.#end !== undefined) throw this.#end.error;
      await this.#nextMove(signal);
    }
    return this.limitMs;
  }

  async #nextMove(signal: AbortSignal | undefined): Promise<void> {
    if (signal === undefined) return this.#moved.promise;
    const aborted = deferred();
    const stop = onAbort(signal, () => aborted.reject(signal.reason));
    await Promise.race([this.#moved.promise, aborted.promise]).finally(stop);
  }

  /** These hold nobody back from now on: every limit is reached by them at once. */
  finish(partitions: readonly PartitionId[]): void {
    for (const key of this.#named(partitions)) this.#finished.add(key);
    this.#ask();
  }

  /**
   * Leaves the election. What the layout keeps in ephemeral nodes goes with them. Without a link that is
   * not waited for: it is done with the next, or the nodes go with the session.
   */
  async close(): Promise<void> {
    this.#finish(new ZkError('SESSION_EXPIRED', { path: this.#paths.coordinator }), true);
    await this.#turning;
    await this.#cache.close();
    const isLinked = this.#client.state.name === 'connected';
    const leaving = this.#leave();
    if (isLinked) await leaving;
    else leaving.catch(() => {}); // nobody is left to be told
  }

  async #leave(): Promise<void> {
    const place = this.#place && `${this.#paths.leader}/${this.#place}`;
    this.#place = undefined;
    if (place !== undefined) await this.#client.discard(place);
    if (this.#layout.name === 'seed') return;
    for (const key of this.#own.keys()) {
      const path = `${this.#paths.progress}/${key.replace('/', '.')}`;
      const stat = await this.#client.exists(path);
      if (stat?.ephemeralOwner === this.#client.sessionId) await this.#client.discard(path);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #keys(): string[] {
    return [...this.#plan].flatMap(([topic, all]) =>
      all.map((partition) => keyOf({ topic, partition })),
    );
  }

  #named(partitions: readonly PartitionId[]): string[] {
    const all = new Set(this.#keys());
    return partitions.map((partition) => {
      const key = keyOf(partition);
      if (all.has(key)) return key;
      throw new ArgumentError('partitions', `${key} is not in topicPartitions`);
    });
  }

  // ── one turn at a time ────────────────────────────────────────────────────────────────────────

  #ask(): void {
    this.#isAsked = true;
    if (!this.#isTurning) this.#turning = this.#turns();
  }

  async #turns(): Promise<void> {
    this.#isTurning = true;
    while (this.#isAsked && this.#end === undefined) {
      this.#isAsked = false;
      if (this.#cache.state.name !== 'current') continue; // it says when it is
      try {
        await this.#turn();
        this.#failures = 0;
      } catch (error) {
        // What the cache has not heard of yet, or a link that broke: it will say so.
        this.#failures += 1;
        if (!isZkError(error) || this.#failures > failuresMax) this.#finish(error);
        else if (this.#client.state.name === 'connected') this.#isAsked = true;
      }
    }
    this.#isTurning = false; // in this very turn: whoever asks in the next one begins anew
  }

  async #turn(): Promise<void> {
    for (const path of this.#paths.folders) {
      if (this.#cache.get(path) === undefined) await this.#make(path);
    }
    this.#adopt();
    await this.#stand();
    await this.#report();
    if (this.isLeader) await this.#lead();
    this.#ready.resolve();
  }

  async #make(path: string, data = ''): Promise<void> {
    try {
      await this.#client.create(path, data, { parents: true });
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }

  /** Takes the limit that is stored, if it is a later one. */
  #adopt(): void {
    const stored = this.#stored();
    if (stored === null || stored <= this.#limit) return;
    this.#limit = stored;
    this.#onLimit(this.limitMs);
    const moved = this.#moved;
    this.#moved = deferred();
    this.#moved.promise.catch(() => {});
    moved.resolve();
  }

  #stored(): number | null {
    return parseSeconds(textOf(this.#cache.get(this.#paths.coordinator)?.data));
  }

  /** Names in the election, lowest number first. */
  #line(): string[] {
    return this.#cache
      .children(this.#paths.leader)
      .filter((name) => electing.test(name))
      .sort();
  }

  /** The Java program compares names, so ours carries no mark: after a lost reply it is found by its owner. */
  async #stand(): Promise<void> {
    const { leader } = this.#paths;
    const { sessionId } = this.#client;
    const ours = this.#line().find(
      (name) => this.#cache.get(`${leader}/${name}`)?.stat.ephemeralOwner === sessionId,
    );
    if (ours !== undefined && (this.#place === undefined || this.#place === ours)) {
      this.#place = ours;
      return;
    }
    if (this.#place !== undefined) {
      const stat = await this.#client.exists(`${leader}/${this.#place}`);
      if (stat?.ephemeralOwner === sessionId) return; // the cache hears of it next
    }
    this.#place = undefined;
    const found = await this.#owned(leader);
    this.#place =
      found ??
      (
        await this.#client.create(`${leader}/electing`, '', { mode: 'ephemeralSequential' })
      ).path.slice(leader.length + 1);
  }

  async #owned(leader: string): Promise<string | undefined> {
    for (const name of (await this.#client.children(leader)).sort()) {
      const stat = electing.test(name) ? await this.#client.exists(`${leader}/${name}`) : null;
      if (stat !== null && stat.ephemeralOwner === this.#client.sessionId) return name;
    }
    return undefined;
  }

  /** Writes what is not there as we said it: also after a new session, whose ephemeral nodes are none. */
  async #report(): Promise<void> {
    for (const key of this.#finished) this.#own.set(key, this.#limit);
    const there = this.#layout.readProgress(this.#cache, this.#paths);
    const owed = new Map([...this.#own].filter(([key, at]) => (there.get(key) ?? -1) < at));
    if (owed.size > 0) await this.#layout.writeProgress(this.#client, this.#paths, owed);
  }

  async #lead(): Promise<void> {
    const { coordinator, topicPartitions } = this.#paths;
    const plan = this.#layout.formatPlan(this.#plan);
    await this.#put(topicPartitions, plan);
    const stored = this.#stored();
    if (stored === null) this.#limit = Math.max(this.#limit, this.#known);
    const isFirst = this.#limit === this.#start + this.#periodSeconds;
    if (stored === null || (stored < this.#limit && !(isFirst && stored === this.#start))) {
      const first = this.#layout.beginsAtStart && isFirst ? this.#start : this.#limit;
      await this.#put(coordinator, String(first));
      return; // the cache tells, and the next turn goes on
    }
    const there = this.#layout.readProgress(this.#cache, this.#paths);
    const keys = this.#keys();
    const isReached = keys.every((key) => (there.get(key) ?? -1) >= this.#limit);
    // Where all are at their end nobody needs another limit, and each would be reached at once.
    if (!isReached || keys.every((key) => this.#finished.has(key))) return;
    const next = this.#limit + this.#periodSeconds;
    if (next > this.#layout.secondsMax) {
      throw new ArgumentError(
        'period',
        `${next} s is later than the ${this.#layout.name} layout can say`,
      );
    }
    await this.#put(coordinator, String(next));
  }

  /** Fenced by our node in the election, and by the version that we know. */
  async #put(path: string, data: string): Promise<void> {
    const known = this.#cache.get(path);
    if (known !== undefined && textOf(known.data) === data) return;
    const change =
      known === undefined
        ? ({ op: 'create', path, data } as const)
        : ({ op: 'set', path, data, version: known.stat.version } as const);
    const check = { op: 'check', path: `${this.#paths.leader}/${this.#place}` } as const;
    try {
      await this.#client.multi([check, change]);
    } catch (error) {
      // The cache lags, or we lead no more: it tells, and the next turn looks again.
      const isOld = ['NO_NODE', 'NODE_EXISTS', 'BAD_VERSION'] as const;
      if (!isOld.some((code) => isZkError(error, code))) throw error;
    }
  }

  // ── its end ───────────────────────────────────────────────────────────────────────────────────

  #stateMoved(): void {
    const { state } = this.#client;
    if (state.name === 'closed' || state.name === 'authFailed') {
      this.#finish(new ZkError('SESSION_EXPIRED', { path: this.#paths.coordinator }));
    } else if (this.#cache.state.name === 'closed') this.#finish(this.#cache.state.error);
    else if (state.name === 'connected') this.#ask();
  }

  #finish(error: unknown, isAsked = false): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    if (!isAsked) this.#ended.reject(error);
    this.#stopListening();
    this.#moved.reject(error);
    this.#ready.reject(error);
  }
}

function layoutOf(name: string): SeedLayout {
  const found = { seed: seedLayout, java: javaLayout }[name];
  if (found === undefined) throw new ArgumentError('layout', `seed or java is wanted, not ${name}`);
  return found;
}
