/**
 * The leader's part: one term, from the election to its end.
 *
 *   elected ─▶ read ─▶ claimed ─▶ following ─┬▶ moving ─▶ moved ─▶ calling ─▶ called ─┐
 *                                            └◀───────────────────────────────────────┘
 *
 *   read       the limit, the last cut, the cuts whose callback did not end
 *   claimed    the limit is written again, unchanged, with this term's epoch: from here on a leader of
 *              before fails, should it still have a write on its way
 *   following  members are watched; every report is looked at, and nothing is asked in between
 *   moving     one transaction: the term is checked, the limit set where its version is the one known,
 *              and the cut made
 *   calling    the callback of a period runs, once for the group, with a signal that ends with the term
 *   called     that it has ended is written: the next leader repeats only what is not
 *
 * What always holds: the limit never goes back; a cut is made with everybody past it and done; nothing
 * is written by whoever leads no more. What is known of partitions comes from members' reports and from
 * the last cut alone, so a new leader knows what the old one knew.
 *
 * NOT promised: exactly one call for a period. A leader that ends between `calling` and `called` has
 * called, and the next one calls again, with a higher epoch.
 */

import { MultiError } from '../client/index.ts';
import { NotHeldError, type Term } from '../recipes/index.ts';
import { Backoff, deferred, HeldSignal, pause, Wakeup } from '../support/index.ts';
import { type Decision, GroupClock, type PartitionReport } from './group-clock.ts';
import { parseMember, parseRule, type StoredCut } from './layout.ts';
import type { LeaderOptions, LeaderStep, OuterLimit } from './leader-options.ts';
import { LimitStore, type Topics } from './limit-store.ts';
import { FolderFollower, NodeFollower } from './node-follower.ts';
import { PeriodCalls } from './period-calls.ts';
import type { Rule } from './rule.ts';
import { type AlignClient, isPassing } from './session.ts';

export class Leader {
  readonly #client: AlignClient;
  readonly #term: Term;
  readonly #options: LeaderOptions;
  readonly #bell = new Wakeup();
  readonly #backoff: Backoff;
  readonly #stop = new HeldSignal(() => void this.#term.isLeading);
  /** Member nodes, by name: when each was made. */
  readonly #members = new Map<string, bigint>();
  /** What each of them said last. */
  readonly #said = new Map<string, ReadonlyMap<string, PartitionReport>>();
  readonly #store: LimitStore;
  #clock!: GroupClock;
  #outer: OuterLimit | undefined;
  #calls: PeriodCalls | undefined;
  /** The last boundary whose callback has run, runs or waits. */
  #queuedEnd = -1;
  #isListed = false;
  readonly #following = deferred();
  #replanning: Promise<void> = this.#following.promise;
  #isReplanDue = false;
  #error: unknown;

  constructor(client: AlignClient, term: Term, options: LeaderOptions) {
    this.#client = client;
    this.#term = term;
    this.#options = options;
    this.#store = new LimitStore(client, term, options.paths);
    const { random = Math.random } = options;
    this.#backoff = new Backoff({ firstMs: 20, maxMs: 2_000, random });
  }

  /** Runs until the term is over. Rejects with what is nobody's passing trouble. */
  async run(): Promise<void> {
    const { signal } = this.#term;
    const stop = () => this.#stop.abort();
    signal.addEventListener('abort', stop, { once: true });
    const closers: (() => Promise<void> | void)[] = [];
    try {
      // Before anything is read: what changes meanwhile is looked at once the members are followed.
      closers.push(this.#options.onTopics(() => this.#replan()));
      await this.#step('elected');
      await this.#persist(async () => {
        await this.#read();
        await this.#step('read');
        await this.#store.claim(this.#clock.rule, await this.#options.topics());
      });
      await this.#step('claimed');
      await this.#persist(async () => this.#openOuter(await this.#options.topics()));
      if (!this.#isOver) closers.push(...this.#follow());
      this.#following.resolve();
      await this.#step('following');
      while (!this.#isOver) {
        await this.#bell.rung(this.#stop.signal);
        await this.#persist(() => this.#look());
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#stop.abort();
      this.#following.resolve();
      await this.#replanning;
      await this.#calls?.close();
      for (const close of closers) await close();
      await this.#outer?.close();
    }
    if (this.#error !== undefined) throw this.#error;
  }

  get #isOver(): boolean {
    return this.#term.signal.aborted || this.#stop.isAborted;
  }

  async #step(step: LeaderStep): Promise<void> {
    if (!this.#isOver) await this.#options.onStep?.(step, this.#term.epoch);
  }

  #fail(error: unknown): void {
    this.#error ??= error;
    this.#stop.abort();
  }

