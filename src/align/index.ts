/**
 * Event-time alignment: many consumers, one clock.
 */

export type { AlignOptions, SharedLimit } from './align-options.ts';
export type { AlignEvents, AlignedBatch, AlignStatus, LaneStatus } from './aligned.ts';
export { Aligner, align } from './aligner.ts';
export {
  continueAlignment,
  pauseAlignment,
  type RootOption,
  type RuleChange,
  setRule,
  stepAlignment,
} from './change-rule.ts';
export {
  type CompleteOptions,
  Coordinator,
  type CoordinatorEvents,
  type CoordinatorOptions,
  type PeriodCoordinator,
} from './coordinator.ts';
export { type Duration, durationMs, formatDuration } from './duration.ts';
export { type EventTime, eventTimeOf, type QuarantineReason } from './event-time.ts';
export {
  type Cut,
  type Decision,
  GroupClock,
  type PartitionReport,
  type PartitionState,
} from './group-clock.ts';
export { javaLayout, javaRoot } from './java-layout.ts';
export { QuarantineError, type QuarantinePolicy } from './judge.ts';
export type { PartitionPeriod } from './lane-options.ts';
export {
  type AlignPaths,
  alignPaths,
  alignRoot,
  type CutPointer,
  formatRule,
  type Handover,
  parseCalled,
  parseCut,
  parseHandover,
  parseLimit,
  parseMember,
  parsePlan,
  parseRule,
  type StoredCut,
  type StoredLimit,
  type StoredMember,
} from './layout.ts';
export { type LeaderStep, leaderSteps } from './leader-options.ts';
export { PartitionClock, type Pass } from './partition-clock.ts';
export type { Period } from './period-calls.ts';
export { type RewindOptions, type Rewound, rewindAlignment } from './rewind.ts';
export {
  boundaryAfter,
  boundaryAt,
  isPaused,
  limitFor,
  type Pace,
  type Rule,
  type RuleInput,
  ruleOf,
} from './rule.ts';
export { SeedCoordinator, type SeedCoordinatorOptions } from './seed-coordinator.ts';
export {
  formatProgress,
  formatTopicPartitions,
  parseProgress,
  parseTopicPartitions,
  type SeedLayout,
  seedLayout,
} from './seed-layout.ts';
export { readSeedAlignment, type SeedSnapshot } from './seed-snapshot.ts';
export {
  type AlignSnapshot,
  listAlignments,
  readAlignment,
  type SeenMember,
  type SeenPartition,
} from './snapshot.ts';
export { type DoubtedRecord, TimeDoubts, type TimeDoubtsOptions } from './time-doubts.ts';
