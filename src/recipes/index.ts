export { type Appointed, Appointment } from './appointment.ts';
export type { Assignment } from './assignment.ts';
export { AtomicLong, type AtomicLongOptions, type AtomicResult } from './atomic-long.ts';
export { type AttachedOptions, attachedSessions } from './attached-sessions.ts';
export { Barrier, type BarrierOptions } from './barrier.ts';
export { BarrierError, type BarrierErrorCode } from './barrier-error.ts';
export {
  Cache,
  type CacheOptions,
  CacheOverflowError,
  type CacheScope,
  type CacheState,
  type ChangesOptions,
} from './cache.ts';
export type { CacheChange, CachedNode } from './cache-ledger.ts';
export { Candidate, type CandidateOptions, type StandOptions } from './candidate.ts';
export type { UpdateOptions } from './cell.ts';
export {
  type ConfigOptions,
  type ConfigSnapshot,
  ConfigStore,
  type ConfigVersion,
  type UpdateOptions as ConfigUpdateOptions,
} from './config.ts';
export { ConfigError, type ConfigErrorCode } from './config-error.ts';
export { JsonError } from './config-json.ts';
export type { ConfigProblem } from './config-keys.ts';
export { type Schema, SchemaError, type StandardSchema } from './config-schema.ts';
export type { Contender } from './contenders.ts';
export { type Counted, Counter, type CounterOptions } from './counter.ts';
export { CounterError, type CounterErrorCode } from './counter-error.ts';
export type { TryOptions, WaitOptions } from './deadline.ts';
export { type DiscoveryOptions, ServiceDiscovery } from './discovery.ts';
export {
  type DiscoveryProblem,
  type ServiceAnswer,
  ServiceCache,
  type ServiceChange,
} from './discovery-cache.ts';
export {
  formatInstance,
  type InstanceInput,
  parseInstance,
  type ServiceInstance,
  type ServiceType,
  serviceInstance,
} from './discovery-instance.ts';
export {
  type InstanceFilter,
  type ProviderOptions,
  ServiceProvider,
} from './discovery-provider.ts';
export { Registration } from './discovery-registration.ts';
export { type DownPolicyOptions, type ProviderStrategy, strategies } from './discovery-strategy.ts';
export { buildUri, parseUriSpec, type UriPart, type UriSpec } from './discovery-uri-spec.ts';
export { DoubleBarrier, type DoubleBarrierOptions } from './double-barrier.ts';
export { type DubboOptions, type DubboRegistration, DubboRegistry } from './dubbo.ts';
export { DubboMonitor } from './dubbo-monitor.ts';
export type { DubboProblem, UrlChange } from './dubbo-service.ts';
export { type DubboNotice, DubboSubscription } from './dubbo-subscription.ts';
export {
  type DubboUrl,
  decodeDubbo,
  encodeDubbo,
  formatDubboUrl,
  isDubboMatch,
  parseDubboUrl,
} from './dubbo-url.ts';
export { Election, type ElectionLayout, type ElectionOptions } from './election.ts';
export {
  ElectionObserver,
  type ElectionObserverOptions,
  type Leader,
} from './election-observer.ts';
export {
  type Gathering,
  GatheringMember,
  type GatheringOptions,
  GatheringQueue,
  type JoinGatheringOptions,
} from './gathering-queue.ts';
export { Grant } from './grant.ts';
export { GrantSet } from './grant-set.ts';
export { GroupMember } from './group-member.ts';
export { HandOverError, Holding } from './holding.ts';
export { IdGenerator, type IdGeneratorOptions } from './id-generator.ts';
export { Lock, type LockOptions } from './lock.ts';
export { LockTimeoutError } from './lock-timeout-error.ts';
export { LockUpgradeError } from './lock-upgrade-error.ts';
export { Machine, type MachineOptions } from './machine.ts';
export type { MachineReason, MachineState } from './machine-judge.ts';
export {
  type MachineChange,
  MachineMonitor,
  type MachineMonitorOptions,
  type MachineView,
} from './machine-monitor.ts';
export {
  type AskOptions,
  askMaster,
  type MasterAnswer,
  MasterPage,
  MasterUnknownError,
} from './master-page.ts';
export {
  type JoinOptions,
  type Member,
  Membership,
  type MembershipChange,
  type MembershipOptions,
} from './membership.ts';
export { MultiLock } from './multi-lock.ts';
export { NodeTakenError } from './node-taken-error.ts';
export { NotHeldError, type NotHeldReason } from './not-held-error.ts';
export { type NotificationOptions, NotificationTopic, type SendOptions } from './notification.ts';
export { type Hearing, NotificationReceipt } from './notification-receipt.ts';
export {
  type Notification,
  Subscription,
  type SubscriptionOptions,
} from './notification-subscription.ts';
export { type Assign, spread } from './partition-plan.ts';
export { Partitioner, type PartitionerOptions } from './partitioner.ts';
export {
  type Birth,
  PersistentNode,
  type PersistentNodeOptions,
  type PersistentNodeState,
} from './persistent-node.ts';
export {
  type Armed,
  PersistentWatcher,
  type PersistentWatcherOptions,
} from './persistent-watcher.ts';
export { type PutOptions, Queue, type QueueOptions, type WorkOptions } from './queue.ts';
export { type DeadLetter, DeadLetters } from './queue-dead-letters.ts';
export { QueueError, type QueueErrorCode } from './queue-error.ts';
export { QueueItem, type RequeueOptions } from './queue-item.ts';
export type { QueueOrder } from './queue-names.ts';
export { SimpleQueue, type SimpleQueueOptions } from './queue-simple.ts';
export { type LockSide, ReadWriteLock, type SideOptions } from './read-write-lock.ts';
export { ReentrantLock, type ReentrantOptions } from './reentrant-lock.ts';
export type { SharedGrant } from './reentry.ts';
export { type LeaseOptions, Semaphore, type SemaphoreOptions } from './semaphore.ts';
export { SemaphoreMutex } from './semaphore-mutex.ts';
export {
  SharedCount,
  type SharedCountOptions,
  SharedValue,
  type SharedValueOptions,
  type Versioned,
} from './shared-value.ts';
export { StaticElection, type StaticElectionOptions } from './static-election.ts';
export { SteppedDownError, type SteppedDownReason } from './stepped-down-error.ts';
export { Term } from './term.ts';
