/**
 * The Groups page: who reads what, how far, how fast, and whether it will catch up.
 *
 * A group is judged over what was seen of it, and not by one look: offsets that stand still with records
 * ahead of them are stalled, a lag that only grew is late. Lag is null where no broker can be asked;
 * then only movement can be judged, and standing still is `unknown`.
 */

import type { Client } from '../client/index.ts';
import { describeGroup, type GroupInfo, keyOf, listGroups } from '../kafka/index.ts';
import type { Clock } from '../support/index.ts';
import { ConsoleError } from './console-error.ts';
import { inTurns } from './kafka.ts';
import { hex } from './node-text.ts';
import type { Ends } from './sources.ts';
import type { GroupRow, GroupState, GroupsView, GroupView } from './views.ts';

type Point = GroupRow['trend'][number];
type Rebalance = GroupView['rebalances'][number];

const groupsAtOnce = 8;
const trendMax = 120;
const rebalancesMax = 50;
const rememberedMax = 2_000;
/** A look is not taken again sooner. */
const keptMs = 1_000;
/** Less than this is too little to judge by. */
const windowMs = 10_000;

interface Memory {
  readonly trend: Point[];
  readonly rebalances: Rebalance[];
  owners: ReadonlyMap<string, string | null> | undefined;
  seen: { readonly atMs: number; readonly info: Promise<GroupInfo> } | undefined;
}

export class Groups {
  readonly #client: Client;
  readonly #source: () => Ends | undefined;
  readonly #clock: Clock;
  readonly #memory = new Map<string, Memory>();

  constructor(client: Client, source: (() => Ends | undefined) | undefined, clock: Clock) {
    this.#client = client;
    this.#source = source ?? (() => undefined);
    this.#clock = clock;
  }

