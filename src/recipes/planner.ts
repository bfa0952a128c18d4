/**
 * The one member that plans: the first in line. It watches who is there, waits until a burst of joins
 * and leaves has settled, and writes a plan that all members follow.
 *
 * Safety does not depend on it: a plan is a wish, and ownership nodes are the truth. Each write checks
 * in the same transaction that the planner is still a member, and that the plan is the one it read.
 */

import { type Acl, ArgumentError, type Client, isZkError } from '../client/index.ts';
import { type Clock, type Deferred, deferred, type Timer } from '../support/index.ts';
import type { Place } from './line.ts';
import { type Assign, formatPlan, nextPlan, type Plan, parsePlan } from './partition-plan.ts';
import { Roster } from './roster.ts';

export interface PlannerOptions {
  readonly membersPath: string;
  readonly planPath: string;
  readonly assign: Assign;
  readonly settleMs: number;
  readonly settleMaxMs: number;
  readonly acl: readonly Acl[] | undefined;
  readonly clock: Clock;
  readonly shards: () => readonly string[];
  /** The name that a member wrote into its node. */
  readonly nameOf: (data: Buffer | null) => string;
}

/** A plan is one node: it must stay below what a server takes in one request. */
export const planBytesMax = 1_000_000;
/** How often a plan that somebody else has changed under us is made anew before we wait for a change. */
const racesMax = 10;

export class Planner {
  readonly #client: Client;
  readonly #place: Place;
  readonly #options: PlannerOptions;
  readonly #roster: Roster;
  readonly #failed: Deferred<never> = deferred<never>();
  #due: Timer | undefined;
  #latestMs: number | undefined;
  #wake: Deferred<void> = deferred();

  constructor(client: Client, place: Place, options: PlannerOptions) {
    this.#client = client;
    this.#place = place;
    this.#options = options;
    this.#failed.promise.catch(() => {}); // told by `run`
    this.#roster = new Roster(client, options.membersPath, {
      watchData: false,
      wanted: (name) => place.line.sequenceOf(name) !== undefined,
      onChange: () => this.reconsider(),
      onEnd: (error) => this.#failed.reject(error),
    });
  }

  /** Something has changed: plans once it has been quiet for a moment, or for long enough. */
  reconsider(): void {
    const { clock, settleMs, settleMaxMs } = this.#options;
    const nowMs = clock.nowMs();
    this.#latestMs ??= nowMs + settleMaxMs;
    this.#due?.cancel();
    this.#due = clock.after(Math.min(settleMs, this.#latestMs - nowMs), () => {
      this.#latestMs = undefined;
      this.#wake.resolve();
    });
  }

  /** Plans until the signal aborts, or the place is lost. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = () => this.#wake.resolve();
    signal.addEventListener('abort', stop);
    try {
      this.reconsider();
      while (!signal.aborted) {
        await Promise.race([this.#wake.promise, this.#failed.promise]);
        this.#wake = deferred();
        if (signal.aborted) break;
        if (!this.#roster.isCurrent || !(await this.#isPlanned())) this.reconsider(); // later
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#due?.cancel();
      await this.#roster.close();
    }
  }

  /** False when the server could not be asked now. */
  async #isPlanned(): Promise<boolean> {
    try {
      return await this.#plan();
    } catch (error) {
      if (isZkError(error) && error.retryable) return false;
      throw error;
    }
  }

  async #plan(): Promise<boolean> {
    for (let races = 0; races < racesMax; races++) {
      const { plan, version } = await this.#current();
      const next = nextPlan(plan, this.#options.shards(), this.#members(), this.#options.assign);
      if (next === plan) return true;
      try {
        await this.#write(next, version);
        return true;
      } catch (error) {
        // Somebody else has written, or perhaps we have: the next look tells.
        const isRace = isZkError(error, 'BAD_VERSION', 'NODE_EXISTS', 'NO_NODE');
        if (!isRace && !isZkError(error, 'CONNECTION_LOSS')) throw error;
      }
    }
    return false;
  }

  #members() {
    const entries = [...this.#roster.entries.values()];
    entries.sort((a, b) => (a.stat.czxid < b.stat.czxid ? -1 : 1));
    return entries.map(({ name, data }) => ({ node: name, name: this.#options.nameOf(data) }));
  }

  async #current(): Promise<{ plan: Plan; version: number | undefined }> {
    try {
      const { data, stat } = await this.#client.get(this.#options.planPath);
      return { plan: parsePlan(data), version: stat.version };
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return { plan: parsePlan(null), version: undefined };
      throw error;
    }
  }

  async #write(plan: Plan, version: number | undefined): Promise<void> {
    const { planPath: path, acl } = this.#options;
    const data = formatPlan(plan);
    if (Buffer.byteLength(data) > planBytesMax) {
      const why = `the plan takes ${Buffer.byteLength(data)} bytes, and ${planBytesMax} is the most; use fewer shards, or shorter names`;
      throw new ArgumentError('shards', why);
    }
    const op =
      version === undefined
        ? ({ op: 'create', path, data, ...(acl && { acl }) } as const)
        : ({ op: 'set', path, data, version } as const);
    await this.#place.grant.guard([op]);
  }
}
