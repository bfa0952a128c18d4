/**
 * Watches machines by their nodes: which are up, which are suspect, which are down, and every change.
 *
 * Down: the node is gone, and so the session is over, or the machine has left. That comes at once when
 * it leaves, and one session timeout after it dies. What can be known sooner makes it suspect:
 *
 *   linkLost   `attached` says that no server has a link to its session, at two looks in a row
 *   noBeat     the monitor was told to expect a sign of life (`beatMs`), and 2.5 such times passed without
 *   cutOff     the monitor itself has lost its link: whatever was up is suspect until it is back
 *
 * A machine cannot tell others that it has lost its link, and ZooKeeper tells nobody: so without
 * `attached` or `beatMs` there is no suspicion but `cutOff`, and a dead machine is up until its session
 * ends. Machines that went are remembered as down, the newest `downMax` of them.
 *
 * NOT promised: that a machine which is up can be reached by you, or does its work.
 */

import { ArgumentError, type Client, checkClient } from '../client/index.ts';
import { type Clock, checkOptions, systemClock, type Timer } from '../support/index.ts';
import { Feed } from './feed.ts';
import { machinesPath } from './machine.ts';
import { judge, type MachineReason, type MachineState, machineReasons } from './machine-judge.ts';
import { machineMonitorTable } from './option-tables.ts';
import { type Entry, Roster, type RosterChange } from './roster.ts';

export interface MachineMonitorOptions {
  /** `/clusterServers` unless said. */
  readonly path?: string;
  /** Machines that are down until they are seen. */
  readonly expected?: readonly string[];
  /** What the machines were given as `beatMs`: all of them are expected to beat. */
  readonly beatMs?: number;
  /** The sessions that have a link now, or null when that is not known: see `attachedSessions`. */
  readonly attached?: () => Promise<ReadonlySet<bigint> | null>;
  /** How often `attached` is asked. 2 s. */
  readonly probeMs?: number;
  /** How many machines that went are remembered. 1,000. */
  readonly downMax?: number;
  readonly clock?: Clock;
}

export interface MachineView {
  readonly name: string;
  readonly state: MachineState;
  readonly reason: MachineReason;
  /** Since when it is in this state, by our own calendar. */
  readonly sinceMs: number;
  readonly data: Buffer | null;
  readonly sessionId: bigint | null;
}

export interface MachineChange {
  readonly machine: MachineView;
  /** Null for one that is new to us. */
  readonly from: MachineState | null;
  readonly to: MachineState;
}

interface Known {
  readonly name: string;
  entry: Entry | undefined;
  isPresent: boolean;
  beatAtMs: number;
  unattachedTimes: number;
  view: MachineView | undefined;
}

/** A beat may be late by this much before it counts as missing. */
const beatsAllowed = 2.5;

export class MachineMonitor implements AsyncIterable<MachineChange> {
  readonly path: string;
  readonly #options: MachineMonitorOptions;
  readonly #clock: Clock;
  readonly #roster: Roster;
  readonly #known = new Map<string, Known>();
  readonly #feeds = new Set<Feed<MachineChange>>();
  #timers = new Map<'beat' | 'probe', Timer>();
  #isCurrent = false;
  #end: { readonly error?: unknown } | undefined;

