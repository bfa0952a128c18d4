/**
 * A double barrier: nobody goes in before `size` members have come, and nobody goes out before all
 * have left. Curator's DistributedDoubleBarrier and kazoo's DoubleBarrier have the same layout.
 *
 *   <path>/<name>     a member, ephemeral; the name is its own, or a uuid
 *   <path>/ready      made by the member that found `size` of them; deleted when all have left
 *
 * Going in: a member makes its node, and counts. Who finds enough makes `ready`; the others wait for
 * that node alone, so that who comes wakes nobody. A `ready` older than all members is the rest of a
 * round whose members died: it lets nobody in, and the round that fills up makes it anew.
 * Going out: the member with the lowest name waits for the highest to go, and again; every other takes
 * its node away and waits for the lowest.
 *
 * A member that dies inside is not waited for. One that comes late, while a round is in, goes in at once.
 * What is NOT promised: rounds. Who enters again while others are still leaving may join the old round:
 * take a path for each round, or let all leave first.
 */

import { randomUUID } from 'node:crypto';
import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
  isZkError,
  MultiError,
  type StatView,
} from '../client/index.ts';
import { childOf, pathFault } from '../protocol/index.ts';
import {
  type Clock,
  checkOptions,
  systemClock,
  unbounded,
  unlessAborted,
} from '../support/index.ts';
import { BarrierError } from './barrier-error.ts';
import { bounded, lookUntil, type Watching } from './bounded-wait.ts';
import type { WaitOptions } from './deadline.ts';
import { doubleBarrierTable, waitTable } from './option-tables.ts';
import { withParents } from './parents.ts';
import { takeBack } from './take-back.ts';
import { whileLinked } from './while-linked.ts';

export interface DoubleBarrierOptions {
  /** A name of its own among the members. A uuid unless said. */
  readonly name?: string;
  readonly data?: DataInput;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

const createTriesMax = 10;
const ready = 'ready';

export class DoubleBarrier {
  readonly path: string;
  readonly name: string;
  readonly #client: Client;
  readonly #size: number;
  readonly #options: DoubleBarrierOptions;
  /** Our node since we entered, until we left. */
  #czxid: bigint | undefined;

  constructor(client: Client, path: string, size: number, options: DoubleBarrierOptions = {}) {
    checkClient('DoubleBarrier', client);
    checkOptions('DoubleBarrier', options, doubleBarrierTable);
    if (!Number.isInteger(size) || size < 1) {
      throw new ArgumentError('size', `how many members there are, from 1 on, not ${size}`);
    }
    const { name = randomUUID() } = options;
    if (name === '' || name === ready || name.includes('/') || pathFault(`/${name}`) !== null) {
      throw new ArgumentError('name', 'the name of a node is wanted, and none that is "ready"');
    }
    this.#client = client;
    this.path = path;
    this.name = name;
    this.#size = size;
    this.#options = options;
  }

