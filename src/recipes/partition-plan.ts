/**
 * Who shall have which shard: the plan, how it is made, and how it is written.
 *
 *   <path>/plan   { "generation": 7, "members": { "host-a": { "node": "_c_…-member-0000000003", "shards": ["s1"] } } }
 *
 * Pure. The plan is a wish, not a right: only an ownership node gives a shard to somebody. `spread` is
 * even (no two members differ by more than one shard) and sticky (a shard moves only if its member is
 * gone, or has more than its share).
 */

export interface PlanMember {
  readonly name: string;
  /** The node by which it is a member now: tells one life of a name from the next. */
  readonly node: string;
}

export interface Plan {
  readonly generation: number;
  readonly members: ReadonlyMap<
    string,
    { readonly node: string; readonly shards: readonly string[] }
  >;
}

export const emptyPlan: Plan = { generation: 0, members: new Map() };

/** Divides shards among members, by name. `previous`: who had what. In: members in the order they came. */
export type Assign = (
  shards: readonly string[],
  members: readonly string[],
  previous: ReadonlyMap<string, readonly string[]>,
) => ReadonlyMap<string, readonly string[]>;

export const spread: Assign = (shards, members, previous) => {
  const free = new Set(shards);
  const kept = new Map<string, string[]>();
  const had = (name: string) => (previous.get(name) ?? []).filter((shard) => free.has(shard));
  // Those who have most keep the greater shares, so that as few shards as can be are moved.
  const byLoad = [...members].sort((a, b) => had(b).length - had(a).length);
  const least = Math.floor(shards.length / Math.max(1, members.length));
  let greater = shards.length - least * members.length;
  const shareOf = new Map<string, number>();
  for (const name of byLoad) {
    const share = greater > 0 ? least + 1 : least;
    if (greater > 0) greater -= 1;
    shareOf.set(name, share);
  }
  for (const name of members) {
    const mine = had(name).slice(0, shareOf.get(name));
    for (const shard of mine) free.delete(shard);
    kept.set(name, mine);
  }
  const waiting = [...free];
  for (const name of members) {
    const mine = kept.get(name)!;
    while (mine.length < shareOf.get(name)!) mine.push(waiting.shift()!);
  }
  return kept;
};

/** The plan for these members. The same object when nothing has to change. */
export function nextPlan(
  current: Plan,
  shards: readonly string[],
  members: readonly PlanMember[],
  assign: Assign,
): Plan {
  const nodes = new Map<string, string>();
  // Two with one name: the first who came is meant; the other gets nothing.
  for (const { name, node } of members) if (!nodes.has(name)) nodes.set(name, node);
  const previous = new Map([...current.members].map(([name, { shards: had }]) => [name, had]));
  const assigned = assign(shards, [...nodes.keys()], previous);
  const next = new Map(
    [...nodes].map(([name, node]) => [name, { node, shards: assigned.get(name) ?? [] }]),
  );
  return isSame(current.members, next)
    ? current
    : { generation: current.generation + 1, members: next };
}

function isSame(a: Plan['members'], b: Plan['members']): boolean {
  if (a.size !== b.size) return false;
  for (const [name, { node, shards }] of a) {
    const other = b.get(name);
    if (other?.node !== node || other.shards.length !== shards.length) return false;
    const theirs = new Set(other.shards);
    if (!shards.every((shard) => theirs.has(shard))) return false;
  }
  return true;
}

export function formatPlan({ generation, members }: Plan): string {
  return JSON.stringify({ generation, members: Object.fromEntries(members) });
}

/** What cannot be read is no plan: the next planner writes a better one. */
export function parsePlan(data: Buffer | null): Plan {
  try {
    const { generation, members } = JSON.parse(data?.toString('utf8') ?? '') as {
      generation: unknown;
      members: Record<string, { node: unknown; shards: unknown }>;
    };
    const entries = Object.entries(members).map(([name, { node, shards }]) => {
      if (typeof node !== 'string' || !Array.isArray(shards)) throw new TypeError('no plan');
      return [name, { node, shards: shards.map(String) }] as const;
    });
    if (typeof generation !== 'number') throw new TypeError('no plan');
    return { generation, members: new Map(entries) };
  } catch {
    return emptyPlan;
  }
}
