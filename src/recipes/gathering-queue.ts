/**
 * A queue that starts when it is full: members join one by one, and once `n` are there all of them go
 * on, one after the other, in the order in which they joined.
 *
 *   <path>                        data: n, unless there is a `num`
 *   <path>/num                    data: n, as text
 *   <path>/_c_<uuid>-member-<seq> a member, ephemeral
 *   <path>/gathered/g-<seq>       a group that is complete: the names of its n members, as JSON
 *
 * Who joins counts those that are in no group, and if there are n makes the group, in one multi that
 * also checks that each of the n is still there. So a member is in one group at most, and a group has n
 * members that were all there at one moment. More than n form the next group. The others wait for the
 * list of groups to change, so that who joins wakes nobody until a group is complete.
 *
 * A member that dies before is not counted; one that dies in a group is skipped when its turn comes.
 * NOT promised: that a new `num` is noticed before somebody joins.
 */

import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
  isZkError,
  MultiError,
} from '../client/index.ts';
import { childOf, frameBytesMax, frameOverheadBytes, nameOf } from '../protocol/index.ts';
import { type Clock, checkOptions, systemClock, unlessAborted } from '../support/index.ts';
import { BarrierError } from './barrier-error.ts';
import { bounded, lookUntil, type Watching } from './bounded-wait.ts';
import type { WaitOptions } from './deadline.ts';
import { Line, type Place } from './line.ts';
import { gatheringTable, joinGatheringTable, waitTable } from './option-tables.ts';
import { withParents } from './parents.ts';

export interface GatheringOptions {
  /** Written to `num` if nobody has said yet how many must come together. */
  readonly size?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

export interface JoinGatheringOptions extends WaitOptions {
  /** What the others may read of this member. */
  readonly data?: DataInput;
}

export interface Gathering {
  /** The names of all members, in the order of their turns. */
  readonly members: readonly string[];
  /** This member's turn, from 0. */
  readonly position: number;
}

interface Group {
  readonly path: string;
  readonly members: string[];
}

/** A group stands in one node and one multi, which has to fit into a frame: see `sizeMaxAt`. */
const sizeMax = 5_000;
/** A member's name at its longest: mark, prefix, number. */
const nameBytes = '_c_'.length + 36 + '-member-'.length + 11;
/** Around the path in a check: the header of its op, a length, the version. */
const checkBytes = 9 + 4 + 4;
/** How often members may come and go while a group is made. */
const roundsMax = 100;

export class GatheringQueue {
  readonly path: string;
  readonly #client: Client;
  readonly #options: GatheringOptions;
  readonly #line: Line;
  readonly #sizeMax: number;

  constructor(client: Client, path: string, options: GatheringOptions = {}) {
    checkClient('GatheringQueue', client);
    checkOptions('GatheringQueue', options, gatheringTable);
    this.#sizeMax = sizeMaxAt(client.chroot + path);
    if (options.size !== undefined && !this.#isSize(options.size)) {
      throw new ArgumentError('size', `${this.#sizes}, not ${options.size}`);
    }
    this.path = path;
    this.#client = client;
    this.#options = options;
    const { acl } = options;
    this.#line = new Line(client, path, { prefixes: ['member-'], ...(acl && { acl }) });
  }

  /** How many must come together: `num`, else the queue's own data. */
  async size(): Promise<number> {
    const paths = [childOf(this.path, 'num'), this.path];
    for (const path of paths) {
      const text = (await this.#read(path))?.toString().trim();
      if (!text) continue;
      if (/^\d+$/.test(text) && this.#isSize(Number(text))) return Number(text);
      const detail = `${path} holds ${JSON.stringify(text.slice(0, 40))}, and ${this.#sizes}`;
      throw new BarrierError('NO_SIZE', this.path, { detail });
    }
    const { size } = this.#options;
    if (size === undefined) throw new BarrierError('NO_SIZE', this.path);
    await this.#make(paths[0]!, String(size));
    return size;
  }

  #isSize(size: number): boolean {
    return Number.isInteger(size) && size >= 1 && size <= this.#sizeMax;
  }

  get #sizes(): string {
    const why = this.#sizeMax < sizeMax ? ' under a path as long as this' : '';
    return `1 to ${this.#sizeMax} is wanted${why}`;
  }