  /** Resolves once enough members are in. Rejects, and is not a member, when the time is over. */
  async enter(options: WaitOptions = {}): Promise<void> {
    checkOptions('enter', options, waitTable);
    const timedOut = () => this.#late();
    await bounded(options, { clock: this.#options.clock, timedOut }, async (signal) => {
      const joining = this.#join();
      try {
        const czxid = await unlessAborted(joining, signal);
        await lookUntil(this.#client, signal, (watching) => this.#lookIn(czxid, watching));
        this.#czxid = czxid;
      } catch (error) {
        await this.#giveUp(joining, signal);
        throw error;
      }
    });
  }

  /** Resolves once all members have left. When the time is over, this one has left all the same. */
  async leave(options: WaitOptions = {}): Promise<void> {
    checkOptions('leave', options, waitTable);
    if (this.#czxid === undefined) throw new BarrierError('NOT_IN', this.#own);
    const timedOut = () => this.#late();
    const found = this.#client.exists(this.#ready);
    try {
      await bounded(options, { clock: this.#options.clock, timedOut }, async (signal) => {
        await unlessAborted(found, signal);
        await lookUntil(this.#client, signal, (watching) => this.#lookOut(watching));
      });
    } finally {
      // Without a link it goes as soon as there is one, or with the session.
      await whileLinked(this.#client, this.#goOut(found));
    }
  }

  async #goOut(found: Promise<StatView | null>): Promise<void> {
    const readyStat = await found.catch(() => null); // one that stays is made anew by the next round
    if (this.#czxid !== undefined) await this.#leaveNode();
    if (readyStat !== null) await this.#removeReady(readyStat.czxid);
  }

  /** The names of those who are in. */
  async members(): Promise<string[]> {
    try {
      return membersOf(await this.#client.children(this.path));
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    }
  }

  get #own(): string {
    return childOf(this.path, this.name);
  }

  get #ready(): string {
    return childOf(this.path, ready);
  }

  /** Makes our node. Of one that is there already, only its owner and its mark prove that it is ours. */
  async #join(): Promise<bigint> {
    const client = this.#client;
    const { acl, data, clock = systemClock } = this.#options;
    let isUnknown = false;
    for (let tries = 1; ; tries++) {
      try {
        const { stat } = await withParents(client, this.#own, acl, () =>
          client.create(this.#own, data, {
            mode: 'ephemeral',
            ...(acl && { acl }),
            ...unbounded,
          }),
        );
        return stat.czxid;
      } catch (error) {
        if (isZkError(error, 'NODE_EXISTS')) {
          const stat = await client.exists(this.#own, unbounded);
          if (stat === null && tries < createTriesMax) continue;
          // Ours only if a try before this one lost its reply.
          const isOurs = tries > 1 && stat?.ephemeralOwner === client.sessionId;
          if (isOurs) return stat!.czxid;
          const owner = `session 0x${(stat?.ephemeralOwner ?? 0n).toString(16)}`;
          throw new BarrierError('DUPLICATE_NAME', this.#own, { detail: owner, cause: error });
        }
        if (isZkError(error) && error.outcomeUnknown) {
          isUnknown = true;
          if (tries < createTriesMax) continue;
        }
        // A try before this one may have made it, and nobody else would take it away.
        const isOurs = ({ ephemeralOwner }: StatView) => ephemeralOwner === client.sessionId;
        const gone = isUnknown && takeBack(client, this.#own, isOurs, clock);
        if (gone) await whileLinked(client, gone).catch(() => {}); // it goes with the session
        throw error;
      }
    }
  }

  /** True when we are in. */
  async #lookIn(czxid: bigint, watching: Watching): Promise<true | undefined> {
    const client = this.#client;
    const found = await watching.exists(this.#ready);
    const names = await this.members();
    // One of our name may be somebody else's, who came after our session had ended.
    const own = await client.exists(this.#own);
    if (own?.czxid !== czxid) throw new BarrierError('LOST_PLACE', this.#own);
    if (found !== null && found.czxid > czxid) return true; // made with us in it
    if (names.length >= this.#size) {
      await this.#makeReady(found);
      return true;
    }
    if (found === null) return undefined;
    // Older than we are: a round that is in has a member that is older still.
    for (const name of names) {
      const member = name === this.name ? null : await client.exists(childOf(this.path, name));
      if (member !== null && member.czxid < found.czxid) return true;
    }
    return undefined;
  }

  async #makeReady(old: StatView | null, tries = 1): Promise<void> {
    const create = { op: 'create', path: this.#ready } as const;
    const { acl } = this.#options;
    const made = acl ? { ...create, acl } : create;
    try {
      // One left behind by a round before is made anew, so that it is younger than all who wait.
      if (old === null) await this.#client.multi([made]);
      else await this.#client.multi([{ op: 'delete', path: this.#ready }, made]);
    } catch (error) {
      const isRace =
        error instanceof MultiError && (error.code === 'NODE_EXISTS' || error.code === 'NO_NODE');
      if (isRace) {
        if (error.code === 'NODE_EXISTS') return;
        // Nothing is there that it could stand under, and so neither are we.
        if (old === null) throw new BarrierError('LOST_PLACE', this.#own, { cause: error });
        return this.#makeReady(null, tries + 1);
      }
      // Made or not, those who wait must see it: make sure.
      if (!isZkError(error) || !error.outcomeUnknown || tries >= createTriesMax) throw error;
      await this.#makeReady(await this.#client.exists(this.#ready), tries + 1);
    }
  }

  /** True when all have left. */
  async #lookOut(watching: Watching): Promise<true | undefined> {
    for (;;) {
      const names = (await this.members()).sort();
      const at = names.indexOf(this.name);
      if (at === -1 && this.#czxid !== undefined) {
        this.#czxid = undefined;
        throw new BarrierError('LOST_PLACE', this.#own);
      }
      if (names.length === 0) return true;
      if (names.length === 1 && at === 0) {
        await this.#leaveNode();
        return true;
      }
      if (at > 0) await this.#leaveNode();
      const awaited = at === 0 ? names.at(-1)! : names[0]!;
      // Gone between the list and here: then the list is another.
      if ((await watching.node(childOf(this.path, awaited))) !== null) return undefined;
    }
  }

  async #leaveNode(czxid = this.#czxid): Promise<void> {
    const { clock = systemClock } = this.#options;
    await takeBack(this.#client, this.#own, (stat) => stat.czxid === czxid, clock);
    this.#czxid = undefined;
  }

  /** Of our own round alone: another may have begun meanwhile. */
  async #removeReady(czxid: bigint): Promise<void> {
    const now = await this.#client.exists(this.#ready);
    if (now?.czxid === czxid) await this.#client.discard(this.#ready);
  }

  async #giveUp(joining: Promise<bigint>, signal: AbortSignal): Promise<void> {
    const gone = joining.then(
      (czxid) => this.#leaveNode(czxid),
      () => {}, // it never was, or it is somebody else's
    );
    // Without a link that may take until the session ends; who called it off does not wait for that.
    if (signal.aborted && this.#client.state.name !== 'connected') gone.catch(() => {});
    else await gone;
  }

  async #late(): Promise<BarrierError> {
    if (this.#client.state.name !== 'connected') {
      return new BarrierError('TIMEOUT', this.path, { detail: 'there is no link' });
    }
    const names = await this.members().catch(() => []);
    const listed = names.slice(0, 20).join(', ') || 'nobody';
    const detail = `of ${this.#size} members, ${listed} (${names.length}) and this one`;
    return new BarrierError('TIMEOUT', this.path, { detail });
  }
}

function membersOf(children: readonly string[]): string[] {
  return children.filter((name) => name !== ready);
}
