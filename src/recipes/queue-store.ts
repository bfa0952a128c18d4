/** What a queue needs of the nodes it stands on: two layouts give it, `buckets` and `curator`. */

import type { MultiOp } from '../client/index.ts';
import type { Watching } from './bounded-wait.ts';

/** An item that waits, as the lists show it. */
export interface Waiting {
  /** Stays the same however often it is taken and returned. */
  readonly id: string;
  readonly path: string;
  /** The node whose owner has the item. */
  readonly claimPath: string;
  /** Takes that its node's version does not count, since they were of a node before this one. */
  readonly tries: number;
  readonly key: string;
  readonly dueMs: number;
}

/** An item that is to be put. */
export interface Entry {
  readonly id: string;
  readonly tries: number;
  /** As it stands in the node. */
  readonly data: Buffer | null;
  readonly key: string;
  readonly dueMs: number;
}

export interface Found {
  /** Those that may be taken now, first to last. */
  readonly ready: Waiting[];
  /** When the next one may be, if one waits for its time. */
  readonly nextDueMs: number | null;
}

/** Does all ops in one multi. Null: they were done, and the reply was lost. */
export type Commit = (ops: MultiOp[]) => Promise<readonly unknown[] | null>;

export interface QueueStore {
  /** The node that waiting takers stand in line under. Null: each waits by itself. */
  readonly takersPath: string | null;
  /** The node that receipts of producers stand under. */
  readonly receiptsPath: string;
  /** Makes what is missing; refuses what is another kind of queue. */
  ensure(): Promise<void>;
  /**
   * How many of these entries of one key, from the first on, may be put in one go as things are; 1 at
   * least. Others put at the same time, and see the same room. Rejects where there is no room.
   */
  fitting(entries: readonly Entry[]): Promise<number>;
  /** Puts entries of one key, in their order. `commit` may add ops of its own, behind these. */
  place(entries: readonly Entry[], commit: Commit): Promise<string[]>;
  /** Which of these ids is there, taken or not. To ask after an unknown outcome. */
  has(ids: ReadonlySet<string>): Promise<boolean>;
  /** At least `wanted` of the items that may be taken, if there are as many. */
  scan(wanted: number, nowMs: number, watching?: Watching): Promise<Found>;
  count(): Promise<{ readonly waiting: number; readonly claimed: number }>;
  encode(data: Buffer | null): Buffer | null;
  /** What was put, one or several. Null: the bytes are none of this layout's. */
  decode(data: Buffer | null): readonly (Buffer | null)[] | null;
}
