/**
 * Watches how much room is left where the log and the snapshots are.
 *
 * Below `diskFreeBytesMin` writes are refused and reads go on, and so do deletes until only half of that is left:
 * without them nobody could make the tree, and the snapshots to come, any smaller. A log that finds the disk full ends the
 * server, and what is left by then is not enough to put things right. Who frees some room, and a tenth
 * more than the limit asks for, finds writes taken again within `lookEveryMs`. Where the limit is near, it is
 * looked more often: a log can take hundreds of megabytes a second.
 *
 * Not a promise: whatever else writes to the disk may fill it between two looks.
 */

import { statfs } from 'node:fs/promises';
import type { Clock, Logger, Timer } from '../support/index.ts';

/** One call of the system each time, off the event loop. */
export const lookEveryMs = 1_000;
/** While there is less than so many times the limit. */
export const lookOftenMs = 50;
const nearTimes = 16;
const sayEveryMs = 60_000;
/** Of the limit, when there is enough again: at the limit itself it would go to and fro. */
const enoughAgain = 1.1;

export interface DiskSpaceOptions {
  readonly folders: readonly string[];
  readonly freeBytesMin: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly changed: (isLow: boolean) => void;
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  #timer: Timer | undefined;
  #isStopped = false;
  #saidMs = 0;
  #isUnknown = false;
  isLow = false;
  /** Of the folder that has least; infinite where nobody can tell. */
  freeBytes = Infinity;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
  }

  /** Deletes take room too, in the log. */
  get hasRoomForDeletes(): boolean {
    return this.freeBytes >= this.#options.freeBytesMin / 2;
  }

  /** Resolves when it has looked once. */
  async start(): Promise<void> {
    if (this.#options.freeBytesMin === Infinity) return; // 0, as it was said: no limit
    await this.#look();
    if (this.#isStopped) return;
    const isWritten = !this.isLow || this.hasRoomForDeletes;
    const isNear = isWritten && this.freeBytes < nearTimes * this.#options.freeBytesMin;
    const waitMs = isNear ? lookOftenMs : lookEveryMs;
    this.#timer = this.#options.clock.after(waitMs, () => void this.start(), true);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { folders, freeBytes = freeBytesOf, freeBytesMin } = this.#options;
    try {
      this.freeBytes = Math.min(...(await Promise.all(folders.map(freeBytes))));
      this.#isUnknown = false;
    } catch (error) {
      // Not every file system tells. A log that can't be written is noticed anyway.
      if (!this.#isUnknown) this.#options.logger.warn({ err: error }, 'free disk space is unknown');
      this.#isUnknown = true;
      this.freeBytes = Infinity;
    }
    if (!this.#isStopped) {
      this.#judge(this.freeBytes < (this.isLow ? freeBytesMin * enoughAgain : freeBytesMin));
    }
  }

  #judge(isLow: boolean): void {
    const { clock, logger, changed, freeBytesMin, folders } = this.#options;
    const fields = { freeBytes: this.freeBytes, freeBytesMin, folders };
    const isNew = isLow !== this.isLow;
    this.isLow = isLow;
    if (isLow && (isNew || clock.nowMs() - this.#saidMs >= sayEveryMs)) {
      this.#saidMs = clock.nowMs();
      logger.error(
        fields,
        'the disk is nearly full: all writes but deletes are refused until there is room',
      );
    }
    if (!isNew) return;
    if (!isLow) logger.warn(fields, 'there is room on the disk again: writes are taken');
    changed(isLow);
  }
}

export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize, blocks } = await statfs(folder);
  return blocks === 0 ? Infinity : bavail * bsize; // a file system without blocks has no end either
}
