/**
 * Where a group's offsets stand, set or taken away by hand: shown first, done only once the group's name
 * was typed, written down with what was there before, and possible to take back.
 *
 * Only what no member owns: the owner's node is made and taken away in the very transaction that writes,
 * which fails if there is one. Undo is one transaction for all of them, and refuses once anybody has
 * committed since or owns one of the partitions.
 */

import { type Client, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import {
  describeGroup,
  layout08,
  type PartitionId,
  type ResetRule,
  resetOffsets,
} from '../kafka/index.ts';
import type { AuditLog, Undo } from './audit.ts';
import { type By, wayBack } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import type { Ends } from './sources.ts';
import type { ResetView } from './views.ts';

const partitionsMax = 10_000;
/** Three ops for each have to fit into one transaction. */
const undoPartitionsMax = 1_000;

type Row = ResetView['resets'][number];

export interface ResetInput {
  readonly name: string;
  readonly topic?: string | undefined;
  readonly partitions?: readonly string[] | undefined;
  /** What to do with each offset; `delete`: nothing was ever committed. */
  readonly rule: ResetRule | 'delete';
  readonly dryRun: boolean;
  /** The group's name, typed; not for a dry run. */
  readonly confirm?: string | undefined;
}

export class GroupControls {
  readonly #client: Client;
  readonly #audit: AuditLog;
  readonly #ends: () => Ends | undefined;

  constructor(client: Client, audit: AuditLog, ends: (() => Ends | undefined) | undefined) {
    this.#client = client;
    this.#audit = audit;
    this.#ends = ends ?? (() => undefined);
  }

  async reset(input: ResetInput, { who }: By): Promise<ResetView> {
    const { name, rule, dryRun, confirm } = input;
    const wanted = await this.#wanted(input);
    const source = this.#ends();
    if (source === undefined && needsEnds(rule)) {
      throw new ConsoleError(
        'UNSUPPORTED',
        'no broker can be asked for the ends of partitions; set a number, or shift',
      );
    }
    if (!dryRun && confirm !== name) {
      throw new ConsoleError('CONFLICT', `type ${name} to change its offsets`);
    }
    const rows: Row[] = [];
    try {
      for (const one of wanted) {
        const row =
          rule === 'delete'
            ? await this.#delete(name, one, dryRun)
            : await this.#set(name, one, rule, dryRun, source);
        rows.push(dryRun && one.isOwned ? { ...row, outcome: 'owned' } : row);
      }
    } catch (error) {
      // What was changed before it failed stays, and can be taken back.
      if (!dryRun) this.#note(name, rows, who, error);
      throw error;
    }
    if (!dryRun) this.#note(name, rows, who);
    return { resets: rows, done: !dryRun };
  }

  async #wanted({ name, topic, partitions }: ResetInput) {
    if (name.includes('/')) throw new ConsoleError('BAD_INPUT', 'name: a group is wanted');
    const { partitions: all } = await describeGroup(this.#client, { group: name });
    const wanted = all
      .filter((one) => topic === undefined || one.topic === topic)
      .filter((one) => partitions === undefined || partitions.includes(one.partition))
      .map(({ topic: of, partition, owner, offset }) => ({
        ...{ topic: of, partition, offset, isOwned: owner !== null },
      }));
    if (wanted.length === 0) throw new ConsoleError('NOT_FOUND', 'no such partition has an offset');
    if (wanted.length > partitionsMax) {
      throw new ConsoleError('TOO_LARGE', `at most ${partitionsMax} partitions at once`);
    }
    return wanted;
  }

  async #set(
    group: string,
    { topic, partition }: PartitionId,
    rule: ResetRule,
    dryRun: boolean,
    source: Ends | undefined,
  ): Promise<Row> {
    const partitions = [{ topic, partition }];
    const options = { group, partitions, rule, dryRun, ...(source && { source }) };
    const [reset] = await resetOffsets(this.#client, options);
    const { before, after, outcome } = reset!;
    return {
      topic,
      partition,
      before: before === null ? null : String(before),
      after: String(after),
      outcome,
    };
  }

  async #delete(
    group: string,
    { topic, partition, offset }: PartitionId & { readonly offset: bigint | null },
    dryRun: boolean,
  ): Promise<Row> {
    const row = {
      ...{ topic, partition, after: null },
      before: offset === null ? null : String(offset),
    };
    if (offset === null) return { ...row, outcome: 'unchanged' };
    if (dryRun) return { ...row, outcome: 'wouldDelete' };
    return { ...row, outcome: await this.#deleteOne(group, { topic, partition }) };
  }

  async #deleteOne(group: string, id: PartitionId): Promise<Row['outcome']> {
    const path = layout08.offset.at({ group, ...id });
    await this.#ensureOwners(group, id.topic);
    const stat = await this.#client.exists(path);
    if (stat === null) return 'unchanged';
    const op: MultiOp = { op: 'delete', path, version: stat.version };
    try {
      await this.#client.multi(unowned(group, id, op));
      return 'deleted';
    } catch (error) {
      const isOwned = error instanceof MultiError && error.index === 0;
      if (isOwned && error.code === 'NODE_EXISTS') return 'owned';
      throw error;
    }
  }

  /** The check for an owner needs the folder of owners. */
  async #ensureOwners(group: string, topic: string): Promise<void> {
    const path = layout08.owners.at({ group, topic });
    await this.#client.create(path, '', { parents: true }).catch((error: unknown) => {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    });
  }

  #note(group: string, resets: readonly Row[], who: string, failure?: unknown): void {
    const done = resets.filter(({ outcome }) => outcome === 'set' || outcome === 'deleted');
    const undo = this.#undoOf(group, done);
    const text = (pick: (row: Row) => string | null) => {
      const lines = done.map((row) => `${keyOf(row)} ${pick(row) ?? 'nothing committed'}`);
      return Buffer.from(lines.join('\n')).subarray(0, 16_384).toString('base64');
    };
    const path = `/consumers/${group}/offsets`;
    const why = failure instanceof Error ? failure.message : String(failure);
    const end =
      failure === undefined ? { ok: true, note: group } : { ok: false, note: `${group}: ${why}` };
    this.#audit.add(
      {
        ...{ action: 'offsets', path, who, ...end },
        count: done.length,
        before: done.length === 0 ? null : { data: text(({ before }) => before), version: null },
        after: done.length === 0 ? null : { data: text(({ after }) => after), version: null },
        undo: undo ? 'possible' : done.length === 0 ? 'no' : 'tooLarge',
      },
      undo,
    );
  }

  #undoOf(group: string, done: readonly Row[]): Undo | undefined {
    if (done.length === 0 || done.length > undoPartitionsMax) return undefined;
    const bytes = done.length * 100;
    return wayBack(`/consumers/${group}/offsets`, bytes, () => this.#takeBack(group, done));
  }

  async #takeBack(group: string, done: readonly Row[]): Promise<void> {
    const ops: MultiOp[] = [];
    for (const row of done) {
      const id = { topic: row.topic, partition: row.partition };
      const path = layout08.offset.at({ group, ...id });
      const now = await this.#client.get(path).catch((error: unknown) => {
        if (isZkError(error, 'NO_NODE')) return null;
        throw error;
      });
      const text = now === null ? null : (now.data?.toString('utf8').trim() ?? '');
      if (text !== row.after) {
        const why = `${keyOf(row)} is at ${text ?? 'nothing'} by now, and not at ${row.after ?? 'nothing'}`;
        throw new ConsoleError('CONFLICT', `${why}: somebody has committed since`);
      }
      ops.push(...unowned(group, id, backTo(path, row.before, now?.stat.version)));
    }
    try {
      await this.#client.multi(ops);
    } catch (error) {
      if (!(error instanceof MultiError) || error.code !== 'NODE_EXISTS') throw error;
      throw new ConsoleError('CONFLICT', 'a member reads one of them by now; stop the group first');
    }
  }
}

