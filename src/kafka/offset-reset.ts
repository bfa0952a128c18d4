/**
 * Setting a group's offsets by hand: to a number, by a shift, to an end, to a time.
 *
 * In: a group, partitions, a rule. Out: what was and what is now, for each. A partition that a member
 * owns is refused, in the very transaction that would write: the multi makes the owner's node and takes
 * it away again, which fails if there is one. So stop the group first. Offsets are kept within what the
 * source holds, where one is given to ask.
 */

import {
  ArgumentError,
  checkClient,
  isZkError,
  MultiError,
  type MultiOp,
} from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { ensurePath, type GroupClient } from './group-client.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { resetTable } from './option-tables.ts';
import { readStored } from './ownership.ts';
import type { PartitionId } from './partition.ts';
import type { RecordSource } from './reader.ts';

export type ResetRule =
  | { readonly to: bigint | 'earliest' | 'latest' }
  /** So many records on, or with a negative number back. */
  | { readonly shiftBy: bigint }
  /** The first record that is not older. */
  | { readonly toTimeMs: number };

export interface ResetOptions {
  readonly group: string;
  readonly partitions: readonly PartitionId[];
  readonly rule: ResetRule;
  /** Needed for earliest, latest and times; where given, bounds every rule. */
  readonly source?: Pick<RecordSource, 'bounds' | 'offsetForTime'>;
  /** Say what would be, and write nothing. */
  readonly dryRun?: boolean;
  readonly onProblem?: OnProblem;
}

export type ResetOutcome = 'set' | 'unchanged' | 'owned' | 'wouldSet';

export interface Reset extends PartitionId {
  readonly before: bigint | null;
  /** What was asked for, and, unless `owned`, stands there now. */
  readonly after: bigint;
  readonly outcome: ResetOutcome;
}

/** How often a reset that met a commit is tried again. */
const triesMax = 5;

/** One after the other, each on its own: what was set stays set when a later one is refused. */
export async function resetOffsets(client: GroupClient, options: ResetOptions): Promise<Reset[]> {
  checkClient('resetOffsets', client);
  checkOptions('resetOffsets', options, resetTable);
  const results: Reset[] = [];
  for (const partition of options.partitions)
    results.push(await resetOne(client, partition, options));
  return results;
}

async function resetOne(
  client: GroupClient,
  { topic, partition }: PartitionId,
  options: ResetOptions,
): Promise<Reset> {
  const { group, onProblem = () => {} } = options;
  const id = { topic, partition };
  const path = layout08.offset.at({ group, ...id });
  const owner = layout08.owner.at({ group, ...id });
  let asked: { readonly before: bigint | null; readonly after: bigint } | undefined;
  for (let tries = 1; ; tries++) {
    const stored = await readStored(client, path, onProblem);
    const now = stored?.offset ?? null;
    // After a lost reply: it took place. A shift must not be done twice.
    if (asked !== undefined && now === asked.after) return { ...id, ...asked, outcome: 'set' };
    const before: bigint | null = asked?.before ?? now;
    const after: bigint = asked?.after ?? (await target(id, now, options));
    if (after === now) return { ...id, before, after, outcome: 'unchanged' };
    if (options.dryRun) return { ...id, before, after, outcome: 'wouldSet' };
    const version = stored?.version ?? (await client.exists(path))?.version;
    const write: MultiOp =
      version === undefined
        ? { op: 'create', path, data: String(after) }
        : { op: 'set', path, data: String(after), version };
    try {
      await client.multi([
        { op: 'create', path: owner, data: 'reset', mode: 'ephemeral' },
        write,
        { op: 'delete', path: owner },
      ]);
      return { ...id, before, after, outcome: 'set' };
    } catch (error) {
      if (!isZkError(error)) throw error;
      if (error instanceof MultiError && error.index === 0 && error.code === 'NODE_EXISTS') {
        return { ...id, before, after, outcome: 'owned' };
      }
      asked = error.outcomeUnknown ? { before, after } : undefined;
      const isWorthIt = error.outcomeUnknown || error instanceof MultiError;
      if (!isWorthIt || tries === triesMax) throw error;
      if (error.code === 'NO_NODE') {
        await ensurePath(client, layout08.owners.at({ group, topic }));
        await ensurePath(client, layout08.offsets.at({ group, topic }));
      }
    }
  }
}

async function target(
  id: PartitionId,
  before: bigint | null,
  { rule, source }: ResetOptions,
): Promise<bigint> {
  if ('toTimeMs' in rule) return needed(source, 'toTimeMs').offsetForTime(id, rule.toTimeMs);
  if ('to' in rule && typeof rule.to !== 'bigint') {
    return (await needed(source, rule.to).bounds(id))[rule.to];
  }
  if ('shiftBy' in rule && before === null) {
    const why = `${id.topic}/${id.partition} has no offset to shift; set one with { to }`;
    throw new ArgumentError('rule', why);
  }
  const wanted = 'to' in rule ? (rule.to as bigint) : before! + rule.shiftBy;
  if (source === undefined) return wanted < 0n ? 0n : wanted;
  const { earliest, latest } = await source.bounds(id);
  if (wanted < earliest) return earliest;
  if (wanted > latest) return latest;
  return wanted;
}

function needed(source: ResetOptions['source'], what: string) {
  if (source !== undefined) return source;
  throw new ArgumentError('source', `${what} can only be told by a source; give one, or an offset`);
}
