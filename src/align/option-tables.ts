/** The options that callers of this room hand in, and what each must be. */

import { type OptionTable, optionKinds } from '../support/index.ts';
import type { AlignOptions } from './align-options.ts';
import type { CompleteOptions, CoordinatorOptions } from './coordinator.ts';
import type { RewindOptions } from './rewind.ts';
import type { SeedCoordinatorOptions } from './seed-coordinator.ts';

const { flag, text, object, list, either, oneOf, callback, number, textOrNumber, signal, clock } =
  optionKinds;

export const alignTable = {
  group: text,
  source: object,
  topics: either(object, list),
  directory: object,
  mode: object,
  eventTime: either(oneOf('timestamp'), object, callback),
  outOfOrder: textOrNumber,
  idleAfter: textOrNumber,
  startFrom: oneOf('earliest', 'latest'),
  from: either(text, number, object),
  to: either(text, number, object),
  quarantine: oneOf('skip', 'stop', 'clamp', 'deliver'),
  futureTolerance: textOrNumber,
  maxAhead: either(text, number, flag),
  batchRecordsMax: number,
  onPeriod: callback,
  onPartitionPeriod: callback,
  onQuarantine: callback,
  failOpenFor: textOrNumber,
  layout: either(oneOf('seed', 'java'), object),
  root: text,
  consumerId: text,
  assignment: object,
  debounceMs: number,
  releaseTimeoutMs: number,
  doubtShare: number,
  signal,
  clock,
  random: callback,
  onStep: callback,
} satisfies OptionTable<AlignOptions>;

export const coordinatorTable = {
  group: text,
  partitions: list,
  mode: object,
  startMs: number,
  id: text,
  root: text,
  clock,
  random: callback,
  onStep: callback,
} satisfies OptionTable<CoordinatorOptions>;

export const completeTable = {
  nextMs: number,
  signal,
} satisfies OptionTable<CompleteOptions>;

export const seedCoordinatorTable = {
  layout: oneOf('seed', 'java'),
  root: text,
  topicPartitions: object,
  startMs: number,
  period: textOrNumber,
  knownMs: number,
  onLimit: callback,
  signal,
} satisfies OptionTable<SeedCoordinatorOptions>;

export const currentPeriodCompleteTable = {
  signal,
};

export const listAlignmentsTable = {
  root: text,
};

export const rewindTable = {
  root: text,
  toMs: number,
} satisfies OptionTable<RewindOptions>;

export const readAlignmentTable = {
  root: text,
};
