/**
 * What a sender holds of a message: who was meant, who has heard, who has not.
 *
 * In: the acknowledgements below the message's node. Out: a look at any time, or a wait until all have
 * heard, or the time is up. It keeps no watch but while somebody waits.
 */

import { type Client, isZkError, ZkError } from '../client/index.ts';
import { nameOf } from '../protocol/index.ts';
import { type Clock, checkOptions, unlessAborted } from '../support/index.ts';
import { Deadline, type WaitOptions } from './deadline.ts';
import { watchChildren } from './node-watch.ts';
import { waitTable } from './option-tables.ts';
import { whileLinked } from './while-linked.ts';

export interface Hearing {
  /** All who have acknowledged it, meant or not. */
  readonly heard: readonly string[];
  /** Those who were meant, and have not. */
  readonly missing: readonly string[];
  /** The message was taken away, by age or number: nobody can acknowledge it any more. */
  readonly isGone: boolean;
}

export class NotificationReceipt {
  readonly path: string;
  /** Names the message: unique, and the same to all who hear it. */
  readonly id: string;
  readonly audience: ReadonlySet<string>;
  readonly #client: Client;
  readonly #clock: Clock;
  #last: readonly string[] = [];

  constructor(client: Client, path: string, audience: ReadonlySet<string>, clock: Clock) {
    this.path = path;
    this.id = nameOf(path);
    this.audience = audience;
    this.#client = client;
    this.#clock = clock;
  }

  /** Who has heard it by now. */
  async look(): Promise<Hearing> {
    try {
      return this.#hearing(await this.#client.children(this.path), false);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return this.#hearing(this.#last, true);
      throw error;
    }
  }

  /**
   * Waits until all who were meant have heard it. When the time is up, or the message is gone, it says
   * who has not: that is an answer, not an error. Rejects only with the signal's reason, or when the
   * server cannot be asked.
   */
  async all(options: WaitOptions = {}): Promise<Hearing> {
    checkOptions('all', options, waitTable);
    const deadline = new Deadline(options, this.#clock);
    const { signal } = deadline;
    try {
      for (;;) {
        const asked = watchChildren(this.#client, this.path);
        void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
        const watched = await unlessAborted(asked, signal);
        if (watched === null) return this.#hearing(this.#last, true);
        try {
          const hearing = this.#hearing(watched.found, false);
          if (hearing.missing.length === 0) return hearing;
          await unlessAborted(watched.changed, signal);
        } finally {
          await whileLinked(this.#client, watched.stop());
        }
      }
    } catch (error) {
      if (!deadline.isLate) throw error;
      if (this.#client.state.name === 'connected') return await this.look();
      throw new ZkError('CONNECTION_LOSS', { path: this.path, cause: error });
    } finally {
      deadline.stop();
    }
  }

  /** Takes the message away: whoever has not heard it never will. */
  async discard(): Promise<void> {
    try {
      await this.#client.deleteRecursive(this.path);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
  }

  #hearing(names: readonly string[], isGone: boolean): Hearing {
    this.#last = names;
    const heard = [...names].sort();
    const missing = [...this.audience].filter((name) => !names.includes(name)).sort();
    return { heard, missing, isGone };
  }
}
