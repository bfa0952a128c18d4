/**
 * What the console shows, page by page, as it travels: JSON alone. See `api.ts` for how numbers are
 * written. Null is "unknown", and never 0 or -1 in its place; a list that was cut says so.
 */

export type Role = 'nobody' | 'viewer' | 'editor';

// ── the shell of the page ───────────────────────────────────────────────────────────────────────

/** GET /api/session. The only answer that needs no role. */
export interface SessionView {
  readonly role: Role;
  /** Nobody: the page asks for the token and posts it to /api/login. */
  readonly needsToken: boolean;
  /** Goes into the header `x-drover-token` of every POST. Null for nobody. */
  readonly csrf: string | null;
  readonly readOnly: boolean;
  /** Why, for the badge: `started without --write`. */
  readonly readOnlyReason: string | null;
  readonly version: string;
  /** `host:port,…/chroot` and what named it; no secrets. */
  readonly servers: string;
  readonly origin: string;
  /** Of the saved ones; null: where the console was started for. */
  readonly context: string | null;
  readonly link: LinkView | null;
  readonly features: Features;
}

/** A place by its name, as `drover context` keeps them. */
export interface ContextView {
  /** Null: where the console was started for, and no saved one. */
  readonly name: string | null;
  readonly servers: string;
  /** What named it: `context prod`, `--server`. */
  readonly origin: string;
  /** Nothing can be changed there from here. */
  readonly readOnly: boolean;
}

/** GET /api/contexts: the first is where the console was started for. */
export interface ContextsView {
  readonly contexts: readonly ContextView[];
  /** Why there are no others, if so. */
  readonly why: string | null;
}

/** What this console and this server can do; a page says so where they can't. */
export interface Features {
  /** Changes are told by a watch (ZooKeeper 3.6 and later); without, pages show a reload button. */
  readonly live: boolean;
  /** The znode's history: the data directory is ours. */
  readonly history: boolean;
  /** Sessions, metrics by op, expiry: the server runs in this process. */
  readonly ownServer: boolean;
  readonly shell: boolean;
  readonly demo: boolean;
  /** Other places may be looked at. */
  readonly contexts: boolean;
  readonly copy: boolean;
}

export interface LinkView {
  readonly state: 'connecting' | 'connected' | 'suspended' | 'expired' | 'authFailed' | 'closed';
  readonly server: string | null;
  readonly session: string | null;
  readonly sinceMs: number;
}

// ── Overview ────────────────────────────────────────────────────────────────────────────────────

export interface ServerView {
  readonly server: string;
  readonly error: string | null;
  readonly role: string | null;
  readonly version: string | null;
  readonly zxid: string | null;
  readonly behind: number | null;
  readonly connections: number | null;
  readonly watches: number | null;
  /** Watches told of an event so far; grows. */
  readonly fired: number | null;
  readonly nodes: number | null;
  readonly ephemerals: number | null;
  readonly dataBytes: number | null;
  readonly outstanding: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly fsyncP99Ms: number | null;
  readonly latencyAvgMs: number | null;
  readonly latencyMaxMs: number | null;
  readonly received: number | null;
  readonly sent: number | null;
  readonly openFiles: number | null;
  readonly openFilesMax: number | null;
  readonly answerMs: number;
  /** mntr is not on its whitelist: fewer columns are known. */
  readonly isBrief: boolean;
  /** When its last snapshot was taken; null where nobody tells (four-letter words do not). */
  readonly snapshotMs: number | null;
}

export interface FindingView {
  readonly severity: 'critical' | 'warning';
  readonly server: string | null;
  readonly what: string;
  readonly more: string;
}

export interface ChangeView {
  readonly type: 'created' | 'deleted' | 'dataChanged' | 'childrenChanged';
  readonly path: string;
  readonly zxid: string | null;
  readonly atMs: number;
}

/** GET /api/overview */
export interface OverviewView {
  readonly servers: readonly ServerView[];
  readonly findings: readonly FindingView[];
  readonly quorum: { readonly hasQuorum: boolean; readonly sentence: string };
  readonly changes: readonly ChangeView[];
  readonly rootChildren: number | null;
  /** Nothing but what ZooKeeper itself makes: the page offers the demo. */
  readonly isEmpty: boolean;
}

// ── Tree ────────────────────────────────────────────────────────────────────────────────────────

export type NodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

export interface StatView {
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly ctimeMs: number;
  readonly mtimeMs: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** The session that owns it; null for a node that stays. */
  readonly owner: string | null;
  readonly kind: NodeKind;
  readonly ttlMs: number | null;
  readonly dataLength: number;
  readonly numChildren: number;
}

