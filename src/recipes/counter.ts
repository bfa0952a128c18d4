/**
 * A counter that many change: kazoo's Counter, whole numbers or floats as text, so that Python and
 * ours count together.
 *
 *   <path>     data: "42", or "1.5"; empty is the first value
 *
 * Each change is made once, though replies may be lost (cell.ts). NOT promised: speed under contention;
 * every change is a read and a write. For numbers that need only be unique, use an IdGenerator.
 */

import { type Acl, ArgumentError, type Client, checkClient } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { checkOptions } from '../support/index.ts';
import { Cell, type UpdateOptions } from './cell.ts';
import { CounterError } from './counter-error.ts';
import { counterTable, updateTable } from './option-tables.ts';

export interface CounterOptions {
  /** Whole numbers, or with a fraction. All who use a counter must say the same. `int`. */
  readonly kind?: 'int' | 'float';
  /** What an empty or missing node counts as. 0. */
  readonly initial?: number;
  /** Tries of one change before it is given up. 100. */
  readonly triesMax?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

export interface Counted {
  readonly before: number;
  readonly after: number;
  readonly tries: number;
}

export class Counter {
  readonly path: string;
  readonly #isFloat: boolean;
  readonly #initial: number;
  readonly #cell: Cell;

  constructor(client: Client, path: string, options: CounterOptions = {}) {
    checkClient('Counter', client);
    checkOptions('Counter', options, counterTable);
    const { kind = 'int', initial = 0, triesMax, acl, clock } = options;
    if (kind !== 'int' && kind !== 'float')
      throw new ArgumentError('kind', 'int or float is wanted');
    this.path = path;
    this.#isFloat = kind === 'float';
    this.#initial = this.#checked('initial', initial);
    this.#cell = new Cell(client, path, { seed: Buffer.alloc(0), triesMax, acl, clock });
  }

  async get(): Promise<number> {
    return this.#parse(await this.#cell.read());
  }

  async increment(options?: UpdateOptions): Promise<Counted> {
    checkOptions('increment', options, updateTable);
    return this.add(1, options);
  }

  async decrement(options?: UpdateOptions): Promise<Counted> {
    checkOptions('decrement', options, updateTable);
    return this.add(-1, options);
  }

  async add(delta: number, options?: UpdateOptions): Promise<Counted> {
    checkOptions('add', options, updateTable);
    this.#checked('delta', delta);
    return this.#change((before) => before + delta, options);
  }

  /** Whatever it was before; what is no number counts as an empty node does. */
  async set(value: number, options?: UpdateOptions): Promise<Counted> {
    checkOptions('set', options, updateTable);
    this.#checked('value', value);
    return this.#change(
      () => value,
      options,
      (data) => this.#valueIn(data) ?? this.#initial,
    );
  }

  /** Takes away what this writer left beside the counter. The counter stays. */
  async close(): Promise<void> {
    await this.#cell.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #change(
    next: (before: number) => number,
    options?: UpdateOptions,
    read = (data: Buffer) => this.#parse(data),
  ): Promise<Counted> {
    const { before, after, tries } = await this.#cell.update(
      (data) => Buffer.from(this.#format(next(read(data)))),
      options,
    );
    return { before: read(before), after: this.#parse(after), tries };
  }

  #parse(data: Buffer): number {
    const value = this.#valueIn(data);
    if (value !== undefined) return value;
    const detail = JSON.stringify(data.toString('latin1').trim().slice(0, 40));
    throw new CounterError('CORRUPT', this.path, { detail });
  }

  /** Undefined where it is none. */
  #valueIn(data: Buffer): number | undefined {
    if (data.length === 0) return this.#initial;
    const text = data.toString('latin1').trim();
    const pattern = this.#isFloat ? /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i : /^[+-]?\d+$/;
    const value = pattern.test(text) ? Number(text) : Number.NaN;
    const isGood = this.#isFloat ? Number.isFinite(value) : Number.isSafeInteger(value);
    return isGood ? value : undefined;
  }

  /** As Python's repr has it: a float shows that it is one, or an int() of it would fail. */
  #format(value: number): string {
    if (!(this.#isFloat ? Number.isFinite(value) : Number.isSafeInteger(value))) {
      throw new CounterError('OVERFLOW', this.path, { detail: String(value) });
    }
    const text = Object.is(value, -0) ? '0' : String(value);
    return this.#isFloat && /^-?\d+$/.test(text) ? `${text}.0` : text;
  }

  #checked(argument: string, value: number): number {
    if (this.#isFloat ? Number.isFinite(value) : Number.isSafeInteger(value)) return value;
    const kind = this.#isFloat ? 'a finite number' : 'a whole number below 2^53';
    throw new ArgumentError(argument, `${kind} is wanted, not ${value}`);
  }
}