  async list(page: { offset: number; limit: number; filter: string }): Promise<GroupsView> {
    const names = await listGroups(this.#client);
    const wanted = page.filter.toLowerCase();
    const matching = names.filter((name) => name.toLowerCase().includes(wanted));
    const shown = matching.slice(page.offset, page.offset + page.limit);
    const rows = await inTurns(shown, groupsAtOnce, async (group) =>
      this.#row(group, await this.#look(group)),
    );
    return {
      rows,
      total: names.length,
      matching: matching.length,
      lagUnknown:
        this.#source() === undefined ? 'no broker can be asked for the ends of partitions' : null,
    };
  }

  async one(group: string): Promise<GroupView> {
    if (group.includes('/')) throw new ConsoleError('BAD_INPUT', 'name: a group is wanted');
    const info = await this.#look(group);
    if (info.members.length + info.partitions.length === 0) {
      const names = await listGroups(this.#client);
      if (!names.includes(group)) throw new ConsoleError('NOT_FOUND', 'there is no such group');
    }
    return {
      group,
      row: this.#row(group, info),
      members: info.members.map(({ id, sessionId, sinceMs, registration }) => ({
        id,
        session: hex(sessionId),
        sinceMs,
        topics: [...(registration?.subscription.keys() ?? [])],
        owns: info.partitions.filter(({ consumerId }) => consumerId === id).length,
      })),
      partitions: info.partitions.map((one) => ({
        topic: one.topic,
        partition: one.partition,
        owner: one.owner,
        consumer: one.consumerId,
        ownedSinceMs: one.ownedSinceMs,
        offset: textOf(one.offset),
        latest: textOf(one.latest),
        // What was committed may lie beyond what a broker says: it is then 0, and never less.
        lag: textOf(one.lag === null || one.lag > 0n ? one.lag : 0n),
        committedMs: one.committedMs,
      })),
      problems: info.problems.slice(0, 100).map(({ path, why }) => ({ path, why })),
      rebalances: [...this.#of(group).rebalances].reverse(),
    };
  }

  #of(group: string): Memory {
    const known = this.#memory.get(group);
    if (known !== undefined) return known;
    const fresh: Memory = { trend: [], rebalances: [], owners: undefined, seen: undefined };
    this.#memory.set(group, fresh);
    const [oldest] = this.#memory.keys();
    if (this.#memory.size > rememberedMax && oldest !== undefined) this.#memory.delete(oldest);
    return fresh;
  }

  async #look(group: string): Promise<GroupInfo> {
    const memory = this.#of(group);
    const nowMs = this.#clock.nowMs();
    if (memory.seen !== undefined && nowMs - memory.seen.atMs < keptMs) return memory.seen.info;
    const source = this.#source();
    const info = describeGroup(this.#client, { group, ...(source && { source }) });
    const seen = { atMs: nowMs, info };
    memory.seen = seen;
    try {
      this.#remember(memory, await info);
    } catch (error) {
      if (memory.seen === seen) memory.seen = undefined;
      throw error;
    }
    return info;
  }

  #remember(memory: Memory, { partitions, members }: GroupInfo): void {
    const atMs = this.#clock.wallMs();
    const offset = partitions.reduce((all, one) => all + Number(one.offset ?? 0n), 0);
    memory.trend.push({ atMs, offset, lag: lagOf(partitions) });
    if (memory.trend.length > trendMax) memory.trend.shift();
    const owners = new Map(partitions.map((one) => [keyOf(one), one.owner]));
    const before = memory.owners;
    memory.owners = owners;
    if (before === undefined) return;
    const moved = [...owners].filter(([key, owner]) => (before.get(key) ?? null) !== owner).length;
    if (moved === 0) return;
    memory.rebalances.push({ atMs, moved, members: members.length });
    if (memory.rebalances.length > rebalancesMax) memory.rebalances.shift();
  }

  #row(group: string, info: GroupInfo): GroupRow {
    const { members, partitions, problems } = info;
    const { trend } = this.#of(group);
    const owners = new Set(partitions.map(({ consumerId }) => consumerId));
    const committed = partitions.flatMap(({ committedMs }) => committedMs ?? []);
    const lag = lagOf(partitions);
    const { ratePerS, etaMs, state } = judge(trend, members.length, partitions.length);
    return {
      group,
      state,
      members: members.length,
      idle: members.filter(({ id }) => !owners.has(id)).length,
      topics: new Set(partitions.map(({ topic }) => topic)).size,
      partitions: partitions.length,
      owned: partitions.filter(({ owner }) => owner !== null).length,
      lag: lag === null ? null : String(lag),
      committedMs: committed.reduce<number | null>((a, b) => (a === null || b > a ? b : a), null),
      ratePerS,
      etaMs,
      trend: [...trend],
      problems: problems.length,
    };
  }
}

function lagOf(partitions: GroupInfo['partitions']): number | null {
  let sum = 0;
  for (const { lag } of partitions) {
    if (lag === null) return null;
    if (lag > 0n) sum += Number(lag);
  }
  return partitions.length === 0 ? null : sum;
}

function textOf(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

export function judge(
  trend: readonly Point[],
  members: number,
  partitions: number,
): { ratePerS: number | null; etaMs: number | null; state: GroupState } {
  const [first, last] = [trend[0], trend.at(-1)];
  const tookMs = (last?.atMs ?? 0) - (first?.atMs ?? 0);
  const none = { ratePerS: null, etaMs: null };
  if (members === 0) return { ...none, state: partitions === 0 ? 'empty' : 'stopped' };
  if (last?.lag === 0) return { ratePerS: rate(), etaMs: 0, state: 'ok' };
  if (first === undefined || last === undefined || tookMs < windowMs)
    return { ...none, state: 'unknown' };
  const ratePerS = rate();
  if (last.lag === null || first.lag === null) {
    return { ratePerS, etaMs: null, state: (ratePerS ?? 0) > 0 ? 'ok' : 'unknown' };
  }
  const caughtPerMs = (first.lag - last.lag) / tookMs;
  const etaMs = caughtPerMs > 0 ? Math.round(last.lag / caughtPerMs) : null;
  if (last.offset <= first.offset) return { ratePerS, etaMs: null, state: 'stalled' };
  const onlyGrew = trend.every(
    (point, i) => i === 0 || (point.lag ?? 0) >= (trend[i - 1]!.lag ?? 0),
  );
  return { ratePerS, etaMs, state: onlyGrew && last.lag > first.lag ? 'late' : 'ok' };

  function rate(): number | null {
    if (first === undefined || last === undefined || tookMs <= 0) return null;
    return Math.max(0, ((last.offset - first.offset) * 1_000) / tookMs);
  }
}
