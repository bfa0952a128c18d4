/**
 * A member of a consumer group: registers, watches, rebalances, for as long as it lives.
 *
 *   joining ──▶ rebalancing ⇄ settled            a change of members or topics, an owner in the way
 *      ▲             │
 *      └── session over (with `renew`): everything is lost at once, then it joins anew
 *                    └──▶ failed, closed          no way out
 *
 * In: what to read, and hooks. Out: owned partitions, told through `assigned`; `releasing` before one
 * goes; each has a signal that aborts when it is lost. Two modes:
 *
 *   classic   every member computes the assignment for itself, from the same list of members and
 *             partitions, as Kafka's own consumers up to 1.1 do, and may stand in one group with them
 *   planned   one elected member computes it, and each follows the part that is written for it
 *
 * Both claim the same owner nodes. A rebalance releases what moves and claims what is due; what stays
 * is read on. It never gives up: what is in the way is watched and reported, errors are tried again,
 * with growing waits, as long as the session lasts. Bursts of changes are taken together.
 *
 * NOT promised: that all members agree at every moment. They may differ while changes spread; then the
 * owner nodes decide, and nobody reads what it does not own.
 */

import { randomUUID } from 'node:crypto';
import { checkClient } from '../client/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  deferred,
  onAbort,
  pause,
  systemClock,
  Wakeup,
} from '../support/index.ts';
import { consumerIdOf } from './consumer-id.ts';
import { connected, type GroupClient, isOver } from './group-client.ts';
import { PlanFollower } from './group-follower.ts';
import {
  type AssignorChoice,
  choiceOf,
  type GroupMemberHooks,
  type GroupMemberOptions,
} from './group-options.ts';
import { GroupPlanner } from './group-planner.ts';
import type { GroupMemberStatus, MemberState } from './group-status.ts';
import { targetOf } from './group-target.ts';
import { GroupView } from './group-view.ts';
import { Holdings, type Target } from './holdings.ts';
import type { LayoutProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import { groupMemberTable } from './option-tables.ts';
import type { OwnedPartition } from './owned-partition.ts';
import { Ownership } from './ownership.ts';
import { ProblemList } from './problem-list.ts';
import { register, takeId, unregister } from './registration.ts';
import { registrationOf } from './subscription.ts';
import { ZooKeeperTopics } from './topic-directory.ts';

export class GroupMember {
  readonly id: string;
  readonly group: string;
  readonly #client: GroupClient;
  readonly #options: { readonly debounceMs: number; readonly clock: Clock };
  readonly #choice: AssignorChoice;
  readonly #hooks: GroupMemberHooks;
  readonly #path: string;
  readonly #data: string;
  readonly #view: GroupView;
  readonly #holdings: Holdings;
  readonly #planner: GroupPlanner | undefined;
  readonly #follower: PlanFollower | undefined;
  readonly #closeTopics: () => Promise<void>;
  readonly #wakeup = new Wakeup();
  readonly #life = new AbortController();
  readonly #backoff: Backoff;
  readonly #formerSessions = new Set<bigint>();
  readonly #problems = new ProblemList();
  #state: MemberState = { name: 'joining' };
  #settling = deferred();
  /** Why there is something to decide. */
  #reason: string | undefined = 'joined';
  #lastReason = 'joined';
  #rebalances = 0;
  #sessionId: bigint | undefined;
  #idBlocked: { readonly session: bigint; readonly sinceMs: number } | null = null;
  #idle: readonly string[] = [];
  #planEpoch: number | null = null;
  /** False while a plan is waited for. */
  #isPlanned = true;
  #running: Promise<void> | undefined;
  #planning: Promise<void> | undefined;
  #stopHearing = () => {};
  /** Set while the id is ours among all who share the client. */
  #giveUpId: (() => void) | undefined;

  constructor(client: GroupClient, options: GroupMemberOptions, hooks: GroupMemberHooks) {
    checkClient('GroupMember', client);
    checkOptions('GroupMember', options, groupMemberTable);
    const { group, clock = systemClock, generation = '0.8', consumerId } = options;
    const { debounceMs = 200, releaseTimeoutMs = 10_000 } = options;
    this.#choice = choiceOf(options);
    this.#client = client;
    this.#hooks = hooks;
    this.#options = { debounceMs, clock };
    const { random = Math.random } = options;
    this.#backoff = new Backoff({ firstMs: 50, maxMs: 5_000, random });
    this.group = group;
    const wallMs = clock.wallMs();
    this.id = consumerIdOf({
      group,
      wallMs,
      uuid: randomUUID(),
      ...(consumerId !== undefined && { consumerId }),
    });
    const ids = generation === '0.7' ? layout07.consumer : layout08.consumer;
    this.#path = ids.at({ group, consumer: this.id });
    this.#data = ids.format(registrationOf(options.subscribe, wallMs))!;
    const onProblem = (problem: LayoutProblem) => this.#problem(problem);
    const own = options.topics ? undefined : new ZooKeeperTopics(client, generation, onProblem);
    const topics = options.topics ?? own!;
    this.#closeTopics = async () => own?.close(); // the caller's own is the caller's to close
    this.#view = new GroupView(client, {
      group,
      generation,
      topics,
      includeInternal: options.includeInternal ?? false,
      onChange: (what) => this.#changed(`${what} changed`),
      onProblem,
    });
    const ownership = new Ownership(client, {
      group,
      wallMs: () => clock.wallMs(),
      formerSessions: this.#formerSessions,
      onChange: (partition) => this.#holdings.changed(partition),
      onProblem,
    });
    this.#holdings = new Holdings(client, {
      group,
      ownership,
      clock,
      releaseTimeoutMs,
      assigned: hooks.assigned,
      releasing: hooks.releasing,
      kick: () => this.#wakeup.ring(),
      onError: (error) => this.#report(error),
    });
    if (this.#choice.mode === 'planned') {
      const consumerIds = { group, consumerId: this.id };
      this.#planner = new GroupPlanner(client, {
        ...consumerIds,
        view: this.#view,
        assignor: this.#choice.assignor,
        clock,
        debounceMs,
        onProblem,
        onLeading: (epoch) => {
          this.#planEpoch = epoch;
        },
      });
      this.#follower = new PlanFollower(client, {
        ...consumerIds,
        onProblem,
        onChange: () => this.#decide('plan changed'),
      });
    }
  }

  get state(): MemberState {
    return this.#state;
  }

  /** Held now, as far as this process can know: after a pause of the process, nothing. */
  get owned(): OwnedPartition[] {
    void this.#client.state; // makes the client look at its clock: a session that is over ends here
    return this.#holdings.held;
  }

  status(): GroupMemberStatus {
    const { wallMs } = this.#options.clock;
    return {
      id: this.id,
      group: this.group,
      state: this.#state,
      mode: this.#choice.mode,
      sessionId: this.#sessionId,
      owned: this.owned,
      releasing: this.#holdings.releasing,
      blocked: this.#holdings.blocked,
      short: this.#holdings.short,
      idBlocked: this.#idBlocked,
      idleThreads: this.#idle,
      planEpoch: this.#planEpoch,
      rebalances: this.#rebalances,
      lastReason: this.#lastReason,
      problems: this.#problems.all,
      atMs: wallMs.call(this.#options.clock),
    };
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when all that is due is held and nothing is under way. Rejects when it is over. */
  async settled(): Promise<void> {
    while (this.#state.name !== 'settled') {
      if (this.#state.name === 'failed') throw this.#state.error;
      if (this.#state.name === 'closed') throw new Error(`${this.id} was closed`);
      await this.#settling.promise;
    }
  }

  /** Lets go of everything, in order: work finished and committed, owners, then the member itself. */
  async close(): Promise<void> {
    if (this.#life.signal.aborted) return this.#running;
    this.#life.abort();
    try {
      await this.#leave();
    } finally {
      this.#giveUpId?.();
    }
    this.#stopHearing();
    if (this.#state.name !== 'failed') this.#move({ name: 'closed' });
  }

  async #leave(): Promise<void> {
    await this.#running;
    await this.#planning;
    await this.#holdings.close();
    await this.#follower?.close();
    await this.#view.close();
    await this.#closeTopics();
    const sessionId = this.#sessionId;
    if (sessionId !== undefined) await unregister(this.#client, this.#path, sessionId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── the life ──────────────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    while (!this.#life.signal.aborted && this.#state.name !== 'failed') {
      try {
        await this.#live();
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  /** One session, from its beginning or from where an error broke it off. */
  async #live(): Promise<void> {
    const sessionId = await connected(this.#client, this.#life.signal);
    if (sessionId === undefined) return;
    const session = AbortSignal.any([this.#client.sessionSignal, this.#life.signal]);
    if (this.#sessionId !== sessionId) await this.#join(sessionId, session);
    while (!session.aborted && this.#client.sessionId === sessionId) {
      await this.#wakeup.rung(session);
      // The first time nobody waits for more; and what a plan says was taken together by who wrote it.
      const isBurst = this.#rebalances > 0 && this.#follower === undefined;
      if (this.#reason !== undefined && isBurst) {
        await pause(this.#options.clock, this.#options.debounceMs, session);
      }
      if (session.aborted) return;
      await this.#round(session);
    }
  }

  async #join(sessionId: bigint, session: AbortSignal, isNew = true): Promise<void> {
    this.#move({ name: 'joining' });
    this.#stopHearing();
    this.#stopHearing = onAbort(this.#client.sessionSignal, () => this.#sessionOver(sessionId));
    const registration = {
      path: this.#path,
      data: this.#data,
      formerSessions: this.#formerSessions,
      onBlocked: (by: GroupMemberStatus['idBlocked']) => {
        this.#idBlocked = by;
      },
    };
    const self = { sessionId, sinceMs: this.#options.clock.wallMs() };
    this.#giveUpId ??= await takeId(this.#client, registration, self, session);
    await register(this.#client, registration, session);
    this.#sessionId = sessionId;
    this.#decide('joined');
    if (this.#planner !== undefined && isNew) this.#planning = this.#plan(session);
  }

  /** At once, on the spot: from this moment on nothing of it is ours. */
  #sessionOver(sessionId: bigint): void {
    this.#formerSessions.add(sessionId);
    const [oldest] = this.#formerSessions;
    if (this.#formerSessions.size > formerSessionsMax) this.#formerSessions.delete(oldest!);
    if (this.#sessionId === sessionId) this.#sessionId = undefined;
    this.#holdings.sessionOver();
    this.#view.forget();
    this.#follower?.forget();
    if (this.#life.signal.aborted || this.#state.name === 'failed') return;
    this.#decide('session over');
    this.#move({ name: 'joining' });
  }

  async #plan(session: AbortSignal): Promise<void> {
    while (!session.aborted) {
      try {
        await this.#planner!.run(session);
      } catch (error) {
        if (session.aborted) return;
        this.#report(error);
        await pause(this.#options.clock, this.#backoff.next(), session);
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    if (this.#life.signal.aborted) return;
    if (isOver(this.#client.state)) return this.#fail(error);
    this.#report(error);
    await pause(this.#options.clock, this.#backoff.next(), this.#life.signal);
    this.#wakeup.ring();
  }

  #fail(error: unknown): void {
    this.#holdings.sessionOver();
    this.#giveUpId?.();
    this.#move({ name: 'failed', error });
    this.#hooks.failed?.(error);
  }

  // ── rebalancing ───────────────────────────────────────────────────────────────────────────────

  #changed(reason: string): void {
    if (this.#planner === undefined) this.#decide(reason);
    else this.#planner.changed();
  }

  #decide(reason: string): void {
    this.#reason = reason;
    this.#wakeup.ring();
  }

  async #round(session: AbortSignal): Promise<void> {
    const reason = this.#reason;
    if (reason !== undefined) {
      this.#move({ name: 'rebalancing', reason });
      this.#reason = undefined;
      try {
        const target = await this.#target(session);
        if (target === undefined) return;
        this.#holdings.target = target;
      } catch (error) {
        this.#reason ??= reason;
        throw error;
      }
      this.#rebalances += 1;
      this.#lastReason = reason;
    }
    await this.#holdings.reconcile();
    this.#backoff.reset();
    if (session.aborted || this.#reason !== undefined) return;
    if (this.#holdings.isSettled && this.#isPlanned) this.#move({ name: 'settled' });
    else this.#move({ name: 'rebalancing', reason: this.#lastReason });
  }

  /** Undefined: we are not among the members, and have to register again first. */
  async #target(session: AbortSignal): Promise<Target | undefined> {
    if (this.#follower !== undefined) {
      const wanted = await this.#follower.read();
      if (wanted === null && !(await this.#isRegistered())) return this.#joinAgain(session);
      this.#isPlanned = wanted !== null;
      if (wanted === null) this.#planner!.reload(); // not planned yet, or deleted by somebody
      return { wanted: wanted ?? new Map() };
    }
    const input = await this.#view.read();
    if (!input.members.has(this.id) && !(await this.#isRegistered())) {
      return this.#joinAgain(session);
    }
    const { target, idle } = targetOf(input, this.id, this.#choice);
    this.#idle = idle;
    return target;
  }

  async #isRegistered(): Promise<boolean> {
    const stat = await this.#client.exists(this.#path);
    return stat !== null && stat.ephemeralOwner === this.#client.sessionId;
  }

  /** What ZooKeeper shows counts, and not what we remember. */
  async #joinAgain(session: AbortSignal): Promise<undefined> {
    this.#problem({ path: this.#path, why: 'was deleted by somebody; made again', content: null });
    const { sessionId } = this.#client;
    if (sessionId !== undefined) await this.#join(sessionId, session, false);
    return undefined;
  }

  // ── telling ───────────────────────────────────────────────────────────────────────────────────

  #move(state: MemberState): void {
    const previous = this.#state;
    if (previous.name === 'failed' || previous.name === 'closed') return;
    if (previous.name === state.name && state.name !== 'rebalancing') return;
    this.#state = state;
    this.#settling.resolve();
    this.#settling = deferred();
    this.#hooks.changed?.(state);
  }

  #report(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.#problem({ path: this.#path, why, content: null });
  }

  #problem(problem: LayoutProblem): void {
    this.#problems.add(problem, this.#options.clock.wallMs());
    this.#hooks.problem?.(problem);
  }
}

/** Of these a node may still be found: older ones are long gone. */
const formerSessionsMax = 100;
