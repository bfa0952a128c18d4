/**
 * What the reader of a partitioner has yet to be told: gained, leaving and lost since it last looked.
 *
 * A holding that came and went between two looks is never shown, and its owner is told so, that it be
 * released at once: nobody works on it.
 */

import { type Deferred, deferred } from '../support/index.ts';
import type { Holding } from './holding.ts';

/** What has changed since the last one, and what is so now. */
export interface Assignment {
  /** Of the plan that is followed. */
  readonly generation: number;
  /** Ours now, without those that are leaving. */
  readonly held: readonly Holding[];
  readonly gained: readonly Holding[];
  /** To be handed over: end their work, then `release` each. */
  readonly leaving: readonly Holding[];
  /** Ours no more, without a hand-over: the session ended, or somebody deleted the node. */
  readonly lost: readonly Holding[];
}

export class AssignmentNews {
  readonly #shown = new Set<Holding>();
  readonly #gained = new Set<Holding>();
  readonly #leaving = new Set<Holding>();
  readonly #lost = new Set<Holding>();
  #generation: number | undefined;
  #shownGeneration: number | undefined;
  #come: Deferred<void> = deferred();

  /** Resolves when there may be something to take. */
  get come(): Promise<void> {
    return this.#come.promise;
  }

  wake(): void {
    this.#come.resolve();
  }

  planned(generation: number): void {
    this.#generation = generation;
    this.wake();
  }

  gained(holding: Holding): void {
    this.#gained.add(holding);
    this.wake();
  }

  /** False when the reader has never seen it. */
  leaving(holding: Holding): boolean {
    if (!this.#shown.has(holding)) {
      this.#gained.delete(holding);
      return false;
    }
    this.#leaving.add(holding);
    this.wake();
    return true;
  }

  gone(holding: Holding): void {
    this.#gained.delete(holding);
    this.#leaving.delete(holding);
    const { code, reason } = holding.signal.reason as { code?: string; reason?: string };
    const isMeant = code === 'HAND_OVER' || reason === 'released';
    if (this.#shown.delete(holding) && !isMeant) this.#lost.add(holding);
    this.wake();
  }

  take(held: readonly Holding[]): Assignment | undefined {
    this.#come = deferred();
    const [gained, leaving, lost] = [[...this.#gained], [...this.#leaving], [...this.#lost]];
    const isPlanNew = this.#generation !== this.#shownGeneration;
    if (gained.length + leaving.length + lost.length === 0 && !isPlanNew) return undefined;
    for (const holding of gained) this.#shown.add(holding);
    for (const set of [this.#gained, this.#leaving, this.#lost]) set.clear();
    this.#shownGeneration = this.#generation;
    return { generation: this.#generation ?? 0, held, gained, leaving, lost };
  }
}
