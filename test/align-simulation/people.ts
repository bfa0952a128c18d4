/**
 * People who change an aligned group while it runs: its rule, and how far it may go. Their link is never
 * cut. What they ask for is done one after the other, each when the one before has ended.
 */

import {
  continueAlignment,
  pauseAlignment,
  type RuleInput,
  setRule,
  stepAlignment,
} from '../../src/align/index.ts';
import type { Client } from '../../src/client/index.ts';
import type { World } from '../kafka-simulation/world.ts';

export type Hold = 'pause' | 'step' | 'continue';

const rules: readonly RuleInput[] = [
  { period: 60_000 },
  { period: 30_000 },
  { period: 120_000, lookAhead: 1 },
  { period: 60_000, lookAhead: 3 },
  { drift: 90_000 },
];

export class People {
  readonly holds: Record<Hold, number> = { pause: 0, step: 0, continue: 0 };
  readonly #client: Client;
  readonly #world: World;
  readonly #group: string;
  readonly #onFailure: (error: unknown) => void;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: Client, world: World, group: string, onFailure: (error: unknown) => void) {
    this.#client = client;
    this.#world = world;
    this.#group = group;
    this.#onFailure = onFailure;
  }

  /** Another rule. Told, for the fingerprint. */
  changeRule(): string {
    const rule = rules[this.#world.int(0, rules.length)]!;
    setRule(this.#client, this.#group, rule).catch(this.#onFailure);
    return JSON.stringify(rule);
  }

  /** Something about the hold, by chance. */
  change(): string {
    const what = (['pause', 'step', 'continue'] as const)[this.#world.int(0, 3)]!;
    const periods = what === 'step' ? this.#world.int(1, 4) : 1;
    this.hold(what, periods);
    return `${what} ${periods}`;
  }

  hold(what: Hold, periods = 1): void {
    this.holds[what] += 1;
    const [client, group] = [this.#client, this.#group];
    const act = {
      pause: () => pauseAlignment(client, group),
      step: () => stepAlignment(client, group, { periods }),
      continue: () => continueAlignment(client, group),
    }[what];
    this.#last = this.#last.then(act).catch((error: Error) => {
      // So early that there is nothing to hold.
      if (!/no limit yet|no group/.test(error.message)) this.#onFailure(error);
    });
  }
}
