/**
 * What a bench and the processes it starts say to each other, over Node's own channel between them.
 *
 *   bench                          program
 *     ◀──────────────── { ready }    it may be measured
 *     { task } ─────────────────▶    a stretch of load
 *     ◀─────────────── { result }    what it came to
 *     ◀─────────────── { failed }    in place of either
 *
 * A program that loses its bench ends.
 */

export const opNames = ['get', 'set', 'create', 'mixed'] as const;
export type OpName = (typeof opNames)[number];

export interface Load {
  readonly op: OpName;
  readonly bytes: number;
  /** Connections, and requests in flight on each. A client is one connection. */
  readonly connections: number;
  readonly depth: number;
  readonly warmSeconds: number;
  readonly seconds: number;
  /** Below this node everything happens. It is there. */
  readonly root: string;
}

export type Task =
  | ({ readonly name: 'load' } & Load)
  /** Makes `root` and below it the nodes that get and set need. */
  | { readonly name: 'prepare'; readonly root: string; readonly bytes: number }
  /** Deletes what creates have left below `root`; of a server's load, those of the last one. */
  | { readonly name: 'clear'; readonly root: string }
  /** Makes so many nodes below `root`, a thousand to a parent. */
  | ({ readonly name: 'fill'; readonly root: string; readonly count: number } & Shape)
  /** Opens so many sessions and, when all are open, closes them. An op is one session. */
  | { readonly name: 'sessions'; readonly count: number; readonly atOnce: number }
  /** Changes `path`, on which so many sessions wait, round after round. An op is one event. */
  | { readonly name: 'fanOut'; readonly path: string; watchers: number; rounds: number };

export interface Shape {
  readonly bytes: number;
  readonly connections: number;
  readonly depth: number;
}

export interface Result {
  readonly ops: number;
  /** Those of warming up with them. */
  readonly opsInAll: number;
  readonly seconds: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
  /** Of the whole process, all its threads. */
  readonly cpuUs: number;
}

export type Said =
  | { readonly ready: Readonly<Record<string, string | number>> }
  | { readonly result: Result | null }
  | { readonly failed: string };

/** Nodes that get and set go through in turn, so that no cache holds just one. */
export const pathCount = 1000;

export const pathOf = (root: string, i: number): string => `${root}/n${i % pathCount}`;

/** Runs the tasks that come, one after the other. */
export function serveTasks(run: (task: Task) => Promise<Result | null>): void {
  process.on('message', (task: Task) => {
    run(task).then((result) => say({ result }), fail);
  });
}

export function say(said: Said): void {
  process.send?.(said);
}

export function fail(error: unknown): void {
  say({ failed: error instanceof Error ? error.message : String(error) });
}

process.on('disconnect', () => process.exit(0));
