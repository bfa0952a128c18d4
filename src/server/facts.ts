/**
 * What a running server can say of itself: the engine with its counters, and what only who started
 * it knows. Four-letter words, the admin server and the metrics are all read off this.
 */

import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseSnapshotName, type SnapshotFile, versionFolder } from '../storage/index.ts';
import type { Clock } from '../support/index.ts';
import type { Engine } from './engine.ts';
import { Tally } from './stats.ts';

/** Of what is on disk. A server that keeps nothing has none of it. */
export interface StorageFacts {
  /** Absolute, with `version-2`, as Apache shows it. */
  readonly dataDir: string;
  readonly dataLogDir: string;
  directoryBytes(): { readonly data: number; readonly log: number };
  /** The last snapshot that is whole on disk. */
  lastSnapshot(): { readonly zxid: number; readonly wallMs: number } | undefined;
  /** Writes one of all there is now; undefined where the server is about to stop. */
  takeSnapshot?(): Promise<
    { readonly path: string; readonly bytes: number; readonly zxid: bigint } | undefined
  >;
  /**
   * Puts a snapshot in the place of everything: sessions that are not in it are over, every link is
   * closed. Returns the zxid that the tree has then. Where it rejects, all is as it was.
   */
  restore?(upload: AsyncIterable<Uint8Array>): Promise<number>;
  readonly restores?: RestoreStats;
  /** Of the disk that has least, when it was last looked at; infinite where nobody knows. */
  freeBytes?(): number;
  /** What storage counted, in milliseconds or txns, by the metric's name. */
  readonly tallies?: { readonly [N in StorageTally]?: Tally };
}

export type StorageTally =
  | 'snapshottime'
  | 'dbinittime'
  | 'startup_snap_load_time'
  | 'startup_txns_load_time'
  | 'startup_txns_loaded';

/** Of what the admin server was asked to restore. */
export class RestoreStats {
  errors = 0;
  refused = 0;
  readonly restore_time = new Tally();
}

export interface ServerFacts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly startedMs: number;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly tickTimeMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly storage: StorageFacts | undefined;
  /** As it was read, for who asks; without secrets. */
  readonly initialConfig: string;
}

const noBytes = { data: 0, log: 0 };

export function directoryBytes({ storage }: ServerFacts): { data: number; log: number } {
  return storage?.directoryBytes() ?? noBytes;
}

/** Reads and writes together, in whole milliseconds as Apache counts them. */
export function requestLatency({ engine }: ServerFacts): {
  min: number;
  average: number;
  max: number;
} {
  const { reads, writes } = engine.stats;
  const count = reads.count + writes.count;
  if (count === 0) return { min: 0, average: 0, max: 0 };
  return {
    min: Math.round(Math.min(reads.minMs, writes.minMs)),
    average: (reads.sumMs + writes.sumMs) / count,
    max: Math.round(Math.max(reads.maxMs, writes.maxMs)),
  };
}

/** What can be seen of a data directory from outside: files, their sizes and names. */
export function directoryFacts(
  dataDir: string,
  dataLogDir: string,
  tallies: StorageFacts['tallies'] = {},
): StorageFacts {
  const folders = {
    data: resolve(dataDir, versionFolder),
    log: resolve(dataLogDir, versionFolder),
  };
  return {
    dataDir: folders.data,
    dataLogDir: folders.log,
    tallies,
    directoryBytes: () => ({ data: bytesIn(folders.data), log: bytesIn(folders.log) }),
    lastSnapshot() {
      const newest = namesIn(folders.data)
        .map((name) => parseSnapshotName(folders.data, name))
        .filter((file) => file !== null)
        .reduce<SnapshotFile | undefined>(
          (a, b) => (a === undefined || b.zxid > a.zxid ? b : a),
          undefined,
        );
      if (newest === undefined) return undefined;
      const wallMs = statSync(newest.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      return { zxid: Number(newest.zxid), wallMs };
    },
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // gone, or not ours to read: nothing is there to be counted
  }
}

function bytesIn(folder: string): number {
  let sum = 0;
  for (const name of namesIn(folder)) {
    sum += bytesOf(join(folder, name));
  }
  return sum;
}

function bytesOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0; // as above; who only asks how much there is must not end the server
  }
}
