/**
 * A note of how far the newest log was certainly on disk: `.drover-mark`, beside the logs.
 *
 *   "DRVM"  version:int = 1  log:long  offset:long  adler32:long      32 bytes, written in one piece
 *
 * Apache's format has nothing that tells a batch cut short by a power cut (harmless: nobody was told of
 * it) from damage to the last records that were acknowledged: both are a log that ends early. What lies
 * before the mark was synced, so if it can't be read it is damage; what lies behind may be either.
 *
 * The mark trails the truth. It moves only after a sync has succeeded, it is written now and then and
 * not with every batch, and it is not synced then: a stale mark claims less, never too much. It is
 * synced once for each log, before the first batch: so a log that it does not name is not ours, and was
 * begun by an Apache server, which ignores the file. Ours does without when it is not there.
 *
 * Where logs and snapshots have a folder each, the snapshots' has a mark, too. Nothing depends on it but
 * that whoever starts on the snapshots without the logs is told.
 */

import { join } from 'node:path';
import { type Clock, monotonicClock, type Timer } from '../support/index.ts';
import { adler32 } from './adler32.ts';
import { ownPrefix } from './file-names.ts';
import type { FileSystem, StoredFile } from './file-system.ts';

export const markName = `${ownPrefix}mark`;

const magic = 0x4452564d; // DRVM
const version = 1;
const markBytes = 32;
const checkedBytes = 24;
const delayMs = 100;

export interface Mark {
  /** The log it speaks of, by the zxid in its name. */
  readonly log: bigint;
  /** Everything before this offset was synced. */
  readonly offset: number;
}

/** Null: there is none. A mark that can't be read claims nothing, as if it stood at no log's start. */
export async function readMark(fs: FileSystem, folder: string): Promise<Mark | null> {
  const path = join(folder, markName);
  if ((await fs.status(path)) === null) return null;
  const file = await fs.open(path, 'read');
  try {
    const bytes = Buffer.alloc(markBytes);
    const isWhole = (await file.read(bytes, 0)) === markBytes;
    return (isWhole && decodeMark(bytes)) || { log: -1n, offset: 0 };
  } finally {
    await file.close();
  }
}

export function encodeMark({ log, offset }: Mark): Buffer {
  const bytes = Buffer.alloc(markBytes);
  bytes.writeUInt32BE(magic, 0);
  bytes.writeUInt32BE(version, 4);
  bytes.writeBigInt64BE(log, 8);
  bytes.writeBigInt64BE(BigInt(offset), 16);
  bytes.writeBigInt64BE(BigInt(adler32(bytes, 0, checkedBytes)), checkedBytes);
  return bytes;
}

function decodeMark(bytes: Buffer): Mark | null {
  if (bytes.readUInt32BE(0) !== magic || bytes.readUInt32BE(4) !== version) return null;
  if (bytes.readBigInt64BE(checkedBytes) !== BigInt(adler32(bytes, 0, checkedBytes))) return null;
  return { log: bytes.readBigInt64BE(8), offset: Number(bytes.readBigInt64BE(16)) };
}

export class MarkWriter {
  readonly #file: StoredFile;
  readonly #clock: Clock;
  #next: Mark | undefined;
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isBroken = false;

  private constructor(file: StoredFile, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  /** The name is durable only with the folder's next sync, which is the new log's. */
  static async open(fs: FileSystem, folder: string, clock = monotonicClock): Promise<MarkWriter> {
    const path = join(folder, markName);
    const exists = (await fs.status(path)) !== null;
    return new MarkWriter(await fs.open(path, exists ? 'write' : 'create'), clock);
  }

  /** Before anything is in the log. Rejects: what of it a crash may have torn could not be told. */
  async begin(mark: Mark): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#next = undefined;
    await this.#writing;
    await this.#file.write(encodeMark(mark), 0);
    await this.#file.sync();
    this.#isBroken = false;
  }

  moveTo(mark: Mark): void {
    this.#next = mark;
    this.#timer ??= this.#clock.after(delayMs, () => void this.#flush(), true);
  }

  async close(): Promise<void> {
    await this.#flush();
    await this.#file.close();
  }

  #flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Never rejects: without a fresh mark we know less after a crash, and lose nothing. */
  async #write(): Promise<void> {
    const mark = this.#next;
    if (mark === undefined || this.#isBroken) return;
    this.#next = undefined;
    try {
      await this.#file.write(encodeMark(mark), 0);
    } catch {
      this.#isBroken = true;
    }
  }
}
