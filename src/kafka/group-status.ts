/** What a member can say of itself: what it has, what it waits for, since when and why. */

import type { Waiting } from './holdings.ts';
import type { OwnedPartition } from './owned-partition.ts';
import type { SeenProblem } from './problem-list.ts';

export type MemberState =
  /** Registering, or waiting for a session. */
  | { readonly name: 'joining' }
  /** Claiming or letting go, or waiting for another to. */
  | { readonly name: 'rebalancing'; readonly reason: string }
  /** Everything that is due is held. */
  | { readonly name: 'settled' }
  /** The session is over for good. */
  | { readonly name: 'failed'; readonly error: unknown }
  | { readonly name: 'closed' };

export interface GroupMemberStatus {
  readonly id: string;
  readonly group: string;
  readonly state: MemberState;
  readonly mode: 'classic' | 'planned';
  readonly sessionId: bigint | undefined;
  readonly owned: readonly OwnedPartition[];
  readonly releasing: readonly OwnedPartition[];
  /** Due to us, and held by another: who, since when, and since when we wait. */
  readonly blocked: readonly Waiting[];
  /** With `sticky` in classic mode: how many are due to us that nobody has let go of yet. */
  readonly short: number;
  /** Another has our id: in another session, or, with our own session here, on the same client. */
  readonly idBlocked: { readonly session: bigint; readonly sinceMs: number } | null;
  /** Threads of ours that have nothing to read. */
  readonly idleThreads: readonly string[];
  /** Set while this member plans for the group. */
  readonly planEpoch: number | null;
  readonly rebalances: number;
  readonly lastReason: string;
  /** The last 20, oldest first. */
  readonly problems: readonly SeenProblem[];
  readonly atMs: number;
}
