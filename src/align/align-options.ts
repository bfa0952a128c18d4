/** What an aligned reader can be told. */

import { ArgumentError } from '../client/index.ts';
import type {
  AssignorName,
  GroupMemberOptions,
  KafkaRecord,
  PartitionId,
  RecordSource,
  TopicDirectory,
} from '../kafka/index.ts';
import type { Clock } from '../support/index.ts';
import { type Duration, durationMs } from './duration.ts';
import { type EventTime, eventTimeOf, type QuarantineReason, type ReadTime } from './event-time.ts';
import type { QuarantinePolicy } from './judge.ts';
import type { PartitionPeriod } from './lane-options.ts';
import type { LeaderStep } from './leader-options.ts';
import type { Period } from './period-calls.ts';
import { type Rule, type RuleInput, ruleOf } from './rule.ts';
import { wholeSeconds } from './seed-layout.ts';

export interface AlignOptions {
  /** All who share the partitions have the same. */
  readonly group: string;
  readonly source: RecordSource;
  /** How many partitions each topic has; or names, whose partitions Kafka has written to ZooKeeper. */
  readonly topics: Readonly<Record<string, number>> | readonly string[];
  /** Where partitions are known from, in place of either. */
  readonly directory?: TopicDirectory;
  /** How the limit moves, where the group has no rule yet. What is stored counts for more. */
  readonly mode: RuleInput;
  /** When a record's event happened. The record's own timestamp. */
  readonly eventTime?: EventTime;
  /** How much earlier than one before it a record of a partition may be. None. */
  readonly outOfOrder?: Duration;
  /** How long a partition with nothing to read holds the others back. 30 s. */
  readonly idleAfter?: Duration;
  /** Where a partition begins that was never read. `earliest`. */
  readonly startFrom?: 'earliest' | 'latest';
  /** Records of before are left out; a partition never read begins there. */
  readonly from?: number | string | Date;
  /** Records of then and after are left out, and each partition ends there. */
  readonly to?: number | string | Date;
  /**
   * What becomes of a record whose event time cannot be believed. With `skip` it is left out: that is
   * counted in `status().quarantined`, and the process warns of it unless something listens to
   * `quarantined`, or `onQuarantine` is given.
   *
   * @default 'skip'
   */
  readonly quarantine?: QuarantinePolicy;
  /** How far in the future a record may be. 5 minutes. */
  readonly futureTolerance?: Duration;
  /**
   * How far beyond the limit a record may lie before it is doubted. One wrong time would otherwise carry
   * the limit away for good, once the other partitions have nothing to read. A record that the next ones
   * of its partition contradict is treated as `quarantine` says; while too few of them are known it waits,
   * holds back nobody, and is told by the event `ahead`. `false`: any time up to the present is believed.
   *
   * @default '7d'
   */
  readonly maxAhead?: Duration | false;
  /** Records in one batch, at most. 500. */
  readonly batchRecordsMax?: number;
  /** On one member, once everybody has done everything before the end of the period. */
  readonly onPeriod?: (period: Period) => void | Promise<void>;
  /** On the member that has the partition, once it is done with the period: before `onPeriod`. */
  readonly onPartitionPeriod?: (
    partition: PartitionId,
    period: PartitionPeriod,
  ) => void | Promise<void>;
  readonly onQuarantine?: (
    partition: PartitionId,
    record: KafkaRecord,
    reason: QuarantineReason,
  ) => void;
  /** Without a link to ZooKeeper, go on past the limit for so long, while the session lasts. Never. */
  readonly failOpenFor?: Duration;
  /** Shares its limit with who knows the document's nodes alone, or those of the Java program. */
  readonly layout?: 'seed' | 'java' | SharedLimit;
  /** The node that groups stand under. `/align`. */
  readonly root?: string;
  readonly consumerId?: string;
  readonly assignment?: {
    readonly mode?: GroupMemberOptions['mode'];
    readonly assignor?: AssignorName;
  };
  readonly debounceMs?: number;
  /** How long a batch may be in hand once its partition is asked for elsewhere. 10 s. */
  readonly releaseTimeoutMs?: number;
  /** Which share of the session timeout may pass unanswered before nothing is handed out. 2/3. */
  readonly doubtShare?: number;
  /** Closes it. */
  readonly signal?: AbortSignal;
  /** For tests: time, chance, and where a leader is. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly onStep?: (step: LeaderStep, epoch: bigint) => void | Promise<void>;
}

/** A limit that moves only when everybody has reached it, also those who read by other means. */
export interface SharedLimit {
  readonly kind: 'seed' | 'java';
  /** `/kafka-consumer-coordinator` unless said. */
  readonly root?: string;
  /** Where the first period begins, the same everywhere. `from` unless said. */
  readonly startMs?: number;
  /** Partitions that others read, by topic. None. */
  readonly others?: Readonly<Record<string, readonly (number | string)[]>>;
}

export interface AlignSettings {
  readonly shared: (SharedLimit & { readonly startMs: number }) | null;
  readonly rule: Rule;
  readonly readTime: ReadTime;
  readonly allowanceMs: number;
  readonly idleAfterMs: number;
  readonly futureToleranceMs: number;
  readonly maxAheadMs: number;
  readonly failOpenMs: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly quarantine: QuarantinePolicy;
  readonly batchRecordsMax: number;
  readonly doubtShare: number;
  readonly topicNames: readonly string[];
}

const policies: readonly QuarantinePolicy[] = ['skip', 'stop', 'clamp', 'deliver'];

/** Refuses what makes no sense, and says which and why. */
export function settingsOf(options: AlignOptions): AlignSettings {
  const { batchRecordsMax = 500, doubtShare = 2 / 3, quarantine = 'skip', topics } = options;
  checkGroup(options.group);
  if (!Number.isInteger(batchRecordsMax) || batchRecordsMax < 1) {
    throw new ArgumentError('batchRecordsMax', `1 or more is wanted, not ${batchRecordsMax}`);
  }
  if (!(doubtShare > 0 && doubtShare <= 1)) {
    throw new ArgumentError('doubtShare', `more than 0 and up to 1 is wanted, not ${doubtShare}`);
  }
  if (!policies.includes(quarantine)) {
    const wanted = `one of ${policies.join(', ')} is wanted`;
    throw new ArgumentError('quarantine', `${wanted}, not ${quarantine}`);
  }
  const topicNames = Array.isArray(topics) ? [...topics] : Object.keys(topics ?? {});
  if (topicNames.length === 0) throw new ArgumentError('topics', 'at least one is wanted');
  const fromMs = momentMs('from', options.from);
  const toMs = momentMs('to', options.to);
  if (fromMs !== null && toMs !== null && toMs <= fromMs) {
    throw new ArgumentError('to', 'is not after from');
  }
  const rule = ruleOf(options.mode);
  return {
    shared: sharedOf(options.layout, rule, fromMs),
    rule,
    readTime: eventTimeOf(options.eventTime ?? 'timestamp'),
    allowanceMs: durationMs('outOfOrder', options.outOfOrder ?? 0, 0),
    idleAfterMs: durationMs('idleAfter', options.idleAfter ?? 30_000),
    futureToleranceMs: durationMs('futureTolerance', options.futureTolerance ?? '5m', 0),
    maxAheadMs:
      options.maxAhead === false
        ? Number.POSITIVE_INFINITY
        : durationMs('maxAhead', options.maxAhead ?? '7d'),
    failOpenMs: durationMs('failOpenFor', options.failOpenFor ?? 0, 0),
    fromMs,
    toMs,
    quarantine,
    batchRecordsMax,
    doubtShare,
    topicNames: topicNames as string[],
  };
}

function sharedOf(
  layout: AlignOptions['layout'],
  rule: Rule,
  fromMs: number | null,
): AlignSettings['shared'] {
  if (layout === undefined) return null;
  const shared = typeof layout === 'string' ? { kind: layout } : layout;
  if (shared.kind !== 'seed' && shared.kind !== 'java') {
    throw new ArgumentError('layout', `seed or java is wanted, not ${String(shared.kind)}`);
  }
  if (rule.mode !== 'period' || rule.lookAhead > 0) {
    throw new ArgumentError('mode', 'a period without look-ahead is wanted: layout has no other');
  }
  const startMs = shared.startMs ?? fromMs;
  if (startMs === null) {
    const why = 'startMs, or from, is wanted: its periods are gone through one by one from there';
    throw new ArgumentError('layout', why);
  }
  wholeSeconds('startMs', startMs);
  wholeSeconds('period', rule.stepMs);
  return { ...shared, startMs };
}

/** It becomes the name of a node, here and in Kafka's own layout. */
export function checkGroup(group: string): void {
  if (typeof group === 'string' && /^[a-zA-Z0-9._-]+$/.test(group) && !/^\.+$/.test(group)) return;
  const wanted = 'letters, digits, dots, underscores and dashes are wanted';
  throw new ArgumentError('group', `${wanted}, not ${String(group)}`);
}

function momentMs(argument: string, input: number | string | Date | undefined): number | null {
  if (input === undefined) return null;
  const ms = new Date(input).getTime();
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new ArgumentError(argument, `milliseconds since 1970, or a date, is wanted, not ${input}`);
}
