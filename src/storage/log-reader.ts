/**
 * Reads a log from front to back, a stretch at a time.
 *
 * In: a file. Out: each entry, its checksum verified, and at the end how the log ended (log-tail.ts).
 * Memory is bounded by the largest entry, whatever the file claims. Nothing is changed on disk.
 *
 *   clean     zeros or nothing behind the last entry
 *   torn      a batch that was being written when the server stopped; it was never acknowledged
 *   damaged   anything else: what was there once can't be read any more
 *   empty     no header and nothing behind it: the file was just being made (ZOOKEEPER-2332)
 */

import { Reader, readInt } from '../jute/index.ts';
import { FileHeader } from '../protocol/index.ts';
import type { Mark } from './durable-mark.ts';
import type { LogFile } from './file-names.ts';
import type { FileSystem, StoredFile } from './file-system.ts';
import {
  entryBytesAround,
  entryHeadBytes,
  faultOfEntry,
  LogEntry,
  lengthFault,
  txnBytesMax,
  txnBytesMin,
} from './log-entry.ts';
import { judgeTail, type LogEnd } from './log-tail.ts';
import { logHeaderBytes, logMagic, logVersion } from './log-writer.ts';
import { zxidText } from './storage-error.ts';

export type { LogEnd } from './log-tail.ts';

export interface LogSummary {
  readonly file: LogFile;
  readonly entries: number;
  readonly firstZxid: bigint | null;
  readonly lastZxid: bigint | null;
  readonly end: LogEnd | { readonly kind: 'empty'; readonly offset: 0 };
}

const stretchBytes = 1024 * 1024;
/** Room before what is read ahead, for the part of an entry that stands at the end of the stretch before it. */
const joinBytes = 64 * 1024;

/** A part of the file, behind room for what precedes it. */
interface Stretch {
  readonly memory: Buffer;
  readonly room: number;
  readonly read: Promise<number>;
}

export class LogReader {
  readonly #file: LogFile;
  readonly #markOffset: number | null;
  readonly #source: StoredFile;
  readonly #size: number;
  #bytes: Buffer = Buffer.alloc(0);
  /** Where in `#bytes` the next entry starts, and where `#bytes` starts in the file. */
  #at = 0;
  #base = 0;
  /** Where, in `#bytes`, the entry ends that was parsed last. */
  #entryEnd = 0;
  /** What is being read already while the stretch before it is looked at. */
  #ahead: Stretch | undefined;
  #entries = 0;
  #firstZxid: bigint | null = null;
  #lastZxid: bigint | null = null;

  private constructor(file: LogFile, source: StoredFile, size: number, mark: Mark | null) {
    this.#file = file;
    this.#source = source;
    this.#size = size;
    this.#markOffset = mark?.log === file.zxid ? mark.offset : null;
  }

  static async open(fs: FileSystem, file: LogFile, mark: Mark | null = null): Promise<LogReader> {
    const source = await fs.open(file.path, 'read');
    return new LogReader(file, source, await source.size(), mark);
  }

  async close(): Promise<void> {
    await this.#ahead?.read.catch(() => {});
    await this.#source.close();
  }

  /**
   * Calls `onEntry` for each entry, in order. What it throws ends the reading and is thrown on;
   * returning false ends it too, with what was read so far as the end.
   */
  async read(onEntry: (entry: LogEntry) => unknown): Promise<LogSummary> {
    const fault = await this.#readHeader();
    if (fault !== null) return this.#summary(await this.#endWithoutHeader(fault));
    for (;;) {
      const entry = this.#parse();
      if (typeof entry === 'number') {
        if (await this.#has(entry)) continue;
        return this.#summary(await this.#judge(this.#offset, 'cut short'));
      }
      if (typeof entry === 'string') {
        return this.#summary(await this.#judge(this.#offset, entry));
      }
      const what = this.#faultOfZxid(entry.zxid);
      if (what !== null) {
        return this.#summary({ kind: 'damaged', offset: entry.offset, what, behind: null });
      }
      this.#at = this.#entryEnd;
      this.#firstZxid ??= entry.zxid;
      this.#lastZxid = entry.zxid;
      this.#entries += 1;
      if (onEntry(entry) === false) return this.#summary({ kind: 'clean', offset: this.#offset });
    }
  }

  get #offset(): number {
    return this.#base + this.#at;
  }

