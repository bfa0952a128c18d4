/** The Sessions and Watches pages. How values are written: see `views.ts`. */

export interface ClientRow {
  readonly session: string | null;
  readonly server: string;
  readonly address: string;
  readonly timeoutMs: number | null;
  readonly sinceMs: number | null;
  /** When it ends if nothing more is heard of it; only the console of `drover serve` knows. */
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
