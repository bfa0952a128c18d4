/**
 * The Groups page: who reads what, how far, how fast, and whether it will catch up.
 *
 * A group is judged over what was seen of it, and not by one look: offsets that stand still with records
 * ahead of them are stalled, a lag that only grew is late. Lag is null where no broker can be asked;
 * then only movement can be judged, and standing still is `unknown`.
 */

import type { Client } from '../client/index.ts';
import { describeGroup, type GroupInfo, keyOf, listGroups, timeLagMs } from '../kafka/index.ts';
import type { Clock } from '../support/index.ts';
import { ConsoleError } from './console-error.ts';
import { type EndOf, endsOf, type GroupEnds } from './group-ends.ts';
import { inTurns } from './in-turns.ts';
import { hex } from './node-text.ts';
import type { Ends } from './sources.ts';
import type { GroupPartitionRow, GroupRow, GroupState, GroupsView, GroupView } from './views.ts';

type Point = GroupRow['trend'][number];
type Rebalance = GroupView['rebalances'][number];

const groupsAtOnce = 8;
const trendMax = 120;
const rebalancesMax = 50;
const rememberedMax = 2_000;
/** A look is not taken again sooner. */
const keptMs = 1_000;
/** Less than this is too little to judge by, and what is older counts no more. */
const windowMs = 10_000;
const windowMaxMs = 300_000;
/** Looking for an age takes a dozen requests of a broker: of so many partitions, and not more often. */
const agesMax = 12;
const ageKeptMs = 10_000;

interface Looked {
  readonly info: GroupInfo;
  readonly ends: GroupEnds;
}

interface Memory {
  readonly trend: Point[];
  readonly rebalances: Rebalance[];
  readonly ages: Map<string, { readonly atMs: number; readonly ageMs: Promise<number | null> }>;
  owners: ReadonlyMap<string, string | null> | undefined;
  seen: { readonly atMs: number; readonly looked: Promise<Looked> } | undefined;
}

export class Groups {
  readonly #client: Client;
  readonly #source: () => Ends | undefined;
  readonly #clock: Clock;
  readonly #why: () => string;
  readonly #memory = new Map<string, Memory>();
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(
    client: Client,
    source: (() => Ends | undefined) | undefined,
    clock: Clock,
    why: () => string = () => 'no broker can be asked for the ends of partitions',
  ) {
    this.#client = client;
    this.#source = source ?? (() => undefined);
    this.#clock = clock;
    this.#why = why;
  }

  /** Whether somebody looked at a group since, so that it is worth looking again. */
  wasAskedSince(ms: number): boolean {
    return this.#askedMs >= this.#clock.nowMs() - ms;
  }

  get knowsEnds(): boolean {
    return this.#source() !== undefined;
  }

