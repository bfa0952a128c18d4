/** The Alignment page. How values are written: see `views.ts`. */

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
    /** By hand: the limit has come to where people hold it. */
    readonly isPaused: boolean;
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
  /** Event time beyond which people let nobody go; the limit may have been there before. Null: they do not. */
  readonly holdMs: number | null;
  /** The limit has come to where people hold it. */
  readonly isPaused: boolean;
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
