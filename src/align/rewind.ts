/**
 * Sets a group back to one of its cuts: for when its limit was carried away, by a wrong time that was
 * believed, or when records have to be read again.
 *
 * In: a group that nobody reads. Out: the group as it was at the cut: its limit stands there, every
 * partition goes on at the cut's offset, and callbacks of periods after it run again. The last sixteen
 * cuts are kept, so it can go back as far.
 *
 * The limit, the cut it names and how far callbacks have run change in one transaction, which is refused
 * when somebody began to lead in between. What is left over from later on counts for nothing from then on
 * and is taken away; a call that was cut short can be made again.
 */

import { ArgumentError, checkClient, isZkError, type MultiOp } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { checkGroup } from './align-options.ts';
import type { RootOption } from './change-rule.ts';
import { deleteCut, readCut } from './cuts.ts';
import {
  type AlignPaths,
  alignPaths,
  alignRoot,
  type CutPointer,
  formatCalled,
  formatLimit,
  parseCalled,
  parseLimit,
} from './layout.ts';
import { rewindTable } from './option-tables.ts';
import { childrenOf, readNode } from './read-node.ts';
import type { AlignClient } from './session.ts';

/** Which cut a group is set back to. */
export interface RewindOptions extends RootOption {
  /** Back to the last cut at or before this moment of event time. Without it: the last before the limit. */
  readonly toMs?: number;
}

/** What {@link rewindAlignment} has changed. */
export interface Rewound {
  readonly before: { readonly limitMs: number | null; readonly cutEnd: number };
  /** Where the limit is now: at the end of the cut. */
  readonly limitMs: number;
  /** The cuts before it that are kept, oldest first: it can be set back to each of them. */
  readonly earlier: readonly number[];
}

/**
 * Sets a group back to one of its last sixteen cuts: its limit, where each partition goes on, and which
 * periods were called. What was read after the cut comes again. No member may be running.
 *
 * @throws ArgumentError when the group is running, or keeps no such cut.
 */
export async function rewindAlignment(
  client: AlignClient,
  group: string,
  options: RewindOptions = {},
): Promise<Rewound> {
  checkClient('rewindAlignment', client);
  checkOptions('rewindAlignment', options, rewindTable);
  checkGroup(group);
  const { root = alignRoot, toMs } = options;
  const paths = alignPaths(group, root);
  const members = await childrenOf(client, paths.members);
  if (members === null) throw new ArgumentError('group', `there is no group ${group}`);
  if (members.length > 0) {
    const who = members.join(', ');
    throw new ArgumentError('group', `${group} is running: ${who}; stop them first`);
  }
  const found = await readNode(client, paths.limit, parseLimit);
  const stored = found?.value;
  if (!stored?.cut) {
    throw new ArgumentError('group', `${group} has no cut yet: it begins anew anyway`);
  }
  const all = ((await childrenOf(client, paths.cuts)) ?? [])
    .map((node) => ({ node, end: endOf(node) }))
    .filter(({ end, node }) => end < stored.cut!.end || node === stored.cut!.node)
    .sort((a, b) => a.end - b.end);
  const isBefore = ({ end }: { end: number }) =>
    toMs === undefined ? end < (stored.limitMs ?? Number.POSITIVE_INFINITY) : end <= toMs;
  const target = all.findLast(isBefore);
  if (target === undefined) throw noCut(group, all[0]?.end);
  const pointer = await pointerTo(client, paths, target.node, stored.cut);
  await takeAway(client, paths.handovers); // each partition is to begin at the cut
  await write(client, [
    {
      op: 'set',
      path: paths.limit,
      data: formatLimit({ ...stored, limitMs: target.end, cut: pointer, isFinished: false }),
      version: found!.version,
    },
    ...(await calledOps(client, paths, stored.epoch, target.end)),
  ]);
  for (const { node, end } of all) if (end > target.end) await deleteCut(client, paths.cut(node));
  return {
    before: { limitMs: stored.limitMs, cutEnd: stored.cut.end },
    limitMs: target.end,
    earlier: all.filter(({ end }) => end < target.end).map(({ end }) => end),
  };
}

const endOf = (node: string) => Number(node.slice(0, node.lastIndexOf('-')));

function noCut(group: string, earliestMs: number | undefined): ArgumentError {
  const kept =
    earliestMs === undefined ? 'none' : `the earliest is at ${new Date(earliestMs).toISOString()}`;
  return new ArgumentError('toMs', `${group} keeps no cut that early (${kept}); it can begin anew`);
}

async function pointerTo(
  client: AlignClient,
  paths: AlignPaths,
  node: string,
  last: CutPointer,
): Promise<CutPointer> {
  if (node === last.node) return last;
  const parts = ((await childrenOf(client, paths.cut(node))) ?? []).length;
  const cut = await readCut(client, paths, { node, parts, end: endOf(node), start: null });
  if (cut === null)
    throw new ArgumentError('group', `the cut ${node} is gone: is the group running?`);
  return { node, parts, end: cut.end, start: cut.start };
}

async function calledOps(
  client: AlignClient,
  paths: AlignPaths,
  epoch: bigint,
  endMs: number,
): Promise<MultiOp[]> {
  const called = await readNode(client, paths.called, parseCalled);
  if (called === null || called.value <= endMs) return [];
  const { version } = called;
  return [{ op: 'set', path: paths.called, data: formatCalled(epoch, endMs), version }];
}

async function write(client: AlignClient, ops: readonly MultiOp[]): Promise<void> {
  try {
    await client.multi(ops);
  } catch (error) {
    if (!isZkError(error, 'BAD_VERSION', 'NO_NODE')) throw error;
    throw new ArgumentError(
      'group',
      'a member began to read in the meantime; stop it and try again',
    );
  }
}

async function takeAway(client: AlignClient, path: string): Promise<void> {
  try {
    await client.deleteRecursive(path);
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
  }
}