  /** Begins to watch at once. */
  constructor(client: Client, options: MachineMonitorOptions = {}) {
    checkClient('MachineMonitor', client);
    checkOptions('MachineMonitor', options, machineMonitorTable);
    this.path = options.path ?? machinesPath;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { beatMs, probeMs = 2_000, attached } = options;
    for (const [name, value] of Object.entries({ beatMs, probeMs })) {
      if (value === undefined || value > 0) continue;
      throw new ArgumentError(name, 'a number of milliseconds above 0 is wanted');
    }
    for (const name of options.expected ?? []) this.#judge(this.#of(name));
    this.#roster = new Roster(client, this.path, {
      onChange: (change) => this.#changed(change),
      onCurrent: (isCurrent) => this.#currentChanged(isCurrent),
      onEnd: (error) => this.#over({ error }),
    });
    if (beatMs !== undefined) this.#every('beat', beatMs / 2, async () => this.#judgeAll());
    if (attached !== undefined) this.#every('probe', probeMs, () => this.#probe(attached));
  }

  /** Resolves once all machines that are there were read. */
  get ready(): Promise<void> {
    return this.#roster.ready;
  }

  get isCurrent(): boolean {
    return this.#roster.isCurrent;
  }

  /** All that are known, by name. */
  get machines(): readonly MachineView[] {
    const views = [...this.#known.values()].map(({ view }) => view!);
    return views.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get(name: string): MachineView | undefined {
    return this.#known.get(name)?.view;
  }

  get counts(): Readonly<Record<MachineState, number>> {
    const counts = { up: 0, suspect: 0, down: 0 };
    for (const { view } of this.#known.values()) counts[view!.state] += 1;
    return counts;
  }

  /** In words, for whoever is woken at night. */
  explain({ name, state, reason }: MachineView): string {
    return `${name} is ${state}: ${machineReasons[reason]}`;
  }

  /** Those known now, then every change of state. Ends with `close` or the client. */
  [Symbol.asyncIterator](): AsyncIterator<MachineChange> {
    const feed: Feed<MachineChange> = new Feed({
      of: `machines of ${this.path}`,
      onReturn: async () => void this.#feeds.delete(feed),
    });
    for (const machine of this.machines) feed.push({ machine, from: null, to: machine.state });
    if (this.#end) feed.end(this.#end.error);
    else this.#feeds.add(feed);
    return feed;
  }

  async close(): Promise<void> {
    this.#over({});
    await this.#roster.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── what is known ─────────────────────────────────────────────────────────────────────────────

  #of(name: string): Known {
    const known = this.#known.get(name) ?? {
      ...{ name, entry: undefined, isPresent: false, unattachedTimes: 0, view: undefined },
      beatAtMs: this.#clock.nowMs(),
    };
    this.#known.set(name, known);
    return known;
  }

  #changed({ type, entry }: RosterChange): void {
    const known = this.#of(entry.name);
    known.entry = entry;
    known.isPresent = type !== 'gone';
    known.beatAtMs = this.#clock.nowMs();
    if (type !== 'changed') known.unattachedTimes = 0;
    this.#judge(known, true); // just read, whatever the rest of the view is worth
    if (type === 'gone') this.#forgetOldest();
  }

  #currentChanged(isCurrent: boolean): void {
    // Beats that were missed while we were away are not the machines' fault.
    const nowMs = this.#clock.nowMs();
    if (isCurrent) for (const known of this.#known.values()) known.beatAtMs = nowMs;
    this.#isCurrent = isCurrent;
    this.#judgeAll();
  }

  async #probe(attached: () => Promise<ReadonlySet<bigint> | null>): Promise<void> {
    // A probe that fails says nothing, for or against anybody.
    const sessions = await attached().catch(() => null);
    if (sessions === null) return;
    for (const known of this.#known.values()) {
      const id = known.entry?.stat.ephemeralOwner;
      if (id === undefined || !known.isPresent) continue;
      known.unattachedTimes = sessions.has(id) ? 0 : known.unattachedTimes + 1;
    }
    this.#judgeAll();
  }

  #judgeAll(): void {
    for (const known of this.#known.values()) this.#judge(known);
  }

  #judge(known: Known, isFresh = false): void {
    if (this.#end !== undefined) return;
    const { beatMs } = this.#options;
    const { state, reason } = judge(
      { ...known, wasEverSeen: known.entry !== undefined },
      {
        nowMs: this.#clock.nowMs(),
        isCurrent: this.#isCurrent || isFresh,
        beatWithinMs: beatMs === undefined ? undefined : beatMs * beatsAllowed,
      },
    );
    const from = known.view?.state ?? null;
    known.view = {
      ...{ name: known.name, state, reason },
      sinceMs: from === state ? known.view!.sinceMs : this.#clock.wallMs(),
      data: known.entry?.data ?? null,
      sessionId: known.entry?.stat.ephemeralOwner ?? null,
    };
    if (from === state) return;
    for (const feed of this.#feeds) feed.push({ machine: known.view, from, to: state });
  }

  #forgetOldest(): void {
    const { downMax = 1_000, expected = [] } = this.#options;
    const down = [...this.#known.values()].filter(
      ({ isPresent, name }) => !isPresent && !expected.includes(name),
    );
    down.sort((a, b) => a.view!.sinceMs - b.view!.sinceMs);
    for (const { name } of down.slice(0, Math.max(0, down.length - downMax))) {
      this.#known.delete(name);
    }
  }

  #every(what: 'beat' | 'probe', ms: number, work: () => Promise<void>): void {
    const next = () => {
      if (this.#end !== undefined) return;
      this.#timers.set(
        what,
        this.#clock.after(ms, () => void work().finally(next), true),
      );
    };
    next();
  }

  #over(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    for (const timer of this.#timers.values()) timer.cancel();
    for (const feed of this.#feeds) feed.end(end.error);
    this.#feeds.clear();
  }
}
