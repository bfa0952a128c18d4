/**
 * A 64-bit number that many change: Curator's DistributedAtomicLong, so that Java and ours count
 * together.
 *
 *   <path>     data: 8 bytes, most significant first; empty or missing is 0
 *
 * A change is tried without a lock first; with `lockPath` given, who loses `triesMax` times takes the
 * lock there, as Curator's promotion does, and goes on with fewer rivals. What the tries were is in the
 * result. Each change is made once, though replies may be lost (cell.ts).
 *
 * Unlike Java's, a result beyond 64 bits does not wrap around: it is refused, and nothing is changed.
 */

import { type Acl, ArgumentError, type Client, checkClient } from '../client/index.ts';
import { type Clock, checkOptions, systemClock } from '../support/index.ts';
import { Cell, type UpdateOptions } from './cell.ts';
import { CounterError } from './counter-error.ts';
import { Lock } from './lock.ts';
import { atomicLongTable, updateTable } from './option-tables.ts';

export interface AtomicLongOptions {
  /** Tries without the lock, and as many again with it. 100. */
  readonly triesMax?: number;
  /** Where the lock stands that a change is promoted to. None: no promotion. */
  readonly lockPath?: string;
  /** How long a promoted change waits for the lock. 10 s. */
  readonly lockTimeoutMs?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

export interface AtomicResult {
  /** False for a compareAndSet that found another value. */
  readonly succeeded: boolean;
  readonly before: bigint;
  readonly after: bigint;
  readonly stats: {
    readonly optimisticTries: number;
    readonly optimisticMs: number;
    readonly promotedTries: number;
    readonly promotedMs: number;
  };
}

type Next = (before: bigint) => bigint | undefined;
type Read = (data: Buffer) => bigint;

export class AtomicLong {
  readonly path: string;
  readonly #cell: Cell;
  readonly #triesMax: number;
  readonly #clock: Clock;
  readonly #lock: Lock | undefined;
  readonly #lockTimeoutMs: number;

  constructor(client: Client, path: string, options: AtomicLongOptions = {}) {
    checkClient('AtomicLong', client);
    checkOptions('AtomicLong', options, atomicLongTable);
    const { triesMax = 100, lockPath, lockTimeoutMs = 10_000, acl, clock } = options;
    if (!Number.isInteger(triesMax) || triesMax < 1) {
      throw new ArgumentError('triesMax', `a whole number from 1 on is wanted, not ${triesMax}`);
    }
    this.path = path;
    this.#triesMax = triesMax;
    this.#clock = clock ?? systemClock;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#cell = new Cell(client, path, { seed: Buffer.alloc(0), acl, clock });
    if (lockPath !== undefined) this.#lock = new Lock(client, lockPath, acl ? { acl } : {});
  }

  async get(): Promise<bigint> {
    return this.#parse(await this.#cell.read());
  }

  /** Makes the node, if there is none. False: there is one. */
  async initialize(value: bigint): Promise<boolean> {
    return this.#cell.create(this.#format(value, 'value'));
  }

  async increment(options?: UpdateOptions): Promise<AtomicResult> {
    checkOptions('increment', options, updateTable);
    return this.add(1n, options);
  }

  async decrement(options?: UpdateOptions): Promise<AtomicResult> {
    checkOptions('decrement', options, updateTable);
    return this.add(-1n, options);
  }

  async add(delta: bigint, options?: UpdateOptions): Promise<AtomicResult> {
    checkOptions('add', options, updateTable);
    this.#format(delta, 'delta');
    return this.#change((before) => before + delta, options);
  }

  /** Whatever it was before; what is no such number counts as an empty node does. */
  async set(value: bigint, options?: UpdateOptions): Promise<AtomicResult> {
    checkOptions('set', options, updateTable);
    this.#format(value, 'value');
    return this.#change(
      () => value,
      options,
      (data) => (data.length < 8 ? 0n : this.#parse(data)),
    );
  }

  /** Only if it is `expected`. */
  async compareAndSet(
    expected: bigint,
    value: bigint,
    options?: UpdateOptions,
  ): Promise<AtomicResult> {
    checkOptions('compareAndSet', options, updateTable);
    this.#format(value, 'value');
    return this.#change((before) => (before === expected ? value : undefined), options);
  }

  /** Takes away what this writer left beside the number. The number stays. */
  async close(): Promise<void> {
    await this.#cell.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #change(
    next: Next,
    options: UpdateOptions = {},
    read: Read = (data) => this.#parse(data),
  ): Promise<AtomicResult> {
    const startMs = this.#clock.nowMs();
    const triesMax = options.triesMax ?? this.#triesMax;
    const limits = { ...options, triesMax };
    let optimisticMs = 0;
    try {
      const { tries, ...done } = await this.#try(next, read, limits);
      optimisticMs = this.#clock.nowMs() - startMs;
      const stats = { optimisticTries: tries, optimisticMs, promotedTries: 0, promotedMs: 0 };
      return { ...done, stats };
    } catch (error) {
      const isLost = error instanceof CounterError && error.code === 'CONTENTION';
      if (!isLost || this.#lock === undefined) throw error;
    }
    const promotedStartMs = this.#clock.nowMs();
    optimisticMs = promotedStartMs - startMs;
    const wait = {
      timeoutMs: this.#lockTimeoutMs,
      ...(options.signal && { signal: options.signal }),
    };
    const held = await this.#lock.acquire(wait);
    try {
      const { tries, ...done } = await this.#try(next, read, limits);
      const promotedMs = this.#clock.nowMs() - promotedStartMs;
      const stats = { optimisticTries: triesMax, optimisticMs, promotedTries: tries, promotedMs };
      return { ...done, stats };
    } finally {
      await held.release();
    }
  }

  async #try(next: Next, read: Read, options: UpdateOptions) {
    const { isChanged, before, after, tries } = await this.#cell.update((data) => {
      const value = next(read(data));
      return value === undefined ? undefined : this.#format(value);
    }, options);
    return { succeeded: isChanged, before: read(before), after: read(after), tries };
  }

  #parse(data: Buffer): bigint {
    if (data.length === 0) return 0n;
    // Java's ByteBuffer reads the first eight bytes, and so do we.
    if (data.length >= 8) return data.readBigInt64BE(0);
    throw new CounterError('CORRUPT', this.path, { detail: `${data.length} bytes` });
  }

  #format(value: bigint, argument?: string): Buffer {
    if (typeof value !== 'bigint') {
      throw new ArgumentError(argument ?? 'value', 'a bigint is wanted, as 1n');
    }
    if (BigInt.asIntN(64, value) !== value) {
      if (argument !== undefined) throw new ArgumentError(argument, '64 bits are all it can hold');
      throw new CounterError('OVERFLOW', this.path, { detail: String(value) });
    }
    const data = Buffer.alloc(8);
    data.writeBigInt64BE(value);
    return data;
  }
}
