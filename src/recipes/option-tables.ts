/** The options that callers of this room hand in, and what each must be. */

import { type OptionTable, optionKinds } from '../support/index.ts';
import type { AtomicLongOptions } from './atomic-long.ts';
import type { AttachedOptions } from './attached-sessions.ts';
import type { BarrierOptions } from './barrier.ts';
import type { CacheOptions, ChangesOptions } from './cache.ts';
import type { StandOptions } from './candidate.ts';
import type { UpdateOptions } from './cell.ts';
import type { ConfigOptions, UpdateOptions as ConfigUpdateOptions } from './config.ts';
import type { CounterOptions } from './counter.ts';
import type { TryOptions, WaitOptions } from './deadline.ts';
import type { DiscoveryOptions } from './discovery.ts';
import type { ProviderOptions } from './discovery-provider.ts';
import type { DoubleBarrierOptions } from './double-barrier.ts';
import type { DubboOptions } from './dubbo.ts';
import type { ElectionOptions } from './election.ts';
import type { ElectionObserverOptions } from './election-observer.ts';
import type { GatheringOptions, JoinGatheringOptions } from './gathering-queue.ts';
import type { IdGeneratorOptions } from './id-generator.ts';
import type { LockOptions } from './lock.ts';
import type { MachineOptions } from './machine.ts';
import type { MachineMonitorOptions } from './machine-monitor.ts';
import type { AskOptions } from './master-page.ts';
import type { JoinOptions, MembershipOptions } from './membership.ts';
import type { NotificationOptions, SendOptions } from './notification.ts';
import type { SubscriptionOptions } from './notification-subscription.ts';
import type { PartitionerOptions } from './partitioner.ts';
import type { PersistentNodeOptions } from './persistent-node.ts';
import type { PersistentWatcherOptions } from './persistent-watcher.ts';
import type { PutOptions, QueueOptions, WorkOptions } from './queue.ts';
import type { DeadLettersOptions } from './queue-dead-letters.ts';
import type { RequeueOptions } from './queue-item.ts';
import type { SimpleQueueOptions } from './queue-simple.ts';
import type { ReentrantOptions } from './reentrant-lock.ts';
import type { LeaseOptions, SemaphoreOptions } from './semaphore.ts';
import type { SharedCountOptions, SharedValueOptions } from './shared-value.ts';
import type { StaticElectionOptions } from './static-election.ts';

const {
  anything,
  text,
  number,
  list,
  clock,
  signal,
  oneOf,
  callback,
  flag,
  object,
  either,
  data,
  bigint,
} = optionKinds;

export const appointTable = {
  by: text,
  reason: text,
};

export const atomicLongTable = {
  triesMax: number,
  lockPath: text,
  lockTimeoutMs: number,
  acl: list,
  clock,
} satisfies OptionTable<AtomicLongOptions>;

export const updateTable = {
  signal,
  triesMax: number,
} satisfies OptionTable<UpdateOptions>;

export const attachedTable = {
  timeoutMs: number,
} satisfies OptionTable<AttachedOptions>;

export const barrierTable = {
  acl: list,
  clock,
} satisfies OptionTable<BarrierOptions>;

export const waitTable = {
  signal,
  timeoutMs: number,
} satisfies OptionTable<WaitOptions>;

export const cacheTable = {
  scope: oneOf('node', 'children', 'subtree'),
  nodesMax: number,
  bytesMax: number,
  onChange: callback,
  onCurrent: callback,
  signal,
  clock,
} satisfies OptionTable<CacheOptions>;

export const changesTable = {
  initial: flag,
  bufferMax: number,
} satisfies OptionTable<ChangesOptions>;

export const standTable = {
  signal,
} satisfies OptionTable<StandOptions>;

export const configTable = {
  schemas: object,
  defaults: object,
  historyMax: number,
  file: text,
  fileAfterMs: number,
  onProblem: callback,
  clock,
} satisfies OptionTable<ConfigOptions<Record<string, unknown>>>;

/** Of everything that takes a signal alone. */
export const signalTable = { signal };

export const configUpdateTable = {
  triesMax: number,
  signal,
  timeoutMs: number,
} satisfies OptionTable<ConfigUpdateOptions>;

export const rollbackTable = { ...configUpdateTable, keys: list };

export const counterTable = {
  kind: oneOf('int', 'float'),
  initial: number,
  triesMax: number,
  acl: list,
  clock,
} satisfies OptionTable<CounterOptions>;

export const discoveryTable = {
  payload: either(callback, object),
  writeEnabled: flag,
  onProblem: callback,
  clock,
} satisfies OptionTable<DiscoveryOptions>;

export const providerTable = {
  strategy: object,
  filters: list,
  down: object,
} satisfies OptionTable<ProviderOptions>;

export const doubleBarrierTable = {
  name: text,
  data,
  acl: list,
  clock,
} satisfies OptionTable<DoubleBarrierOptions>;

export const dubboTable = {
  root: text,
  onProblem: callback,
  clock,
} satisfies OptionTable<DubboOptions>;

