/**
 * An aligned group, read from outside by a client that is no member of it: for tools that show who holds
 * it back.
 *
 * In: a group. Out: what its nodes said when they were read. They are read one after the other, so the
 * whole need not be of one moment.
 */

import { checkClient } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { checkGroup } from './align-options.ts';
import { GroupClock, type PartitionState } from './group-clock.ts';
import {
  alignPaths,
  alignRoot,
  memberOf,
  parseCalled,
  parseLimit,
  parseMember,
  parsePlan,
  parseRule,
  type StoredLimit,
} from './layout.ts';
import { listAlignmentsTable, readAlignmentTable } from './option-tables.ts';
import { childrenOf, nodeOf, readNode } from './read-node.ts';
import { isPaused, type Rule } from './rule.ts';
import type { AlignClient } from './session.ts';

export interface SeenPartition {
  /** `topic/partition`. */
  readonly key: string;
  readonly state: PartitionState | 'unknown';
  readonly positionMs: number | null;
  readonly offset: bigint | null;
  /** The member that reports it. Null: nobody has it. */
  readonly member: string | null;
  /** The time of its next record, where it is so far ahead that it is not believed yet. */
  readonly aheadMs: number | null;
  /** It has reached the limit, and waits for the others. */
  readonly isWaiting: boolean;
}

export interface SeenMember {
  readonly id: string;
  readonly sessionId: bigint;
  readonly sinceMs: number;
  readonly records: number;
  readonly waitingShare: number;
  readonly partitions: number;
}

export interface AlignSnapshot {
  readonly group: string;
  /** As configured; `limit.rule` is the one that is in force. */
  readonly rule: Rule | null;
  readonly limit: StoredLimit | null;
  /** How far people let it go; null where they do not hold it. */
  readonly holdMs: number | null;
  /** People hold the group, and the limit has come to where they do: nobody is at fault that it stands. */
  readonly isPaused: boolean;
  /** The last boundary whose callback has ended. */
  readonly calledMs: number | null;
  readonly members: readonly SeenMember[];
  readonly partitions: readonly SeenPartition[];
  /** Who everybody waits for. */
  readonly slowest: SeenPartition | null;
}

/** Null: there is no such group. */
export async function readAlignment(
  client: AlignClient,
  group: string,
  options: { readonly root?: string } = {},
): Promise<AlignSnapshot | null> {
  checkClient('readAlignment', client);
  checkOptions('readAlignment', options, readAlignmentTable);
  const { root = alignRoot } = options;
  checkGroup(group);
  const paths = alignPaths(group, root);
  const names = await childrenOf(client, paths.members);
  if (names === null) return null;
  const rule = (await readNode(client, paths.config, parseRule))?.value ?? null;
  const limit = (await readNode(client, paths.limit, parseLimit))?.value ?? null;
  const plan = (await readNode(client, paths.plan, parsePlan))?.value ?? null;
  const calledMs = (await readNode(client, paths.called, parseCalled))?.value ?? null;
  const effective = limit?.rule ?? rule ?? { mode: 'off', stepMs: 1 };
  const clock = new GroupClock(effective, limit?.limitMs ?? null, null);
  clock.plan([...(plan ?? [])].flatMap(([topic, all]) => all.map((name) => `${topic}/${name}`)));
  const ids = new Map<string, string>();
  const members = new Map<string, SeenMember>();
  for (const name of names.sort()) {
    const node = await nodeOf(client, paths.member(name));
    if (node === null) continue; // it left in between
    const member = parseMember(node.data, paths.member(name));
    ids.set(name, member.id);
    for (const [key, report] of member.partitions) clock.report(key, name, report);
    const key = memberOf(name);
    const before = members.get(key);
    members.set(key, {
      id: member.id,
      sessionId: node.stat.ephemeralOwner,
      sinceMs: Math.min(before?.sinceMs ?? Number.POSITIVE_INFINITY, Number(node.stat.ctime)),
      records: Math.max(before?.records ?? 0, member.records),
      waitingShare: member.waitingShare,
      partitions: (before?.partitions ?? 0) + member.partitions.size,
    });
  }
  const limitMs = limit?.rule.mode === 'off' ? null : (limit?.limitMs ?? null);
  const partitions = [...clock.keys].map((key): SeenPartition => {
    const view = clock.view(key);
    if (view == null) {
      const nothing = { positionMs: null, offset: null, member: null, aheadMs: null };
      return { key, state: 'unknown', ...nothing, isWaiting: false };
    }
    const { state, positionMs, offset } = view;
    const isBehind = positionMs === null || limitMs === null || positionMs < limitMs;
    const isWaiting = state === 'reading' && !isBehind;
    const member = ids.get(view.member ?? '') ?? null;
    return { key, state, positionMs, offset, member, isWaiting, aheadMs: view.aheadMs ?? null };
  });
  const slowestKey = clock.slowest?.key;
  const slowest = partitions.find(({ key }) => key === slowestKey) ?? null;
  // Who leads says with the limit what it has heard of; where nobody is there, it will.
  const heard = members.size === 0 ? rule : (limit?.rule ?? rule);
  return {
    ...{ group, rule, limit, calledMs, partitions, slowest },
    holdMs: heard?.holdMs ?? null,
    isPaused: heard !== null && isPaused(heard, limit?.limitMs ?? null),
    members: [...members.values()],
  };
}

/** The groups that there are. */
export async function listAlignments(
  client: AlignClient,
  options: { readonly root?: string } = {},
): Promise<string[]> {
  checkClient('listAlignments', client);
  checkOptions('listAlignments', options, listAlignmentsTable);
  const { root = alignRoot } = options;
  return ((await childrenOf(client, root)) ?? []).sort();
}