export interface ChildRow {
  readonly name: string;
  readonly path: string;
  /** Null: it went while we looked, or we may not see it. */
  readonly stat: StatView | null;
}

/** GET /api/children?path&offset&limit&filter&sort&around */
export interface ChildrenView {
  readonly path: string;
  readonly stat: StatView;
  /** All children, and those that the filter lets through. */
  readonly total: number;
  readonly matching: number;
  readonly offset: number;
  readonly rows: readonly ChildRow[];
}

/** GET /api/paths?text, the likeliest first */
export interface PathsView {
  readonly paths: readonly string[];
}

/** GET /api/node/watches?path */
export interface NodeWatchesView {
  readonly path: string;
  /** Null where no server tells. */
  readonly sessions: readonly string[] | null;
  /** Of a server of our own alone: data, children, persistent, recursive. */
  readonly kinds: readonly string[] | null;
  readonly unknown: readonly string[];
}

export interface AclEntry {
  readonly scheme: string;
  /** The hash of a digest is left out: `user:…`. */
  readonly id: string;
  /** Of c d r w a. */
  readonly perms: string;
}

/** How data reads best; the page may show it in another way. */
export type Encoding = 'empty' | 'text' | 'json' | 'gzip' | 'base64' | 'binary';

/** GET /api/node?path */
export interface NodeView {
  readonly path: string;
  readonly stat: StatView;
  /** Base64; null is null, which is not the same as empty. */
  readonly data: string | null;
  readonly encoding: Encoding;
  /** Gzip, unpacked: base64, up to 1 MB; null for others, and where it is damaged or grows too large. */
  readonly unpacked: string | null;
  /** Null: we may not read it. */
  readonly acl: readonly AclEntry[] | null;
  /** What this path is, where a layout of Kafka's knows it. */
  readonly meaning: string | null;
}

export interface HistoryEntry {
  readonly zxid: string;
  readonly atMs: number;
  readonly session: string;
  readonly kind: string;
  readonly version: number | null;
  readonly before: string | null;
  readonly after: string | null;
}

/** GET /api/history?path, newest first */
export interface HistoryView {
  readonly path: string;
  /** Null where the logs are not ours to read; `why` says so. */
  readonly entries: readonly HistoryEntry[] | null;
  readonly why: string | null;
  readonly isCut: boolean;
}

/** GET /api/find?path&text&in */
export interface FindView {
  readonly matches: readonly { readonly path: string; readonly stat: StatView }[];
  readonly looked: number;
  /** There may be more: a limit was reached. */
  readonly isPartial: boolean;
}

/** GET /api/export?path: NDJSON would not be JSON; one object, up to 10,000 nodes. */
export interface ExportView {
  readonly path: string;
  readonly nodes: readonly {
    /** Below `path`: '' for itself. */
    readonly path: string;
    readonly data: string | null;
    readonly acl?: readonly AclEntry[];
  }[];
  readonly isCut: boolean;
  readonly skippedEphemerals: number;
}

// ── changes ─────────────────────────────────────────────────────────────────────────────────────

export interface DeletePreview {
  readonly paths: readonly string[];
  readonly count: number;
  readonly ephemerals: number;
  /** What has to be typed: the last name of the path, or for several the count. */
  readonly confirm: string;
  readonly sample: readonly string[];
  /** There are more than one delete may take. */
  readonly isTooMany: boolean;
}

export interface ChangedView {
  readonly path: string;
  readonly stat: StatView | null;
  /** Of the audit entry, for undo. */
  readonly audit: number;
}

/** POST /api/import, also with dryRun */
export interface ImportView {
  readonly created: number;
  readonly overwritten: number;
  readonly skipped: number;
  readonly same: number;
  readonly conflicts: readonly string[];
  readonly done: boolean;
}

export type CopyStep = 'create' | 'change' | 'acl' | 'skip' | 'ephemeral';
export type CopyCounts = Readonly<Record<CopyStep | 'same', number>>;

/** POST /api/copy/preview and /api/copy, of the context that is copied to */
export interface CopyView {
  readonly counts: CopyCounts;
  /** The first of what is not the same, by the path it has or would have. */
  readonly steps: readonly { readonly step: CopyStep; readonly path: string }[];
  /** What has to be typed, since something would be overwritten; null: nothing. */
  readonly confirm: string | null;
  /** More than one copy may take. */
  readonly isTooMany: boolean;
  readonly done: boolean;
}

