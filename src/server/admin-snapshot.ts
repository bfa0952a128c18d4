/**
 * `snapshot` of the admin server writes a snapshot now and hands it over, for backups; `restore` takes
 * one back.
 *
 *   GET /commands/snapshot                   the file's bytes; `last_zxid` and `snapshot_size` are headers
 *   GET /commands/snapshot?streaming=false   the headers alone; the file stays where it is
 *   POST /commands/restore                   the file's bytes are the body; `last_zxid` is a field
 *
 * Off unless they are switched on, and once in a while at most: they cost a disk's time, and whoever
 * gets the file has everything, whatever ACLs say. As any snapshot it is of all that was there when it
 * was asked for, and maybe of some of what came while it was written. A restore is answered when its
 * tree is on disk and served (restore.ts); where it fails, all is as it was.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Logger } from '../support/index.ts';
import type { ServerFacts } from './facts.ts';

export interface SnapshotOptions {
  /** `admin.snapshot.enabled`. */
  readonly snapshotEnabled?: boolean | undefined;
  /** `admin.restore.enabled`. */
  readonly restoreEnabled?: boolean | undefined;
  /** From one to the next of either: `admin.rateLimiterIntervalInMS`. Five minutes. */
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

const intervalDefaultMs = 300_000;

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
    const {
      snapshotEnabled = false,
      snapshotIntervalMs = intervalDefaultMs,
      logger,
    } = this.#options;
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

export interface RestoreReply {
  readonly status: number;
  readonly fields: { readonly last_zxid?: number };
  /** Why not, for who may do everything: Apache tells it to its log alone. */
  readonly error?: string;
}

export class RestoreCommand {
  readonly #facts: ServerFacts;
  readonly #options: SnapshotOptions;
  #lastMs = -Infinity;

  constructor(facts: ServerFacts, options: SnapshotOptions) {
    this.#facts = facts;
    this.#options = options;
  }

  async run(request: IncomingMessage): Promise<RestoreReply> {
    const { storage, clock } = this.#facts;
    const { restoreEnabled = false, snapshotIntervalMs = intervalDefaultMs } = this.#options;
    if (!restoreEnabled || storage?.restore === undefined) return { status: 503, fields: {} };
    const { restores, restore } = storage;
    const nowMs = clock.nowMs();
    if (nowMs - this.#lastMs < snapshotIntervalMs) {
      if (restores !== undefined) restores.refused += 1;
      return { status: 429, fields: {} };
    }
    this.#lastMs = nowMs;
    try {
      if (this.#facts.engine.refusesWrites) throw new Error('the disk is nearly full');
      const zxid = await restore(request);
      restores?.restore_time.add(Math.round(clock.nowMs() - nowMs));
      return { status: 200, fields: { last_zxid: zxid } };
    } catch (error) {
      if (restores !== undefined) restores.errors += 1;
      this.#options.logger?.warn({ err: error }, 'the restore by the admin server failed');
      return { status: 500, fields: {}, error: (error as Error).message };
    }
  }
}
