/**
 * What a broker's service is told, and what it is handed.
 *
 * A role lasts until its `signal` aborts: when another role of the same partition begins, when the
 * replica is stopped, and in the very moment in which the broker's session is, or may be, over. From
 * then on the service must neither acknowledge nor serve anything for it.
 */

import type { BrokerRegistration } from './layout-broker.ts';

export interface ReplicaRole {
  readonly topic: string;
  /** Another id under the same name is another topic: what is stored of the old one is not of this. */
  readonly topicId: string | null;
  readonly partition: number;
  /** As of now: those that have moved away go while the role lasts. */
  readonly replicas: readonly number[];
  /** Goes up with every election. Requests of a lower one are from the past, and to be refused. */
  readonly leaderEpoch: number;
  readonly controllerEpoch: number;
  /** The czxid of the registration under which this role was given. */
  readonly brokerEpoch: bigint;
  /** Looks at the clock whenever it is asked, so it is right in a process that was stopped and goes on. */
  readonly signal: AbortSignal;
}

export interface LeaderRole extends ReplicaRole {
  readonly kind: 'leader';
  /** In sync as of now, in no order that means anything. */
  readonly isr: readonly number[];
  /** It was elected from outside the ISR: records are lost. Its first `changeIsr` ends that. */
  readonly isRecovering: boolean;
  /**
   * Shrinks or grows the ISR. Rejects with a `FencedError` when somebody newer has decided: the role
   * is then over, or about to be. A record is safe once every member of the ISR has it.
   */
  changeIsr(isr: readonly number[]): Promise<void>;
}

export interface FollowerRole extends ReplicaRole {
  readonly kind: 'follower';
  /** -1: nobody leads it now. */
  readonly leader: number;
  /** Where the leader is, as it says itself. */
  readonly leaderBroker: BrokerRegistration | null;
}

export interface StoppedReplica {
  readonly topic: string;
  readonly topicId: string | null;
  readonly partition: number;
  /** Its records are to be deleted: the topic is, or the replica has moved elsewhere. */
  readonly isDeleted: boolean;
}

/** What somebody who builds on this has to write. Each call is awaited before the next of a partition. */
export interface ReplicaService {
  becomeLeader(role: LeaderRole): Promise<void> | void;
  becomeFollower(role: FollowerRole): Promise<void> | void;
  stopReplica(replica: StoppedReplica): Promise<void> | void;
}
