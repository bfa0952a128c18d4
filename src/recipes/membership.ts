/**
 * Who is here: the members of a group, each an ephemeral node with data, and who joins and leaves.
 *
 * A member is a child of the group's node, named for itself (Curator's GroupMember has the same
 * layout). It goes with its session: at once when it closes, and after its session timeout when it
 * dies. `join` makes one that comes back by itself when the session had to be renewed.
 *
 * Every watcher of a group hears of every change in it: that is what it is for. To know only that the
 * one before you is gone, use a lock or an election.
 *
 * Not promised: that a member is alive this very moment, or that the list is the same everywhere at
 * the same time. While the link is away the list stands still; `isCurrent` says so.
 */

import { ArgumentError, type Client, checkClient, type DataInput } from '../client/index.ts';
import { childOf, pathFault } from '../protocol/index.ts';
import { type Clock, checkOptions, onAbort, systemClock } from '../support/index.ts';
import { Feed } from './feed.ts';
import { joinTable, membershipTable } from './option-tables.ts';
import { PersistentNode, type PersistentNodeOptions } from './persistent-node.ts';
import { type Entry, Roster, type RosterChange } from './roster.ts';

export interface Member {
  readonly name: string;
  readonly data: Buffer | null;
  /** The session it lives by. 0 for a node that is not ephemeral. */
  readonly sessionId: bigint;
  /** Tells one life of a name from the next, and only grows. */
  readonly incarnation: bigint;
  /** When it joined, by the server's calendar. */
  readonly joinedMs: number;
  /** How often its data was changed. */
  readonly version: number;
}

export type MembershipChange =
  | { readonly type: 'joined' | 'left'; readonly member: Member }
  | { readonly type: 'updated'; readonly member: Member; readonly previous: Member };

export interface MembershipOptions {
  /** Ends every loop over changes. */
  readonly signal?: AbortSignal;
  /** Changes that wait for a reader. 10,000. */
  readonly bufferMax?: number;
  readonly membersMax?: number;
  readonly clock?: Clock;
}

export interface JoinOptions extends Omit<PersistentNodeOptions, 'mode' | 'ttlMs' | 'data'> {
  readonly data?: DataInput;
}

export class Membership implements AsyncIterable<MembershipChange> {
  readonly path: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #options: MembershipOptions;
  readonly #roster: Roster;
  readonly #members = new Map<string, Member>();
  readonly #feeds = new Set<Feed<MembershipChange>>();
  readonly #stopHearing: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  /** Begins to watch at once. */
  constructor(client: Client, path: string, options: MembershipOptions = {}) {
    checkClient('Membership', client);
    checkOptions('Membership', options, membershipTable);
    this.path = path;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#roster = new Roster(client, path, {
      onChange: (change) => this.#changed(change),
      onEnd: (error) => this.#over({ error }),
      ...(options.membersMax !== undefined && { entriesMax: options.membersMax }),
    });
    const { signal } = options;
    this.#stopHearing = signal && onAbort(signal, () => void this.close());
    if (signal?.aborted) void this.close();
  }

  /** Resolves once all members were read. */
  get ready(): Promise<void> {
    return this.#roster.ready;
  }

  /** False while the link is away: the list is the last one known. */
  get isCurrent(): boolean {
    return this.#roster.isCurrent;
  }

  /** In the order in which they joined. */
  get members(): readonly Member[] {
    return [...this.#members.values()].sort((a, b) => (a.incarnation < b.incarnation ? -1 : 1));
  }

  get(name: string): Member | undefined {
    return this.#members.get(name);
  }

  /** How long it has been a member: our calendar against the server's, and never below 0. */
  ageMs({ joinedMs }: Member): number {
    return Math.max(0, this.#clock.wallMs() - joinedMs);
  }

  /** Those who are here now, as joined; then every change. Ends with `close` or the client. */
  [Symbol.asyncIterator](): AsyncIterator<MembershipChange> {
    const feed: Feed<MembershipChange> = new Feed({
      of: `members of ${this.path}`,
      ...(this.#options.bufferMax !== undefined && { bufferMax: this.#options.bufferMax }),
      onReturn: async () => void this.#feeds.delete(feed),
    });
    for (const member of this.members) feed.push({ type: 'joined', member });
    if (this.#end) feed.end(this.#end.error);
    else this.#feeds.add(feed);
    return feed;
  }

  /** Becomes a member. It stays one, over renewals of the session, until it is closed. */
  async join(name: string, options: JoinOptions = {}): Promise<PersistentNode> {
    checkOptions('join', options, joinTable);
    const node = joinAs(this.#client, this.path, name, options);
    try {
      await node.ready;
    } catch (error) {
      await node.close();
      throw error;
    }
    return node;
  }

  /** Watches no longer. Members that joined through it stay until they are closed themselves. */
  async close(): Promise<void> {
    this.#over({});
    await this.#roster.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #changed(change: RosterChange): void {
    const member = memberOf(change.entry);
    if (change.type === 'gone') this.#members.delete(member.name);
    else this.#members.set(member.name, member);
    const told: MembershipChange =
      change.type === 'changed'
        ? { type: 'updated', member, previous: memberOf(change.previous) }
        : { type: change.type === 'gone' ? 'left' : 'joined', member };
    for (const feed of this.#feeds) feed.push(told);
  }

  #over(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#stopHearing?.();
    for (const feed of this.#feeds) feed.end(end.error);
    this.#feeds.clear();
  }
}

/** A member's node, not yet waited for. */
export function joinAs(
  client: Client,
  path: string,
  name: string,
  options: JoinOptions,
): PersistentNode {
  checkName('name', name);
  return new PersistentNode(client, childOf(path, name), { ...options, mode: 'ephemeral' });
}

/** A name that stands as one part of a path. */
export function checkName(argument: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '' || name.includes('/')) {
    throw new ArgumentError(argument, 'text of at least one character, without /, is wanted');
  }
  const fault = pathFault(`/${name}`);
  if (fault !== null) throw new ArgumentError(argument, fault);
}

export function memberOf({ name, data, stat }: Entry): Member {
  return {
    name,
    data,
    sessionId: stat.ephemeralOwner,
    incarnation: stat.czxid,
    joinedMs: Number(stat.ctime),
    version: stat.version,
  };
}
