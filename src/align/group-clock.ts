/**
 * The group's clock, as its leader keeps it: where every partition is, how far the limit may move, and
 * which cut everybody has reached.
 *
 * In: the plan, what is stored of each partition, what members report. Out: a decision, whenever asked:
 * the next limit, and a cut where there is one to be made. Pure.
 *
 *   unknown    not reported since ever: the limit does not move at all
 *   reading    holds the limit back; also while nobody has the partition, where it was known to be last
 *   stopped    holds it back too: its reader failed, or a record was refused; somebody has to look
 *   idle       nothing to read there is, and so it holds nobody back; back with its first record.
 *              `aheadMs`: there is a record, so far ahead that the others may still bring earlier ones
 *   finished   will never have more
 *
 * A partition's reports carry the epoch of its ownership, and one of a lower epoch than was seen counts
 * for nothing: so whoever lost a partition has no more say in it.
 */

import type { Pass } from './partition-clock.ts';
import { boundaryAfter, boundaryAt, ceilingOf, limitFor, type Rule } from './rule.ts';

export type PartitionState = 'reading' | 'idle' | 'finished' | 'stopped';

export interface PartitionReport {
  /** Of the ownership: grows from owner to owner. */
  readonly epoch: bigint;
  readonly state: PartitionState;
  /** Null: nothing is known yet; or, where it is finished or idle, nothing ever came. */
  readonly positionMs: number | null;
  /** The first record that is not done. */
  readonly offset: bigint;
  readonly reached: readonly Pass[];
  /** The time of its next record, which lies so far ahead that it is not believed yet. */
  readonly aheadMs?: number;
}

export interface Cut {
  /** Everything before this boundary is done, in every partition. */
  readonly end: number;
  /** By partition key: where to go on. */
  readonly offsets: ReadonlyMap<string, bigint>;
  /** Every partition is at its end, and no record lies at or beyond this boundary. */
  readonly isFinal: boolean;
}

export interface Decision {
  /** Never below the one before. Null: none was ever set, and none can be. */
  readonly limitMs: number | null;
  readonly cut: Cut | null;
  /** Every partition has come to its end. */
  readonly isFinished: boolean;
}

interface View extends PartitionReport {
  readonly member: string | null;
}

export class GroupClock {
  readonly #views = new Map<string, View | null>();
  /** Where nobody owns anything: what was said, by key and member, while another had the say. */
  readonly #refused = new Map<string, Map<string, PartitionReport>>();
  #rule: Rule;
  #limitMs: number | null;
  #cutEnd: number | null;
  /**
   * Whether a partition that nobody has goes only to who has it by a later ownership. Not so where there
   * is no ownership, and whoever speaks has the say.
   */
  hasOwners = true;
  /** Where there is a limit from outside, it takes the place of the rule's. */
  outerMs: number | null = null;

  constructor(rule: Rule, limitMs: number | null, cutEnd: number | null) {
    this.#rule = rule;
    this.#limitMs = limitMs;
    this.#cutEnd = cutEnd;
  }

  get rule(): Rule {
    return this.#rule;
  }

  set rule(rule: Rule) {
    this.#rule = rule;
  }

  /** All partitions there are. New ones are unknown; those that are gone are forgotten. */
  plan(keys: Iterable<string>): void {
    const wanted = new Set(keys);
    for (const key of this.#views.keys()) {
      if (wanted.has(key)) continue;
      this.#views.delete(key);
      this.#refused.delete(key);
    }
    for (const key of wanted) if (!this.#views.has(key)) this.#views.set(key, null);
  }

  /** Known from storage: where it stood at the last cut, or was handed over. Reports count for more. */
  seed(key: string, stored: Omit<PartitionReport, 'state' | 'epoch'> & { epoch?: bigint }): void {
    if (this.#views.get(key) !== null) return; // not planned, or reported already
    this.#views.set(key, { epoch: 0n, ...stored, state: 'reading', member: null });
  }

  /**
   * False when it says nothing new, or comes from who has no say. `isNews`: the member said otherwise, or
   * nothing of it, before.
   */
  report(key: string, member: string, report: PartitionReport, isNews = false): boolean {
    const view = this.#views.get(key);
    if (view === undefined) return false;
    if (view !== null && report.epoch < view.epoch) {
      if (!this.hasOwners) this.#refuse(key, member, report, isNews);
      return false;
    }
    this.#refused.get(key)?.delete(member);
    // It has the partition and does not know yet where it begins: what was known goes on to hold.
    const isBlank =
      report.positionMs === null && report.state === 'reading' && report.aheadMs === undefined;
    if (isBlank && view !== null) {
      this.#views.set(key, { ...view, epoch: report.epoch, state: 'reading', member });
    } else this.#views.set(key, { ...report, member });
    return true;
  }

  /** Its partitions, or those of them, are nobody's until the next reports: what was known goes on to hold. */
  left(member: string, keys: Iterable<string> = this.#views.keys()): void {
    const keysLeft = [...keys];
    for (const key of keysLeft) {
      const view = this.#views.get(key);
      if (view == null || view.member !== member) continue;
      // Idle was judged by somebody who looked. Now nobody does.
      const state = view.state === 'idle' ? 'reading' : view.state;
      const isBlank = view.positionMs === null && state === 'reading';
      const epoch = this.hasOwners ? view.epoch : 0n;
      this.#views.set(key, isBlank ? null : { ...view, epoch, state, member: null });
    }
    if (this.hasOwners) return;
    for (const key of keysLeft) {
      this.#refused.get(key)?.delete(member);
      this.#hearAgain(key);
    }
  }

  /** It may be said by who takes over from one that is gone, and of whose end we have not heard yet. */
  #refuse(key: string, member: string, report: PartitionReport, isNews: boolean): void {
    // That it is at its end may have been said long ago, before another began to read it.
    if (!isNews && report.state !== 'reading') return;
    const refused = this.#refused.get(key) ?? new Map<string, PartitionReport>();
    this.#refused.set(key, refused.set(member, report));
  }

  /** Nobody says it a second time: what goes further than what is known counts now. */
  #hearAgain(key: string): void {
    for (const [member, report] of this.#refused.get(key) ?? []) {
      const view = this.#views.get(key);
      if (view != null && view.member !== null) return;
      const isFurther = (report.positionMs ?? -1) > (view?.positionMs ?? -1);
      if (isFurther || report.state === 'finished') this.report(key, member, report);
    }
  }

