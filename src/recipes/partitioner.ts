/**
 * A set of named shards, divided among whoever is there: each shard has one owner at a time.
 *
 *   <path>/members/_c_<uuid>-member-<n>   ephemeral sequential; data: { "name": … }
 *   <path>/plan                           who shall have what: see partition-plan.ts
 *   <path>/owners/<shard>                 ephemeral: who has it; data: { "name", "member", "claim" }
 *
 * The first in line plans; all follow. A member that is to give a shard away is told by the holding's
 * signal, ends its work and releases; only then can the next owner make its node. What does not move is
 * left alone. Joins and leaves that come in a burst are planned for once.
 *
 * What always holds: no shard has two ownership nodes, whatever the plan says and however old it is; a
 * holding is given only for a node of the client's current session; its token is greater than that of
 * any owner before. Once members and shards are quiet and hand-overs done, every shard has an owner.
 *
 * NOT promised: that work stops when its signal aborts. Work that overruns the time for a hand-over, or
 * a pause of the process past its session, overlaps with the next owner; the token tells them apart.
 * Every member follows the plan, so a change of plan wakes every member once.
 */

import { type Acl, type Client, checkClient, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  onAbort,
  systemClock,
  type Timer,
  unlessAborted,
} from '../support/index.ts';
import { defaultData } from './acquire.ts';
import { type Assignment, AssignmentNews } from './assignment.ts';
import { Holding } from './holding.ts';
import { Line, oneAtATime, type Place } from './line.ts';
import { linked } from './linked.ts';
import { watchNode } from './node-watch.ts';
import { partitionerTable } from './option-tables.ts';
import { checkShards, formatMember, ownerName, parseMember } from './partition-names.ts';
import { type Assign, emptyPlan, type Plan, parsePlan, spread } from './partition-plan.ts';
import { isPassing } from './passing.ts';
import { pause } from './pause.ts';
import { Planner } from './planner.ts';
import { claimNode } from './shard-claim.ts';
import { whileLinked } from './while-linked.ts';

