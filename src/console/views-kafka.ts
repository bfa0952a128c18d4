/** The Kafka and Groups pages. How values are written: see `views.ts`. */

export interface BrokerRow {
  readonly id: number;
  readonly endpoints: readonly string[];
  readonly rack: string | null;
  readonly session: string;
  readonly epoch: string;
  readonly sinceMs: number | null;
  readonly leaders: number;
  readonly preferred: number;
  readonly replicas: number;
  readonly isController: boolean;
}

/** GET /api/kafka */
export interface KafkaView {
  /** None: there is no Kafka here, or one that keeps its metadata to itself (KRaft). */
  readonly found: 'none' | '0.7' | 'zookeeper';
  /** On its way to KRaft: ZooKeeper holds a copy, or what was. */
  readonly isMigrating: boolean;
  readonly clusterId: string | null;
  readonly controller: {
    readonly brokerId: number | null;
    readonly epoch: number | null;
    readonly sinceMs: number | null;
  };
  readonly controllerHistory: readonly {
    readonly brokerId: number | null;
    readonly epoch: number | null;
    readonly atMs: number;
  }[];
  readonly brokers: readonly BrokerRow[];
  /** Brokers that own replicas and do not live. */
  readonly missing: readonly number[];
  readonly topics: number;
  readonly partitions: number;
  readonly underReplicated: number;
  readonly offline: number;
  readonly notPreferred: number;
  readonly reassigning: number;
  readonly problems: readonly { readonly path: string; readonly why: string }[];
  /** Topics that were not looked at: counts are of the others. */
  readonly skippedTopics: number;
}

export interface TopicRow {
  readonly topic: string;
  readonly partitions: number;
  readonly replication: number;
  readonly underReplicated: number;
  readonly offline: number;
  readonly notPreferred: number;
  readonly reassigning: number;
  readonly isBeingDeleted: boolean;
  readonly groups: readonly {
    readonly group: string;
    /** Of this topic; decimal text, null where it is not known. */
    readonly lag: string | null;
  }[];
}

/** GET /api/kafka/topics?offset&limit&filter&only */
export interface TopicsView {
  readonly rows: readonly TopicRow[];
  readonly total: number;
  readonly matching: number;
}

export interface PartitionRow {
  readonly partition: number;
  readonly leader: number | null;
  readonly leaderEpoch: number | null;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
  readonly adding: readonly number[];
  readonly removing: readonly number[];
  readonly faults: readonly (
    | 'no state'
    | 'no leader'
    | 'out of sync'
    | 'not preferred'
    | 'moving'
  )[];
  /** Changes of leader and ISR that were seen since the console runs. */
  readonly changes: number;
}

/** How a partition stood from a time on. */
export interface IsrState {
  readonly atMs: number;
  readonly leader: number | null;
  readonly leaderEpoch: number;
  readonly isr: readonly number[];
  /** Changes between this and the one before that nobody saw. */
  readonly missed: number;
}

/** GET /api/kafka/timeline?name&partition: oldest first */
export interface TimelineView {
  readonly topic: string;
  readonly partition: number;
  readonly replicas: readonly number[];
  readonly states: readonly IsrState[];
  /** Of the transaction logs, or of what the console saw while it ran. */
  readonly from: 'logs' | 'seen';
  readonly nowMs: number;
}

/** POST /api/kafka/elect, also with dryRun */
export interface ElectView {
  /** Partitions that another than the preferred replica leads. */
  readonly candidates: readonly {
    readonly partition: number;
    readonly leader: number | null;
    readonly preferred: number;
    /** Null: it can be elected. */
    readonly whyNot: string | null;
  }[];
  readonly confirm: string;
  readonly done: boolean;
}

export type ConfigKind = 'broker' | 'topic' | 'user' | 'client' | 'ip';

/** Settings that were changed while the cluster runs; those of its files are not in ZooKeeper. */
export interface ConfigRow {
  readonly kind: ConfigKind;
  /** `<default>`: of all that have none of their own. */
  readonly name: string;
  readonly path: string;
  readonly values: readonly {
    readonly name: string;
    /** Null: a secret, which is not read out. */
    readonly value: string | null;
  }[];
  readonly changedMs: number;
}

/** GET /api/kafka/configs?offset&limit&filter */
export interface ConfigsView {
  readonly rows: readonly ConfigRow[];
  readonly total: number;
  readonly matching: number;
  /** Nodes that were not looked at. */
  readonly skipped: number;
  readonly problems: readonly { readonly path: string; readonly why: string }[];
}

