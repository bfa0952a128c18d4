/**
 * A value that everyone sees and anyone may change: Curator's SharedValue, and SharedCount for a
 * 32-bit number.
 *
 *   <path>     data: the value; of a SharedCount 4 bytes, most significant first
 *
 * `trySet` changes it only if it is still the one that was seen, by version and not by content. Each
 * change is made once, though replies may be lost (cell.ts). `changes` tells the value now and every
 * later one that it comes to see; values that were there only for a moment may be skipped.
 */

import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
} from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { bounded, lookUntil } from './bounded-wait.ts';
import { Cell, type UpdateOptions } from './cell.ts';
import { CounterError } from './counter-error.ts';
import { sharedCountTable, sharedValueTable } from './option-tables.ts';

export interface SharedValueOptions {
  /** What it is when nobody has set it. Empty; a SharedCount's is 0. */
  readonly seed?: DataInput;
  readonly triesMax?: number;
  readonly acl?: readonly Acl[];
}

export interface Versioned<T> {
  readonly value: T;
  readonly version: number;
  /** The transaction that made it what it is. */
  readonly mzxid: bigint;
}

export interface Followed {
  readonly signal?: AbortSignal;
}

abstract class Shared<T> {
  readonly path: string;
  readonly #client: Client;
  readonly #cell: Cell;

  constructor(client: Client, path: string, seed: Buffer, options: SharedValueOptions) {
    this.path = path;
    this.#client = client;
    const { triesMax, acl } = options;
    this.#cell = new Cell(client, path, { seed, triesMax, acl });
  }

  protected abstract decode(data: Buffer): T;
  protected abstract encode(value: T): Buffer;

  /** Made, with the seed, where there is none. */
  async get(): Promise<Versioned<T>> {
    const { data, stat } = await this.#cell.ensure();
    return { value: this.decode(data), version: stat.version, mzxid: stat.mzxid };
  }

  /** Whatever it was before. Resolves with its version. */
  async set(value: T, options?: UpdateOptions): Promise<number> {
    const data = this.encode(value);
    return (await this.#cell.update(() => data, options)).version;
  }

  /** Only if nobody has changed it since `previous` was read. */
  async trySet(previous: Versioned<T>, value: T, options?: UpdateOptions): Promise<boolean> {
    const data = this.encode(value);
    const isSame = (stat: { version: number; mzxid: bigint }) =>
      stat.version === previous.version && stat.mzxid === previous.mzxid;
    const done = await this.#cell.update((_, stat) => (isSame(stat) ? data : undefined), options);
    return done.isChanged;
  }

  /** Makes the next value of the present one, again if somebody else is quicker. */
  async update(change: (value: T) => T, options?: UpdateOptions): Promise<T> {
    const done = await this.#cell.update((data) => this.encode(change(this.decode(data))), options);
    return this.decode(done.after);
  }

  /** The value now, and each new one, until the signal aborts or the loop is left. */
  async *changes({ signal }: Followed = {}): AsyncGenerator<Versioned<T>, void, undefined> {
    let seen: { czxid: bigint; version: number } | undefined;
    const stop = signal ?? new AbortController().signal;
    while (!stop.aborted) {
      const timedOut = () => new Error('there is no time limit');
      const next = () =>
        bounded({ signal: stop }, { timedOut }, (ends) =>
          lookUntil(this.#client, ends, async (watching) => {
            const node = await watching.node(this.path);
            if (node === null) return null; // deleted: it begins anew with the seed
            const { czxid, version } = node.stat;
            return seen?.czxid === czxid && seen.version === version ? undefined : node;
          }),
        );
      const made = this.#cell.ensure({ signal: stop });
      const found = await made.then(next).catch((error: unknown) => {
        if (stop.aborted) return null;
        throw error;
      });
      if (found === null) continue;
      const { czxid, version, mzxid } = found.stat;
      seen = { czxid, version };
      yield { value: this.decode(found.data ?? Buffer.alloc(0)), version, mzxid };
    }
  }

  /** Takes away what this writer left beside the value. The value stays. */
  async close(): Promise<void> {
    await this.#cell.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

export class SharedValue extends Shared<Buffer> {
  constructor(client: Client, path: string, options: SharedValueOptions = {}) {
    checkClient('SharedValue', client);
    checkOptions('SharedValue', options, sharedValueTable);
    super(client, path, bytesOf(options.seed ?? ''), options);
  }

  protected decode(data: Buffer): Buffer {
    return data;
  }

  protected encode(value: Buffer): Buffer {
    return bytesOf(value);
  }
}

export interface SharedCountOptions extends Omit<SharedValueOptions, 'seed'> {
  readonly seed?: number;
}

export class SharedCount extends Shared<number> {
  constructor(client: Client, path: string, options: SharedCountOptions = {}) {
    checkClient('SharedCount', client);
    checkOptions('SharedCount', options, sharedCountTable);
    const { seed = 0, ...rest } = options;
    super(client, path, int32(seed), rest);
  }

  protected decode(data: Buffer): number {
    if (data.length >= 4) return data.readInt32BE(0);
    throw new CounterError('CORRUPT', this.path, { detail: `${data.length} bytes` });
  }

  protected encode(value: number): Buffer {
    return int32(value);
  }
}

function bytesOf(data: DataInput): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  if (data instanceof Uint8Array) return Buffer.from(data);
  throw new ArgumentError('value', 'a Uint8Array or a string is wanted');
}

function int32(value: number): Buffer {
  if ((value | 0) !== value) {
    throw new ArgumentError('value', `a 32-bit integer is wanted, not ${value}`);
  }
  const data = Buffer.alloc(4);
  data.writeInt32BE(value);
  return data;
}
