/**
 * Kafka on ZooKeeper: layouts, brokers, controller, topics, producers, groups, readers.
 */

// Readers and groups
export {
  type Assignment,
  type Assignor,
  type AssignorInput,
  type AssignorName,
  assignors,
  fairShares,
  idleThreads,
  javaHash,
} from './assignors.ts';
export {
  Broker,
  type BrokerEvents,
  type BrokerOptions,
  type BrokerState,
  startBroker,
} from './broker.ts';
export {
  BrokerConflictError,
  generateBrokerId,
  type RegisterOptions,
  registerBroker,
} from './broker-registration.ts';
export type {
  FollowerRole,
  LeaderRole,
  ReplicaRole,
  ReplicaService,
  StoppedReplica,
} from './broker-roles.ts';
export { clusterId, prepareCluster } from './cluster.ts';
export { Consumer } from './consumer.ts';
export { NoOffset as NoOffsetError } from './consumer-flow.ts';
export { consumerIdOf } from './consumer-id.ts';
export type {
  ConsumerBatch,
  ConsumerEvents,
  ConsumerOptions,
  ConsumerStatus,
  PartitionStatus,
} from './consumer-options.ts';
export {
  type BalanceOptions,
  Controller,
  type ControllerEvents,
  type ControllerOptions,
  type ControllerState,
} from './controller.ts';
export { type ElectionStrategy, elect, type Situation } from './controller-election.ts';
export type { ElectionResult } from './controller-partitions.ts';
export { ControllerMovedError } from './controller-store.ts';
export {
  type DescribeOptions,
  describeGroup,
  type GroupInfo,
  type GroupMemberInfo,
  type GroupPartitionInfo,
  listGroups,
} from './describe-group.ts';
export { connected, dropWatch, ensurePath, type GroupClient, isOver } from './group-client.ts';
export { GroupMember } from './group-member.ts';
export type { GroupMemberHooks, GroupMemberOptions } from './group-options.ts';
export { planLayout } from './group-plan-nodes.ts';
export type { GroupMemberStatus, MemberState } from './group-status.ts';
export { GuardedReader, type GuardOptions } from './guarded-reader.ts';
export { FencedError, IsrNotifier, type NotifierOptions } from './isr.ts';
export {
  type Content,
  desanitise,
  LayoutError,
  type LayoutProblem,
  type NodeKind,
  type OnProblem,
  type Row,
  rowOf,
  sanitise,
} from './layout.ts';
export { layout07 } from './layout-07.ts';
export { basePaths, layout08 } from './layout-08.ts';
export {
  type ControllerRegistration,
  type ProducerIdBlock,
  partitionKey,
  type Reassignment,
  type TopicPartition,
} from './layout-admin.ts';
export {
  type BrokerRegistration,
  type Endpoint,
  formatEndpoint,
  parseEndpoint,
} from './layout-broker.ts';
export {
  type BrokerPartition,
  type ConsumerRegistration,
  formatBrokerPartition,
  formatOwner,
  type MetaqOffset,
  type Owner,
  ownerOf,
  parseBrokerPartition,
  type SubscriptionPattern,
} from './layout-consumer.ts';
export { type DeletionOrder, type Leaving, layoutDrover } from './layout-drover.ts';
export { PartitionSum, toCount } from './layout-fields.ts';
export {
  layoutMetaq,
  type MetaqAddress,
  type MetaqTopicShare,
  metaqBrokerOf,
} from './layout-metaq.ts';
export {
  noLeader,
  type PartitionState,
  type ReplicaSet,
  steady,
  type TopicAssignment,
} from './layout-topic.ts';
export { type Reset, type ResetOptions, type ResetRule, resetOffsets } from './offset-reset.ts';
export {
  type CommitRequest,
  type Committed,
  type OffsetCommitter,
  type OffsetEntry,
  OffsetStore,
} from './offsets.ts';
export { NotOwnerError, type NotOwnerReason, type OwnedPartition } from './owned-partition.ts';
export { keyOf, type PartitionId, partitionNumber, partitionOf } from './partition.ts';
export {
  faultsOf,
  type PartitionFault,
  type PartitionStanding,
  standingOf,
} from './partition-standing.ts';
export {
  type ProducerLayout,
  ProducerPartitions,
  type ProducerPartitionsEvents,
  type ProducerPartitionsOptions,
} from './producer.ts';
export {
  byBrokerAndPartition,
  chooseByKey,
  murmur2,
  type ProducerPartition,
  RoundRobin,
  Sticky,
  type StickyOptions,
} from './producer-choice.ts';
export {
  isReaderError,
  type KafkaRecord,
  type OffsetBounds,
  type PartitionReader,
  ReaderError,
  type ReaderErrorCode,
  type RecordBatch,
  type RecordSource,
  type StartOffset,
} from './reader.ts';
export {
  type KafkaJsOffsetsOptions,
  type OffsetSource,
  openKafkaJsOffsets,
} from './readers/kafkajs-offsets.ts';
export { boundedSource, type OpenedTopics, openKafkaJsSource } from './readers/kafkajs-open.ts';
export { type NdjsonOptions, NdjsonSource } from './readers/ndjson.ts';
export { type AssignmentOptions, assignReplicas, type BrokerPlace } from './replica-assignment.ts';
export { internalTopics, type SubscriptionInput } from './subscription.ts';
export { timeLagMs } from './time-lag.ts';
export {
  fixedTopics,
  type Generation,
  type TopicDirectory,
  ZooKeeperTopics,
} from './topic-directory.ts';
export { collides, newTopicId, topicNameFault } from './topic-names.ts';
export {
  type BrokerSeen,
  type ControllerSeen,
  type CreateTopicOptions,
  checkRequestsAreRead,
  createTopic,
  deleteTopic,
  electPreferred,
  growTopic,
  isLedByKraft,
  type PartitionSeen,
  type ReadOptions,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  reassignPartitions,
  TopicError,
  type TopicSeen,
} from './topics.ts';
