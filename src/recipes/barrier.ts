/**
 * A barrier: while its node is there, everyone who waits at it waits. As Curator's DistributedBarrier
 * and kazoo's Barrier, which can be used side by side with it.
 *
 *   <path>     there: closed. Not there: open.
 *
 * Who waits is let through only by a look that finds no node: an event, a link that came back or a new
 * session is a reason to look, and never a reason to pass.
 *
 * NOT promised: that a waiter notices a barrier that is opened and closed again at once. It may see the
 * new node alone, and goes on waiting.
 */

import { type Acl, type Client, checkClient, type DataInput, isZkError } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { checkOptions } from '../support/index.ts';
import { BarrierError } from './barrier-error.ts';
import { bounded, lookUntil } from './bounded-wait.ts';
import type { WaitOptions } from './deadline.ts';
import { barrierTable, waitTable } from './option-tables.ts';
import { withParents } from './parents.ts';

export interface BarrierOptions {
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

export class Barrier {
  readonly path: string;
  readonly #client: Client;
  readonly #options: BarrierOptions;

  constructor(client: Client, path: string, options: BarrierOptions = {}) {
    checkClient('Barrier', client);
    checkOptions('Barrier', options, barrierTable);
    this.#client = client;
    this.path = path;
    this.#options = options;
  }

  /** Closes it. False: it was closed already, or a lost reply leaves open who closed it. */
  async close(data?: DataInput): Promise<boolean> {
    const { acl } = this.#options;
    const options = acl ? { acl } : {};
    for (let isAgain = false; ; isAgain = true) {
      try {
        await withParents(this.#client, this.path, acl, () =>
          this.#client.create(this.path, data, options),
        );
        return !isAgain;
      } catch (error) {
        if (isZkError(error, 'NODE_EXISTS')) return false;
        if (!isZkError(error) || !error.outcomeUnknown || isAgain) throw error;
      }
    }
  }

  /** Opens it, for certain. Open already is fine. */
  async open(): Promise<void> {
    await this.#client.discard(this.path);
  }

  async isOpen(): Promise<boolean> {
    return (await this.#client.exists(this.path)) === null;
  }

  /** Resolves once it is open. */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkOptions('wait', options, waitTable);
    const timedOut = () => new BarrierError('TIMEOUT', this.path, { detail: 'it is still closed' });
    await bounded(options, { clock: this.#options.clock, timedOut }, (signal) =>
      lookUntil(this.#client, signal, async (watching) => {
        // By its data, not by its existence: on a node that is gone no watch is left behind.
        return (await watching.node(this.path)) === null ? true : undefined;
      }),
    );
  }
}
