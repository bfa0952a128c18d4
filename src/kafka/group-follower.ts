/**
 * A member's own part of a plan, read when it changes: one watch and, for each change, one read.
 *
 * Where nothing is planned yet, the node's creation is waited for, and nothing is wanted meanwhile. A
 * part that makes no sense is reported, and the one before stands.
 */

import { isZkError, type Listener } from '../client/index.ts';
import { dropWatch, type GroupClient } from './group-client.ts';
import { planLayout } from './group-plan-nodes.ts';
import type { Wanted } from './holdings.ts';
import type { OnProblem } from './layout.ts';

export interface PlanFollowerOptions {
  readonly group: string;
  readonly consumerId: string;
  readonly onChange: () => void;
  readonly onProblem: OnProblem;
}

export class PlanFollower {
  readonly #client: GroupClient;
  readonly #options: PlanFollowerOptions;
  readonly #path: string;
  #listener: Listener | undefined;
  #last: Wanted = new Map();

  constructor(client: GroupClient, options: PlanFollowerOptions) {
    this.#client = client;
    this.#options = options;
    const { group, consumerId } = options;
    this.#path = planLayout.memberPlan.at({ group, consumer: consumerId });
  }

  /** Null when nothing is planned for us. */
  async read(): Promise<Wanted | null> {
    const listener: Listener =
      this.#listener ??
      (() => {
        if (this.#listener !== listener) return;
        this.#listener = undefined;
        this.#options.onChange();
      });
    this.#listener = listener;
    for (;;) {
      try {
        const { data } = await this.#client.get(this.#path, { watch: listener });
        const part = planLayout.memberPlan.tryParse(data, this.#path, this.#options.onProblem);
        if (part === null) return this.#last;
        const { consumerId } = this.#options;
        const entries = [...part.partitions].map(
          ([key, thread]) => [key, `${consumerId}-${thread}`] as const,
        );
        this.#last = new Map(entries);
        return this.#last;
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
      }
      if ((await this.#client.exists(this.#path, { watch: listener })) === null) return null;
    }
  }

  forget(): void {
    this.#listener = undefined;
  }

  async close(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    if (listener !== undefined) await dropWatch(this.#client, this.#path, listener);
  }
}
