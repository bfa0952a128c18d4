/** The Tree page: nodes, their children, their history, and what was found among them. How values are written: see `views.ts`. */

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
