/** What a member of a group can be told, and what it tells. */

import { ArgumentError } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { type Assignor, type AssignorName, assignors } from './assignors.ts';
import type { MemberState } from './group-status.ts';
import type { LayoutProblem } from './layout.ts';
import type { OwnedPartition } from './owned-partition.ts';
import type { SubscriptionInput } from './subscription.ts';
import type { Generation, TopicDirectory } from './topic-directory.ts';

export interface GroupMemberOptions {
  readonly group: string;
  readonly subscribe: SubscriptionInput;
  /** A name that stays over restarts; made up by Kafka's rule unless said. */
  readonly consumerId?: string;
  /** `classic`. All members of a group must have the same. */
  readonly mode?: 'classic' | 'planned';
  /** `range` in classic mode, `sticky` in planned mode. All members must have the same. */
  readonly assignor?: AssignorName;
  /** `0.8`, which stands for 0.8 to 3.9. */
  readonly generation?: Generation;
  /** Where partitions are known from: ZooKeeper's /brokers/topics unless said. */
  readonly topics?: TopicDirectory;
  /** Filters match Kafka's own topics too. */
  readonly includeInternal?: boolean;
  /** Changes that come within this time are taken as one. 200 ms. */
  readonly debounceMs?: number;
  /** How long the work on a partition may go on once it is asked for elsewhere. 10 s. */
  readonly releaseTimeoutMs?: number;
  /** For tests: time and chance. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface GroupMemberHooks {
  readonly assigned: (owned: OwnedPartition) => void;
  /** Finish and commit; the partition goes when this resolves, or when its time is over. */
  readonly releasing: (owned: OwnedPartition) => Promise<void>;
  readonly changed?: (status: MemberState) => void;
  /** Garbage in a node, or an error that is being worked on. */
  readonly problem?: (problem: LayoutProblem) => void;
  /** It is over, and not by `close`. */
  readonly failed?: (error: unknown) => void;
}

export interface AssignorChoice {
  readonly mode: 'classic' | 'planned';
  readonly assignor: Assignor;
  /** Members take shares, and need not agree on who has what. */
  readonly isShared: boolean;
}

export function choiceOf(options: GroupMemberOptions): AssignorChoice {
  const { mode = 'classic' } = options;
  if (mode !== 'classic' && mode !== 'planned') {
    throw new ArgumentError('mode', `classic or planned is wanted, not ${mode}`);
  }
  const name = options.assignor ?? (mode === 'planned' ? 'sticky' : 'range');
  if (!Object.hasOwn(assignors, name)) {
    const known = Object.keys(assignors).join(', ');
    throw new ArgumentError('assignor', `one of ${known} is wanted, not ${name}`);
  }
  for (const key of ['debounceMs', 'releaseTimeoutMs'] as const) {
    const value = options[key];
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw new ArgumentError(key, `milliseconds are wanted, not ${value}`);
  }
  return {
    mode,
    assignor: assignors[name],
    isShared: name === 'sticky' && mode === 'classic',
  };
}