function backTo(path: string, before: string | null, version: number | undefined): MultiOp {
  if (version === undefined) return { op: 'create', path, data: before ?? '' };
  if (before === null) return { op: 'delete', path, version };
  return { op: 'set', path, data: before, version };
}

/** Fails, at the first of its ops, if somebody owns the partition. */
function unowned(group: string, id: PartitionId, op: MultiOp): MultiOp[] {
  const owner = layout08.owner.at({ group, ...id });
  return [
    { op: 'create', path: owner, data: 'reset', mode: 'ephemeral' },
    op,
    { op: 'delete', path: owner },
  ];
}

function keyOf({ topic, partition }: PartitionId): string {
  return `${topic}/${partition}`;
}

function needsEnds(rule: ResetRule | 'delete'): boolean {
  if (rule === 'delete' || 'shiftBy' in rule) return false;
  return !('to' in rule) || typeof rule.to !== 'bigint';
}

/** Exactly one way of saying where to. */
export function resetRule({
  to,
  shiftBy,
  toTimeMs,
  delete: isDelete,
}: {
  readonly to?: string | undefined;
  readonly shiftBy?: string | undefined;
  readonly toTimeMs?: number | undefined;
  readonly delete?: true | undefined;
}): ResetRule | 'delete' {
  if ([to, shiftBy, toTimeMs, isDelete].filter((one) => one !== undefined).length !== 1) {
    const why = 'exactly one of to, shiftBy, toTimeMs and delete is wanted';
    throw new ConsoleError('BAD_INPUT', why);
  }
  if (isDelete) return 'delete';
  if (shiftBy !== undefined) return { shiftBy: BigInt(shiftBy) };
  if (toTimeMs !== undefined) return { toTimeMs };
  return { to: to === 'earliest' || to === 'latest' ? to : BigInt(to ?? 0) };
}
