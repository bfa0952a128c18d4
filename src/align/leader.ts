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

import { MultiError, type MultiOp } from '../client/index.ts';
import { NotHeldError, type Term } from '../recipes/index.ts';
import { Backoff } from '../support/index.ts';
import { cutOps, cutsKept, deleteCut, readCut, writeParts } from './cuts.ts';
import { type Decision, GroupClock } from './group-clock.ts';
import {
  formatCalled,
  formatLimit,
  formatPlan,
  parseCalled,
  parseLimit,
  parseMember,
  parseRule,
  type StoredCut,
  type StoredLimit,
} from './layout.ts';
import type { LeaderOptions, LeaderStep } from './leader-options.ts';
import { FolderFollower, NodeFollower } from './node-follower.ts';
import { PeriodCalls } from './period-calls.ts';
import { childrenOf, readNode } from './read-node.ts';
import type { Rule } from './rule.ts';
import { type AlignClient, Bell, ensurePath, isPassing, pause } from './session.ts';

interface Known {
  readonly stored: StoredLimit;
  readonly version: number;
  readonly mzxid: bigint;
}

export class Leader {
  readonly #client: AlignClient;
  readonly #term: Term;
  readonly #options: LeaderOptions;
  readonly #bell = new Bell();
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  /** Member nodes, by name: when each was made. */
  readonly #members = new Map<string, bigint>();
  #clock!: GroupClock;
  #known!: Known;
  #calls: PeriodCalls | undefined;
  /** The cuts that lie in storage, oldest first. `isPlain`: in one node, made by us. */
  #cuts: { readonly name: string; readonly isPlain: boolean }[] = [];
  #hasCalled = false;
  /** The last boundary whose callback has run, runs or waits. */
  #queuedEnd = -1;
  #isListed = false;
  #error: unknown;