export interface AuditState {
  readonly data: string | null;
  readonly version: number | null;
  readonly acl?: readonly AclEntry[];
}

export interface AuditEntry {
  readonly id: number;
  readonly atMs: number;
  /** Address and role: who the console knows nobody by name. */
  readonly who: string;
  readonly action:
    | 'create'
    | 'set'
    | 'acl'
    | 'delete'
    | 'import'
    | 'undo'
    | 'shell'
    | 'expire'
    | 'bench'
    | 'demo'
    | 'rule'
    | 'offsets'
    | 'elect'
    | 'copy';
  readonly path: string;
  readonly ok: boolean;
  /** What went wrong, or the line that was run. */
  readonly note: string | null;
  /** Nodes. */
  readonly count: number;
  readonly before: AuditState | null;
  readonly after: AuditState | null;
  readonly undo: 'possible' | 'done' | 'tooLarge' | 'no';
}

/** GET /api/audit?offset&limit&filter, newest first */
export interface AuditView {
  readonly entries: readonly AuditEntry[];
  readonly total: number;
}

// ── Sessions, Watches ───────────────────────────────────────────────────────────────────────────

export interface ClientRow {
  readonly session: string | null;
  readonly server: string;
  readonly address: string;
  readonly timeoutMs: number | null;
  readonly sinceMs: number | null;
  /** When it ends if nothing more is heard of it; only a server of our own, in this process, tells. */
  readonly expiresMs: number | null;
  readonly lastOp: string | null;
  readonly received: number | null;
  readonly sent: number | null;
  readonly queued: number | null;
  readonly latencyAvgMs: number | null;
  readonly latencyMaxMs: number | null;
  /** Null where no server tells (`dump` goes by the leader, and off the whitelist not at all). */
  readonly ephemerals: number | null;
  readonly watches: number | null;
  readonly isConsole: boolean;
}

/** GET /api/sessions?offset&limit&filter */
export interface SessionsView {
  readonly rows: readonly ClientRow[];
  readonly total: number;
  readonly matching: number;
  /** `host:port: cons is not in its 4lw.commands.whitelist`: what the servers can't tell. */
  readonly unknown: readonly string[];
  readonly canExpire: boolean;
}

/** GET /api/sessions/one?name=0x… */
export interface SessionDetail {
  readonly session: string;
  readonly client: ClientRow | null;
  readonly ephemerals: readonly string[] | null;
  readonly watches: readonly string[] | null;
}

/** GET /api/watches?offset&limit&filter: by path, most watched first */
export interface WatchesView {
  readonly total: number | null;
  readonly paths: number | null;
  readonly connections: number | null;
  readonly rows: readonly {
    readonly path: string;
    readonly sessions: readonly string[];
    readonly count: number;
    /** Of a server of our own alone; null where nobody tells. */
    readonly kinds: readonly string[] | null;
    readonly isHerd: boolean;
  }[];
  readonly matching: number;
  /** How many of each kind; of a server of our own alone. */
  readonly kinds: Readonly<Record<string, number>> | null;
  readonly bySession: readonly { readonly session: string; readonly count: number }[];
  /** More watchers than this on one node is marked. */
  readonly herdAt: number;
  readonly unknown: readonly string[];
}

// ── Recipes ─────────────────────────────────────────────────────────────────────────────────────

export type RecipeKind =
  | 'lock'
  | 'readWriteLock'
  | 'semaphore'
  | 'election'
  | 'queue'
  | 'barrier'
  | 'doubleBarrier'
  | 'discovery'
  | 'membership';

export interface ContenderView {
  readonly path: string;
  readonly name: string;
  readonly session: string | null;
  /** What its owner wrote there, as text, cut short. */
  readonly label: string;
  readonly ageMs: number;
  readonly fencingToken: string;
  /** Of a read/write lock. */
  readonly side: 'read' | 'write' | null;
  readonly state: 'holds' | 'waits' | 'stands';
}

export interface RecipeView {
  readonly kind: RecipeKind;
  readonly path: string;
  /** In order: those that hold first. At most 50. */
  readonly contenders: readonly ContenderView[];
  readonly holding: number;
  readonly waiting: number;
  /** Longest that somebody has waited. */
  readonly oldestWaitMs: number | null;
  /** Semaphore: leases. Queue: items. Discovery: instances. */
  readonly size: number | null;
  readonly note: string | null;
}

/** GET /api/recipes?path */
export interface RecipesView {
  readonly recipes: readonly RecipeView[];
  readonly looked: number;
  readonly isPartial: boolean;
  /** Sessions that wait for each other in a circle, each with the lock it holds and the one it waits for. */
  readonly deadlocks: readonly (readonly {
    readonly session: string;
    readonly holds: string;
    readonly waitsFor: string;
  }[])[];
}

