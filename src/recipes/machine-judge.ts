/**
 * Up, suspect or down: what a monitor may say of a machine, from what it knows.
 *
 * Pure; times are handed in, all of the monitor's own clock. A machine's node says that its session is
 * not over. That is less than alive: a machine that died a moment ago keeps its node for a session
 * timeout. The signs of trouble that come earlier make it suspect, never down: only the end of the
 * session does that.
 */

export type MachineState = 'up' | 'suspect' | 'down';

export const machineReasons = {
  present: 'its session lives, and nothing speaks against it',
  gone: 'its session is over, or it has left',
  neverSeen: 'it is expected, and has not come yet',
  cutOff: 'the monitor has no link of its own, and knows nothing newer',
  linkLost: 'its session lives, but no server has a link to it',
  noBeat: 'its session lives, but it has not written its sign of life in time',
} as const;

export type MachineReason = keyof typeof machineReasons;

export interface MachineFacts {
  readonly isPresent: boolean;
  readonly wasEverSeen: boolean;
  /** When it last wrote, or was first seen; undefined when it is not to be judged by that. */
  readonly beatAtMs: number | undefined;
  /** How often in a row no server had a link to its session. */
  readonly unattachedTimes: number;
}

export interface Circumstances {
  readonly nowMs: number;
  /** Whether the monitor's own view is watched and complete. */
  readonly isCurrent: boolean;
  /** Without a beat for longer than this it is suspect. */
  readonly beatWithinMs: number | undefined;
}

/** A session that moves to another server has no link for a moment: one look is not enough. */
const unattachedEnough = 2;

export function judge(
  facts: MachineFacts,
  { nowMs, isCurrent, beatWithinMs }: Circumstances,
): { readonly state: MachineState; readonly reason: MachineReason } {
  if (!facts.isPresent) {
    return { state: 'down', reason: facts.wasEverSeen ? 'gone' : 'neverSeen' };
  }
  if (!isCurrent) return { state: 'suspect', reason: 'cutOff' };
  if (facts.unattachedTimes >= unattachedEnough) return { state: 'suspect', reason: 'linkLost' };
  const { beatAtMs } = facts;
  const isLate =
    beatWithinMs !== undefined && beatAtMs !== undefined && nowMs - beatAtMs > beatWithinMs;
  return isLate ? { state: 'suspect', reason: 'noBeat' } : { state: 'up', reason: 'present' };
}
