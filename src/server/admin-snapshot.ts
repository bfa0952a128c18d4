/**
 * `snapshot` of the admin server: writes a snapshot now and hands it over, for backups.
 *
 *   GET /commands/snapshot                   the file's bytes; `last_zxid` and `snapshot_size` are headers
 *   GET /commands/snapshot?streaming=false   the headers alone; the file stays where it is
 *
 * Off unless it is switched on, and once in a while at most: it costs a disk's time, and whoever gets
 * the file has everything, whatever ACLs say. As any snapshot it is of all that was there when it was
 * asked for, and maybe of some of what came while it was written.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { Logger } from '../support/index.ts';
import type { ServerFacts } from './facts.ts';

export interface SnapshotOptions {
  /** `admin.snapshot.enabled`. */
  readonly snapshotEnabled?: boolean | undefined;
  /** From one to the next: `admin.rateLimiterIntervalInMS`. Five minutes. */
  readonly snapshotIntervalMs?: number | undefined;
  readonly logger?: Logger | undefined;
}

/** `file` is open, and is the caller's to close. */
export interface SnapshotReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly file?: FileHandle;
  readonly bytes: number;
}

const bare = (status: number): SnapshotReply => ({ status, headers: {}, bytes: 0 });

export class SnapshotCommand {
  readonly #facts: ServerFacts;
  readonly #options: SnapshotOptions;
  #lastMs = -Infinity;

  constructor(facts: ServerFacts, options: SnapshotOptions) {
    this.#facts = facts;
    this.#options = options;
  }

  async run(query: URLSearchParams): Promise<SnapshotReply> {
    const { engine, storage, clock } = this.#facts;
    const { snapshotEnabled = false, snapshotIntervalMs = 300_000, logger } = this.#options;
    if (!snapshotEnabled || storage?.takeSnapshot === undefined) return bare(503);
    const nowMs = clock.nowMs();
    if (nowMs - this.#lastMs < snapshotIntervalMs) {
      engine.stats.snapshotsRefused += 1;
      return bare(429);
    }
    this.#lastMs = nowMs;
    try {
      if (engine.refusesWrites) throw new Error('the disk is nearly full');
      const taken = await storage.takeSnapshot();
      if (taken === undefined) return bare(503);
      const headers = {
        last_zxid: `0x${taken.zxid.toString(16)}`,
        snapshot_size: String(taken.bytes),
      };
      // Java takes whatever is not `true` for false.
      const isStreamed = (query.get('streaming') ?? 'true').toLowerCase() === 'true';
      if (!isStreamed) return { status: 200, headers, bytes: taken.bytes };
      return { status: 200, headers, bytes: taken.bytes, file: await open(taken.path) };
    } catch (error) {
      engine.stats.snapshotErrors += 1;
      logger?.warn({ err: error }, 'the snapshot that the admin server was asked for failed');
      return bare(500);
    }
  }
}