export interface MoveRow {
  readonly topic: string;
  readonly partition: number;
  /** Null: there is no such partition. */
  readonly from: readonly number[] | null;
  readonly to: readonly number[];
  readonly adding: readonly number[];
  readonly removing: readonly number[];
  /** Of those it goes to. */
  readonly inSync: number | null;
  /** `asked`: it stands in /admin/reassign_partitions, and the topic is as it was. */
  readonly state: 'asked' | 'moving';
}

/** GET /api/kafka/moves */
export interface MovesView {
  readonly rows: readonly MoveRow[];
  readonly total: number;
  /** When /admin/reassign_partitions was written, if it is there. */
  readonly askedAtMs: number | null;
  /** Partitions for which the preferred leader was asked, and the controller has not answered. */
  readonly electing: readonly { readonly topic: string; readonly partition: number }[];
  readonly problems: readonly { readonly path: string; readonly why: string }[];
}

/** GET /api/kafka/topic?name */
export interface TopicView {
  readonly topic: string;
  readonly topicId: string | null;
  readonly config: Readonly<Record<string, string>>;
  readonly isBeingDeleted: boolean;
  readonly partitions: readonly PartitionRow[];
  readonly problems: readonly { readonly path: string; readonly why: string }[];
}

/** Judged over what was seen: OK, or what is wrong. `unknown` until there is enough to judge by. */
export type GroupState = 'ok' | 'late' | 'stalled' | 'stopped' | 'empty' | 'unknown';

export interface GroupRow {
  readonly group: string;
  readonly state: GroupState;
  readonly members: number;
  readonly idle: number;
  readonly topics: number;
  readonly partitions: number;
  readonly owned: number;
  /** Sum over partitions, decimal text; null where no broker could be asked. */
  readonly lag: string | null;
  readonly committedMs: number | null;
  /** Committed records per second over the window; null until seen twice. */
  readonly ratePerS: number | null;
  /** How old the oldest record is that waits; null where it is not known. */
  readonly behindMs: number | null;
  /** Until caught up; null unknown or never: see `outlook`. */
  readonly etaMs: number | null;
  /** Whether it will have read everything, if it goes on as in the window that was seen. */
  readonly outlook: 'caughtUp' | 'recovers' | 'never' | 'unknown';
  /** The sum of committed offsets at times: for a sparkline. */
  readonly trend: readonly {
    readonly atMs: number;
    readonly offset: number;
    readonly lag: number | null;
  }[];
  readonly problems: number;
}

/** GET /api/groups?offset&limit&filter */
export interface GroupsView {
  readonly rows: readonly GroupRow[];
  readonly total: number;
  readonly matching: number;
  /** Why lag is unknown, if it is. */
  readonly lagUnknown: string | null;
}

export interface GroupPartitionRow {
  readonly topic: string;
  readonly partition: string;
  readonly owner: string | null;
  readonly consumer: string | null;
  readonly ownedSinceMs: number | null;
  readonly offset: string | null;
  readonly latest: string | null;
  readonly lag: string | null;
  /** How old the next record to read is; null where it is not known. */
  readonly behindMs: number | null;
  /** What was committed is not there any more, or not yet. */
  readonly isOutOfRange: boolean;
  readonly committedMs: number | null;
}

/** GET /api/groups/one?name */
export interface GroupView {
  readonly group: string;
  readonly row: GroupRow;
  readonly members: readonly {
    readonly id: string;
    readonly session: string;
    readonly sinceMs: number;
    readonly topics: readonly string[];
    readonly owns: number;
  }[];
  readonly partitions: readonly GroupPartitionRow[];
  /** Why lag is unknown, of all or of some, if it is. */
  readonly lagUnknown: string | null;
  readonly problems: readonly { readonly path: string; readonly why: string }[];
  /** Owners that changed, as far as the console saw, newest first. */
  readonly rebalances: readonly {
    readonly atMs: number;
    readonly moved: number;
    readonly members: number;
  }[];
}

/** POST /api/groups/reset, also with dryRun */
export interface ResetView {
  readonly resets: readonly {
    readonly topic: string;
    readonly partition: string;
    readonly before: string | null;
    /** Null: nothing is committed. */
    readonly after: string | null;
    /** `owned`: a member reads it now, and it was left alone; stop the group first. */
    readonly outcome: 'set' | 'deleted' | 'unchanged' | 'owned' | 'wouldSet' | 'wouldDelete';
  }[];
  readonly done: boolean;
}