  constructor(client: AlignClient, term: Term, options: LeaderOptions) {
    this.#client = client;
    this.#term = term;
    this.#options = options;
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
      await this.#step('elected');
      await this.#persist(async () => {
        await this.#read();
        await this.#step('read');
        await this.#claim();
      });
      await this.#step('claimed');
      if (!this.#isOver) closers.push(...this.#follow());
      await this.#step('following');
      while (!this.#isOver) {
        await this.#bell.rung(this.#stop.signal);
        await this.#persist(() => this.#look());
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#stop.abort();
      await this.#calls?.close();
      for (const close of closers) await close();
    }
    if (this.#error !== undefined) throw this.#error;
  }

  get #isOver(): boolean {
    return this.#term.signal.aborted || this.#stop.signal.aborted;
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
        if (!this.#isOver && isRace && this.#known !== undefined)
          await this.#persist(() => this.#read());
      }
    }
  }

  // ── read, claim ───────────────────────────────────────────────────────────────────────────────

  async #read(): Promise<void> {
    const { paths, topics } = this.#options;
    const found = await readNode(this.#client, paths.limit, parseLimit);
    const rule =
      (await readNode(this.#client, paths.config, parseRule))?.value ?? this.#options.rule;
    this.#known = found
      ? { stored: found.value, version: found.version, mzxid: found.mzxid }
      : { stored: blank(rule), version: -1, mzxid: 0n };
    const { limitMs, cut } = this.#known.stored;
    const isFirst = this.#clock === undefined;
    await this.#listCuts();
    if (!isFirst) {
      this.#clock.moved({ limitMs, cut: cut && { end: cut.end, offsets: new Map() } });
      await this.#queueCalls();
      return;
    }
    this.#clock = new GroupClock(rule, limitMs, cut?.end ?? null);
    this.#clock.hasOwners = this.#options.hasCuts;
    this.#clock.plan(keysOf(await topics()));
    const last = cut && (await readCut(this.#client, paths, cut));
    for (const [key, offset] of last?.offsets ?? []) {
      this.#clock.seed(key, { positionMs: last!.end, offset, reached: [] });
    }
    await this.#queueCalls();
  }

  async #listCuts(): Promise<void> {
    const names = (await childrenOf(this.#client, this.#options.paths.cuts)) ?? [];
    const end = this.#known.stored.cut?.end ?? -1;
    // Of a leader that lost its term half way there may be parts that count for nothing.
    this.#cuts = names
      .filter((name) => endOf(name) <= end)
      .sort(byEnd)
      .map((name) => ({ name, isPlain: false }));
  }

  /**
   * Cuts that lie in storage and whose callback is not under way: of a leader before us, or our own, made
   * by a transaction whose reply was lost.
   */
  async #queueCalls(): Promise<void> {
    const { paths, onPeriod } = this.#options;
    if (onPeriod === undefined) return;
    if (this.#calls === undefined) {
      const called = (await readNode(this.#client, paths.called, parseCalled))?.value;
      this.#hasCalled = called !== undefined;
      this.#queuedEnd = called ?? -1;
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
    const { cut } = this.#known.stored;
    for (const { name } of this.#cuts) {
      const end = endOf(name);
      if (end <= this.#queuedEnd) continue;
      const found = cut?.node === name ? cut.parts : undefined;
      const parts = found ?? ((await childrenOf(this.#client, paths.cut(name))) ?? []).length;
      const one = await readCut(this.#client, paths, { node: name, parts, end, start: null });
      if (one !== null) this.#queueCall(one);
    }
  }

  /** Nothing is over where the group began. */
  #queueCall(cut: StoredCut): void {
    if (cut.start === null || this.#calls === undefined) return;
    this.#queuedEnd = cut.end;
    this.#calls.add(cut);
  }

  async #claim(): Promise<void> {
    const { paths, topics } = this.#options;
    const plan = formatPlan(this.#term.epoch, await topics());
    const stored = { ...this.#known.stored, epoch: this.#term.epoch, rule: this.#clock.rule };
    await ensurePath(this.#client, paths.plan);
    await this.#write({ ...stored, isFinished: false }, [
      { op: 'set', path: paths.plan, data: plan },
    ]);
  }

  // ── follow ────────────────────────────────────────────────────────────────────────────────────

  #follow(): (() => Promise<void> | void)[] {
    const { paths, clock, random, onTopics } = this.#options;
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
    const stopTopics = onTopics(() => this.#replan());
    return [() => members.close(), () => config.close(), stopTopics];
  }

  #memberSaid(
    name: string,
    { data, stat }: { data: Buffer | null; stat: { czxid: bigint } },
  ): void {
    try {
      const { partitions } = parseMember(data, `${this.#options.paths.members}/${name}`);
      this.#members.set(name, stat.czxid);
      for (const [key, report] of partitions) this.#clock.report(key, name, report);
      for (const key of this.#clock.keys) {
        // It had the partition, and says so no more: it is on its way to somebody else.
        if (this.#clock.view(key)?.member === name && !partitions.has(key))
          this.#clock.left(name, key);
      }
      this.#bell.ring();
    } catch (error) {
      this.#options.onProblem(`${this.#options.paths.members}/${name}`, error);
    }
  }

  #memberLeft(name: string): void {
    this.#members.delete(name);
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

  #replan(): void {
    this.#persist(async () => {
      const topics = await this.#options.topics();
      this.#clock.plan(keysOf(topics));
      const data = formatPlan(this.#term.epoch, topics);
      await this.#term.guard([{ op: 'set', path: this.#options.paths.plan, data }]);
      this.#bell.ring();
    }).catch((error) => this.#fail(error));
  }

  // ── move ──────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    if (!this.#isListed || this.#isOver) return;
    if (this.#calls?.isFull) return; // told again when there is room
    const { isFinished: isAtEnd, ...decision } = this.#clock.decide();
    const { stored, mzxid } = this.#known;
    const isNewRule = !isSame(stored.rule, this.#clock.rule);
    const isMove = decision.limitMs !== stored.limitMs || decision.cut !== null || isNewRule;
    // Whoever hears that all is over leaves: so it is said only once the last callback has ended.
    const isFinished = isAtEnd && decision.cut === null && (this.#calls?.isEmpty ?? true);
    // Who came after it was written would take it for one of an earlier run.
    const isUnheard = isFinished && [...this.#members.values()].some((at) => at > mzxid);
    if (isMove || isUnheard || stored.isFinished !== isFinished) {
      await this.#move({ ...decision, isFinished });
      if (isAtEnd && !isFinished) this.#bell.ring();
    }
  }

  async #move(decision: Decision): Promise<void> {
    const { paths, hasCuts } = this.#options;
    const { epoch } = this.#term;
    const { stored } = this.#known;
    await this.#step('moving');
    const cut = hasCuts ? decision.cut : null;
    const start = stored.cut?.end ?? null;
    const made = cut && cutOps(paths, { cut, start, epoch });
    if (cut && made) await writeParts(this.#client, paths, { cut, start, epoch }, made.pointer);
    const old = made ? this.#cuts.slice(0, Math.max(0, this.#cuts.length + 1 - cutsKept)) : [];
    const drops = old
      .filter(({ isPlain }) => isPlain)
      .map(({ name }) => ({ op: 'delete', path: paths.cut(name) }) as const);
    await this.#write(
      {
        epoch,
        limitMs: decision.limitMs,
        rule: this.#clock.rule,
        cut: made?.pointer ?? stored.cut,
        isFinished: decision.isFinished,
        movedAtMs: this.#options.clock.wallMs(),
      },
      [...(made?.ops ?? []), ...drops],
    );
    this.#clock.moved(decision);
    if (cut && made) {
      const { node, parts } = made.pointer;
      this.#cuts = [...this.#cuts.slice(old.length), { name: node, isPlain: parts === 0 }];
      this.#queueCall({ epoch, start, end: cut.end, offsets: cut.offsets });
    }
    await this.#step('moved');
    for (const { name, isPlain } of old) {
      if (!isPlain) await deleteCut(this.#client, paths.cut(name));
    }
  }

  async #write(stored: StoredLimit, more: readonly MultiOp[]): Promise<void> {
    const path = this.#options.paths.limit;
    const data = formatLimit(stored);
    const { version } = this.#known;
    if (version === -1) {
      const [made] = await this.#term.guard([{ op: 'create', path, data }, ...more]);
      this.#known = { stored, version: 0, mzxid: made.stat?.mzxid ?? 0n };
    } else {
      const [stat] = await this.#term.guard([{ op: 'set', path, data, version }, ...more]);
      this.#known = { stored, version: stat.version, mzxid: stat.mzxid };
    }
  }

  /** That the callback of a period has ended. Fenced, as everything. */
  async #record(end: number): Promise<void> {
    await this.#persist(async () => {
      const path = this.#options.paths.called;
      const data = formatCalled(this.#term.epoch, end);
      if (!this.#hasCalled) await ensurePath(this.#client, path);
      this.#hasCalled = true;
      await this.#term.guard([{ op: 'set', path, data }]);
    });
    await this.#step('called');
  }
}

const endOf = (name: string) => Number(name.slice(0, name.lastIndexOf('-')));
const byEnd = (a: string, b: string) => endOf(a) - endOf(b);

function keysOf(topics: ReadonlyMap<string, readonly string[]>): string[] {
  return [...topics].flatMap(([topic, names]) => names.map((name) => `${topic}/${name}`));
}

function isSame(a: Rule, b: Rule): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function blank(rule: Rule): StoredLimit {
  return { epoch: 0n, limitMs: null, rule, cut: null, isFinished: false, movedAtMs: 0 };
}
