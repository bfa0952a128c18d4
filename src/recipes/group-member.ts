/**
 * One member that also knows the others: Curator's GroupMember, in the same layout.
 *
 * Its own node is made once for each session and again if somebody deletes it. The others are seen as
 * `Membership` sees them. Not promised: that the member itself is always in the list. While its
 * session is being renewed it is not, and nobody else sees it either.
 */

import type { Client, DataInput } from '../client/index.ts';
import { checkClient } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import {
  type JoinOptions,
  joinAs,
  type Member,
  Membership,
  type MembershipChange,
} from './membership.ts';
import { joinTable } from './option-tables.ts';
import type { PersistentNode } from './persistent-node.ts';

export class GroupMember implements AsyncIterable<MembershipChange> {
  readonly name: string;
  readonly #node: PersistentNode;
  readonly #group: Membership;
  readonly #ready: Promise<void>;

  constructor(client: Client, path: string, name: string, options: JoinOptions = {}) {
    checkClient('GroupMember', client);
    checkOptions('GroupMember', options, joinTable);
    this.name = name;
    this.#node = joinAs(client, path, name, options);
    const { signal } = options;
    this.#group = new Membership(client, path, signal ? { signal } : {});
    this.#ready = Promise.all([this.#node.ready, this.#group.ready]).then(() => {});
    this.#ready.catch(() => {}); // `state` says it, too
  }

  /** Resolves once it has joined and knows who is there. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  get state(): PersistentNode['state'] {
    return this.#node.state;
  }

  get members(): readonly Member[] {
    return this.#group.members;
  }

  get isCurrent(): boolean {
    return this.#group.isCurrent;
  }

  /** Changes its own data. */
  async set(data: DataInput): Promise<void> {
    await this.#node.set(data);
  }

  [Symbol.asyncIterator](): AsyncIterator<MembershipChange> {
    return this.#group[Symbol.asyncIterator]();
  }

  /** Leaves, and watches the others no longer. */
  async close(): Promise<void> {
    await Promise.all([this.#node.close(), this.#group.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
