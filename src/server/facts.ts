/**
 * What a running server can say of itself: the engine with its counters, and what only who started
 * it knows. Four-letter words, the admin server and the metrics are all read off this.
 */

import type { Clock } from '../support/index.ts';
import type { Engine } from './engine.ts';

/** Of what is on disk. A server that keeps nothing has none of it. */
export interface StorageFacts {
  /** Absolute, with `version-2`, as Apache shows it. */
  readonly dataDir: string;
  readonly dataLogDir: string;
  directoryBytes(): { readonly data: number; readonly log: number };
  /** The last snapshot that is whole on disk. */
  lastSnapshot(): { readonly zxid: number; readonly wallMs: number } | undefined;
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
