/**
 * A topic: what one says, all hear, and the sender knows who has.
 *
 *   <path>/messages/_c_<uuid>-m-<n>          persistent sequential; data: the message
 *   <path>/messages/_c_<uuid>-m-<n>/<name>   persistent: this one has heard it
 *   <path>/subscribers/<name>                ephemeral: this one listens now
 *
 * A message is sent once, also when the reply to its creation was lost, and is heard in the order of
 * sending. Hearing is acknowledged by name, in a node below the message: the sender watches that list.
 * A name is somebody who may come and go: who was away, or joins late, hears what is still kept and
 * what it has not acknowledged. So a message may be handed out again to whoever died before its
 * acknowledgement: at least once, never lost while it is kept.
 *
 * Old messages are taken away by those who send: all beyond the newest `keepMax`, and all older than
 * `keepMs`, a bounded number with each send. NOT promised: that a message which is older than that is
 * ever heard by one who was away; nor high rates, as each message costs a write for each who hears it.
 */

import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
  isZkError,
} from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { type Clock, checkOptions, systemClock } from '../support/index.ts';
import { inOrder } from './line.ts';
import { checkName } from './membership.ts';
import { NotificationReceipt } from './notification-receipt.ts';
import { Subscription, type SubscriptionOptions } from './notification-subscription.ts';
import { notificationTable, sendTable } from './option-tables.ts';
import { withParents } from './parents.ts';

export interface NotificationOptions {
  readonly acl?: readonly Acl[];
  /** Messages that are kept for those who come later. 100. */
  readonly keepMax?: number;
  /** How long a message is kept at the least, by the server's calendar, if `keepMax` allows it. A day. */
  readonly keepMs?: number;
  readonly clock?: Clock;
}

export interface SendOptions {
  /** Who is meant to hear it. All who listen at the moment of sending, unless said. */
  readonly to?: readonly string[];
  readonly signal?: AbortSignal;
}

/** Old messages that one send takes away at most: more wait for the next. */
const prunedAtOnce = 20;
export const messagePrefix = 'm-';

export class NotificationTopic {
  readonly path: string;
  readonly #client: Client;
  readonly #options: NotificationOptions;
  readonly #clock: Clock;

  constructor(client: Client, path: string, options: NotificationOptions = {}) {
    checkClient('NotificationTopic', client);
    checkOptions('NotificationTopic', options, notificationTable);
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { keepMax = 100, keepMs = 1 } = options;
    if (!Number.isInteger(keepMax) || keepMax < 1) {
      throw new ArgumentError('keepMax', 'a whole number of at least 1 is wanted');
    }
    if (!(keepMs > 0)) throw new ArgumentError('keepMs', 'milliseconds above 0 are wanted');
  }

  /** Sends. The receipt knows who has heard, and waits for them. */
  async send(data: DataInput, options: SendOptions = {}): Promise<NotificationReceipt> {
    checkOptions('send', options, sendTable);
    const { to, signal } = options;
    for (const name of to ?? []) checkName('to', name);
    const audience = to ?? (await this.subscribers());
    const { acl } = this.#options;
    const path = childOf(this.#messages, messagePrefix);
    const { path: sent, stat } = await withParents(this.#client, path, acl, () =>
      this.#client.createProtected(path, data, {
        mode: 'persistentSequential',
        ...(acl && { acl }),
        ...(signal && { signal }),
      }),
    );
    await this.#prune(Number(stat.ctime), nameOf(sent)).catch((error: unknown) => {
      // It is sent all the same: who was told otherwise would send it again. The next send is soon enough.
      if (!isZkError(error)) throw error;
    });
    return new NotificationReceipt(this.#client, sent, new Set(audience), this.#clock);
  }

  /** Listens under a name, which one process at a time may have. */
  subscribe(name: string, options: SubscriptionOptions = {}): Subscription {
    checkName('name', name);
    return new Subscription(this.#client, this.path, name, options, this.#options.acl);
  }

  /** Who listens now. */
  async subscribers(): Promise<string[]> {
    try {
      return (await this.#client.children(childOf(this.path, 'subscribers'))).sort();
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    }
  }

  get #messages(): string {
    return childOf(this.path, 'messages');
  }

  /** Ages are told by the server's calendar alone: that of the message just sent, and theirs. */
  async #prune(nowMs: number, sent: string): Promise<void> {
    const { keepMax = 100, keepMs = 24 * 60 * 60 * 1000 } = this.#options;
    const names = inOrder(await this.#client.children(this.#messages), [messagePrefix]);
    const tooMany = Math.max(0, names.length - keepMax);
    for (const [i, name] of names.slice(0, prunedAtOnce).entries()) {
      const path = childOf(this.#messages, name);
      if (name === sent) return;
      if (i >= tooMany) {
        const stat = await this.#client.exists(path);
        if (stat !== null && nowMs - Number(stat.ctime) <= keepMs) return; // and all after it are younger
      }
      await this.#remove(path);
    }
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#client.deleteRecursive(path);
    } catch (error) {
      // Another sender may be at it, too, or somebody acknowledges it at this moment: the next send is soon enough.
      if (!isZkError(error, 'NO_NODE', 'NOT_EMPTY')) throw error;
    }
  }
}
