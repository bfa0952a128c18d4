/**
 * Changes to what is more than one node: how an aligned group's limit moves, and where a group's offsets
 * stand. Both are the library's own ways to do it; here they are shown first, written down, and, for a
 * rule, can be taken back.
 */

import { alignPaths, listAlignments, parseRule, type RuleInput, setRule } from '../align/index.ts';
import type { Client } from '../client/index.ts';
import { describeGroup, type ResetRule, resetOffsets } from '../kafka/index.ts';
import type { AuditLog, Noted } from './audit.ts';
import { type By, wayBack } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import type { Ends } from './sources.ts';
import { orNull } from './tree.ts';
import type { AlignRule, ChangedView, ResetView } from './views.ts';

const partitionsMax = 10_000;

export class Controls {
  readonly #client: Client;
  readonly #audit: AuditLog;
  readonly #ends: () => Ends | undefined;

  constructor(client: Client, audit: AuditLog, ends: (() => Ends | undefined) | undefined) {
    this.#client = client;
    this.#audit = audit;
    this.#ends = ends ?? (() => undefined);
  }

  async setRule(
    { name, rule }: { name: string; rule: RuleInput },
    { who, call }: By,
  ): Promise<ChangedView> {
    if (!(await listAlignments(this.#client)).includes(name)) {
      throw new ConsoleError('NOT_FOUND', 'there is no such group');
    }
    const { config: path } = alignPaths(name);
    const before = await this.#client.get(path, call).catch(orNull);
    await setRule(this.#client, name, rule);
    const after = await this.#client.get(path, call);
    const undo =
      before === null
        ? undefined
        : wayBack(path, before.stat.dataLength, async () => {
            parseRule(before.data, path); // what made no sense is not put back
            await this.#client.set(path, before.data, { version: after.stat.version });
          });
    const state = (node: typeof after) => ({
      data: node.data?.toString('base64') ?? null,
      version: node.stat.version,
    });
    const entry = this.#audit.add(
      {
        ...{ action: 'rule', path, who, ok: true, note: name, count: 1 },
        before: before && state(before),
        after: state(after),
        undo: undo === undefined ? 'no' : 'possible',
      } satisfies Noted,
      undo,
    );
    return { path, stat: null, audit: entry.id };
  }

  /** Only what no member owns: each partition says what became of it. */
  async reset(
    {
      name,
      topic,
      partitions,
      rule,
      dryRun,
    }: {
      name: string;
      topic?: string | undefined;
      partitions?: readonly string[] | undefined;
      rule: ResetRule;
      dryRun: boolean;
    },
    { who }: By,
  ): Promise<ResetView> {
    const { partitions: all } = await describeGroup(this.#client, { group: name });
    const wanted = all
      .filter((one) => topic === undefined || one.topic === topic)
      .filter((one) => partitions === undefined || partitions.includes(one.partition))
      .map(({ topic: of, partition }) => ({ topic: of, partition }));
    if (wanted.length === 0) throw new ConsoleError('NOT_FOUND', 'no such partition has an offset');
    if (wanted.length > partitionsMax) {
      throw new ConsoleError('TOO_LARGE', `at most ${partitionsMax} partitions at once`);
    }
    const source = this.#ends();
    if (source === undefined && !('shiftBy' in rule) && typeof rulesTo(rule) !== 'bigint') {
      throw new ConsoleError(
        'UNSUPPORTED',
        'no broker can be asked for the ends of partitions; set a number, or shift',
      );
    }
    const resets = await resetOffsets(this.#client, {
      group: name,
      partitions: wanted,
      rule,
      dryRun,
      ...(source && { source }),
    });
    const count = resets.filter(({ outcome }) => outcome === 'set').length;
    if (!dryRun) {
      const path = `/consumers/${name}/offsets`;
      const nothing = { before: null, after: null, undo: 'no' } as const;
      this.#audit.add({ action: 'offsets', path, who, ok: true, note: name, count, ...nothing });
    }
    return {
      resets: resets.map(({ topic: of, partition, before, after, outcome }) => ({
        topic: of,
        partition,
        before: before === null ? null : String(before),
        after: String(after),
        outcome,
      })),
      done: !dryRun,
    };
  }
}

function rulesTo(rule: ResetRule): unknown {
  return 'to' in rule ? rule.to : undefined;
}

export function ruleInput({ mode, stepMs, lookAhead, driftMs }: AlignRule): RuleInput {
  if (mode === 'period') return { period: stepMs, lookAhead: lookAhead ?? 0 };
  if (mode === 'drift') return { drift: driftMs ?? stepMs, step: stepMs };
  return { off: true, step: stepMs };
}

export function resetRule({
  to,
  shiftBy,
  toTimeMs,
}: {
  to?: string | undefined;
  shiftBy?: string | undefined;
  toTimeMs?: number | undefined;
}): ResetRule {
  if ([to, shiftBy, toTimeMs].filter((one) => one !== undefined).length !== 1) {
    throw new ConsoleError('BAD_INPUT', 'exactly one of to, shiftBy and toTimeMs is wanted');
  }
  if (shiftBy !== undefined) return { shiftBy: BigInt(shiftBy) };
  if (toTimeMs !== undefined) return { toTimeMs };
  return { to: to === 'earliest' || to === 'latest' ? to : BigInt(to ?? 0) };
}
