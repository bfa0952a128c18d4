/**
 * What a recipe does under faults, and who judges it.
 *
 *   worker process: begin(hand) ──▶ round() again and again ──▶ finish() once all have stopped
 *   campaign:       a Judge, which answers what workers ask, hears what they tell, and looks at the server
 *
 * A question is answered before the worker goes on, so that what is asked is ordered between workers;
 * what is told is ordered only for one worker. A fenced resource lives in the judge: it is what a database
 * would be, on the far side of the process that may be stopped at any moment.
 */

import type { Client } from '../../src/client/index.ts';

/** What a worker has in hand: its name, its link, and a line to the judge. */
export interface Hand {
  readonly name: string;
  readonly client: Client;
  /** Aborts when the campaign is over: whoever waits gives up. */
  readonly stopped: AbortSignal;
  // biome-ignore lint/suspicious/noExplicitAny: each judge knows what it answers
  ask(question: string, ...args: unknown[]): Promise<any>;
  tell(fact: string, ...args: unknown[]): void;
}

export interface Running {
  /** Done again and again. What it throws of the network's or the session's is part of the game. */
  round(): Promise<void>;
  /** Once no worker does rounds any more, and all links are well. */
  finish?(): Promise<void>;
  close?(): Promise<void>;
}

export interface Workload {
  begin(hand: Hand): Promise<Running> | Running;
  judge(): Judge;
}

export interface Asked {
  readonly worker: string;
  readonly what: string;
  // biome-ignore lint/suspicious/noExplicitAny: as the worker sent it
  readonly args: any[];
}

export interface Situation {
  /** Past all links. */
  readonly witness: Client;
  /** The session that each worker has now. */
  readonly sessions: ReadonlyMap<string, bigint>;
}

export class Judge {
  /** What must not have happened. */
  readonly broken: string[] = [];
  /** What is worth telling of the run, in numbers. */
  readonly counts: Record<string, number> = {};

  answer(asked: Asked): unknown {
    throw new Error(`nobody answers ${asked.what}`);
  }

  hear(told: Asked): void {
    throw new Error(`nobody hears ${told.what}`);
  }

  /** While faults go on. */
  async look(_: Situation): Promise<void> {}

  /** After faults have stopped, while workers go on: true once all is as it should be. */
  async isWell(_: Situation): Promise<boolean> {
    return true;
  }

  /** When all workers are gone. */
  async end(_: Situation): Promise<void> {}

  /** How often two were where one should be. Faults explain it; without any there must be none. */
  get overlaps(): number {
    return (this.counts.overlaps ?? 0) + (this.counts.refused ?? 0);
  }

  protected count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by;
  }
}
