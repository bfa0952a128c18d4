/** What a lane is told, and what it tells. */

import type { KafkaRecord, OwnedPartition, PartitionReader } from '../kafka/index.ts';
import type { Clock } from '../support/index.ts';
import type { StartPoint } from './cuts.ts';
import type { QuarantineReason } from './event-time.ts';
import type { JudgeOptions } from './judge.ts';
import type { Lane } from './lane.ts';

export interface LaneOptions extends JudgeOptions {
  /** `at`: where it stood when its reader failed; else where storage says. */
  readonly open: (owned: OwnedPartition, signal: AbortSignal, at?: bigint) => Promise<Opened>;
  readonly stepMs: number;
  readonly idleAfterMs: number;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  readonly onPartitionPeriod?:
    | ((lane: Lane, period: PartitionPeriod) => void | Promise<void>)
    | undefined;
  readonly onQuarantined: (lane: Lane, record: KafkaRecord, reason: QuarantineReason) => void;
  /** The next record lies far ahead of the group, and too few are known behind it to tell why. */
  readonly onAhead: (lane: Lane, record: KafkaRecord, timeMs: number) => void;
  /** Something is different: what it can hand out, where it is, what state it is in. */
  readonly onChange: (lane: Lane) => void;
  /** Tried again, or stopped by it: then `stopped` is the state. */
  readonly onTrouble: (lane: Lane, error: unknown) => void;
  /** The caller's callback threw. */
  readonly onFailure: (error: unknown) => void;
}

export interface Opened {
  readonly reader: PartitionReader;
  /** Null: it was never read, and begins where the reader does. */
  readonly from: StartPoint | null;
}

export interface PartitionPeriod {
  readonly start: number;
  readonly end: number;
  readonly offset: bigint;
}

export interface Handed {
  readonly records: readonly KafkaRecord[];
  /** Event times, record by record; null where a record has none. */
  readonly timesMs: readonly (number | null)[];
  readonly nextOffset: bigint;
}
