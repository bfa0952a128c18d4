/**
 * One who listens: every message that it has not acknowledged, in the order of sending.
 *
 * In: the list of messages, which is watched. Out: messages, one after the other; the next is handed
 * out when the reader asks for it. A message counts as heard when `ack` is called on it, not before.
 *
 * After a renewed session it listens again under the same name, and hears what was sent meanwhile. A
 * message that was handed out is not handed out again by the same subscription, acknowledged or not.
 */

import { type Acl, type Client, checkClient, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import {
  Backoff,
  checkOptions,
  type Deferred,
  deferred,
  onAbort,
  systemClock,
} from '../support/index.ts';
import { Feed } from './feed.ts';
import { inOrder } from './line.ts';
import { joinAs } from './membership.ts';
import { subscriptionTable } from './option-tables.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import type { PersistentNode } from './persistent-node.ts';
import { type Entry, Roster } from './roster.ts';

export interface SubscriptionOptions {
  /** What was sent before it came: `unheard`, all that it has not acknowledged; `none`, only what follows. */
  readonly earlier?: 'unheard' | 'none';
  readonly signal?: AbortSignal;
}

export interface Notification {
  /** Names the message: the same to all, and on the sender's receipt. */
  readonly id: string;
  readonly data: Buffer | null;
  /** When it was sent, by the server's calendar. */
  readonly sentMs: number;
  /** Grows from message to message. */
  readonly zxid: bigint;
  /** Lets the sender know that we have heard. Again is no harm; false when the message is gone. */
  ack(): Promise<boolean>;
}

const prefix = 'm-';

export class Subscription implements AsyncIterable<Notification> {
  readonly name: string;
  readonly #client: Client;
  readonly #node: PersistentNode;
  readonly #roster: Roster;
  readonly #messages: string;
  readonly #options: SubscriptionOptions;
  readonly #acl: readonly Acl[] | undefined;
  readonly #done = new Set<string>();
  readonly #ready: Promise<void>;
  readonly #feed: Feed<Notification>;
  readonly #life = new AbortController();
  readonly #backoff = new Backoff(retryBackoff);
  readonly #stopHearing: (() => void) | undefined;
  #wake: Deferred<void> = deferred();
  /** In order, as of when all there were had been read: none that is missing is older than one of them. */
  #known: readonly Entry[] = [];

  constructor(
    client: Client,
    path: string,
    name: string,
    options: SubscriptionOptions,
    acl: readonly Acl[] | undefined,
  ) {
    checkClient('Subscription', client);
    checkOptions('Subscription', options, subscriptionTable);
    this.name = name;
    this.#client = client;
    this.#messages = childOf(path, 'messages');
    this.#options = options;
    this.#acl = acl;
    this.#feed = new Feed({ of: `messages of ${path}`, onReturn: () => this.close() });
    this.#node = joinAs(client, childOf(path, 'subscribers'), name, {
      ...(acl && { acl }),
      whenTaken: 'replace',
    });
    this.#roster = new Roster(client, this.#messages, {
      watchData: false,
      wanted: (message) => inOrder([message], [prefix]).length === 1,
      onChange: ({ type, entry }) => {
        if (type === 'gone') this.#done.delete(entry.name);
      },
      // Not with each change: of several new messages any may be read first, and the order is the sender's.
      onSettled: () => {
        const { entries } = this.#roster;
        this.#known = inOrder([...entries.keys()], [prefix]).map((name) => entries.get(name)!);
        this.#wake.resolve();
      },
      onEnd: (error) => this.#end(error),
    });
    this.#ready = this.#begin();
    this.#ready.catch((error: unknown) => this.#end(error));
    void this.#mindName();
    const { signal } = options;
    const aborted = () => {
      this.#end(signal!.reason);
      void this.close().catch(() => {}); // nobody waits for it who could be told
    };
    this.#stopHearing = signal && onAbort(signal, aborted);
    if (signal?.aborted) aborted();
  }

  /** Resolves once it is among the subscribers: whoever sends from then on means it, too. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  [Symbol.asyncIterator](): AsyncIterator<Notification> {
    return this.#feed;
  }

  /** Listens no more. What it has not acknowledged waits for the next of this name. */
  async close(): Promise<void> {
    this.#end();
    await Promise.all([this.#node.close(), this.#roster.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Another process that takes the name over ends this one: one at a time may have it. */
  async #mindName(): Promise<void> {
    try {
      for await (const _ of this.#node) if (this.#life.signal.aborted) break;
    } catch (error) {
      this.#end(error);
    }
  }

  async #begin(): Promise<void> {
    await Promise.all([this.#node.ready, this.#roster.ready]);
    if (this.#options.earlier === 'none') {
      for (const { name } of this.#known) this.#done.add(name);
    }
    void this.#deliver().catch((error: unknown) => this.#end(error));
  }

  async #deliver(): Promise<void> {
    while (!this.#life.signal.aborted) {
      this.#wake = deferred();
      const isKept = (name: string) => this.#roster.entries.has(name);
      const waiting = this.#known.filter(({ name }) => isKept(name) && !this.#done.has(name));
      for (const { name, data, stat } of waiting) {
        if (this.#life.signal.aborted) return;
        const isHeard = await this.#isHeard(name);
        if (isHeard === undefined) break; // there is no link: once more when there is
        if (isKept(name)) this.#done.add(name); // else nobody would take it out of there
        if (isHeard) continue;
        this.#feed.push({
          id: name,
          data,
          sentMs: Number(stat.ctime),
          zxid: stat.czxid,
          ack: () => this.#ack(name),
        });
      }
      await this.#wake.promise;
    }
  }

  async #isHeard(message: string): Promise<boolean | undefined> {
    try {
      const path = childOf(childOf(this.#messages, message), this.name);
      const isHeard = (await this.#client.exists(path)) !== null;
      this.#backoff.reset();
      return isHeard;
    } catch (error) {
      if (!isPassing(error)) throw error;
      // Never at once; and if there is never a link again, the roster says so.
      await pause(systemClock, this.#backoff.next(), this.#life.signal);
      this.#wake.resolve();
      return undefined;
    }
  }

  async #ack(message: string): Promise<boolean> {
    const path = childOf(childOf(this.#messages, message), this.name);
    try {
      await this.#client.create(path, '', { ...(this.#acl && { acl: this.#acl }) });
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return false;
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
    return true;
  }

  #end(error?: unknown): void {
    if (this.#life.signal.aborted) return;
    this.#life.abort();
    this.#stopHearing?.();
    this.#feed.end(error);
    this.#wake.resolve();
  }
}
