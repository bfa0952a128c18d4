/**
 * The ratios to reach, row by row: ours to a peer in the same run. Where a row has none it is printed
 * and nothing is asked of it. Nothing here fails a run: a noisy machine would.
 */

/** For the client: ops/s as multiples of a peer's; CPU per op, absolute or as a share of a peer's. */
export interface ClientGoal {
  readonly ofNative?: number;
  readonly ofNode?: number;
  readonly ofBetter?: number;
  readonly cpuUsMax?: number;
  readonly cpuOfBetterMax?: number;
}

// biome-ignore format: a table is read down its columns
export const clientGoals: Readonly<Record<string, ClientGoal>> = {
  'fast get 100 x100':   { ofNode: 6, ofNative: 20, cpuUsMax: 4 },
  'fast set 100 x100':   { ofNode: 5, ofNative: 18 },
  'fast get 100 x1':     { ofBetter: 1.1, cpuOfBetterMax: 0.75 },
  'apache get 100 x100': { ofNode: 1.5 },
  'apache set 100 x1':   { ofBetter: 1.2, cpuOfBetterMax: 0.5 },
};

/** For the server: ops/s as multiples of the better Apache's. */
// biome-ignore format: a table is read down its columns
export const serverGoals: Readonly<Record<string, number>> = {
  'get 100 1x1':      1.5,
  'set 100 1x1':      1.0,
  'get 100 1x100':    4,
  'set 100 1x100':    2.5,
  'mixed 100 1x100':  1.3,
  'create 100 1x100': 2.5,
  'get 100 50x10':    5,
  'set 100 50x10':    3,
  'create 100 50x10': 3,
  'mixed 100 50x10':  3,
  'get 100 200x1':    1.5,
  'set 100 200x1':    1.15,
  'get 1024 50x10':   4,
  'set 1024 50x10':   1.8,
};

/** p99 as a share of the better Apache's: for reads, and for all else. */
export const p99OfBetterMax = { get: 0.5, other: 1 } as const;

/** The same for p99.9: where garbage collection and work on the log would show first. */
export const p999OfBetterMax: Readonly<Record<string, number>> = { 'set 100 50x10': 1 };

/** What is no load over a while: as a ratio to the better Apache's, or as it is. */
export interface OtherGoal {
  readonly ofBetterMin?: number;
  readonly ofBetterMax?: number;
  readonly max?: number;
}

// biome-ignore format: a table is read down its columns
export const otherGoals: Readonly<Record<string, OtherGoal>> = {
  'ready ms':             { ofBetterMax: 1 / 3 },
  'idle MB':              { max: 60 },
  'million MB':           { ofBetterMax: 0.55 },
  'million creates/s':    { ofBetterMin: 3.5 },
  'million restart ms':   { ofBetterMax: 0.6 },
  'million longest ms':   { max: 50 },
  'sessions /s':          { ofBetterMin: 1.2 },
  'fan-out events/s':     { ofBetterMin: 1.3 },
  'fan-out p99 ms':       { ofBetterMax: 0.8 },
};

/** For locks: ours to another's, both in the same run. */
export interface LockGoal {
  readonly row: string;
  readonly ours: string;
  readonly theirs: string;
  readonly what: 'opsPerSecond' | 'p99Us';
  readonly min?: number;
  readonly max?: number;
}

// biome-ignore format: a table is read down its columns
export const lockGoals: readonly LockGoal[] = [
  { row: 'x1',  ours: 'drover',        theirs: 'redlock/durable', what: 'opsPerSecond', min: 1 },
  { row: 'x50', ours: 'drover',        theirs: 'redlock/durable', what: 'opsPerSecond', min: 1.2 },
  { row: 'x50', ours: 'drover',        theirs: 'redlock/durable', what: 'p99Us',        max: 0.2 },
  { row: 'x1',  ours: 'drover/apache', theirs: 'curator/apache',  what: 'opsPerSecond', min: 1.2 },
  { row: 'x50', ours: 'drover/apache', theirs: 'curator/apache',  what: 'opsPerSecond', min: 1.2 },
  { row: 'x1',  ours: 'drover',        theirs: 'curator/apache',  what: 'opsPerSecond', min: 2 },
  { row: 'x50', ours: 'drover',        theirs: 'curator/apache',  what: 'opsPerSecond', min: 2 },
];
