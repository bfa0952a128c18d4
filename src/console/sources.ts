/**
 * What the console is handed by whoever starts it: a session, and what only the command line or our own
 * server knows. Each is a function or an object with little in it, so that the console needs neither.
 */

import type { Client } from '../client/index.ts';
import type { OffsetSource } from '../kafka/index.ts';
import type { OpTimesSeen } from './op-times.ts';
import type { Candidate } from './term-book.ts';
import type {
  CommandView,
  ContextView,
  CopyCounts,
  CopyStep,
  FindingView,
  HistoryEntry,
  ServerView,
  ShellView,
} from './views.ts';

export type LineChange =
  | { readonly kind: 'start'; readonly line: readonly (readonly [string, Candidate])[] }
  | {
      readonly kind: 'joined';
      readonly name: string;
      readonly atMs: number;
      readonly candidate: Candidate;
    }
  | { readonly kind: 'left'; readonly name: string; readonly atMs: number };

export interface ServersSeen {
  readonly servers: readonly ServerView[];
  readonly findings: readonly FindingView[];
  readonly quorum: { readonly hasQuorum: boolean; readonly sentence: string };
}

/** What one server answered to a four-letter word. */
export type WordAnswer =
  | { readonly server: string; readonly text: string }
  | { readonly server: string; readonly error: string };

export interface ShellLine {
  readonly line: string;
  readonly json: boolean;
  readonly cwd: string;
  /** Commands that write are refused. */
  readonly readOnly: boolean;
  readonly outputBytesMax: number;
  readonly signal: AbortSignal;
}

export type Ends = Pick<OffsetSource, 'bounds' | 'offsetForTime'>;

type Told<T> = T | Promise<T>;

/** The server that the console belongs to. It may run in another process. */
export interface OwnServer {
  /** Names as `mntr` has them, without `zk_`; counters too. */
  values(): Told<Readonly<Record<string, number>>>;
  /** What it has counted so far, by op; `fsync` is what the log took for each batch. */
  opTimes(): Told<OpTimesSeen>;
  /** Its readings since the last call; see `ProcessReadings`. Default: those of this process. */
  process?(): Told<Readonly<Record<string, number>>>;
  /** Of each session, in how many milliseconds it ends if nothing more is heard of it. */
  expiries(): Told<ReadonlyMap<bigint, number>>;
  /** Whole paths, and the kinds of watches on each: data, children, persistent, recursive. */
  watchKinds(): Told<ReadonlyMap<string, readonly string[]>>;
  /** Where Prometheus may ask; undefined: nowhere. */
  readonly metricsUrl?: string | undefined;
  /** False: there is no such session. */
  expire(sessionId: bigint): Told<boolean>;
}

/** How a subtree is copied from one session's servers to ours; what is equal already is left alone. */
export interface CopyLine {
  readonly from: Client;
  readonly fromPath: string;
  readonly toPath: string;
  /** `skip`: what differs is left as it is, and counted. */
  readonly onConflict: 'skip' | 'overwrite';
  readonly withAcl: boolean;
  /** Look, and write nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
  /** Every node that is not `same`. Throwing ends the copy. */
  readonly onStep: (step: CopyStep, path: string) => void;
  /** What was written, with what it takes to take it back. */
  readonly onWritten: (written: Written) => void;
}

export type Written =
  | { readonly kind: 'created'; readonly path: string }
  | {
      readonly kind: 'changed';
      readonly path: string;
      readonly before: Buffer | null;
      /** Of what was written. */
      readonly version: number;
    }
  | { readonly kind: 'acl'; readonly path: string };

/** Another place that the page may look at, open. */
export interface OpenContext {
  readonly sources: ConsoleSources;
  /** Why nothing may be changed there; null: it may. */
  readonly readOnly: string | null;
  close(): Promise<void>;
}

/** The places that the command line knows by name. */
export interface ContextSources {
  list(): Promise<readonly ContextView[]>;
  open(name: string): Promise<OpenContext>;
}

export interface ConsoleSources {
  /** Open, or still looking for a server: the console shows what it can meanwhile. It is not closed here. */
  readonly client: Client;
  /** As the user knows it: `host:port,…/chroot`, and what said so. */
  readonly servers: string;
  readonly origin: string;
  readonly version: string;
  /** Asks all servers of themselves. */
  readonly lookAtServers?: (signal: AbortSignal) => Promise<ServersSeen>;
  readonly ask?: (word: string, signal: AbortSignal) => Promise<readonly WordAnswer[]>;
  readonly commands?: readonly CommandView[];
  readonly run?: (line: ShellLine) => Promise<ShellView & { readonly writes: boolean }>;
  /** Newest first; the second is true where there are more. */
  readonly history?: (
    path: string,
    limit: number,
  ) => Promise<{ readonly entries: readonly HistoryEntry[]; readonly isCut: boolean }>;
  /** Who joined and who left a line of nodes, out of the logs; `start` comes first. */
  readonly lineHistory?: (line: string, onChange: (change: LineChange) => void) => Promise<void>;
  readonly ownServer?: OwnServer;
  /** Ends of partitions, for lag; undefined while nobody can be asked, and then why. */
  readonly offsets?: () => Ends | undefined;
  readonly whyNoOffsets?: () => string;
  /** Copies into the servers of `client`. */
  readonly copy?: (line: CopyLine) => Promise<CopyCounts>;
  /** What command lines wrote to the same servers, since the last time it was asked; see `journal.ts`. */
  readonly journal?: (() => Promise<readonly unknown[]>) | undefined;
  /** Fills an empty tree with something that lives. Called once. */
  readonly demo?: () => Promise<void>;
}