export const electionTable = {
  layout: oneOf('latch', 'selector'),
  id: text,
  acl: list,
  appointable: flag,
  graceMs: number,
  clock,
} satisfies OptionTable<ElectionOptions>;

export const electionObserverTable = {
  layout: oneOf('latch', 'selector', 'static'),
  clock,
} satisfies OptionTable<ElectionObserverOptions>;

export const gatheringTable = {
  size: number,
  acl: list,
  clock,
} satisfies OptionTable<GatheringOptions>;

export const joinGatheringTable = {
  data,
  signal,
  timeoutMs: number,
} satisfies OptionTable<JoinGatheringOptions>;

export const joinTable = {
  data,
  acl: list,
  whenTaken: oneOf('wait', 'replace', 'fail'),
  signal,
  clock,
} satisfies OptionTable<JoinOptions>;

export const idGeneratorTable = {
  blockSize: number,
  first: bigint,
  triesMax: number,
  acl: list,
} satisfies OptionTable<IdGeneratorOptions>;

export const lockTable = {
  data,
  acl: list,
  clock,
} satisfies OptionTable<LockOptions>;

export const tryTable = {
  signal,
} satisfies OptionTable<TryOptions>;

export const machineTable = {
  path: text,
  name: text,
  data,
  beatMs: number,
  clock,
} satisfies OptionTable<MachineOptions>;

export const machineMonitorTable = {
  path: text,
  expected: list,
  beatMs: number,
  attached: callback,
  probeMs: number,
  downMax: number,
  clock,
} satisfies OptionTable<MachineMonitorOptions>;

export const askTable = {
  signal,
  timeoutMs: number,
} satisfies OptionTable<AskOptions>;

export const membershipTable = {
  signal,
  bufferMax: number,
  membersMax: number,
  clock,
} satisfies OptionTable<MembershipOptions>;

export const notificationTable = {
  acl: list,
  keepMax: number,
  keepMs: number,
  clock,
} satisfies OptionTable<NotificationOptions>;

export const sendTable = {
  to: list,
  signal,
} satisfies OptionTable<SendOptions>;

export const subscriptionTable = {
  earlier: oneOf('unheard', 'none'),
  signal,
} satisfies OptionTable<SubscriptionOptions>;

export const partitionerTable = {
  shards: list,
  name: text,
  assign: callback,
  settleMs: number,
  settleMaxMs: number,
  handOverMs: number,
  acl: list,
  signal,
  clock,
} satisfies OptionTable<PartitionerOptions>;

export const persistentNodeTable = {
  mode: oneOf(
    'persistent',
    'ephemeral',
    'persistentSequential',
    'ephemeralSequential',
    'container',
    'persistentTtl',
    'persistentSequentialTtl',
  ),
  data,
  acl: list,
  ttlMs: number,
  whenTaken: oneOf('wait', 'replace', 'fail'),
  signal,
  clock,
} satisfies OptionTable<PersistentNodeOptions>;

export const persistentWatcherTable = {
  recursive: flag,
  onArmed: callback,
  onEnd: callback,
} satisfies OptionTable<PersistentWatcherOptions>;

export const queueTable = {
  order: oneOf('fifo', 'priority', 'delay'),
  layout: oneOf('buckets', 'curator'),
  triesMax: number,
  readAhead: number,
  bucketItemsMax: number,
  lockPath: text,
  deadPath: text,
  listBytesMax: number,
  acl: list,
  clock,
} satisfies OptionTable<QueueOptions>;

export const putTable = {
  priority: number,
  delayMs: number,
  dueMs: number,
  signal,
  timeoutMs: number,
} satisfies OptionTable<PutOptions>;

export const workTable = {
  signal,
  concurrency: number,
  onError: callback,
} satisfies OptionTable<WorkOptions>;

export const deadLettersTable = {
  acl: list,
  store: object,
  place: callback,
} satisfies OptionTable<DeadLettersOptions>;

export const requeueTable = {
  delayMs: number,
  priority: number,
} satisfies OptionTable<RequeueOptions>;

export const simpleQueueTable = {
  listBytesMax: number,
  acl: list,
  clock,
} satisfies OptionTable<SimpleQueueOptions>;

export const reentrantTable = {
  owner: anything,
  signal,
  timeoutMs: number,
} satisfies OptionTable<ReentrantOptions>;

export const tryReentrantTable = {
  signal,
  owner: anything,
};

export const tryLeaseTable = { signal, count: number };

export const semaphoreTable = {
  limit: either(number, object),
  data,
  acl: list,
  clock,
} satisfies OptionTable<SemaphoreOptions>;

export const leaseTable = {
  count: number,
  signal,
  timeoutMs: number,
} satisfies OptionTable<LeaseOptions>;

export const sharedCountTable = {
  seed: number,
  acl: list,
  triesMax: number,
} satisfies OptionTable<SharedCountOptions>;

export const sharedValueTable = {
  seed: data,
  triesMax: number,
  acl: list,
} satisfies OptionTable<SharedValueOptions>;

export const staticElectionTable = {
  standBackMs: number,
  id: text,
  acl: list,
  appointable: flag,
  graceMs: number,
  clock,
} satisfies OptionTable<StaticElectionOptions>;
