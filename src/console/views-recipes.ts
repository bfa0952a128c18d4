/** The Recipes page. How values are written: see `views.ts`. */

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
  /** Of an election: the newest terms that were seen, newest first. */
  readonly terms?: readonly TermView[];
}

/** One stretch of leadership. */
export interface TermView {
  readonly name: string;
  /** What the leader wrote into its node; null: nobody saw it, or not everybody may. */
  readonly id: string | null;
  readonly session: string | null;
  /** The czxid of its node: greater in every term than in all before it. */
  readonly epoch: string | null;
  /** Null: it led already when the first look was taken. */
  readonly sinceMs: number | null;
  /** Null: it leads. */
  readonly untilMs: number | null;
}

/** GET /api/recipes/terms?path, newest first */
export interface TermsView {
  readonly path: string;
  readonly terms: readonly TermView[];
  /** Of the transaction logs, or of what the console saw while it ran. */
  readonly from: 'logs' | 'seen';
  readonly seenSinceMs: number | null;
  readonly isCut: boolean;
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
