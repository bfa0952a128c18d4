/** What a leader is told, and the steps of its term, by name. */

import type { Clock } from '../support/index.ts';
import type { AlignPaths } from './layout.ts';
import type { Topics } from './limit-store.ts';
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
  readonly topics: () => Promise<Topics>;
  readonly onTopics: (heard: () => void) => () => void;
  /** No offsets are kept: whoever reads keeps its own. */
  readonly hasCuts: boolean;
  readonly onPeriod?: ((period: Period) => void | Promise<void>) | undefined;
  readonly onProblem: (path: string, error: unknown) => void;
  /** A limit that the group has from outside, in place of its own. */
  readonly openOuter?: ((input: OuterInput) => Promise<OuterLimit>) | undefined;
  /** For tests: told, and waited for, at every step. */
  readonly onStep?: ((step: LeaderStep, epoch: bigint) => void | Promise<void>) | undefined;
}

export interface OuterInput {
  /** All partitions of the group. */
  readonly topics: Topics;
  readonly stepMs: number;
  /** How far the group has been let go before. */
  readonly knownMs: number | null;
  /** Ends with the term. */
  readonly signal: AbortSignal;
  readonly onMoved: () => void;
  readonly onProblem: (error: unknown) => void;
  readonly onFailure: (error: unknown) => void;
}

/** A limit that is moved by others too, once everybody has reached it. */
export interface OuterLimit {
  readonly limitMs: number;
  /** Others read partitions of their own, and will not tell when they are at their end. */
  readonly hasOthers: boolean;
  /** These partitions have nothing left before the limit. */
  report(keys: readonly string[]): void;
  setPeriod(stepMs: number): void;
  close(): Promise<void>;
}
