/**
 * The limit as a member knows it: followed by one watch, and taken only forward.
 *
 * In: the limit node. Out: how far records may be handed out. What comes from a leader of before, or from
 * a server that is behind, counts for nothing. Where the rule is off there is no limit, but for a hold.
 *
 * Without a link the limit stays where it is: whoever reaches it waits. With `failOpenMs` it is lifted
 * when the link is lost, and comes back with the link, or after that time; what people hold stays held.
 */

import type { Clock, Timer } from '../support/index.ts';
import { parseLimit, type StoredLimit } from './layout.ts';
import { NodeFollower } from './node-follower.ts';
import { ceilingOf, isPaused } from './rule.ts';
import type { AlignClient } from './session.ts';

export interface LimitViewOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  readonly failOpenMs: number;
  readonly onLimit: (limit: StoredLimit) => void;
  readonly onOpen: (isOpen: boolean) => void;
  readonly onProblem: (error: unknown) => void;
  readonly onFailure: (error: unknown) => void;
}

export class LimitView {
  readonly #client: AlignClient;
  readonly #options: LimitViewOptions;
  readonly #follower: NodeFollower;
  readonly #heardState = () => this.#stateChanged();
  #limit: StoredLimit | null = null;
  #zxid = -1n;
  #isOpen = false;
  #openTimer: Timer | undefined;

  constructor(client: AlignClient, options: LimitViewOptions) {
    this.#client = client;
    this.#options = options;
    const { path, clock, random, onFailure } = options;
    this.#follower = new NodeFollower(client, path, {
      clock,
      ...(random && { random }),
      onFailure,
      onValue: (node) => {
        if (node !== null) this.#heard(node.data, node.stat.mzxid);
      },
    });
  }

  start(): void {
    this.#follower.start();
    if (this.#options.failOpenMs > 0) this.#client.on('state', this.#heardState);
  }

  get limit(): StoredLimit | null {
    return this.#limit;
  }

  /** When it was written. */
  get zxid(): bigint {
    return this.#zxid;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get stepMs(): number | null {
    return this.#limit?.rule.stepMs ?? null;
  }

  get cutEnd(): number | null {
    return this.#limit?.cut?.end ?? null;
  }

  /** Records before this, and what `outOfOrder` allows, may be handed out. */
  get effectiveMs(): number {
    if (this.#limit === null) return Number.NEGATIVE_INFINITY;
    const { rule, limitMs } = this.#limit;
    if (this.#isOpen || rule.mode === 'off') return ceilingOf(rule, limitMs);
    return limitMs ?? Number.NEGATIVE_INFINITY;
  }

  /** People hold the group where it is. */
  get isPaused(): boolean {
    return this.#limit !== null && isPaused(this.#limit.rule, this.#limit.limitMs);
  }

  #heard(data: Buffer | null, zxid: bigint): void {
    let limit: StoredLimit;
    try {
      limit = parseLimit(data, this.#options.path);
    } catch (error) {
      this.#options.onProblem(error); // the one before goes on to hold
      return;
    }
    const before = this.#limit;
    if (before !== null) {
      if (limit.epoch < before.epoch) return;
      if ((limit.limitMs ?? -1) < (before.limitMs ?? -1)) {
        const told = `${this.#options.path}: a limit of ${limit.limitMs} after ${before.limitMs}; it is not taken back. Was the node written by hand?`;
        this.#options.onProblem(new Error(told));
        return;
      }
    }
    this.#limit = limit;
    this.#zxid = zxid;
    this.#options.onLimit(limit);
  }

  #stateChanged(): void {
    const isAway = this.#client.state.name === 'suspended';
    if (isAway && !this.#isOpen && this.#openTimer === undefined) {
      this.#openTimer = this.#options.clock.after(
        this.#options.failOpenMs,
        () => this.#open(false),
        true,
      );
      this.#open(true);
    } else if (!isAway) {
      this.#openTimer?.cancel();
      this.#openTimer = undefined;
      this.#open(false);
    }
  }

  #open(isOpen: boolean): void {
    if (this.#isOpen === isOpen) return;
    this.#isOpen = isOpen;
    this.#options.onOpen(isOpen);
  }

  async close(): Promise<void> {
    this.#client.off('state', this.#heardState);
    this.#openTimer?.cancel();
    await this.#follower.close();
  }
}