// ── Kafka, Groups ───────────────────────────────────────────────────────────────────────────────

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

// ── Alignment ───────────────────────────────────────────────────────────────────────────────────

export interface AlignPartition {
  readonly key: string;
  readonly member: string | null;
  readonly state: 'reading' | 'paused' | 'idle' | 'finished' | 'stopped' | 'unowned';
  /** Event time. */
  readonly positionMs: number | null;
  readonly offset: string | null;
}

export interface AlignRule {
  readonly mode: 'period' | 'drift' | 'off';
  readonly stepMs: number;
  readonly lookAhead: number | null;
  readonly driftMs: number | null;
}

/** GET /api/alignment */
export interface AlignmentsView {
  readonly groups: readonly {
    readonly group: string;
    readonly limitMs: number | null;
    readonly members: number;
    readonly isFinished: boolean;
  }[];
}

/** GET /api/alignment/one?name */
export interface AlignmentView {
  readonly group: string;
  readonly rule: AlignRule | null;
  readonly limitMs: number | null;
  readonly epoch: string | null;
  readonly movedAtMs: number | null;
  readonly isFinished: boolean;
  readonly members: readonly {
    readonly id: string;
    readonly session: string;
    readonly records: number;
    readonly waitingShare: number;
    readonly isLeader: boolean;
  }[];
  readonly partitions: readonly AlignPartition[];
  /** The slowest that constrain, worst first. */
  readonly heldBackBy: readonly string[];
  /** Limit against wall clock, oldest first, as far as the console saw. */
  readonly progress: readonly {
    readonly atMs: number;
    readonly limitMs: number;
    readonly slowestMs: number | null;
  }[];
  /** Event time per wall time. */
  readonly speed: number | null;
  /** Records until the ends of the partitions, as decimal text; null where nobody tells the ends. */
  readonly left: string | null;
  /** Records a second, of all members together, over what was seen. */
  readonly ratePerS: number | null;
  /** Until all that is there now has been read; null unknown. */
  readonly etaMs: number | null;
  readonly cuts: readonly {
    readonly end: number;
    readonly start: number | null;
    readonly offsets: Readonly<Record<string, string>>;
  }[];
  readonly calledEnd: number | null;
  readonly problems: readonly { readonly path: string; readonly why: string }[];
}

// ── Metrics, Shell ──────────────────────────────────────────────────────────────────────────────

/** A look at everything at one time. Rates are per second since the point before. */
export interface MetricPoint {
  readonly atMs: number;
  /** By name; see `MetricsView.series`. Missing where nobody told. */
  readonly values: Readonly<Record<string, number>>;
}

export interface MetricSeries {
  readonly name: string;
  readonly label: string;
  readonly unit: 'ms' | 'perS' | 'bytes' | 'bytesPerS' | 'count';
  readonly panel:
    | 'opLatency'
    | 'opThroughput'
    | 'latency'
    | 'throughput'
    | 'bytes'
    | 'disk'
    | 'process'
    | 'watches'
    | 'sessions';
}

/** GET /api/metrics?ring=1m|15m|6h */
export interface MetricsView {
  readonly ring: '1m' | '15m' | '6h';
  readonly everyMs: number;
  readonly series: readonly MetricSeries[];
  readonly points: readonly MetricPoint[];
  /** Of our own server, by op, over what the ring holds; `maxMs` is since it started. */
  readonly ops:
    | readonly {
        readonly op: string;
        readonly count: number;
        readonly ratePerS: number | null;
        readonly p50Ms: number;
        readonly p90Ms: number;
        readonly p99Ms: number;
        readonly p999Ms: number;
        readonly maxMs: number;
      }[]
    | null;
  /** Where Prometheus may ask; null: nowhere, or nobody knows. */
  readonly prometheus: string | null;
  readonly unknown: readonly string[];
}

/** POST /api/bench */
export interface BenchView {
  readonly what: 'reads' | 'writes';
  readonly inFlight: number;
  readonly count: number;
  readonly atMs: number;
  readonly ratePerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** GET /api/commands */
export interface CommandView {
  readonly name: string;
  readonly usage: string;
  readonly about: string;
  readonly group: string;
  readonly writes: boolean;
  readonly options: readonly { readonly flags: string; readonly about: string }[];
}

/** POST /api/shell */
export interface ShellView {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly isCut: boolean;
}