  /** Becomes a member. Then `turn` waits for the others, and `leave` lets the next one go on. */
  async join(options: JoinGatheringOptions = {}): Promise<GatheringMember> {
    checkOptions('join', options, joinGatheringTable);
    const { data, ...wait } = options;
    const { clock } = this.#options;
    const timedOut = () => new BarrierError('TIMEOUT', this.path);
    return bounded(wait, { clock, timedOut }, async (signal) => {
      const prepared = this.size().then(() => this.#make(this.#groups));
      await unlessAborted(prepared, signal); // refused before anybody waits for what cannot be
      const place = await this.#line.join({ signal, ...(data !== undefined && { data }) });
      return new GatheringMember(this, place, clock);
    });
  }

  /** Those who wait for their group, in their order. */
  async waiting(): Promise<string[]> {
    const names = await this.#line.names();
    const grouped = new Set((await this.#allGroups()).flatMap(({ members }) => members));
    return names.filter((name) => !grouped.has(name));
  }

  get #groups(): string {
    return childOf(this.path, 'gathered');
  }

  /** The group of this member; makes it, if those who are there can form one. */
  async groupOf(name: string, watching?: Watching): Promise<Gathering | undefined> {
    if (watching !== undefined && (await watching.children(this.#groups)) === null) {
      await this.#make(this.#groups);
      return undefined; // looks again at once: it can be watched now
    }
    for (let round = 0; round < roundsMax; round++) {
      // In this order: a group made after the list shows all members that it could have taken.
      const names = await this.#line.names();
      const groups = await this.#allGroups();
      for (const { members } of groups) {
        const position = members.indexOf(name);
        if (position !== -1) return { members, position };
      }
      await this.#clear(groups, names);
      const grouped = new Set(groups.flatMap(({ members }) => members));
      const free = names.filter((one) => !grouped.has(one));
      const size = await this.size();
      if (free.length < size) return undefined;
      await this.#form(free.slice(0, size));
    }
    throw new BarrierError('TIMEOUT', this.path, { detail: 'members come and go too quickly' });
  }

  /** Deletes the group once none of its members is left. */
  async disband(members: readonly string[]): Promise<void> {
    const left = new Set(await this.#line.names());
    if (members.some((name) => left.has(name))) return;
    await this.#client.discard(this.#groupPath(members));
  }

  /** Takes groups away whose members have all died, of whom none could. */
  async #clear(groups: readonly Group[], names: readonly string[]): Promise<void> {
    const isDead = (listed: readonly string[]) => {
      const there = new Set(listed);
      return ({ members }: Group) => members.length > 0 && !members.some((one) => there.has(one));
    };
    const dead = groups.filter(isDead(names));
    if (dead.length === 0) return;
    // A group may be younger than the names; of one that was read, all members are older than these.
    const still = dead.filter(isDead(await this.#line.names()));
    for (const { path } of still) {
      await this.#client.delete(path).catch((error) => {
        if (!isZkError(error)) throw error; // gone by now, or the next who looks takes it away
      });
    }
  }

  #groupPath(members: readonly string[]): string {
    return childOf(this.#groups, `g-${this.#line.sequenceOf(members[0]!)}`);
  }

  async #form(members: readonly string[]): Promise<void> {
    const { acl } = this.#options;
    const checks = members.map(
      (name) => ({ op: 'check', path: childOf(this.path, name) }) as const,
    );
    const data = JSON.stringify(members);
    try {
      await this.#client.multi([
        ...checks,
        { op: 'create', path: this.#groupPath(members), data, ...(acl && { acl }) },
      ]);
    } catch (error) {
      // Somebody has left, or somebody else was quicker: the next look tells.
      if (error instanceof MultiError && ['NO_NODE', 'NODE_EXISTS'].includes(error.code)) return;
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
    }
  }

  async #allGroups(): Promise<Group[]> {
    const names = await this.#client.children(this.#groups).catch((error) => {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    });
    const groups = await Promise.all(
      names.map(async (name) => {
        const path = childOf(this.#groups, name);
        const data = await this.#read(path);
        return data && { path, members: namesOf(data) };
      }),
    );
    return groups.filter((group) => group !== null);
  }

  async #read(path: string): Promise<Buffer | null> {
    try {
      return (await this.#client.get(path)).data;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  async #make(path: string, data?: string): Promise<void> {
    const { acl } = this.#options;
    const options = acl ? { acl } : {};
    try {
      await withParents(this.#client, path, acl, () => this.#client.create(path, data, options));
    } catch (error) {
      if (isZkError(error, 'NODE_EXISTS')) return;
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
    }
  }
}

/** A member of a gathering, from its joining to its leaving. */
export class GatheringMember {
  readonly path: string;
  readonly name: string;
  readonly #queue: GatheringQueue;
  readonly #place: Place;
  readonly #clock: Clock | undefined;
  #group: Gathering | undefined;

  constructor(queue: GatheringQueue, place: Place, clock: Clock | undefined) {
    this.#queue = queue;
    this.#place = place;
    this.#clock = clock;
    this.path = place.path;
    this.name = nameOf(place.path);
  }

  /** Aborts when this member no longer counts: its session may be over, or its node was deleted. */
  get signal(): AbortSignal {
    return this.#place.grant.signal;
  }

  /** Resolves once the group is complete. When the time is over this is a member still: try again, or leave. */
  async gathered(options: WaitOptions = {}): Promise<Gathering> {
    checkOptions('gathered', options, waitTable);
    if (this.#group !== undefined) return this.#group;
    const timedOut = async () => {
      const isLinked = this.#place.line.client.state.name === 'connected';
      const waiting = isLinked ? await this.#queue.waiting().catch(() => []) : null;
      const detail = waiting === null ? 'there is no link' : `${waiting.length} are waiting`;
      return new BarrierError('TIMEOUT', this.#queue.path, { detail });
    };
    this.#group = await this.#look(options, timedOut, (watching) =>
      this.#queue.groupOf(this.name, watching),
    );
    return this.#group;
  }

  /** Resolves once the group is complete and all before this one have left. */
  async turn(options: WaitOptions = {}): Promise<Gathering> {
    checkOptions('turn', options, waitTable);
    const { timeoutMs, signal } = options;
    const clock = this.#clock ?? systemClock;
    const untilMs = timeoutMs === undefined ? undefined : clock.nowMs() + timeoutMs;
    const group = await this.gathered(options);
    const left = untilMs !== undefined && { timeoutMs: Math.max(0, untilMs - clock.nowMs()) };
    const before = group.members.slice(0, group.position).reverse();
    const timedOut = () => new BarrierError('TIMEOUT', this.path, { detail: 'it is not our turn' });
    await this.#look({ ...(signal && { signal }), ...left }, timedOut, async (watching) => {
      // The nearest who is still there: when it goes, the ones before it may be there yet.
      for (const name of before) {
        if ((await watching.node(childOf(this.#queue.path, name))) !== null) return undefined;
      }
      return true;
    });
    return group;
  }

  /** Lets the next one go on. Safe to call again. */
  async leave(): Promise<void> {
    await this.#place.leave();
    if (this.#group !== undefined) await this.#queue.disband(this.#group.members);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  #look<T>(
    options: WaitOptions,
    timedOut: () => Error | Promise<Error>,
    look: (watching: Watching) => Promise<T | undefined>,
  ): Promise<T> {
    const setting = { clock: this.#clock, timedOut, ended: this.signal };
    return bounded(options, setting, (signal) => lookUntil(this.#place.line.client, signal, look));
  }
}

/** What somebody else wrote there is no group of ours, and takes nobody out of the line. */
function namesOf(data: Buffer): string[] {
  try {
    const names: unknown = JSON.parse(data.toString());
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  } catch {
    return [];
  }
}

/** Each member stands in the multi that makes its group as a check of its path, and by name in the data. */
function sizeMaxAt(path: string): number {
  const pathBytes = Buffer.byteLength(path) + '/'.length + nameBytes;
  const quotedBytes = nameBytes + '"",'.length;
  const room = frameBytesMax - frameOverheadBytes - pathBytes;
  return Math.min(sizeMax, Math.floor(room / (checkBytes + pathBytes + quotedBytes)));
}
