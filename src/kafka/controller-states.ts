/**
 * The states of partitions and replicas in the controller's mind, and what may follow what.
 *
 *   partition   nonExistent → new → online ⇄ offline → nonExistent
 *   replica     nonExistent → new → online ⇄ offline → deletionStarted → deletionSuccessful → nonExistent
 *                                              ⇅               ↓
 *                                        deletionIneligible ←──┘
 *
 * None of this is in ZooKeeper: a new controller works it out from what is.
 */

export type PartitionPhase = 'nonExistent' | 'new' | 'online' | 'offline';

/** From where a partition may come into each state. */
export const partitionFrom: Readonly<Record<PartitionPhase, readonly PartitionPhase[]>> = {
  new: ['nonExistent'],
  online: ['new', 'online', 'offline'],
  offline: ['new', 'online', 'offline'],
  nonExistent: ['offline'],
};

export type ReplicaPhase =
  | 'nonExistent'
  | 'new'
  | 'online'
  | 'offline'
  | 'deletionStarted'
  | 'deletionSuccessful'
  | 'deletionIneligible';

/** From where a replica may come into each state. */
export const replicaFrom: Readonly<Record<ReplicaPhase, readonly ReplicaPhase[]>> = {
  new: ['nonExistent'],
  online: ['new', 'online', 'offline', 'deletionIneligible'],
  offline: ['new', 'online', 'offline', 'deletionIneligible'],
  deletionStarted: ['offline'],
  deletionSuccessful: ['deletionStarted'],
  deletionIneligible: ['offline', 'deletionStarted'],
  nonExistent: ['deletionSuccessful'],
};