  view(key: string): (PartitionReport & { readonly member: string | null }) | null | undefined {
    return this.#views.get(key);
  }

  get keys(): IterableIterator<string> {
    return this.#views.keys();
  }

  /** The partition that everybody waits for. Null where nobody does. */
  get slowest(): { readonly key: string; readonly positionMs: number | null } | null {
    let found: { key: string; positionMs: number | null } | null = null;
    for (const [key, view] of this.#views) {
      if (view === null || (isHolding(view) && view.positionMs === null)) {
        return { key, positionMs: null };
      }
      if (!isHolding(view)) continue;
      if (found === null || view.positionMs! < found.positionMs!) {
        found = { key, positionMs: view.positionMs };
      }
    }
    return found;
  }

  /** Those that have nothing left before this moment, as far as is known. */
  reached(limitMs: number): string[] {
    return [...this.#views]
      .filter(
        ([, view]) => view !== null && (!isHolding(view) || (view.positionMs ?? -1) >= limitMs),
      )
      .map(([key]) => key);
  }

  decide(): Decision {
    const { slowest } = this;
    const stay = { limitMs: this.#limitMs, cut: null, isFinished: false };
    if (slowest === null) return this.#views.size === 0 ? stay : this.#unheld();
    if (slowest.positionMs === null) return stay;
    const limitMs = this.#limitAt(slowest.positionMs);
    const ceilingMs = ceilingOf(this.#rule, this.#limitMs);
    // Periods in which nothing happened are over too, but what lies beyond a hold is to wait.
    const reachedMs = Math.min(slowest.positionMs, ceilingMs);
    const cut = this.#cutAt(boundaryAt(this.#rule.stepMs, reachedMs));
    return { limitMs, cut, isFinished: false };
  }

  /** Nobody holds the limit back: all have ended, or some only wait for records. */
  #unheld(): Decision {
    const stay = { limitMs: this.#limitMs, cut: null, isFinished: false };
    const views = [...this.#views.values()];
    const idle = views.filter((view) => view!.state === 'idle');
    if (idle.length > 0) {
      // Where all that is left lies far ahead there is nobody who could bring an earlier record.
      const aheadMs = Math.min(...idle.map((view) => view!.aheadMs ?? Number.NEGATIVE_INFINITY));
      return Number.isFinite(aheadMs) ? { ...stay, limitMs: this.#limitAt(aheadMs) } : stay;
    }
    const lastMs = views.reduce<number | null>(
      (last, view) => (view!.positionMs === null ? last : Math.max(last ?? 0, view!.positionMs)),
      null,
    );
    // Whoever holds the group by hand is not to find it gone.
    const isFinished = this.#rule.holdMs === undefined;
    if (lastMs === null) return { ...stay, isFinished };
    const end = boundaryAfter(this.#rule.stepMs, lastMs);
    const ceilingMs = ceilingOf(this.#rule, this.#limitMs);
    if (end > ceilingMs) return stay;
    return {
      limitMs: this.#higher(Math.min(this.outerMs ?? end, ceilingMs)),
      cut: this.#cutAt(end, true),
      isFinished,
    };
  }

  /** How far the limit may go where nobody has anything before this moment. */
  #limitAt(slowestMs: number): number {
    const wantedMs = this.outerMs ?? limitFor(this.#rule, slowestMs);
    return this.#higher(Math.min(wantedMs, ceilingOf(this.#rule, this.#limitMs)));
  }

  #higher(limitMs: number): number {
    return Math.max(limitMs, this.#limitMs ?? 0);
  }

  #cutAt(end: number, isFinal = false): Cut | null {
    if (this.#cutEnd !== null && end <= this.#cutEnd) return null;
    const offsets = new Map<string, bigint>();
    for (const [key, view] of this.#views) offsets.set(key, offsetAt(view!, end));
    return { end, offsets, isFinal };
  }

  /** The decision is stored. */
  moved({ limitMs, cut }: { limitMs: number | null; cut: Pick<Cut, 'end'> | null }): void {
    this.#limitMs = limitMs;
    if (cut !== null) this.#cutEnd = cut.end;
  }
}

function isHolding({ state }: PartitionReport): boolean {
  return state === 'reading' || state === 'stopped';
}

/** Where it has passed a boundary; where it stands, when it has not: all before that is done too. */
function offsetAt({ reached, offset }: PartitionReport, end: number): bigint {
  return reached.find((pass) => pass.end >= end)?.offset ?? offset;
}
