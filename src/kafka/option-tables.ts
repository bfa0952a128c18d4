/** The options that callers of this room hand in, and what each must be. */

import { type OptionTable, optionKinds } from '../support/index.ts';
import type { BrokerOptions } from './broker.ts';
import type { RegisterOptions } from './broker-registration.ts';
import type { ConsumerOptions } from './consumer-options.ts';
import type { ControllerOptions } from './controller.ts';
import type { DescribeOptions } from './describe-group.ts';
import type { GroupMemberOptions } from './group-options.ts';
import type { NotifierOptions } from './isr.ts';
import type { ResetOptions } from './offset-reset.ts';
import type { OffsetStoreOptions } from './offsets.ts';
import type { ProducerPartitionsOptions } from './producer.ts';
import type { StickyOptions } from './producer-choice.ts';
import type { AssignmentOptions } from './replica-assignment.ts';
import type { CreateTopicOptions } from './topics.ts';

const { number, list, object, text, flag, either, callback, logger, clock, signal, bigint, oneOf } =
  optionKinds;

export const brokerTable = {
  id: number,
  endpoints: list,
  listenerProtocols: object,
  rack: text,
  jmxPort: number,
  version: number,
  service: object,
  controller: either(flag, object),
  waitMs: number,
  isrNotification: object,
  onProblem: callback,
  logger,
  clock,
  signal,
} satisfies OptionTable<BrokerOptions>;

export const registerTable = {
  version: number,
  previousSessionId: bigint,
  waitMs: number,
  signal,
  clock,
  onProblem: callback,
} satisfies OptionTable<RegisterOptions>;

export const groupMemberTable = {
  group: text,
  subscribe: object,
  consumerId: text,
  mode: oneOf('classic', 'planned'),
  assignor: oneOf('range', 'roundrobin', 'roundrobin-0.8', 'ceil', 'sticky'),
  generation: oneOf('0.7', '0.8'),
  topics: object,
  includeInternal: flag,
  debounceMs: number,
  releaseTimeoutMs: number,
  clock,
  random: callback,
} satisfies OptionTable<GroupMemberOptions>;

export const consumerTable = {
  ...groupMemberTable,
  source: object,
  startFrom: oneOf('earliest', 'latest', 'none'),
  autoCommitMs: either(number, flag),
  committer: object,
  doubtShare: number,
} satisfies OptionTable<ConsumerOptions>;

export const controllerTable = {
  brokerId: number,
  deleteTopics: flag,
  uncleanElection: flag,
  topicIds: flag,
  autoBalance: either(flag, object),
  beforeElection: callback,
  onProblem: callback,
  logger,
  clock,
} satisfies OptionTable<ControllerOptions>;

export const describeTable = {
  group: text,
  generation: oneOf('0.7', '0.8'),
  source: object,
} satisfies OptionTable<DescribeOptions>;

export const notifierTable = {
  quietMs: number,
  latestMs: number,
  clock,
  onError: callback,
} satisfies OptionTable<NotifierOptions>;

export const resetTable = {
  group: text,
  partitions: list,
  rule: object,
  source: object,
  dryRun: flag,
  onProblem: callback,
} satisfies OptionTable<ResetOptions>;

export const offsetStoreTable = {
  group: text,
  committer: object,
  onProblem: callback,
} satisfies OptionTable<OffsetStoreOptions>;

export const producerPartitionsTable = {
  layout: oneOf('0.7', '0.8', 'metaq'),
  onProblem: callback,
  clock,
} satisfies OptionTable<ProducerPartitionsOptions>;

export const createTopicTable = {
  partitions: number,
  replicationFactor: number,
  assignment: list,
  config: object,
  version: number,
  startIndex: number,
  random: callback,
  onProblem: callback,
} satisfies OptionTable<CreateTopicOptions>;

export const growTopicTable = {
  partitions: number,
  assignment: list,
};

export const stickyTable = {
  recordsMax: number,
  random: callback,
} satisfies OptionTable<StickyOptions>;

export const assignmentTable = {
  partitions: number,
  replicationFactor: number,
  startIndex: number,
  firstPartition: number,
  random: callback,
} satisfies OptionTable<AssignmentOptions>;
