/** The records of one partition: a file of lines, and the same in memory. The offset is the line. */

import { appendFile, mkdir, readFile, rm, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface LogRecord {
  /** Of the leader that took it: by it two logs find out where they part. */
  readonly epoch: number;
  readonly value: string;
}

export class LogFile {
  readonly #path: string;
  readonly records: LogRecord[] = [];
  /** Where each line ends, in bytes. */
  readonly #ends: number[] = [];

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(path: string): Promise<LogFile> {
    await mkdir(dirname(path), { recursive: true });
    const log = new LogFile(path);
    const text = await readFile(path, 'utf8').catch(() => '');
    const whole = text.slice(0, text.lastIndexOf('\n') + 1); // a line that was cut short never was
    for (const line of whole.split('\n').slice(0, -1)) log.#remember(JSON.parse(line), line);
    if (whole.length < text.length) await truncate(path, log.#ends.at(-1) ?? 0);
    return log;
  }

  async append(records: readonly LogRecord[]): Promise<void> {
    const lines = records.map((record) => JSON.stringify(record));
    await appendFile(this.#path, lines.map((line) => `${line}\n`).join(''), { flush: true });
    for (const [i, record] of records.entries()) this.#remember(record, lines[i]!);
  }

  /** Keeps the first `length` records. */
  async truncate(length: number): Promise<void> {
    if (length >= this.records.length) return;
    await truncate(this.#path, length === 0 ? 0 : this.#ends[length - 1]);
    this.records.length = length;
    this.#ends.length = length;
  }

  async delete(): Promise<void> {
    await rm(this.#path, { force: true });
    this.records.length = 0;
    this.#ends.length = 0;
  }

  #remember(record: LogRecord, line: string): void {
    this.records.push(record);
    this.#ends.push((this.#ends.at(-1) ?? 0) + Buffer.byteLength(line) + 1);
  }
}
