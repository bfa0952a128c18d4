/** What a leader is told, and the steps of its term, by name. */

import type { Clock } from '../support/index.ts';
import type { AlignPaths } from './layout.ts';
import type { Period } from './period-calls.ts';
import type { Rule } from './rule.ts';

/** In the order in which they are taken. Faults are put between any two of them. */
export const leaderSteps = [
  'elected',
  'read',
  'claimed',
  'following',
  'moving',
  'moved',
  'calling',
  'called',
] as const;
export type LeaderStep = (typeof leaderSteps)[number];

export interface LeaderOptions {
  readonly paths: AlignPaths;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  /** The rule, where none is stored. */
  readonly rule: Rule;
  /** All partitions there are, by topic. */
  readonly topics: () => Promise<ReadonlyMap<string, readonly string[]>>;
  readonly onTopics: (heard: () => void) => () => void;
  /** No offsets are kept: whoever reads keeps its own. */
  readonly hasCuts: boolean;
  readonly onPeriod?: ((period: Period) => void | Promise<void>) | undefined;
  readonly onProblem: (path: string, error: unknown) => void;
  /** For tests: told, and waited for, at every step. */
  readonly onStep?: ((step: LeaderStep, epoch: bigint) => void | Promise<void>) | undefined;
}