  #summary(end: LogSummary['end']): LogSummary {
    return {
      file: this.#file,
      entries: this.#entries,
      firstZxid: this.#firstZxid,
      lastZxid: this.#lastZxid,
      end,
    };
  }

  async #readHeader(): Promise<string | null> {
    if (!(await this.#has(logHeaderBytes))) return 'the header is cut short';
    const { magic, version } = FileHeader.read(new Reader(this.#bytes, 0, logHeaderBytes));
    this.#at = logHeaderBytes;
    if (magic !== logMagic) return 'the header is not that of a log';
    return version === logVersion ? null : `the log is of version ${version}`;
  }

  /**
   * The header is synced before anything is acknowledged, so a file without one held nothing: if it
   * is short or all zeros. With anything else in it, it is a log that has lost its header.
   */
  async #endWithoutHeader(what: string): Promise<LogSummary['end']> {
    const end = await this.#judge(0, what);
    if (end.kind === 'clean' || (end.kind === 'torn' && this.#size < logHeaderBytes)) {
      return { kind: 'empty', offset: 0 };
    }
    return { kind: 'damaged', offset: 0, what, behind: end.kind === 'damaged' ? end.behind : null };
  }

  /** The next entry, or how many bytes it takes to have it, or what is wrong with it. */
  #parse(): LogEntry | number | string {
    const here = this.#bytes.length - this.#at;
    if (here < entryHeadBytes) return entryHeadBytes;
    const length = readInt(this.#bytes, this.#at + 8);
    if (length < txnBytesMin || length > txnBytesMax) return lengthFault('an entry', length);
    if (here < length + entryBytesAround) return length + entryBytesAround;
    const fault = faultOfEntry(this.#bytes, this.#at, length);
    if (fault !== null) return fault;
    const start = this.#at + entryHeadBytes;
    this.#entryEnd = this.#at + length + entryBytesAround;
    return new LogEntry(this.#file.path, this.#offset, this.#bytes, start, start + length);
  }

  #faultOfZxid(zxid: bigint): string | null {
    if (this.#lastZxid === null) {
      if (zxid === this.#file.zxid) return null;
      return `the first zxid is ${zxidText(zxid)}, not the one that the file is named for`;
    }
    if (zxid > this.#lastZxid) return null;
    return `zxid ${zxidText(zxid)} after ${zxidText(this.#lastZxid)}: zxids must rise`;
  }

  #judge(offset: number, what: string): Promise<LogEnd> {
    return judgeTail({
      file: this.#source,
      size: this.#size,
      offset,
      what,
      lastZxid: this.#lastZxid ?? this.#file.zxid - 1n,
      markOffset: this.#markOffset,
    });
  }

  /** Whether `length` bytes follow; reads on where they aren't here yet. */
  async #has(length: number): Promise<boolean> {
    if (this.#bytes.length - this.#at >= length) return true;
    const left = this.#bytes.subarray(this.#at);
    const next = (await this.#takeAhead(left.length, length)) ?? this.#stretch(left.length, length);
    // New memory each time, since entries handed out are views of the old.
    const start = next.room - left.length;
    left.copy(next.memory, start);
    this.#base += this.#at;
    this.#at = 0;
    const isFirst = this.#bytes.length === 0;
    this.#bytes = next.memory.subarray(start, next.room + (await next.read));
    // Many logs are looked at for their first entry alone.
    if (!isFirst) this.#readAhead();
    return this.#bytes.length >= length;
  }

  /** What was read ahead, and what is missing behind it for a large entry. */
  async #takeAhead(left: number, length: number): Promise<Stretch | undefined> {
    const ahead = this.#ahead;
    if (ahead === undefined) return undefined;
    this.#ahead = undefined;
    if (left <= ahead.room && left + ahead.memory.length - ahead.room >= length) return ahead;
    const bytes = await ahead.read.catch(() => 0);
    if (bytes === 0) return undefined;
    const missing = Math.max(0, length - left - bytes);
    const memory = Buffer.allocUnsafeSlow(left + bytes + missing);
    ahead.memory.copy(memory, left, ahead.room, ahead.room + bytes);
    const position = this.#base + this.#bytes.length + bytes;
    const rest = missing === 0 ? 0 : this.#source.read(memory.subarray(left + bytes), position);
    return { memory, room: left, read: Promise.resolve(rest).then((more) => bytes + more) };
  }

  #readAhead(): void {
    const position = this.#base + this.#bytes.length;
    if (this.#ahead !== undefined || position >= this.#size) return;
    this.#ahead = this.#begin(joinBytes, Math.min(stretchBytes, this.#size - position), position);
  }

  /** What follows the `left` bytes that are here, and makes them `length` at least. */
  #stretch(left: number, length: number): Stretch {
    const position = this.#base + this.#bytes.length;
    const most = Math.min(stretchBytes, this.#size - position);
    return this.#begin(left, Math.max(most, length - left), position);
  }

  #begin(room: number, length: number, position: number): Stretch {
    const memory = Buffer.allocUnsafeSlow(room + length);
    const read = this.#source.read(memory.subarray(room), position);
    read.catch(() => {}); // whoever takes it hears of it
    return { memory, room, read };
  }
}
