/**
 * What the console is handed by whoever starts it: a session, and what only the command line or our own
 * server knows. Each is a function or an object with little in it, so that the console needs neither.
 */

import type { Client } from '../client/index.ts';
import type { OffsetSource } from '../kafka/index.ts';
import type {
  CommandView,
  FindingView,
  HistoryEntry,
  MetricsView,
  ServerView,
  ShellView,
} from './views.ts';

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

/** A server in this process. */
export interface OwnServer {
  /** Names as `mntr` has them, without `zk_`; counters too. */
  values(): Readonly<Record<string, number>>;
  ops(): MetricsView['ops'];
  /** False: there is no such session. */
  expire(sessionId: bigint): boolean;
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
  readonly ownServer?: OwnServer;
  /** Ends of partitions, for lag; undefined while nobody can be asked. */
  readonly offsets?: () => Ends | undefined;
  /** Fills an empty tree with something that lives. Called once. */
  readonly demo?: () => Promise<void>;
}