  /** Tried again, with growing waits, as long as the term lasts. */
  async #persist(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      try {
        await work();
        this.#backoff.reset();
        return;
      } catch (error) {
        if (this.#isOver || error instanceof NotHeldError) return this.#stop.abort();
        // Somebody else has written: it is read again, and if we lead no more that will show.
        const isRace = error instanceof MultiError;
        if (!isRace && !isPassing(error)) throw error;
        await pause(this.#options.clock, this.#backoff.next(), this.#stop.signal);
        if (!this.#isOver && isRace && this.#store.isRead) await this.#persist(() => this.#read());
      }
    }
  }

  // ── read ──────────────────────────────────────────────────────────────────────────────────────

  async #read(): Promise<void> {
    const { rule: otherwise, topics, hasCuts } = this.#options;
    const rule = await this.#store.read(otherwise);
    const { limitMs, cut } = this.#store.stored;
    if (this.#clock !== undefined) {
      this.#clock.moved({ limitMs, cut });
      await this.#queueCalls();
      return;
    }
    const clock = new GroupClock(rule, limitMs, cut?.end ?? null);
    clock.hasOwners = hasCuts;
    clock.plan(keysOf(await topics()));
    const last = await this.#store.lastCut();
    for (const [key, offset] of last?.offsets ?? []) {
      clock.seed(key, { positionMs: last!.end, offset, reached: [] });
    }
    this.#clock = clock;
    await this.#queueCalls();
  }

  /**
   * Cuts that lie in storage and whose callback is not under way: of a leader before us, or our own, made
   * by a transaction whose reply was lost.
   */
  async #queueCalls(): Promise<void> {
    const { onPeriod } = this.#options;
    if (onPeriod === undefined) return;
    if (this.#calls === undefined) {
      this.#queuedEnd = await this.#store.called();
      this.#calls = new PeriodCalls({
        onPeriod,
        epoch: this.#term.epoch,
        signal: this.#stop.signal,
        onStep: (step) => this.#step(step),
        record: (end) => this.#record(end),
        onFailure: (error) => this.#fail(error),
        onRoom: () => this.#bell.ring(),
      });
    }
    for (const cut of await this.#store.cutsAfter(this.#queuedEnd)) this.#queueCall(cut);
  }

  /** Nothing is over where the group began. */
  #queueCall(cut: StoredCut): void {
    if (cut.start === null || this.#calls === undefined) return;
    this.#queuedEnd = cut.end;
    this.#calls.add(cut);
  }

  /** The limit that the group shares with others, where it does. */
  async #openOuter(topics: Topics): Promise<void> {
    const before = this.#outer;
    this.#outer = undefined;
    await before?.close();
    const opening = this.#options.openOuter?.({
      topics,
      stepMs: this.#clock.rule.stepMs,
      knownMs: this.#store.stored.limitMs,
      signal: this.#stop.signal,
      onMoved: () => this.#bell.ring(),
      onProblem: (error) => this.#options.onProblem(this.#options.paths.config, error),
      onFailure: (error) => {
        if (!this.#isOver) this.#fail(error);
      },
    });
    this.#outer = await opening?.catch((error: unknown) => {
      if (!this.#isOver) throw error; // the term is over, and with it its signal
      return undefined;
    });
  }

  // ── follow ────────────────────────────────────────────────────────────────────────────────────

  #follow(): (() => Promise<void> | void)[] {
    const { paths, clock, random } = this.#options;
    const common = {
      clock,
      ...(random && { random }),
      onFailure: (error: unknown) => this.#fail(error),
    };
    const members = new FolderFollower(this.#client, paths.members, {
      ...common,
      onListed: () => {
        this.#isListed = true;
        this.#bell.ring();
      },
      onNode: (name, node) => {
        if (node === null) this.#memberLeft(name);
        else this.#memberSaid(name, node);
      },
    });
    const config = new NodeFollower(this.#client, paths.config, {
      ...common,
      onValue: (node) => {
        if (node !== null) this.#configSaid(node.data);
      },
    });
    members.start();
    config.start();
    return [() => members.close(), () => config.close()];
  }

  #memberSaid(
    name: string,
    { data, stat }: { data: Buffer | null; stat: { czxid: bigint } },
  ): void {
    try {
      const { partitions } = parseMember(data, `${this.#options.paths.members}/${name}`);
      this.#members.set(name, stat.czxid);
      const before = this.#said.get(name);
      this.#said.set(name, partitions);
      for (const [key, report] of partitions) {
        const isNews = before !== undefined && !isSameReport(before.get(key), report);
        this.#clock.report(key, name, report, isNews);
      }
      // It had the partition, and says so no more: it is on its way to somebody else.
      const gone = [...this.#clock.keys].filter((key) => !partitions.has(key));
      this.#clock.left(name, gone);
      this.#bell.ring();
    } catch (error) {
      this.#options.onProblem(`${this.#options.paths.members}/${name}`, error);
    }
  }

  #memberLeft(name: string): void {
    this.#members.delete(name);
    this.#said.delete(name);
    this.#clock.left(name);
    this.#bell.ring();
  }

  #configSaid(data: Buffer | null): void {
    try {
      this.#clock.rule = parseRule(data, this.#options.paths.config);
      this.#bell.ring();
    } catch (error) {
      this.#options.onProblem(this.#options.paths.config, error); // the rule before goes on
    }
  }

  /** One at a time, each by the topics as they are then: what comes while one waits is one with it. */
  #replan(): void {
    if (this.#isReplanDue) return;
    this.#isReplanDue = true;
    const replan = async () => {
      this.#isReplanDue = false;
      const topics = await this.#options.topics();
      this.#plan(keysOf(topics));
      await this.#store.writePlan(topics);
      await this.#openOuter(topics);
      this.#bell.ring();
    };
    this.#replanning = this.#replanning
      .then(() => this.#persist(replan))
      .catch((error) => this.#fail(error));
  }

  /** Who has a new partition may have said so before we knew of it, and then says nothing more. */
  #plan(keys: readonly string[]): void {
    const known = new Set(this.#clock.keys);
    this.#clock.plan(keys);
    for (const [name, partitions] of this.#said) {
      for (const [key, report] of partitions) {
        if (!known.has(key)) this.#clock.report(key, name, report);
      }
    }
  }

  // ── move ──────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    if (!this.#isListed || this.#isOver) return;
    if (this.#calls?.isFull) return; // told again when there is room
    this.#tellOuter();
    const { isFinished: isAtEnd, cut, limitMs } = this.#clock.decide();
    const { stored, mzxid } = this.#store;
    const isNewRule = !isSame(stored.rule, this.#clock.rule);
    const isMove = limitMs !== stored.limitMs || cut !== null || isNewRule;
    // Whoever hears that all is over leaves: so it is said only once the last callback has ended.
    const isLast = isAtEnd && this.#outer?.hasOthers !== true;
    const isFinished = isLast && cut === null && (this.#calls?.isEmpty ?? true);
    // Who came after it was written would take it for one of an earlier run.
    const isUnheard = isFinished && [...this.#members.values()].some((at) => at > mzxid);
    if (isMove || isUnheard || stored.isFinished !== isFinished) {
      await this.#move({ limitMs, cut: this.#options.hasCuts ? cut : null, isFinished });
      this.#clock.moved({ limitMs, cut });
      if (isLast && !isFinished) this.#bell.ring();
    }
    await this.#store.sweep();
  }

  /** What others are waiting for, and how far they let us go. */
  #tellOuter(): void {
    const outer = this.#outer;
    if (outer === undefined) return;
    const { limitMs } = outer;
    this.#clock.outerMs = limitMs;
    outer.setPeriod(this.#clock.rule.stepMs);
    // Where nobody reads there is nobody to set the pace: each limit would be reached at once.
    if (outer.hasOthers || this.#clock.slowest !== null) outer.report(this.#clock.reached(limitMs));
  }

  async #move(decision: Decision): Promise<void> {
    await this.#step('moving');
    const movedAtMs = this.#options.clock.wallMs();
    const made = await this.#store.move(decision, this.#clock.rule, movedAtMs);
    if (made !== null) this.#queueCall(made);
    await this.#step('moved');
  }

  /** That the callback of a period has ended. */
  async #record(end: number): Promise<void> {
    await this.#persist(() => this.#store.writeCalled(end));
    await this.#step('called');
  }
}

function keysOf(topics: ReadonlyMap<string, readonly string[]>): string[] {
  return [...topics].flatMap(([topic, names]) => names.map((name) => `${topic}/${name}`));
}

function isSameReport(a: PartitionReport | undefined, b: PartitionReport): boolean {
  return a?.state === b.state && a.positionMs === b.positionMs && a.epoch === b.epoch;
}

function isSame(a: Rule, b: Rule): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