export interface PartitionerOptions {
  /** All shards. Give every member the same list: the one that plans goes by its own. */
  readonly shards: readonly string[];
  /** Ours among the members: one at a time may have it. `host:pid` unless said. */
  readonly name?: string;
  /** How members share. Even and sticky unless said. */
  readonly assign?: Assign;
  /** How long it must be quiet before a new plan is made. 100 ms. */
  readonly settleMs?: number;
  /** How long a burst may put a new plan off. 2 s. */
  readonly settleMaxMs?: number;
  /** How long a holder may take to release what it was asked for. 30 s. */
  readonly handOverMs?: number;
  readonly acl?: readonly Acl[];
  /** Ends the loop, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

let claims = 0;

export class Partitioner implements AsyncIterable<Assignment> {
  readonly path: string;
  readonly name: string;
  readonly #client: Client;
  readonly #options: PartitionerOptions;
  readonly #clock: Clock;
  readonly #line: Line;
  readonly #life = new AbortController();
  readonly #loop: Promise<void>;
  readonly #holdings = new Map<string, Holding>();
  readonly #acquiring = new Map<string, AbortController>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #news = new AssignmentNews();
  #shards: readonly string[];
  #target: ReadonlySet<string> = new Set();
  #generation = 0;
  #planner: Planner | undefined;
  /** Where we are a member now, and until when. */
  #here: { readonly place: Place; readonly signal: AbortSignal } | undefined;
  #again: Timer | undefined;
  #hasLeft = false;
  readonly #stopHearing: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  /** Joins at once. */
  constructor(client: Client, path: string, options: PartitionerOptions) {
    checkClient('Partitioner', client);
    checkOptions('Partitioner', options, partitionerTable);
    this.path = path;
    this.name = options.name ?? defaultData;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#shards = checkShards(options.shards);
    const { acl } = options;
    this.#line = new Line(client, `${path}/members`, {
      prefixes: ['member-'],
      ...(acl && { acl }),
    });
    this.#loop = this.#run();
    const { signal } = options;
    this.#stopHearing = signal && onAbort(signal, () => this.#stop({ error: signal.reason }));
    if (signal?.aborted) this.#stop({ error: signal.reason });
  }

  /** What is ours now, whether it is leaving or not. */
  get held(): readonly Holding[] {
    return [...this.#holdings.values()];
  }

  get generation(): number {
    return this.#generation;
  }

  /** Whether we are the one who plans. */
  get isPlanning(): boolean {
    return this.#planner !== undefined;
  }

  /** Another set of shards. Tell every member: only the list of the one that plans counts. */
  setShards(shards: readonly string[]): void {
    this.#shards = checkShards(shards);
    this.#planner?.reconsider();
  }

  /**
   * Each change of what is ours. One loop at a time. To leave, call `close()` and go on until the loop
   * ends: it asks for everything first. Breaking out of it leaves at once and releases all.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Assignment, void, undefined> {
    try {
      for (;;) {
        const assignment = this.#news.take(this.held.filter(({ isLeaving }) => !isLeaving));
        if (assignment !== undefined) yield assignment;
        else if (this.#hasLeft) break;
        else await this.#news.come;
      }
      if (this.#end?.error !== undefined) throw this.#end.error;
    } finally {
      this.#stop({});
      for (const holding of this.held) this.#release(holding);
      await this.#loop;
    }
  }

  /** Runs `work` for every shard that becomes ours, and releases the shard when it is done. */
  async each(work: (holding: Holding) => Promise<void>): Promise<void> {
    const running = new Set<Promise<void>>();
    for await (const { gained } of this) {
      for (const holding of gained) {
        const task = work(holding)
          .catch((error: unknown) => this.#stop({ error }))
          .then(() => holding.release())
          .catch((error: unknown) => this.#stop({ error }))
          .finally(() => running.delete(task));
        running.add(task);
      }
    }
    await Promise.all(running);
  }

  /** Leaves: asks for everything back, and waits until it is, or the time for that is up. */
  async close(): Promise<void> {
    this.#stop({});
    await this.#loop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #stop(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#life.abort(new Error(`the partitioner at ${this.path} was closed`));
    this.#stopHearing?.();
    this.#news.wake();
  }

  // ── a member's life ───────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    const { signal } = this.#life;
    const backoff = new Backoff({ firstMs: 20, maxMs: 2_000 });
    try {
      while (!signal.aborted) {
        await linked(this.#client, signal);
        try {
          await this.#belong();
          backoff.reset();
        } catch (error) {
          if (!signal.aborted && !isPassing(error)) throw error;
        }
        if (!signal.aborted) await pause(this.#clock, backoff.next(), signal);
      }
    } catch (error) {
      if (!signal.aborted) this.#stop({ error });
    } finally {
      await this.#letGo();
      this.#hasLeft = true;
      this.#news.wake();
    }
  }

  /** From joining until the place is lost, or we leave. */
  async #belong(): Promise<void> {
    const { signal } = this.#life;
    const place = await this.#line.join({ data: formatMember(this.name), signal });
    const here = new AbortController();
    const stopHearing = [signal, place.grant.signal].map((one) =>
      onAbort(one, () => here.abort(one.reason)),
    );
    if (place.grant.signal.aborted) here.abort(place.grant.signal.reason);
    this.#here = { place, signal: here.signal };
    const both = [this.#followPlan(place, here.signal), this.#planInTurn(place, here.signal)];
    try {
      await Promise.race(both);
    } finally {
      here.abort(new Error('the place was given up'));
      this.#here = undefined;
      for (const stop of stopHearing) stop();
      // Out of the list first: the others may plan while we still hand over.
      const left = place.leave();
      // Who closes does not wait for a link: what is left goes as soon as there is one.
      await Promise.allSettled([...both, signal.aborted ? whileLinked(this.#client, left) : left]);
      await this.#letGo();
    }
  }

  async #planInTurn(place: Place, signal: AbortSignal): Promise<void> {
    await place.turn(oneAtATime, signal);
    const { assign = spread, settleMaxMs = 2_000, acl } = this.#options;
    const planner = new Planner(this.#client, place, {
      membersPath: this.#line.path,
      planPath: childOf(this.path, 'plan'),
      nameOf: parseMember,
      shards: () => this.#shards,
      clock: this.#clock,
      settleMs: this.#settleMs,
      ...{ assign, settleMaxMs, acl },
    });
    this.#planner = planner;
    try {
      await planner.run(signal);
    } finally {
      this.#planner = undefined;
    }
  }

  async #followPlan(place: Place, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#readPlan(place, signal);
      } catch (error) {
        // While the place is ours, so is what we hold: a plan that cannot be read now is read later.
        signal.throwIfAborted(); // whatever failed after the place was lost failed for that
        if (!isPassing(error)) throw error;
        await pause(this.#clock, this.#settleMs, signal);
      }
    }
  }

  /** Goes by the plan as it is now, and waits until there is another. */
  async #readPlan(place: Place, signal: AbortSignal): Promise<void> {
    const path = childOf(this.path, 'plan');
    const asked = watchNode(this.#client, path);
    void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
    const watched = await unlessAborted(asked, signal);
    if (watched === null) return this.#makePlanNode(path);
    try {
      const plan = parsePlan(watched.found.data);
      // One that was deleted or spoilt is no reason to give anything away: another follows.
      if (plan !== emptyPlan) this.#goBy(plan, place);
      this.#planner?.reconsider(); // whoever wrote it, the one who plans looks whether it fits
      await unlessAborted(watched.changed, signal);
    } finally {
      await whileLinked(this.#client, watched.stop());
    }
  }

  #goBy({ generation, members }: Plan, place: Place): void {
    const ours = members.get(this.name);
    this.#generation = generation;
    this.#news.planned(generation);
    this.#target = new Set(ours?.node === place.name ? ours.shards : []);
    this.#reconcile();
  }

  /** Empty, so that it can be watched before there is a plan. */
  async #makePlanNode(path: string): Promise<void> {
    const { acl } = this.#options;
    try {
      await this.#client.create(path, '', { ...(acl && { acl }) });
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }

  // ── shards ────────────────────────────────────────────────────────────────────────────────────

  get #settleMs(): number {
    return this.#options.settleMs ?? 100;
  }

  #reconcile(): void {
    for (const holding of this.#holdings.values()) {
      if (!this.#target.has(holding.shard)) this.#ask(holding);
    }
    for (const [shard, abort] of this.#acquiring) if (!this.#target.has(shard)) abort.abort();
    const here = this.#here;
    if (here === undefined || here.signal.aborted) return;
    for (const shard of this.#target) {
      if (this.#acquiring.has(shard) || this.#holdings.has(shard)) continue;
      const abort = new AbortController();
      this.#acquiring.set(shard, abort);
      const task: Promise<void> = this.#acquire(shard, here, abort).finally(() =>
        this.#tasks.delete(task),
      );
      this.#tasks.add(task);
    }
  }

  /** What the plan gives us and we do not have is tried again, but not at once. */
  #reconcileSoon(): void {
    if (this.#here === undefined) return;
    this.#again?.cancel();
    this.#again = this.#clock.after(this.#settleMs, () => this.#reconcile(), true);
  }

  async #acquire(
    shard: string,
    { place, signal }: { place: Place; signal: AbortSignal },
    abort: AbortController,
  ): Promise<void> {
    const stopHearing = onAbort(signal, () => abort.abort());
    claims += 1;
    const { acl } = this.#options;
    try {
      const grant = await claimNode(this.#client, {
        path: childOf(childOf(this.path, 'owners'), ownerName(shard)),
        data: JSON.stringify({ name: this.name, member: place.name, claim: claims }),
        signal: abort.signal,
        clock: this.#clock,
        acl,
      });
      const holding = new Holding(shard, grant, this.#clock, (gone) => this.#gone(gone));
      this.#holdings.set(shard, holding);
      this.#news.gained(holding);
      if (abort.signal.aborted) this.#ask(holding);
    } catch (error) {
      if (!abort.signal.aborted) this.#failed(error);
    } finally {
      stopHearing();
      this.#acquiring.delete(shard);
      if (!this.#holdings.has(shard)) this.#reconcileSoon();
    }
  }

  #failed(error: unknown): void {
    if (!isPassing(error)) this.#stop({ error });
  }

  /** A holding that the reader never saw is let go of at once; any other when the reader is done with it. */
  #ask(holding: Holding): void {
    if (holding.isLeaving) return;
    holding.handOver(this.#options.handOverMs ?? 30_000);
    if (!this.#news.leaving(holding)) this.#release(holding);
  }

  #release(holding: Holding): void {
    holding.release().catch((error: unknown) => this.#failed(error));
  }

  #gone(holding: Holding): void {
    if (this.#holdings.get(holding.shard) === holding) this.#holdings.delete(holding.shard);
    this.#news.gone(holding);
    this.#onGone?.();
    this.#reconcileSoon();
  }

  #onGone: (() => void) | undefined;

  /** Asks for everything back and waits until it is, which `handOverMs` bounds. */
  async #letGo(): Promise<void> {
    this.#target = new Set();
    this.#again?.cancel();
    for (const abort of this.#acquiring.values()) abort.abort();
    await Promise.all(this.#tasks);
    for (const holding of this.#holdings.values()) this.#ask(holding);
    while (this.#holdings.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onGone = resolve;
      });
    }
    this.#onGone = undefined;
  }
}
