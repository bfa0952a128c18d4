/** What the page itself is told: who may do what, where it looks, what can be done there, and how the link is. How values are written: see `views.ts`. */

export type Role = 'nobody' | 'viewer' | 'editor';

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
  /** A stream of events that goes on from here misses nothing that later answers lack. Null for nobody. */
  readonly lastEventId: string | null;
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
  /** Sessions, metrics by op, expiry: the console belongs to a server of ours. */
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
