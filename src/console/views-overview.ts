/** The Overview page: the servers, what is wrong with them, and what changed last. How values are written: see `views.ts`. */

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