  async list(page: { offset: number; limit: number; filter: string }): Promise<GroupsView> {
    this.#askedMs = this.#clock.nowMs();
    const names = await listGroups(this.#client);
    const wanted = page.filter.toLowerCase();
    const matching = names.filter((name) => name.toLowerCase().includes(wanted));
    const shown = matching.slice(page.offset, page.offset + page.limit);
    const rows = await inTurns(shown, groupsAtOnce, async (group) =>
      this.#row(group, await this.#look(group)),
    );
    const lagUnknown = names.length > 0 && this.#source() === undefined ? this.#why() : null;
    return { rows, total: names.length, matching: matching.length, lagUnknown };
  }

  async one(group: string): Promise<GroupView> {
    this.#askedMs = this.#clock.nowMs();
    if (group.includes('/')) throw new ConsoleError('BAD_INPUT', 'name: a group is wanted');
    const looked = await this.#look(group);
    const { info, ends } = looked;
    if (info.members.length + info.partitions.length === 0) {
      const names = await listGroups(this.#client);
      if (!names.includes(group)) throw new ConsoleError('NOT_FOUND', 'there is no such group');
    }
    return {
      group,
      row: await this.#row(group, looked),
      members: info.members.map(({ id, sessionId, sinceMs, registration }) => ({
        id,
        session: hex(sessionId),
        sinceMs,
        topics: [...(registration?.subscription.keys() ?? [])],
        owns: info.partitions.filter(({ consumerId }) => consumerId === id).length,
      })),
      partitions: await this.#partitions(group, looked),
      lagUnknown: this.#source() === undefined ? this.#why() : ends.why,
      problems: info.problems.slice(0, 100).map(({ path, why }) => ({ path, why })),
      rebalances: [...this.#of(group).rebalances].reverse(),
    };
  }

  /** Of one topic; null where it is not known. */
  async topicLag(group: string, topic: string): Promise<string | null> {
    if (this.#source() === undefined) return null;
    const { info, ends } = await this.#look(group);
    const lags = info.partitions
      .filter((one) => one.topic === topic)
      .map((one) => ends.of(one).lag);
    return textOf(sumOf(lags));
  }

  async #partitions(group: string, { info, ends }: Looked): Promise<GroupPartitionRow[]> {
    const late = info.partitions
      .filter((one) => (ends.of(one).lag ?? 0n) > 0n)
      .sort((a, b) => (ends.of(b).lag! > ends.of(a).lag! ? 1 : -1))
      .slice(0, agesMax);
    const ages = new Map(
      await Promise.all(
        late.map(async (one) => [keyOf(one), await this.#age(group, one, ends.of(one))] as const),
      ),
    );
    return info.partitions.map((one) => {
      const { latest, lag, isOutOfRange } = ends.of(one);
      return {
        topic: one.topic,
        partition: one.partition,
        owner: one.owner,
        consumer: one.consumerId,
        ownedSinceMs: one.ownedSinceMs,
        offset: textOf(one.offset),
        latest: textOf(latest),
        lag: textOf(lag),
        behindMs: lag === 0n ? 0 : (ages.get(keyOf(one)) ?? null),
        isOutOfRange,
        committedMs: one.committedMs,
      };
    });
  }

  /** How old the next record to read is. A broker that does not say leaves it unknown. */
  async #age(
    group: string,
    one: GroupInfo['partitions'][number],
    { next }: EndOf,
  ): Promise<number | null> {
    const source = this.#source();
    if (source === undefined || next === null) return null;
    const { ages } = this.#of(group);
    const key = keyOf(one);
    const nowMs = this.#clock.nowMs();
    const known = ages.get(key);
    if (known !== undefined && nowMs - known.atMs < ageKeptMs) return known.ageMs;
    const id = { topic: one.topic, partition: one.partition };
    const ageMs = timeLagMs(source, id, next, this.#clock.wallMs()).catch(() => null); // unknown
    ages.delete(key);
    ages.set(key, { atMs: nowMs, ageMs });
    const [oldest] = ages.keys();
    if (ages.size > 10 * agesMax && oldest !== undefined) ages.delete(oldest);
    return ageMs;
  }

  #of(group: string): Memory {
    const known = this.#memory.get(group);
    if (known !== undefined) return known;
    const fresh: Memory = {
      trend: [],
      rebalances: [],
      ages: new Map(),
      owners: undefined,
      seen: undefined,
    };
    this.#memory.set(group, fresh);
    const [oldest] = this.#memory.keys();
    if (this.#memory.size > rememberedMax && oldest !== undefined) this.#memory.delete(oldest);
    return fresh;
  }

  async #look(group: string): Promise<Looked> {
    const memory = this.#of(group);
    const nowMs = this.#clock.nowMs();
    if (memory.seen !== undefined && nowMs - memory.seen.atMs < keptMs) return memory.seen.looked;
    const looked = describeGroup(this.#client, { group }).then(async (info) => ({
      info,
      ends: await endsOf(this.#source(), info.partitions),
    }));
    const seen = { atMs: nowMs, looked };
    memory.seen = seen;
    try {
      this.#remember(memory, await looked);
    } catch (error) {
      if (memory.seen === seen) memory.seen = undefined;
      throw error;
    }
    return looked;
  }

  #remember(memory: Memory, { info, ends }: Looked): void {
    const { partitions, members } = info;
    const atMs = this.#clock.wallMs();
    const offset = partitions.reduce((all, one) => all + Number(one.offset ?? 0n), 0);
    const lag = sumOf(partitions.map((one) => ends.of(one).lag));
    memory.trend.push({ atMs, offset, lag: lag === null ? null : Number(lag) });
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

  async #row(group: string, { info, ends }: Looked): Promise<GroupRow> {
    const { members, partitions, problems } = info;
    const { trend } = this.#of(group);
    const owners = new Set(partitions.map(({ consumerId }) => consumerId));
    const committed = partitions.flatMap(({ committedMs }) => committedMs ?? []);
    const lag = sumOf(partitions.map((one) => ends.of(one).lag));
    const [worst] = partitions
      .filter((one) => (ends.of(one).lag ?? 0n) > 0n)
      .sort((a, b) => (ends.of(b).lag! > ends.of(a).lag! ? 1 : -1));
    return {
      group,
      ...judge(trend, members.length, partitions.length),
      members: members.length,
      idle: members.filter(({ id }) => !owners.has(id)).length,
      topics: new Set(partitions.map(({ topic }) => topic)).size,
      partitions: partitions.length,
      owned: partitions.filter(({ owner }) => owner !== null).length,
      lag: textOf(lag),
      behindMs:
        lag === 0n ? 0 : worst === undefined ? null : await this.#age(group, worst, ends.of(worst)),
      committedMs: committed.reduce<number | null>((a, b) => (a === null || b > a ? b : a), null),
      trend: [...trend],
      problems: problems.length,
    };
  }
}

/** Of all, or null: a sum with gaps says too little. */
function sumOf(lags: readonly (bigint | null)[]): bigint | null {
  let sum = 0n;
  for (const lag of lags) {
    if (lag === null) return null;
    sum += lag;
  }
  return lags.length === 0 ? null : sum;
}

function textOf(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

interface Judged {
  readonly ratePerS: number | null;
  readonly etaMs: number | null;
  readonly state: GroupState;
  readonly outlook: GroupRow['outlook'];
}

export function judge(all: readonly Point[], members: number, partitions: number): Judged {
  const last = all.at(-1);
  const trend = all.filter(({ atMs }) => atMs >= (last?.atMs ?? 0) - windowMaxMs);
  const [first] = trend;
  const tookMs = (last?.atMs ?? 0) - (first?.atMs ?? 0);
  const none = { ratePerS: null, etaMs: null, outlook: 'unknown' } as const;
  if (members === 0) {
    const state = partitions === 0 ? 'empty' : 'stopped';
    // Who does not read does not catch up, and who has read all need not.
    const outlook = last?.lag == null ? 'unknown' : last.lag === 0 ? 'caughtUp' : 'never';
    return { ...none, state, outlook };
  }
  if (last?.lag === 0) return { ratePerS: rate(), etaMs: 0, state: 'ok', outlook: 'caughtUp' };
  if (first === undefined || last === undefined || tookMs < windowMs)
    return { ...none, state: 'unknown' };
  const ratePerS = rate();
  if (last.lag === null || first.lag === null) {
    return { ...none, ratePerS, state: (ratePerS ?? 0) > 0 ? 'ok' : 'unknown' };
  }
  // Less than a second of reading is no lag: records are always under way.
  const isUpToDate = last.lag <= (ratePerS ?? 0) && first.lag <= (ratePerS ?? 0);
  if (isUpToDate && last.offset > first.offset) {
    return { ratePerS, etaMs: 0, state: 'ok', outlook: 'caughtUp' };
  }
  if (last.offset <= first.offset) {
    return { ratePerS, etaMs: null, state: 'stalled', outlook: 'never' };
  }
  const perMs = slopeOf(trend);
  const etaMs = perMs < 0 ? Math.round(last.lag / -perMs) : null;
  const onlyGrew = trend.every(
    (point, i) => i === 0 || (point.lag ?? 0) >= (trend[i - 1]!.lag ?? 0),
  );
  const state = onlyGrew && last.lag > first.lag ? 'late' : 'ok';
  return { ratePerS, etaMs, state, outlook: etaMs === null ? 'never' : 'recovers' };

  function rate(): number | null {
    if (first === undefined || last === undefined || tookMs <= 0) return null;
    return Math.max(0, ((last.offset - first.offset) * 1_000) / tookMs);
  }
}

/** Of the straight line that fits best: one burst at either end does not turn the outlook. */
function slopeOf(trend: readonly Point[]): number {
  const known = trend.filter((point) => point.lag !== null);
  const mean = (pick: (point: Point) => number) =>
    known.reduce((sum, point) => sum + pick(point), 0) / known.length;
  const [atMean, lagMean] = [mean(({ atMs }) => atMs), mean(({ lag }) => lag ?? 0)];
  let [above, below] = [0, 0];
  for (const { atMs, lag } of known) {
    above += (atMs - atMean) * ((lag ?? 0) - lagMean);
    below += (atMs - atMean) ** 2;
  }
  return below === 0 ? 0 : above / below;
}
